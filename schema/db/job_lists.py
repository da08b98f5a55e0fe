"""Pages of a tenant's jobs, newest first."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Select, and_, exists, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from schema.db.job_records import JobRecord, find_many
from schema.db.tables import job, stage_run
from schema.domain.kinds import Kind
from schema.domain.states import JobState, PublicStatus, RunStatus

# One page looks at no more rows than this, so that a filter nothing matches costs the same as any other.
SCAN_ROWS: Final = 5000
# Ids carry the time of the machine that made them, rows the database's; further apart they are not.
SKEW: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs; ``None`` is all."""

    status: PublicStatus | None = None
    kind: Kind | None = None
    client_tag: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class JobPage:
    """Some jobs, and the id to go on behind; a page may be short, or empty, and still not be the last."""

    jobs: list[JobRecord]
    next_before: UUID | None


_RETRYING = exists().where(
    stage_run.c.job_id == job.c.id,
    stage_run.c.stage == job.c.current_stage,
    stage_run.c.status == RunStatus.RETRYING.value,
)


async def page(conn: AsyncConnection, *, tenant_id: UUID, wanted: JobFilter, before: UUID | None, size: int) -> JobPage:
    """Read up to ``size`` jobs older than ``before``, deleted ones left out."""
    scan = _scan(tenant_id, wanted, before)
    scanned = scan.subquery()
    matching = select(scanned.c.id).where(scanned.c.matches).order_by(scanned.c.id.desc()).limit(size + 1)
    ids = list((await conn.execute(matching)).scalars())
    if len(ids) > size:
        following: UUID | None = ids[size - 1]
    else:
        last_looked_at = scan.with_only_columns(job.c.id).offset(SCAN_ROWS - 1).limit(1)
        following = (await conn.execute(last_looked_at)).scalar_one_or_none()
    records = await find_many(conn, ids[:size]) if ids else []
    return JobPage(records, following)


def _scan(tenant_id: UUID, wanted: JobFilter, before: UUID | None) -> Select[Any]:
    """Select the next rows of the index that suits best, and say of each whether it is wanted."""
    return (
        select(job.c.id, and_(true(), *_matches(wanted)).label("matches"))
        .where(job.c.tenant_id == tenant_id, *_bounds(wanted, before))
        .order_by(job.c.id.desc())
        .limit(SCAN_ROWS)
    )


def _bounds(wanted: JobFilter, before: UUID | None) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions that an index answers: they say where the scan begins and ends."""
    if before is not None:
        yield job.c.id < before
    if wanted.client_tag is not None:
        yield job.c.client_tag == wanted.client_tag
    if wanted.created_after is not None:
        yield job.c.id >= _id_at(wanted.created_after - SKEW)
    if wanted.created_before is not None:
        yield job.c.id < _id_at(wanted.created_before + SKEW)
    if wanted.status is PublicStatus.FAILED:
        yield job.c.error.is_not(None)
    elif wanted.status is not None and not _is_final(wanted.status):
        yield job.c.finished_at.is_(None)


def _matches(wanted: JobFilter) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions that each row is looked at for."""
    yield job.c.deleted_at.is_(None)
    if wanted.kind is not None:
        yield job.c.kind == wanted.kind.value
    if wanted.created_after is not None:
        yield job.c.created_at >= wanted.created_after
    if wanted.created_before is not None:
        yield job.c.created_at < wanted.created_before
    if wanted.status is not None:
        yield _has_status(wanted.status)


def _has_status(status: PublicStatus) -> ColumnElement[bool]:
    """Unfold the word that clients see; the inverse of ``public_status``."""
    match status:
        case PublicStatus.RUNNING:
            return and_(job.c.state != JobState.ACCEPTED.value, ~_RETRYING)
        case PublicStatus.RETRYING:
            return and_(job.c.state != JobState.ACCEPTED.value, _RETRYING)
        case _:
            return job.c.state == status.value


def _is_final(status: PublicStatus) -> bool:
    return status in {PublicStatus.COMPLETED, PublicStatus.FAILED, PublicStatus.CANCELLED}


def _id_at(moment: datetime) -> UUID:
    """Return the lowest id that could have been made at ``moment``."""
    milliseconds = max(0, int(moment.timestamp() * 1000))
    return UUID(int=min(milliseconds, (1 << 48) - 1) << 80)
