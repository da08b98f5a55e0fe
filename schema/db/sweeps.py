"""What the sweeper looks for: rows that nobody is going to touch any more, found by narrow indexes, in bounded bites.

A search only names candidates. Whoever acts on them locks their jobs first, passing over those that somebody
else is busy with, and decides by what the rows say then.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol
from uuid import UUID

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from schema.db.engine import Database
from schema.domain.states import Lane, RunStatus

SWEEPER_LOCK: Final = 0x73776570
SAMPLE: Final = 50


@dataclass(frozen=True, slots=True)
class LaneProgress:
    """How far a lane has come.

    ``claimed_until`` is when the latest-issued run was issued of which it is known that it was claimed, ``wait`` how
    long runs wait for their claim.
    """

    claimed_until: datetime
    wait: timedelta


@dataclass(frozen=True, slots=True)
class Patience:
    """When a run that waits counts as forgotten.

    ``overtaken``: a run of its lane issued this much later has been claimed. ``silent``: how old it may get at
    most, where its lane has no longer wait. Both double with every time it was issued again.
    """

    overtaken: timedelta
    silent: timedelta


@dataclass(frozen=True, slots=True)
class Owners:
    """Which of some jobs still have content, and the time before which a stray object is old enough."""

    alive: frozenset[UUID]
    before: datetime


_TRY_LOCK = text("SELECT pg_try_advisory_lock(:key)")
_UNLOCK = text("SELECT pg_advisory_unlock(:key)")

_EXPIRED_LEASES = text("""
SELECT job_id FROM stage_run WHERE status = 'running' AND lease_expires_at <= now()
ORDER BY lease_expires_at LIMIT :limit
""")

_PAST_DEADLINE = text("""
SELECT id FROM job WHERE finished_at IS NULL AND deadline_at <= now() ORDER BY deadline_at LIMIT :limit
""")

# Only runs issued once are evidence: of one issued again nobody knows which of its messages was claimed.
_PROGRESS = text("""
WITH claimed AS (
    (SELECT lane, issued_at, claimed_at FROM stage_run
     WHERE status = 'running' AND issues = 1 ORDER BY lease_expires_at DESC LIMIT :sample)
    UNION ALL
    SELECT r.lane, r.issued_at, a.began_at
    FROM (SELECT id FROM job WHERE finished_at IS NOT NULL ORDER BY finished_at DESC LIMIT :sample) AS j
    JOIN stage_run r ON r.job_id = j.id AND r.status = 'done' AND r.issues = 1
    JOIN stage_attempt a ON a.job_id = r.job_id AND a.stage = r.stage AND a.fencing_token = r.fencing_token
)
SELECT lane, max(issued_at) AS claimed_until, avg(greatest(claimed_at - issued_at, interval '0')) AS wait
FROM claimed GROUP BY lane
""")

# A run is forgotten when it waits without a message that is known of, and others went past it or it is too old.
# Only stage messages count: the notice of an earlier end may be owed for days.
_FORGOTTEN_TEMPLATE = """
SELECT f.job_id
FROM (
    SELECT lane, claimed_until - CAST(:overtaken AS interval) AS passed_until, silent
    FROM unnest(CAST(:lanes AS text[]), CAST(:claimed AS timestamptz[]), CAST(:silent AS interval[]))
         AS given(lane, claimed_until, silent)
) AS l
CROSS JOIN LATERAL (
    SELECT r.job_id, r.issued_at FROM stage_run r
    WHERE r.lane = l.lane AND {guard}
      AND r.issued_at < greatest(l.passed_until, now() - l.silent)
      AND now() - r.issued_at > (power(2, least(r.issues, 16)) - 1)
          * CASE WHEN r.issued_at < l.passed_until THEN CAST(:overtaken AS interval) ELSE l.silent END
      AND NOT EXISTS (SELECT FROM outbox_event o WHERE o.job_id = r.job_id AND o.kind = 'stage')
    ORDER BY r.issued_at LIMIT :limit
) AS f
ORDER BY f.issued_at LIMIT :limit
"""

_FORGOTTEN: Final[Mapping[RunStatus, TextClause]] = {
    RunStatus.READY: text(_FORGOTTEN_TEMPLATE.format(guard="r.status = 'ready'")),
    RunStatus.RETRYING: text(_FORGOTTEN_TEMPLATE.format(guard="r.status = 'retrying' AND r.next_attempt_at <= now()")),
}

_DROP_KEYS = text("""
DELETE FROM idempotency_key WHERE (tenant_id, key) IN (
    SELECT tenant_id, key FROM idempotency_key WHERE expires_at <= now()
    ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED)
""")

_EXPIRED_JOBS = text("""
SELECT id FROM job WHERE finished_at IS NOT NULL AND deleted_at IS NULL AND expires_at <= now()
ORDER BY expires_at LIMIT :limit
""")

_DROP_TOMBSTONES = text("""
DELETE FROM job WHERE id IN (
    SELECT id FROM job WHERE deleted_at IS NOT NULL AND deleted_at <= now() - CAST(:age AS interval)
    ORDER BY deleted_at LIMIT :limit FOR UPDATE SKIP LOCKED)
""")

_OWNERS = text("""
SELECT now() - CAST(:age AS interval) AS before,
       ARRAY(SELECT id FROM job WHERE id = ANY(CAST(:ids AS uuid[])) AND deleted_at IS NULL) AS alive
""")

_EXPIRE_LETTERS = text("""
UPDATE dead_letter SET
    state = 'expired', closed_at = now(),
    history = history || jsonb_build_object('at', now(), 'by', 'sweeper', 'action', 'expired')
WHERE id IN (
    SELECT l.id FROM dead_letter l LEFT JOIN job j ON j.id = l.job_id
    WHERE l.state = 'open'
      AND (j.deleted_at IS NOT NULL OR (l.job_id IS NULL AND l.created_at <= now() - CAST(:age AS interval)))
    ORDER BY l.created_at LIMIT :limit FOR UPDATE OF l SKIP LOCKED)
""")


class Finder(Protocol):
    """A search for jobs that a rule may have to act on."""

    async def __call__(self, conn: AsyncConnection, *, limit: int) -> list[UUID]:
        """Name up to ``limit`` jobs."""


@asynccontextmanager
async def sweeping_alone(database: Database) -> AsyncIterator[bool]:
    """Hold the sweeper's lock while the block runs; yields ``False`` when another process has it.

    A lock of the session, on a connection that does nothing else: it is free the moment this process is gone.
    """
    async with database.engine.connect() as raw:
        conn = await raw.execution_options(isolation_level="AUTOCOMMIT")
        held = bool((await conn.execute(_TRY_LOCK, {"key": SWEEPER_LOCK})).scalar_one())
        try:
            yield held
        finally:
            if held:
                await conn.execute(_UNLOCK, {"key": SWEEPER_LOCK})


async def find_expired_leases(conn: AsyncConnection, *, limit: int) -> list[UUID]:
    """Name jobs whose run is owned by somebody whose lease has run out."""
    return list((await conn.execute(_EXPIRED_LEASES, {"limit": limit})).scalars())


async def find_past_deadline(conn: AsyncConnection, *, limit: int) -> list[UUID]:
    """Name unfinished jobs whose deadline has passed."""
    return list((await conn.execute(_PAST_DEADLINE, {"limit": limit})).scalars())


async def measure_progress(conn: AsyncConnection) -> dict[Lane, LaneProgress]:
    """Look at a sample of claims, running ones and recent ones; lanes without any are absent."""
    rows = await conn.execute(_PROGRESS, {"sample": SAMPLE})
    return {Lane(row.lane): LaneProgress(row.claimed_until, row.wait) for row in rows}


async def find_forgotten(
    conn: AsyncConnection,
    status: RunStatus,
    *,
    progress: Mapping[Lane, LaneProgress],
    patience: Patience,
    limit: int,
) -> list[UUID]:
    """Name jobs whose run is ready, or due for a retry, and has no message that is still going to arrive."""
    waits = [progress[lane].wait if lane in progress else timedelta(0) for lane in Lane]
    rows = await conn.execute(
        _FORGOTTEN[status],
        {
            "lanes": [lane.value for lane in Lane],
            "claimed": [progress[lane].claimed_until if lane in progress else None for lane in Lane],
            "silent": [max(patience.silent, 4 * wait) for wait in waits],
            "overtaken": patience.overtaken,
            "limit": limit,
        },
    )
    return list(rows.scalars())


async def drop_expired_keys(conn: AsyncConnection, *, limit: int) -> int:
    """Forget Idempotency-Keys that are past their time; return how many."""
    return (await conn.execute(_DROP_KEYS, {"limit": limit})).rowcount


async def find_expired_jobs(conn: AsyncConnection, *, limit: int) -> list[UUID]:
    """Name finished jobs that are kept no longer."""
    return list((await conn.execute(_EXPIRED_JOBS, {"limit": limit})).scalars())


async def drop_tombstones(conn: AsyncConnection, *, age: timedelta, limit: int) -> int:
    """Remove the rows of jobs that were deleted longer than ``age`` ago; return how many."""
    return (await conn.execute(_DROP_TOMBSTONES, {"age": age, "limit": limit})).rowcount


async def find_owners(conn: AsyncConnection, job_ids: Sequence[UUID], *, age: timedelta) -> Owners:
    """Say which jobs still have content, and what the database's clock showed ``age`` ago."""
    row = (await conn.execute(_OWNERS, {"ids": list(job_ids), "age": age})).one()
    return Owners(frozenset(row.alive), row.before)


async def expire_letters(conn: AsyncConnection, *, age: timedelta, limit: int) -> int:
    """Close letters that nobody can act on: of deleted jobs, or older than ``age`` and of no job; return how many."""
    return (await conn.execute(_EXPIRE_LETTERS, {"age": age, "limit": limit})).rowcount
