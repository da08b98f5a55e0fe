"""P5: a killed worker costs milliseconds, and at most one page."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support import documents
from tests.support.eventually import eventually
from tests.support.factories import rows
from tests.support.oracle import verify
from tests.support.system import FINISHED, System

PAGES = 6
LONG = 30


@pytest.fixture
async def running(own_system: System) -> System:
    """Everything, with two workers on extract."""
    await own_system.start(
        own_system.process("intake", "intake"),
        own_system.process("publisher", "publisher"),
        own_system.stages("rest", "validate", "normalize", "persist"),
        own_system.stages("first", "extract", DOCSTAGE_FAILPOINTS="page_kept=kill@3"),
    )
    return own_system


async def test_a_scan_goes_on_where_the_killed_worker_left_it(running):
    """Killed after its third page: the heir reads the other pages and no page twice, and progress never goes back."""
    job_id = await running.submit(documents.scan(*(f"This is page {page}." for page in range(1, PAGES + 1))))
    assert await running.processes["first"].wait() == -9
    kept = await rows(running.database, "SELECT page FROM page_text WHERE job_id = :id", id=job_id)
    done = (await running.status(job_id))["progress"]["pages_done"]

    await running.start(running.stages("second", "extract"))
    job = await running.finished(job_id)

    assert (len(kept), done) == (3, 3)
    assert (job["status"], job["progress"]["pages_done"]) == ("completed", PAGES)
    verdict = await verify(running.database, job_id)
    assert [a["outcome"] for a in verdict.attempts if a["stage"] == "extract"] == ["worker_lost", "completed"]
    assert f'docstage_pages_total{{outcome="ocr"}} {PAGES - 3}.0' in await running.processes["second"].metrics()


async def test_a_worker_that_is_told_to_end_gives_back_what_it_cannot_finish(running):
    """A deployment in the middle of a long scan costs neither an attempt nor a lost worker, and no page twice."""
    running.processes["first"].close()
    first = running.stages("one", "extract", DOCSTAGE_GRACE_SECONDS="0")
    await running.start(first)
    job_id = await running.submit(documents.scan(*(f"This is page {page}." for page in range(1, 2 * PAGES + 1))))
    await eventually(lambda: _pages(running, job_id))

    first.terminate()
    status = await first.wait()
    kept = await _pages(running, job_id)
    await running.start(running.stages("two", "extract"))
    job = await running.finished(job_id, seconds=400)

    assert status == 0
    assert kept < 2 * PAGES
    assert job["status"] == "completed"
    verdict = await verify(running.database, job_id)
    extracting = [(a["outcome"], a["attempt"]) for a in verdict.attempts if a["stage"] == "extract"]
    assert extracting == [("released", 1), ("completed", 1)]
    runs = await rows(running.database, "SELECT lost FROM stage_run WHERE job_id = :id", id=job_id)
    assert {run["lost"] for run in runs} == {0}
    assert f'docstage_pages_total{{outcome="ocr"}} {2 * PAGES - kept}.0' in await running.processes["two"].metrics()


async def test_a_worker_that_waits_takes_over_at_once(running):
    """The heir is there already: the redelivery finds the owner's lock free and does not wait for the lease."""
    running.processes["first"].close()
    first = running.stages("one", "extract", DOCSTAGE_LEASE_SECONDS="600", DOCSTAGE_CONSUMER_TIMEOUT_SECONDS="7200")
    await running.start(first)
    job_id = await running.submit(documents.scan(*(f"This is page {page}." for page in range(1, PAGES + 1))))
    await eventually(lambda: _pages(running, job_id))
    await running.start(
        running.stages("two", "extract", DOCSTAGE_LEASE_SECONDS="600", DOCSTAGE_CONSUMER_TIMEOUT_SECONDS="7200")
    )

    first.kill()

    job = await running.finished(job_id)
    assert job["status"] == "completed"
    verdict = await verify(running.database, job_id)
    # A lease of ten minutes could not have run out: it was the lock that told.
    assert [a["outcome"] for a in verdict.attempts if a["stage"] == "extract"] == ["worker_lost", "completed"]


async def _pages(system: System, job_id: str) -> int:
    return len(await rows(system.database, "SELECT 1 FROM page_text WHERE job_id = :id", id=job_id))


@pytest.mark.timeout(900)
async def test_a_long_scan_killed_at_page_17_resumes_there(running):
    """Thirty pages, killed as soon as the sixteenth is kept: the heir begins with page 17 and reads none before it."""
    running.processes["first"].close()
    first = running.stages("first", "extract", DOCSTAGE_FAILPOINTS="page_kept=kill@16")
    await running.start(first)
    job_id = await running.submit(documents.scan(*(f"Page {page}." for page in range(1, LONG + 1))))
    seen = await _progress(running, job_id, lambda _: first.popen.poll() is not None)
    kept = await rows(running.database, "SELECT page FROM page_text WHERE job_id = :id ORDER BY page", id=job_id)

    await running.start(running.stages("second", "extract"))
    seen += await _progress(running, job_id, lambda job: job["status"] in FINISHED)

    assert [row["page"] for row in kept] == list(range(1, 17))
    assert ((await running.status(job_id))["status"], seen[-1]) == ("completed", LONG)
    assert seen == sorted(seen)
    await verify(running.database, job_id)
    # The page under way when the worker died was not kept, and so is the only one to be read again.
    assert f'docstage_pages_total{{outcome="ocr"}} {LONG - 16}.0' in await running.processes["second"].metrics()


async def _progress(system: System, job_id: str, over: Callable[[dict[str, Any]], bool]) -> list[int]:
    """Look at the progress until it is over; return all that was seen of it."""
    seen: list[int] = []
    async with system.client() as client:

        async def look() -> bool:
            job = (await client.get(f"/v1/jobs/{job_id}")).json()
            seen.append((job.get("progress") or {"pages_done": 0})["pages_done"])
            return over(job)

        await eventually(look, seconds=400)
    return seen
