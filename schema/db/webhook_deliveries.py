"""Tellings of events to endpoints: read for an attempt, recorded after it, listed, and opened again."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Row, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from schema.domain.notices import Answer, DeliveryCode, DeliveryStatus, Verdict
from schema.wire.messages import NoticeMessage

# Enough to see how an endpoint has been answering, little enough that no row grows without end.
MAX_HISTORY: Final = 100


@dataclass(frozen=True, slots=True)
class Errand:
    """One telling with all that an attempt needs; secrets still sealed, the newest first."""

    endpoint_id: UUID
    event_id: UUID
    job_id: UUID
    type: str
    data: Mapping[str, Any]
    status: DeliveryStatus
    series: int
    attempt: int
    at: datetime
    now: datetime
    url: str
    secrets: Sequence[bytes]
    disabled: bool


@dataclass(frozen=True, slots=True)
class Copy:
    """One delivered copy of a notice's message: how often it was deferred, and the trace it belongs to."""

    message: NoticeMessage
    deferrals: int = 0
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of one attempt and what follows, to be written down."""

    copy: Copy
    answer: Answer
    verdict: Verdict
    seconds: float

    @property
    def message(self) -> NoticeMessage:
        """Which attempt it was."""
        return self.copy.message


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """One telling as its owner may see it; ``history`` lists ``{at, series, attempt, status, code, seconds}``."""

    endpoint_id: UUID
    event_id: UUID
    job_id: UUID
    type: str
    status: DeliveryStatus
    series: int
    attempt: int
    next_attempt_at: datetime | None
    created_at: datetime
    delivered_at: datetime | None
    history: Sequence[Mapping[str, Any]]


_READ = text("""
SELECT d.endpoint_id, d.event_id, d.job_id, d.type, d.data, d.status, d.series, d.attempt,
       d.created_at AS at, now() AS now, e.url, e.disabled_at IS NOT NULL AS disabled,
       e.secret, CASE WHEN e.previous_until > now() THEN e.previous_secret END AS previous_secret
FROM webhook_delivery d JOIN webhook_endpoint e ON e.id = d.endpoint_id
WHERE d.endpoint_id = :endpoint_id AND d.event_id = :event_id
""")

_COLUMNS = """
d.endpoint_id, d.event_id, d.job_id, d.type, d.status, d.series, d.attempt, d.next_attempt_at, d.created_at,
d.delivered_at, d.history
"""

# The status stands in the statement, so that the planner can tell which partial index has all of it.
_LIST_TEMPLATE = """
SELECT {columns} FROM webhook_delivery d
WHERE d.endpoint_id = :endpoint_id AND {guard}
  AND d.event_id < coalesce(CAST(:before AS uuid), 'ffffffff-ffff-ffff-ffff-ffffffffffff')
ORDER BY d.event_id DESC LIMIT :limit
"""

_LIST: Final[Mapping[DeliveryStatus | None, TextClause]] = {
    None: text(_LIST_TEMPLATE.format(columns=_COLUMNS, guard="true")),
    **{
        status: text(_LIST_TEMPLATE.format(columns=_COLUMNS, guard=f"d.status = '{status.value}'"))
        for status in DeliveryStatus
    },
}

_REOPEN = text(f"""
WITH opened AS (
    UPDATE webhook_delivery d SET
        status = 'pending', series = d.series + 1, attempt = 0, next_attempt_at = now(), delivered_at = NULL,
        issues = 1, issued_at = now()
    WHERE d.endpoint_id = :endpoint_id AND d.event_id = :event_id
    RETURNING {_COLUMNS}
), owed AS (
    INSERT INTO outbox_event (event_id, kind, tenant_id, job_id, payload, traceparent)
    SELECT o.event_id, 'notice', j.tenant_id, o.job_id, jsonb_build_object(
               'endpoint_id', o.endpoint_id, 'event_id', o.event_id, 'series', o.series, 'attempt', 1), j.traceparent
    FROM opened o JOIN job j ON j.id = o.job_id
)
SELECT * FROM opened
""")  # noqa: S608 - a list of columns

# Whoever removes an endpoint locks it before its deliveries; so does this.
_LOCK_ENDPOINT = text("SELECT FROM webhook_endpoint WHERE id = :endpoint_id FOR NO KEY UPDATE")

_DISABLE = text("""
UPDATE webhook_endpoint SET disabled_at = now(), disabled_reason = 'gone'
WHERE id = :endpoint_id AND disabled_at IS NULL
""")

# The number of the attempt is the fence: of several that made the same one, one is written down.
_RECORD = text("""
WITH moved AS (
    UPDATE webhook_delivery d SET
        attempt = :attempt, status = :status, issues = 1,
        next_attempt_at = now() + CAST(:retry_in AS interval),
        issued_at = now() + coalesce(CAST(:retry_in AS interval), interval '0'),
        delivered_at = CASE WHEN :status = 'delivered' THEN now() END,
        history = CASE WHEN jsonb_array_length(d.history) < :bound THEN d.history ELSE d.history - 0 END
            || (CAST(:entry AS jsonb) || jsonb_build_object('at', now()))
    WHERE d.endpoint_id = :endpoint_id AND d.event_id = :event_id
      AND d.status = 'pending' AND d.series = :series AND d.attempt = :attempt - 1
    RETURNING d.endpoint_id, d.event_id, d.job_id, d.series, d.attempt, d.next_attempt_at
), owed AS (
    INSERT INTO outbox_event
        (event_id, kind, tenant_id, job_id, payload, not_before, available_at, traceparent)
    SELECT m.event_id, 'notice', e.tenant_id, m.job_id, jsonb_build_object(
               'endpoint_id', m.endpoint_id, 'event_id', m.event_id, 'series', m.series, 'attempt', m.attempt + 1),
           m.next_attempt_at, m.next_attempt_at, CAST(:traceparent AS text)
    FROM moved m JOIN webhook_endpoint e ON e.id = m.endpoint_id
    WHERE m.next_attempt_at IS NOT NULL
)
SELECT count(*) FROM moved
""")

# At no cost of an attempt; the row says when the copy comes back, so that nobody takes it for forgotten before.
_DEFER = text("""
WITH deferred AS (
    UPDATE webhook_delivery d SET
        next_attempt_at = now() + CAST(:delay AS interval), issued_at = now() + CAST(:delay AS interval), issues = 1
    WHERE d.endpoint_id = :endpoint_id AND d.event_id = :event_id
      AND d.status = 'pending' AND d.series = :series AND d.attempt = :attempt - 1
    RETURNING d.endpoint_id, d.event_id, d.job_id, d.series, d.attempt, d.next_attempt_at
)
INSERT INTO outbox_event
    (event_id, kind, tenant_id, job_id, payload, not_before, available_at, deferrals, traceparent)
SELECT d.event_id, 'notice', j.tenant_id, d.job_id, jsonb_build_object(
           'endpoint_id', d.endpoint_id, 'event_id', d.event_id, 'series', d.series, 'attempt', d.attempt + 1),
       d.next_attempt_at, d.next_attempt_at, :deferrals, CAST(:traceparent AS text)
FROM deferred d JOIN job j ON j.id = d.job_id
""")

# Owed nothing by the outbox and older than any wait: the broker has lost the message. Less often each time, because
# behind a long queue it has not.
_REISSUE = text("""
WITH silent AS (
    SELECT d.endpoint_id, d.event_id FROM webhook_delivery d
    WHERE d.status = 'pending' AND d.issued_at < now() - CAST(:silent AS interval)
      AND now() - d.issued_at > (power(2, least(d.issues, 16)) - 1) * CAST(:silent AS interval)
      AND NOT EXISTS (
          SELECT FROM outbox_event o
          WHERE o.job_id = d.job_id AND o.kind = 'notice' AND o.event_id = d.event_id
            AND o.payload ->> 'endpoint_id' = CAST(d.endpoint_id AS text))
    ORDER BY d.issued_at LIMIT :limit FOR UPDATE SKIP LOCKED
), issued AS (
    UPDATE webhook_delivery d SET issues = d.issues + 1
    FROM silent s WHERE d.endpoint_id = s.endpoint_id AND d.event_id = s.event_id
    RETURNING d.endpoint_id, d.event_id, d.job_id, d.series, d.attempt
)
INSERT INTO outbox_event (event_id, kind, tenant_id, job_id, payload, available_at, traceparent)
SELECT i.event_id, 'notice', j.tenant_id, i.job_id, jsonb_build_object(
           'endpoint_id', i.endpoint_id, 'event_id', i.event_id, 'series', i.series, 'attempt', i.attempt + 1),
       now() + random() * CAST(:spread AS interval), j.traceparent
FROM issued i JOIN job j ON j.id = i.job_id
""")


async def read(conn: AsyncConnection, message: NoticeMessage) -> Errand | None:
    """Read what a message points to; ``None`` when the endpoint or the job's row is gone."""
    row = (await conn.execute(_READ, _key(message))).one_or_none()
    return _errand(row) if row else None


async def record(conn: AsyncConnection, attempt: Attempt) -> bool:
    """Write an attempt down: its answer's status or code, what follows, and the message that is owed for it.

    States: pending -> pending, delivered, failed. An endpoint that says it is gone is disabled.

    Returns:
        False when this attempt has been written down already, or the telling was opened again meanwhile.
    """
    answer, verdict = attempt.answer, attempt.verdict
    gone = verdict.code is DeliveryCode.GONE
    if gone:
        await conn.execute(_LOCK_ENDPOINT, _key(attempt.message))
    entry = {
        "series": attempt.message.series,
        "attempt": attempt.message.attempt,
        "status": answer.status,
        "code": verdict.code.value if verdict.code else None,
        "seconds": round(attempt.seconds, 3),
    }
    values = _key(attempt.message) | {
        "series": attempt.message.series,
        "attempt": attempt.message.attempt,
        "status": verdict.status.value,
        "retry_in": verdict.retry_in,
        "entry": json.dumps(entry),
        "bound": MAX_HISTORY,
        "traceparent": attempt.copy.traceparent,
    }
    written: bool = (await conn.execute(_RECORD, values)).scalar_one() == 1
    if written and gone:
        await conn.execute(_DISABLE, _key(attempt.message))
    return written


async def defer(conn: AsyncConnection, copy: Copy, *, delay: timedelta) -> None:
    """Owe a copy to the broker again after ``delay``, unless its attempt has been made meanwhile."""
    values = _key(copy.message) | {
        "series": copy.message.series,
        "attempt": copy.message.attempt,
        "delay": delay,
        "deferrals": copy.deferrals + 1,
        "traceparent": copy.traceparent,
    }
    await conn.execute(_DEFER, values)


async def reissue_silent(conn: AsyncConnection, *, silent: timedelta, spread: timedelta, limit: int) -> int:
    """Owe tellings their message again whose message is nowhere, spread over ``spread``; return how many."""
    return (await conn.execute(_REISSUE, {"silent": silent, "spread": spread, "limit": limit})).rowcount


async def page(
    conn: AsyncConnection, *, endpoint_id: UUID, status: DeliveryStatus | None, before: UUID | None, limit: int
) -> list[DeliveryRecord]:
    """Read up to ``limit`` of an endpoint's deliveries that are older than ``before``, newest first."""
    rows = await conn.execute(_LIST[status], {"endpoint_id": endpoint_id, "before": before, "limit": limit})
    return [_record(row) for row in rows]


async def reopen(conn: AsyncConnection, *, endpoint_id: UUID, event_id: UUID) -> DeliveryRecord | None:
    """Begin a telling anew, whatever became of it: a new series with a message at once, under the same id.

    States: any -> pending.

    Returns:
        ``None`` when there is no such delivery.
    """
    row = (await conn.execute(_REOPEN, {"endpoint_id": endpoint_id, "event_id": event_id})).one_or_none()
    return _record(row) if row else None


def _key(message: NoticeMessage) -> dict[str, Any]:
    return {"endpoint_id": message.endpoint_id, "event_id": message.event_id}


def _errand(row: Row[Any]) -> Errand:
    return Errand(
        endpoint_id=row.endpoint_id,
        event_id=row.event_id,
        job_id=row.job_id,
        type=row.type,
        data=row.data,
        status=DeliveryStatus(row.status),
        series=row.series,
        attempt=row.attempt,
        at=row.at,
        now=row.now,
        url=row.url,
        secrets=[secret for secret in (row.secret, row.previous_secret) if secret is not None],
        disabled=row.disabled,
    )


def _record(row: Row[Any]) -> DeliveryRecord:
    return DeliveryRecord(**{**row._mapping, "status": DeliveryStatus(row.status)})  # noqa: SLF001 - SQLAlchemy's public name for it
