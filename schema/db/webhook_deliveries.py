"""Tellings of events to endpoints: read for an attempt, recorded after it, listed, and opened again."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Row, text
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
class Attempt:
    """What came of one attempt and what follows, to be written down."""

    message: NoticeMessage
    answer: Answer
    verdict: Verdict
    seconds: float
    traceparent: str | None = None


_READ = text("""
SELECT d.endpoint_id, d.event_id, d.job_id, d.type, d.data, d.status, d.series, d.attempt,
       d.created_at AS at, now() AS now, e.url, e.disabled_at IS NOT NULL AS disabled,
       e.secret, CASE WHEN e.previous_until > now() THEN e.previous_secret END AS previous_secret
FROM webhook_delivery d JOIN webhook_endpoint e ON e.id = d.endpoint_id
WHERE d.endpoint_id = :endpoint_id AND d.event_id = :event_id
""")

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
        "traceparent": attempt.traceparent,
    }
    written: bool = (await conn.execute(_RECORD, values)).scalar_one() == 1
    if written and gone:
        await conn.execute(_DISABLE, _key(attempt.message))
    return written


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
