"""Jobs as clients see them: reads only, each on a narrow index."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from schema.domain.kinds import Kind
from schema.domain.states import JobState, RunStatus, Stage


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job with the run it is at and the progress of its pages."""

    id: UUID
    tenant_id: UUID
    kind: Kind
    state: JobState
    stage: Stage
    run_status: RunStatus
    series: int
    attempt: int
    next_attempt_at: datetime | None
    wait_seconds: float | None
    pages_done: int
    pages_total: int | None
    warnings: Sequence[Mapping[str, Any]]
    error: Mapping[str, Any] | None
    client_tag: str | None
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    deadline_at: datetime
    expires_at: datetime
    age_seconds: float
    deleted: bool
    expired: bool


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One claim and what came of it; the type of what nobody classified is the operator's, not the client's."""

    stage: str
    series: int
    attempt: int
    began_at: datetime
    ended_at: datetime | None
    outcome: str | None
    code: str | None
    exception_type: str | None


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One line of a job's history."""

    sequence: int
    at: datetime
    type: str
    stage: str | None
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ResultRecord:
    """A job's result: inline, or the key of its object."""

    content: Mapping[str, Any] | None
    blob_key: str | None
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Mark:
    """What changes whenever a job's view does."""

    sequence: int
    status: str
    attempt: int
    pages_done: int
    pages_total: int | None
    finished: bool


# A job that retention took is told from one that its owner deleted by which of the two times came first.
_RECORDS = """
SELECT
    j.id, j.tenant_id, j.kind, j.state, j.current_stage AS stage, j.warnings, j.error, j.client_tag,
    j.created_at, j.updated_at, j.finished_at, j.deadline_at, j.expires_at,
    extract(epoch FROM now() - j.created_at)::float8 AS age_seconds,
    j.deleted_at IS NOT NULL AS deleted,
    j.finished_at IS NOT NULL AND j.expires_at <= coalesce(j.deleted_at, now()) AS expired,
    r.status AS run_status, r.series, r.attempt, r.next_attempt_at,
    extract(epoch FROM r.next_attempt_at - now())::float8 AS wait_seconds,
    coalesce(x.pages_done, 0) AS pages_done, x.pages_total
FROM job j
JOIN stage_run r ON r.job_id = j.id AND r.stage = j.current_stage
LEFT JOIN stage_run x ON x.job_id = j.id AND x.stage = 'extract'
"""
_FIND = text(_RECORDS + "WHERE j.id = :id AND j.tenant_id = :tenant_id")
_FIND_MANY = text(_RECORDS + "WHERE j.id = ANY(CAST(:ids AS uuid[])) ORDER BY j.id DESC")

_MARKS = text("""
SELECT j.id, j.event_sequence, j.finished_at IS NOT NULL AS finished, r.status, r.attempt,
       coalesce(x.pages_done, 0) AS pages_done, x.pages_total
FROM job j
JOIN stage_run r ON r.job_id = j.id AND r.stage = j.current_stage
LEFT JOIN stage_run x ON x.job_id = j.id AND x.stage = 'extract'
WHERE j.id = ANY(CAST(:ids AS uuid[]))
""")

_ATTEMPTS = text("""
SELECT stage, series, attempt, began_at, ended_at, outcome, code, exception_type
FROM stage_attempt WHERE job_id = :id ORDER BY began_at, fencing_token LIMIT :bound
""")

_EVENTS = text("""
SELECT sequence, at, type, stage, data FROM job_event
WHERE job_id = :id AND sequence > :after ORDER BY sequence LIMIT :bound
""")

_RESULT = text("SELECT content, blob_key, sha256, size_bytes FROM result WHERE job_id = :id")

_DOCUMENT = text("SELECT EXISTS (SELECT FROM document WHERE job_id = :id)")


async def find(conn: AsyncConnection, *, job_id: UUID, tenant_id: UUID) -> JobRecord | None:
    """Read one of a tenant's jobs, tombstones too; ``None`` when the tenant has no such job."""
    row = (await conn.execute(_FIND, {"id": job_id, "tenant_id": tenant_id})).one_or_none()
    return _record(row) if row else None


async def find_many(conn: AsyncConnection, job_ids: Sequence[UUID]) -> list[JobRecord]:
    """Read jobs of any tenant, newest first; ones that do not exist are absent."""
    return [_record(row) for row in await conn.execute(_FIND_MANY, {"ids": list(job_ids)})]


async def marks(conn: AsyncConnection, job_ids: Sequence[UUID]) -> dict[UUID, Mark]:
    """Read what tells whether jobs have changed since."""
    rows = await conn.execute(_MARKS, {"ids": list(job_ids)})
    return {
        row.id: Mark(row.event_sequence, row.status, row.attempt, row.pages_done, row.pages_total, row.finished)
        for row in rows
    }


async def attempts(conn: AsyncConnection, *, job_id: UUID, bound: int) -> list[AttemptRecord]:
    """Read up to ``bound`` claims of a job, oldest first."""
    rows = await conn.execute(_ATTEMPTS, {"id": job_id, "bound": bound})
    return [AttemptRecord(**row) for row in rows.mappings()]


async def events(conn: AsyncConnection, *, job_id: UUID, after: int, bound: int) -> list[EventRecord]:
    """Read up to ``bound`` events with a sequence above ``after``."""
    rows = await conn.execute(_EVENTS, {"id": job_id, "after": after, "bound": bound})
    return [EventRecord(**row) for row in rows.mappings()]


async def result(conn: AsyncConnection, *, job_id: UUID) -> ResultRecord | None:
    """Read where a job's result is, or the result itself; ``None`` when there is none."""
    row = (await conn.execute(_RESULT, {"id": job_id})).mappings().one_or_none()
    return ResultRecord(**row) if row else None


async def has_document(conn: AsyncConnection, *, job_id: UUID) -> bool:
    """Say whether a job's document is still known."""
    found: bool = (await conn.execute(_DOCUMENT, {"id": job_id})).scalar_one()
    return found


def _record(row: Row[Any]) -> JobRecord:
    values = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's documented way to a row's names
    values["kind"] = Kind(row.kind)
    values["state"] = JobState(row.state)
    values["stage"] = Stage(row.stage)
    values["run_status"] = RunStatus(row.run_status)
    return JobRecord(**values)
