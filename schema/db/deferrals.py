"""Putting a delivery back on the ladder at no cost of an attempt: one copy per run, through the outbox."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from schema.db.locks import lock_jobs
from schema.domain.runs import RunView

# Conditional on everything that was read: a run that has moved since, or keeps another copy, refuses.
_DEFER = text("""
WITH kept AS (
    UPDATE stage_run r SET deferred_event = m.copy
    FROM unnest(CAST(:jobs AS uuid[]), CAST(:stages AS text[]), CAST(:series AS int[]),
                CAST(:attempts AS int[]), CAST(:tokens AS bigint[]), CAST(:copies AS uuid[]),
                CAST(:delays AS interval[]), CAST(:deferrals AS int[]))
         AS m(job_id, stage, series, attempt, token, copy, delay, deferrals)
    WHERE r.job_id = m.job_id AND r.stage = m.stage AND r.series = m.series AND r.attempt = m.attempt
      AND r.fencing_token = m.token AND (r.deferred_event IS NULL OR r.deferred_event = m.copy)
    RETURNING r.job_id, r.stage, r.lane, r.series, r.attempt, m.copy, m.delay, m.deferrals
)
INSERT INTO outbox_event (event_id, kind, tenant_id, job_id, lane, payload, not_before, deferrals, traceparent)
SELECT k.copy, 'stage', j.tenant_id, k.job_id, k.lane,
       jsonb_build_object('job_id', k.job_id, 'stage', k.stage, 'series', k.series, 'attempt', k.attempt),
       now() + k.delay, k.deferrals, j.traceparent
FROM kept k JOIN job j ON j.id = k.job_id
RETURNING event_id
""")


@dataclass(frozen=True, slots=True)
class Deferral:
    """A wish to see one copy of a run's message again after ``delay``."""

    run: RunView
    copy: UUID
    delay: timedelta
    deferrals: int


async def defer(conn: AsyncConnection, wishes: Sequence[Deferral]) -> list[bool]:
    """Owe the copies to the broker again.

    Returns:
        For each wish whether it was kept; ``False`` means: read the run again, and acknowledge the copy only
        where another one is deferred.
    """
    runs = [wish.run for wish in wishes]
    await lock_jobs(conn, (run.job_id for run in runs))
    rows = await conn.execute(
        _DEFER,
        {
            "jobs": [run.job_id for run in runs],
            "stages": [run.stage.value for run in runs],
            "series": [run.series for run in runs],
            "attempts": [run.attempt for run in runs],
            "tokens": [run.token for run in runs],
            "copies": [wish.copy for wish in wishes],
            "delays": [wish.delay for wish in wishes],
            "deferrals": [wish.deferrals for wish in wishes],
        },
    )
    kept = set(rows.scalars())
    return [wish.copy in kept for wish in wishes]
