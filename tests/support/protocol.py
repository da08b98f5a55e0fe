"""The people and processes that move jobs, as the tests of the protocol set them against each other.

All of them are the real functions; only what has nothing to do with the database is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher.retention import Retention
from publisher.rules import JobRules
from schema.db import jobs, moves, stage_runs
from schema.db.engine import Database
from schema.db.jobs import NewDocument, NewJob
from schema.db.stage_runs import Claimed
from schema.domain.backoff import RetryPolicy
from schema.domain.decisions import decide
from schema.domain.errors import ErrorCode
from schema.domain.ids import new_id
from schema.domain.kinds import Kind
from schema.domain.moves import Move, of_outcome
from schema.domain.outcomes import Completed, Outcome, Permanent, Transient, Unknown
from schema.domain.runs import Claim, RunView
from schema.domain.states import Stage
from schema.runtime.clock import SystemClock
from schema.wire.messages import StageMessage
from tests.support.eventually import eventually
from tests.support.factories import LEASE, AcceptedJob, rows

HOUR = timedelta(hours=1)
# Small bounds, so that chance reaches them; long delays, so that nothing becomes due by itself.
POLICY = RetryPolicy(base=2 * HOUR, cap=2 * HOUR, attempts=2, unknown_attempts=1, lost_claims=1)
DEADLINE = timedelta(days=30)

DONE = Completed({"pages": 1}, pages_total=2)
STORAGE = Transient(ErrorCode.STORAGE_UNAVAILABLE)
BUG = Unknown("KeyError")
DAMAGED = Permanent(ErrorCode.CORRUPT_DOCUMENT)


class Quiet:
    """Wakes nobody: what is owed is looked for by the test itself."""

    def wake(self) -> None:
        """Do nothing."""


class _Admission:
    """Lets everybody in."""

    async def refusal(self, _: UUID) -> None:
        """Have nothing against it."""

    def accepted(self, _: UUID) -> None:
        """Count nothing."""


class _NoBlobs:
    """An object store that is empty already."""

    async def delete_prefix(self, _: str) -> None:
        """Delete nothing."""


def front_desk(database: Database) -> Any:
    """Return what intake's commands need of the service they run in."""
    return SimpleNamespace(database=database, waker=Quiet(), admission=_Admission(), blobs=_NoBlobs())


def sweeper_settings() -> Any:
    """Return what the sweeper's rules read of a publisher's settings."""
    return SimpleNamespace(
        lost_claims=POLICY.lost_claims, sweep_batch=100, overtaken_seconds=60.0, silent_seconds=600.0, tombstone_days=30
    )


def sweeper(database: Database) -> JobRules:
    """Return the sweeper's rules about jobs."""
    return JobRules(sweeper_settings(), database, {})


def retention(database: Database) -> Retention:
    """Return the rules that end a job's content."""
    return Retention(sweeper_settings(), database, _NoBlobs(), SystemClock())  # type: ignore[arg-type] # no store needed


async def accepted_jobs(database: Database, count: int) -> list[AcceptedJob]:
    """Accept jobs as intake does, the first message of each owed by the outbox."""
    tenant_id = new_id()
    async with database.transaction() as conn:
        await conn.execute(
            text("INSERT INTO tenant (id, name) VALUES (:id, :name)"), {"id": tenant_id, "name": str(tenant_id)}
        )
        made = [await _accept(conn, tenant_id) for _ in range(count)]
    return [AcceptedJob(job_id, tenant_id) for job_id in made]


async def _accept(conn: AsyncConnection, tenant_id: UUID) -> UUID:
    job = NewJob(
        id=new_id(),
        tenant_id=tenant_id,
        kind=Kind.TEXT,
        options={},
        client_tag=None,
        traceparent=None,
        deadline=DEADLINE,
        retention=timedelta(days=1),
        document=NewDocument("jobs/none", 5, "none", None, "text/plain"),
    )
    await jobs.accept(conn, job, reservation=None, fingerprint=None)
    return job.id


async def current(database: Database, job_id: UUID) -> RunView:
    """Read the run that a job is at."""
    async with database.transaction() as conn:
        return (await stage_runs.read_current(conn, [job_id]))[job_id]


async def current_all(database: Database, crowd: Sequence[AcceptedJob]) -> list[RunView]:
    """Read the runs that many jobs are at."""
    async with database.transaction() as conn:
        found = await stage_runs.read_current(conn, [job.id for job in crowd])
    return [found[job.id] for job in crowd]


async def claim_all(
    database: Database,
    crowd: Sequence[AcceptedJob],
    stage: Stage = Stage.VALIDATE,
    *,
    attempt: int = 1,
    series: int = 1,
) -> list[Claim]:
    """Claim a stage of many jobs, as one worker with one statement."""
    messages = [StageMessage(job.id, stage, series, attempt) for job in crowd]
    async with database.transaction() as conn:
        claimed = await stage_runs.claim(conn, messages, worker_id=1, lease=LEASE)
    return [_sure(one).claim for one in claimed]


def _sure(claimed: Claimed | None) -> Claimed:
    assert claimed is not None
    return claimed


def decided(claim: Claim, outcome: Outcome) -> Move:
    """Return the move that follows from an outcome, as the runner decides it."""
    decision = decide(
        outcome, attempt=claim.attempt, policy=POLICY, time_left=claim.time_left, uniform=lambda _, high: high
    )
    return of_outcome(claim, outcome, decision)


async def write_all(database: Database, wanted: Sequence[Move]) -> None:
    """Write moves that nothing stands against, in one transaction."""
    async with database.transaction() as conn:
        assert all(await moves.lock_and_apply(conn, wanted))


async def change(database: Database, statement: str, **values: object) -> None:
    """Let time pass for some rows, or set up what takes long to come about."""
    async with database.transaction() as conn:
        await conn.execute(text(statement), values)


async def until_locks_prove_something(database: Database) -> None:
    """Wait until the server is old enough for a free lock to mean that its worker is gone."""
    question = "SELECT 1 WHERE now() - pg_postmaster_start_time() > interval '10 seconds'"
    await eventually(lambda: rows(database, question))


@dataclass(frozen=True, slots=True)
class Hand:
    """A worker by its number alone, as the ledger sees it: always ready, its lock held elsewhere or nowhere."""

    worker_id: int

    async def ready(self) -> None:
        """Be ready."""
