"""Holding a request until its job has something new to say."""

import asyncio
from uuid import UUID

from intake.dependencies import known_job
from intake.responses import etag, job_view
from intake.services import Services
from schema.db.job_records import JobRecord


async def settled(
    intake: Services, tenant_id: UUID, job_id: UUID, *, seconds: float, seen: str | None, base_url: str
) -> JobRecord:
    """Return the job once it is finished or is not what the caller has ``seen``, or when time is up.

    Waiting holds no connection and starts no work; a caller that goes away costs nothing.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + min(seconds, intake.settings.max_wait_seconds)
    with intake.watcher.watch(job_id) as watch:
        while True:
            job = await known_job(intake, tenant_id, job_id)
            left = until - loop.time()
            if job.finished_at is not None or left <= 0 or intake.watcher.stopping:
                return job
            if seen is not None and etag(job_view(job, base_url).model_dump_json().encode()) != seen:
                return job
            await watch.changed(left)
