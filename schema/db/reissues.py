"""Issuing a run's message again: a new message made from the run's row, never an old one sent back."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from schema.domain.ids import new_id
from schema.domain.runs import RunView

AT_ONCE: Final = timedelta(0)

# A run that has moved since it was read has a message of its own. The copy that was deferred may be lost with the
# message that is made up for: it must not turn the new one away. Should it live, it is one copy more, and stale.
_REISSUE = text("""
WITH issued AS (
    UPDATE stage_run r SET
        issues = r.issues + 1, deferred_event = NULL,
        reissued_series = CASE WHEN :given_up THEN r.series ELSE r.reissued_series END
    FROM unnest(CAST(:jobs AS uuid[]), CAST(:stages AS text[]), CAST(:tokens AS bigint[]),
                CAST(:events AS uuid[]), CAST(:delays AS interval[])) AS m(job_id, stage, token, event_id, delay)
    WHERE r.job_id = m.job_id AND r.stage = m.stage AND r.fencing_token = m.token
      AND r.status IN ('ready', 'retrying') AND (NOT :first OR r.reissued_series < r.series)
    RETURNING r.job_id, r.stage, r.lane, r.series, r.attempt, r.next_attempt_at, m.event_id, m.delay
)
INSERT INTO outbox_event (event_id, kind, tenant_id, job_id, lane, payload, not_before, available_at, traceparent)
SELECT i.event_id, 'stage', j.tenant_id, i.job_id, i.lane,
       jsonb_build_object('job_id', i.job_id, 'stage', i.stage, 'series', i.series, 'attempt', i.attempt),
       i.next_attempt_at, now() + i.delay, j.traceparent
FROM issued i JOIN job j ON j.id = i.job_id
RETURNING job_id
""")


@dataclass(frozen=True, slots=True)
class Reissue:
    """A wish to owe a run its message once more, ``delay`` from now."""

    run: RunView
    delay: timedelta = AT_ONCE


async def reissue(
    conn: AsyncConnection, wishes: Sequence[Reissue], *, given_up: bool = False, again: bool = False
) -> set[UUID]:
    """Owe waiting runs their message again; lock their jobs before.

    Args:
        conn: a transaction that holds the jobs' locks.
        wishes: at most one per run.
        given_up: the broker gave the message up, which is made good once per series of the run and noted there.
        again: of a given-up message that may have been made good before, and nobody could say so.

    Returns:
        The jobs that got one.
    """
    runs = [wish.run for wish in wishes]
    rows = await conn.execute(
        _REISSUE,
        {
            "given_up": given_up,
            "first": given_up and not again,
            "jobs": [run.job_id for run in runs],
            "stages": [run.stage.value for run in runs],
            "tokens": [run.token for run in runs],
            "events": [new_id() for _ in runs],
            "delays": [wish.delay for wish in wishes],
        },
    )
    return set(rows.scalars())
