"""What an owner may do to a job: each one transaction that first locks the job."""

import contextlib
from typing import Final
from uuid import UUID

from intake.dependencies import still_there
from intake.problems import Problem, ProblemCode
from intake.services import Services
from schema.db import dead_letters, job_records, jobs, stage_runs
from schema.db.dead_letters import LetterState
from schema.db.job_records import JobRecord
from schema.db.locks import lock_jobs
from schema.db.moves import apply
from schema.domain import moves
from schema.domain.errors import MEANINGS, ErrorCode, PermanentError, TransientError
from schema.domain.states import JobState
from schema.runtime import metrics
from schema.runtime.blobs import job_prefix

OWNER: Final = "owner"
RETRIED: Final = "retried by its owner"
DELETED: Final = "deleted by its owner"


async def cancel(intake: Services, tenant_id: UUID, job_id: UUID) -> JobRecord:
    """Cancel a job; one that is cancelled already stays so.

    States: unfinished -> cancelled.

    Raises:
        Problem: ``already_finished``, when it completed or failed before; nothing changes then.
    """
    async with intake.database.transaction() as conn:
        await lock_jobs(conn, [job_id])
        job = still_there(await job_records.find(conn, job_id=job_id, tenant_id=tenant_id))
        if job.state is JobState.CANCELLED:
            return job
        if job.state.terminal:
            raise Problem(ProblemCode.ALREADY_FINISHED)
        run = (await stage_runs.read_current(conn, [job_id]))[job_id]
        await apply(conn, [moves.cancel(run)])
        after = still_there(await job_records.find(conn, job_id=job_id, tenant_id=tenant_id))
    intake.waker.wake()
    metrics.COMPLETIONS.labels(after.kind.value, JobState.CANCELLED.value, "").inc()
    return after


async def retry(intake: Services, tenant_id: UUID, job_id: UUID) -> JobRecord:
    """Open the next series of a failed job, from the stage that failed.

    States: failed -> the stage that failed.

    Raises:
        Problem: ``not_retryable``; ``expired``, when the document is gone; what admission has against it.
    """
    if refusal := await intake.admission.refusal(tenant_id):
        raise refusal
    async with intake.database.transaction() as conn:
        await lock_jobs(conn, [job_id])
        job = still_there(await job_records.find(conn, job_id=job_id, tenant_id=tenant_id))
        if not retryable(job):
            raise Problem(ProblemCode.NOT_RETRYABLE)
        if job.expired or not await job_records.has_document(conn, job_id=job_id):
            raise Problem(ProblemCode.EXPIRED)
        run = (await stage_runs.read_current(conn, [job_id]))[job_id]
        await apply(conn, [moves.redrive(run, by=OWNER, note=RETRIED)])
        await dead_letters.close(conn, job_ids=[job_id], state=LetterState.REDRIVEN, by=OWNER, note=RETRIED)
        after = still_there(await job_records.find(conn, job_id=job_id, tenant_id=tenant_id))
    intake.admission.accepted(tenant_id)
    intake.waker.wake()
    return after


def retryable(job: JobRecord) -> bool:
    """Say whether trying again can help."""
    code = job.error.get("code") if job.error else None
    return code in set(ErrorCode) and MEANINGS[ErrorCode(code)].retryable


async def delete(intake: Services, tenant_id: UUID, job_id: UUID) -> None:
    """Take a job's content away for good: cancelled first, a tombstone left, objects last.

    Idempotent: yes. The objects are looked for again later, because a worker that was cut off may still write one.

    States: any -> a tombstone.
    """
    async with intake.database.transaction() as conn:
        await lock_jobs(conn, [job_id])
        job = await job_records.find(conn, job_id=job_id, tenant_id=tenant_id)
        if job is None:
            raise Problem(ProblemCode.NOT_FOUND)
        if not job.state.terminal:
            run = (await stage_runs.read_current(conn, [job_id]))[job_id]
            await apply(conn, [moves.cancel(run)])
        await dead_letters.close(conn, job_ids=[job_id], state=LetterState.DISCARDED, by=OWNER, note=DELETED)
        await jobs.bury(conn, [job_id])
    if not job.state.terminal:
        intake.waker.wake()
        metrics.COMPLETIONS.labels(job.kind.value, JobState.CANCELLED.value, "").inc()
    with contextlib.suppress(PermanentError, TransientError):
        await intake.blobs.delete_prefix(job_prefix(job_id))
