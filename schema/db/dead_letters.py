"""Dead letters: each has a reason, a code, a state and a history, and every change of it says who, when and why."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, func, or_, select, text, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from schema.db.tables import dead_letter
from schema.domain.errors import ErrorCode
from schema.domain.ids import new_id
from schema.domain.moves import LetterReason


class LetterState(StrEnum):
    """Where a dead letter is."""

    OPEN = "open"
    REDRIVEN = "redriven"
    DISCARDED = "discarded"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter; ``history`` is a list of ``{at, by, action, note}``."""

    id: UUID
    job_id: UUID | None
    tenant_id: UUID | None
    stage: str | None
    series: int
    reason: str
    code: str
    state: LetterState
    attempts: int
    seen: int
    queue: str | None
    body_bytes: int | None
    history: Sequence[Mapping[str, Any]]
    created_at: datetime
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Group:
    """How many open letters there are of one stage, code and reason, and since when."""

    stage: str | None
    code: str
    reason: str
    letters: int
    oldest_at: datetime
    newest_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterFilter:
    """Which letters are meant; what is not named does not matter."""

    state: LetterState | None = LetterState.OPEN
    stage: str | None = None
    code: str | None = None
    reason: str | None = None
    tenant_id: UUID | None = None
    job_id: UUID | None = None
    ids: Sequence[UUID] | None = None
    older_than: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page of letters ended: the next one begins behind it."""

    created_at: datetime
    id: UUID


# One letter per body, whoever meets it and however often; meeting it again after it was closed opens it again.
_RECORD_UNREADABLE = text("""
WITH recorded AS (
    INSERT INTO dead_letter AS d (id, job_id, tenant_id, reason, code, body_sha256, body_bytes, queue)
    SELECT CAST(:id AS uuid), j.id, j.tenant_id, :reason, :code, CAST(:sha256 AS bytea), :size, :queue
    FROM (SELECT 1) AS one LEFT JOIN job j ON j.id = CAST(:job_id AS uuid) AND j.deleted_at IS NULL
    ON CONFLICT (body_sha256) WHERE body_sha256 IS NOT NULL DO UPDATE SET
        seen = d.seen + 1, state = 'open', closed_at = NULL,
        history = CASE WHEN d.state = 'open' THEN d.history ELSE d.history || jsonb_build_object(
            'at', now(), 'by', 'consumer', 'action', 'reopened') END
    RETURNING d.id, d.job_id, d.tenant_id, d.seen,
              d.history -> -1 ->> 'action' = 'reopened' AND CAST(d.history -> -1 ->> 'at' AS timestamptz) = now()
              AS reopened
)
INSERT INTO outbox_event (event_id, kind, tenant_id, job_id, payload)
SELECT CAST(:event_id AS uuid), 'dead_letter', tenant_id, job_id, jsonb_build_object(
    'dead_letter_id', id, 'job_id', job_id, 'stage', NULL, 'series', 1, 'code', CAST(:code AS text))
FROM recorded WHERE seen = 1 OR reopened
""")

# In the order of ids, as everything that locks letters: two operators must not wait for each other.
_CLOSE = text("""
WITH mine AS (
    SELECT id FROM dead_letter
    WHERE state = 'open' AND (id = ANY(CAST(:ids AS uuid[])) OR job_id = ANY(CAST(:job_ids AS uuid[])))
    ORDER BY id FOR UPDATE
)
UPDATE dead_letter d SET
    state = :state, closed_at = now(),
    history = history || jsonb_build_object(
        'at', now(), 'by', CAST(:by AS text), 'action', CAST(:state AS text), 'note', CAST(:note AS text))
FROM mine WHERE d.id = mine.id
RETURNING d.id
""")

_GROUPS = text("""
SELECT stage, code, reason, count(*) AS letters, min(created_at) AS oldest_at, max(created_at) AS newest_at
FROM dead_letter WHERE state = 'open'
GROUP BY stage, code, reason ORDER BY letters DESC, code
""")

_STATES = text("SELECT id, state FROM dead_letter WHERE id = ANY(CAST(:ids AS uuid[]))")

_BY_STATE = text("SELECT state, count(*) AS letters FROM dead_letter GROUP BY state ORDER BY state")

# Young letters are left out: their message may be between the outbox and the queue.
_OWE_MISSING = text("""
INSERT INTO outbox_event (event_id, kind, tenant_id, job_id, payload)
SELECT gen_random_uuid(), 'dead_letter', d.tenant_id, d.job_id, jsonb_build_object(
    'dead_letter_id', d.id, 'job_id', d.job_id, 'stage', d.stage, 'series', d.series, 'code', d.code)
FROM dead_letter d
WHERE d.state = 'open' AND d.created_at < now() - interval '1 minute' AND d.id <> ALL(CAST(:seen AS uuid[]))
  AND NOT EXISTS (
      SELECT FROM outbox_event o
      WHERE o.kind = 'dead_letter' AND o.payload ->> 'dead_letter_id' = CAST(d.id AS text))
ORDER BY d.created_at LIMIT :limit
""")

_REASONS = {
    ErrorCode.UNREADABLE_MESSAGE: LetterReason.UNREADABLE,
    ErrorCode.UNKNOWN_MESSAGE_VERSION: LetterReason.UNKNOWN_VERSION,
}
_COLUMNS = tuple(dead_letter.c[name] for name in Letter.__dataclass_fields__)


async def record_unreadable(
    conn: AsyncConnection, *, code: ErrorCode, body: bytes, job_id: UUID | None, queue: str
) -> None:
    """Make a dead letter of a message that nobody can read: its hash and size, never its body.

    Idempotent: the same body again only raises ``seen``, and owes no second message unless its letter had been
    closed meanwhile.
    """
    values = {
        "id": new_id(),
        "event_id": new_id(),
        "job_id": job_id,
        "reason": _REASONS[code].value,
        "code": code.value,
        "sha256": hashlib.sha256(body).digest(),
        "size": len(body),
        "queue": queue,
    }
    await conn.execute(_RECORD_UNREADABLE, values)


async def close(
    conn: AsyncConnection,
    *,
    ids: Sequence[UUID] = (),
    job_ids: Sequence[UUID] = (),
    state: LetterState,
    by: str,
    note: str,
) -> list[UUID]:
    """Close open letters, named by their ids or their jobs', and write down who did it and why.

    States: open -> ``state``.

    Returns:
        The letters that were open.
    """
    values = {"ids": list(ids), "job_ids": list(job_ids), "state": state.value, "by": by, "note": note}
    rows = await conn.execute(_CLOSE, values)
    return list(rows.scalars())


async def list_groups(conn: AsyncConnection) -> list[Group]:
    """Count the open letters by stage, code and reason, the largest group first."""
    rows = await conn.execute(_GROUPS)
    return [Group(**row) for row in rows.mappings()]


def grouped(letters: Iterable[Letter]) -> list[Group]:
    """Count letters, oldest first, by stage, code and reason."""
    groups: dict[tuple[str | None, str, str], list[Letter]] = {}
    for letter in letters:
        groups.setdefault((letter.stage, letter.code, letter.reason), []).append(letter)
    return [Group(*key, len(found), found[0].created_at, found[-1].created_at) for key, found in groups.items()]


async def list_letters(
    conn: AsyncConnection, wanted: LetterFilter, *, after: Place | None = None, limit: int
) -> list[Letter]:
    """Read a page of letters, oldest first; ``after`` is where the last page ended."""
    statement = select(*_COLUMNS).where(*_conditions(wanted))
    if after is not None:
        statement = statement.where(
            tuple_(dead_letter.c.created_at, dead_letter.c.id) > tuple_(after.created_at, after.id)
        )
    rows = await conn.execute(statement.order_by(dead_letter.c.created_at, dead_letter.c.id).limit(limit))
    return [_letter(row) for row in rows]


async def count(conn: AsyncConnection, wanted: LetterFilter) -> int:
    """Say how many letters a filter means."""
    statement = select(func.count()).select_from(dead_letter).where(*_conditions(wanted))
    return (await conn.execute(statement)).scalar_one()


async def find(conn: AsyncConnection, known_id: UUID) -> Letter | None:
    """Read the letter of this id, or the latest of the job of this id; ``None`` when there is neither."""
    columns = dead_letter.c
    statement = select(*_COLUMNS).where(or_(columns.id == known_id, columns.job_id == known_id))
    row = (await conn.execute(statement.order_by(columns.created_at.desc(), columns.id).limit(1))).one_or_none()
    return _letter(row) if row else None


async def read_states(conn: AsyncConnection, ids: Sequence[UUID]) -> dict[UUID, LetterState]:
    """Say where letters are; ones that do not exist are absent."""
    rows = await conn.execute(_STATES, {"ids": list(ids)})
    return {row.id: LetterState(row.state) for row in rows}


async def count_by_state(conn: AsyncConnection) -> dict[LetterState, int]:
    """Count all letters by where they are."""
    rows = await conn.execute(_BY_STATE)
    return {LetterState(row.state): row.letters for row in rows}


async def owe_missing(conn: AsyncConnection, *, seen: Sequence[UUID], limit: int) -> int:
    """Owe the queue the messages of open letters that were not ``seen`` in it; return how many."""
    return (await conn.execute(_OWE_MISSING, {"seen": list(seen), "limit": limit})).rowcount


def _conditions(wanted: LetterFilter) -> list[ColumnElement[bool]]:
    """Turn a filter into conditions that all have to hold."""
    columns = dead_letter.c
    equal = {
        columns.state: wanted.state.value if wanted.state else None,
        columns.stage: wanted.stage,
        columns.code: wanted.code,
        columns.reason: wanted.reason,
        columns.tenant_id: wanted.tenant_id,
        columns.job_id: wanted.job_id,
    }
    conditions = [column == value for column, value in equal.items() if value is not None]
    if wanted.ids is not None:
        conditions.append(columns.id.in_(wanted.ids))
    if wanted.older_than is not None:
        conditions.append(columns.created_at < func.now() - wanted.older_than)
    return conditions


def _letter(row: Row[Any]) -> Letter:
    return Letter(**{**row._mapping, "state": LetterState(row.state)})  # noqa: SLF001 - SQLAlchemy's public name for it
