"""The outbox: messages owed to the broker, taken in batches, deleted once confirmed.

State is per row, never "everything above the last id", because the order of ids is not the order of commits.
A row is taken by moving its due time behind the lock time, so a relay that dies gives its rows back by itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from schema.domain.states import Lane


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """One message on its way.

    ``delay`` is what remains before ``not_before`` by the database's clock, ``waited`` how long the row has been
    due, ``attempts`` how often it could not be published.
    """

    id: int
    event_id: UUID
    kind: str
    lane: Lane | None
    payload: Mapping[str, Any]
    not_before: datetime | None
    delay: timedelta
    deferrals: int
    traceparent: str | None
    attempts: int
    waited: timedelta


@dataclass(frozen=True, slots=True)
class Postponed:
    """A row that could not be published, why, and when it is tried again."""

    id: int
    code: str
    delay: timedelta


# Whose turn it is among the due rows is decided by this ORDER BY and nowhere else.
_TAKE = text("""
WITH due AS (
    SELECT id, available_at FROM outbox_event
    WHERE available_at <= now()
    ORDER BY available_at, id LIMIT :limit
    FOR UPDATE SKIP LOCKED
)
UPDATE outbox_event o SET available_at = now() + :lock
FROM due WHERE o.id = due.id
RETURNING o.id, o.event_id, o.kind, o.lane, o.payload, o.not_before, o.deferrals, o.traceparent, o.attempts,
          coalesce(o.not_before - now(), interval '0') AS delay,
          now() - greatest(o.created_at, due.available_at) AS waited
""")

_DELETE = text("DELETE FROM outbox_event WHERE id = ANY(CAST(:ids AS bigint[]))")

_POSTPONE = text("""
UPDATE outbox_event o
SET attempts = o.attempts + 1, last_error = m.code, available_at = now() + m.delay
FROM unnest(CAST(:ids AS bigint[]), CAST(:codes AS text[]), CAST(:delays AS interval[])) AS m(id, code, delay)
WHERE o.id = m.id
""")


async def take(conn: AsyncConnection, *, limit: int, lock: timedelta) -> list[OutboxRow]:
    """Take up to ``limit`` due rows for ``lock``, the longest due first; what other relays hold is passed over."""
    rows = await conn.execute(_TAKE, {"limit": limit, "lock": lock})
    return sorted(map(_outbox_row, rows), key=lambda row: row.id)


async def delete_published(conn: AsyncConnection, ids: Sequence[int]) -> None:
    """Delete rows that the broker has confirmed; in the order of their ids, so that relays never deadlock."""
    await conn.execute(_DELETE, {"ids": sorted(ids)})


async def postpone(conn: AsyncConnection, failures: Sequence[Postponed]) -> None:
    """Give back rows that could not be published, each with its code and its next due time."""
    ordered = sorted(failures, key=lambda failure: failure.id)
    await conn.execute(
        _POSTPONE,
        {
            "ids": [failure.id for failure in ordered],
            "codes": [failure.code for failure in ordered],
            "delays": [failure.delay for failure in ordered],
        },
    )


def _outbox_row(row: Row[Any]) -> OutboxRow:
    return OutboxRow(
        id=row.id,
        event_id=row.event_id,
        kind=row.kind,
        lane=Lane(row.lane) if row.lane else None,
        payload=row.payload,
        not_before=row.not_before,
        delay=row.delay,
        deferrals=row.deferrals,
        traceparent=row.traceparent,
        attempts=row.attempts,
        waited=row.waited,
    )
