"""Rows to test with, made by the statements that production uses wherever there is one."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import text

from schema.db import moves, stage_runs
from schema.db.engine import Database
from schema.db.stage_runs import Claimed
from schema.domain.ids import new_id
from schema.domain.states import Stage
from schema.wire.messages import StageMessage

LEASE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class AcceptedJob:
    """A job that waits for its first stage."""

    id: UUID
    tenant_id: UUID

    def message(self, stage: Stage = Stage.VALIDATE, *, series: int = 1, attempt: int = 1) -> StageMessage:
        """Return the message that points to one of its runs."""
        return StageMessage(self.id, stage, series, attempt)


async def accepted_job(database: Database, *, deadline: timedelta = timedelta(hours=1)) -> AcceptedJob:
    """Store a job as intake does, without its outbox row."""
    job = AcceptedJob(new_id(), new_id())
    async with database.transaction() as conn:
        await conn.execute(
            text("INSERT INTO tenant (id, name) VALUES (:id, :name)"),
            {"id": job.tenant_id, "name": str(job.tenant_id)},
        )
        await conn.execute(
            text(
                "INSERT INTO job (id, tenant_id, kind, deadline, retention, deadline_at, expires_at)"
                " VALUES (:id, :tenant_id, 'text', :deadline, '1 day', now() + :deadline, now() + interval '1 day')"
            ),
            {"id": job.id, "tenant_id": job.tenant_id, "deadline": deadline},
        )
        await conn.execute(
            text(
                "INSERT INTO document (job_id, sha256, size_bytes, media_type, storage_key)"
                " VALUES (:id, 'none', 5, 'text/plain', 'jobs/none')"
            ),
            {"id": job.id},
        )
        await conn.execute(
            text("INSERT INTO stage_run (job_id, stage, lane) VALUES (:id, 'validate', 'validate')"), {"id": job.id}
        )
    return job


async def claim(database: Database, job: AcceptedJob, *, worker_id: int = 1, **message: object) -> Claimed | None:
    """Claim a run, as one worker."""
    async with database.transaction() as conn:
        (claimed,) = await stage_runs.claim(conn, [job.message(**message)], worker_id=worker_id, lease=LEASE)
    return claimed


async def write(database: Database, *decided: moves.Move) -> list[bool]:
    """Write moves in a transaction of their own."""
    async with database.transaction() as conn:
        return await moves.lock_and_apply(conn, decided)


async def rows(database: Database, statement: str, **values: object) -> list[dict[str, object]]:
    """Return what a query finds."""
    async with database.transaction() as conn:
        return [dict(row) for row in (await conn.execute(text(statement), values)).mappings()]
