"""What is left of a job when all is over: for tests in which somebody comes back late and must change nothing."""

from typing import Any

from tests.support.eventually import eventually
from tests.support.factories import rows
from tests.support.oracle import STAGES, verify
from tests.support.system import Process, System

_TABLES = ("job", "document", "stage_run", "stage_attempt", "stage_output", "page_text", "result", "job_event")


async def footprint(system: System, job_id: str) -> dict[str, Any]:
    """Return every row of a job, to be compared with itself later."""
    return {
        table: await rows(
            system.database,
            f"SELECT t.*, t.xmin::text AS written FROM {table} t"  # noqa: S608 - names of our own tables
            f" WHERE {'id' if table == 'job' else 'job_id'} = :id ORDER BY t::text",
            id=job_id,
        )
        for table in _TABLES
    }


async def outcomes(system: System, job_id: str, stage: str) -> list[str]:
    """Check a finished job with the oracle; return how the claims of one stage ended, in their order."""
    verdict = await verify(system.database, job_id)
    return [attempt["outcome"] for attempt in verdict.attempts if attempt["stage"] == stage]


async def owners(system: System, job_id: str, stage: str) -> int:
    """Return how many workers have claimed a run."""
    found = await rows(
        system.database,
        "SELECT DISTINCT worker_id FROM stage_attempt WHERE job_id = :id AND stage = :stage",
        id=job_id,
        stage=stage,
    )
    return len(found)


async def counted(process: Process, sample: str) -> None:
    """Wait until a process tells a sample, such as ``docstage_fenced_writes_total{stage="extract"} 1.0``."""

    async def look() -> bool:
        return sample in await process.metrics()

    await eventually(look)


async def pages_kept(system: System, job_id: str, count: int = 1) -> None:
    """Wait until so many pages of a scan are kept."""

    async def look() -> bool:
        found = await rows(system.database, "SELECT page FROM page_text WHERE job_id = :id", id=job_id)
        return len(found) >= count

    await eventually(look)


async def all_complete(system: System, ids: list[str], *, seconds: float = 240.0) -> None:
    """Wait for jobs; every one must be completed, and the oracle content."""
    for job_id in ids:
        job = await system.finished(job_id, seconds=seconds)
        assert job["status"] == "completed", job
        verdict = await verify(system.database, job_id)
        completed = [attempt["stage"] for attempt in verdict.attempts if attempt["outcome"] == "completed"]
        assert sorted(completed) == sorted(STAGES)
