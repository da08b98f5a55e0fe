"""The circuit breaker with a real store: an outage costs no job an attempt, and ends without a hand."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest

from tests.support.eventually import eventually
from tests.support.oracle import verify
from tests.support.protocol import rows
from tests.support.services import Services
from tests.support.system import Process

# Too large to be kept in the database, so that the stages must ask the store.
LINES = 4000
# Two attempts, quick: without the breaker an outage of seconds would use them up.
HASTY = {"DOCSTAGE_RETRY_ATTEMPTS": "2", "DOCSTAGE_PROBE_SECONDS": "0.3"}
PAUSED = "paused: storage_unavailable\n"
OUTAGE_PROBES = 6


@pytest.fixture
def store(services: Services) -> Iterator[Services]:
    """The store, which runs again when the test is over, however that went."""
    yield services
    services.s3.start()


def _text(number: int) -> bytes:
    return b"".join(b"Line %d of document %d.\n" % (line, number) for line in range(LINES))


async def _metric(process: Process, pattern: str) -> float:
    found = re.search(rf"^{pattern} (\S+)$", await process.metrics(), re.MULTILINE)
    return float(found[1]) if found else 0.0


async def _start_paused(stages: Process) -> None:
    """Start a process that finds the store down; it may never have been ready."""
    stages.start()

    async def look() -> bool:
        with suppress(httpx.HTTPError):
            return await stages.missing() == PAUSED
        return False

    await eventually(look)


async def _probes_failed(process: Process) -> float:
    return await _metric(process, r'docstage_dependency_probes_total\{code="storage_unavailable",outcome="failed"\}')


async def test_an_outage_of_the_store_costs_no_job_an_attempt(own_system, store):
    """The stage pauses, says so, asks now and then, and goes on by itself; every attempt keeps its number."""
    await own_system.start(own_system.process("intake", "intake"), own_system.process("publisher", "publisher"))
    ids = [await own_system.submit(_text(number)) for number in range(20)]
    await asyncio.to_thread(store.s3.stop)
    stages = own_system.stages(**HASTY)
    await _start_paused(stages)
    paused = await _metric(stages, r'docstage_stages_paused\{code="storage_unavailable"\}')
    claims = len(await rows(own_system.database, "SELECT 1 FROM stage_attempt"))
    began = await _probes_failed(stages)

    async def long_enough() -> bool:
        return await _probes_failed(stages) >= began + OUTAGE_PROBES

    await eventually(long_enough)
    claims_later = len(await rows(own_system.database, "SELECT 1 FROM stage_attempt"))
    await asyncio.to_thread(store.s3.start)
    jobs = await asyncio.gather(*(own_system.finished(job_id) for job_id in ids))

    assert paused == 1
    # What was under way when the stage paused may still end; after that nothing is claimed.
    assert claims_later - claims <= len(ids)
    assert {job["status"] for job in jobs} == {"completed"}
    for job_id in ids:
        verdict = await verify(own_system.database, job_id)
        assert {attempt["attempt"] for attempt in verdict.attempts} == {1}
        assert {attempt["outcome"] for attempt in verdict.attempts} <= {"completed", "released"}
    answered = r'docstage_dependency_probes_total\{code="storage_unavailable",outcome="answered"\}'
    assert await _metric(stages, answered) == 1
    assert await _metric(stages, r'docstage_stages_paused\{code="storage_unavailable"\}') == 0


async def test_a_worker_that_pauses_stops_at_once_and_gives_back_what_it_holds(own_system, store):
    """A deployment during an outage must not wait for the outage, and loses nothing."""
    await own_system.start(own_system.process("intake", "intake"), own_system.process("publisher", "publisher"))
    ids = [await own_system.submit(_text(number)) for number in range(5)]
    await asyncio.to_thread(store.s3.stop)
    stages = own_system.stages(**HASTY)
    await _start_paused(stages)

    stages.terminate()
    status = await stages.wait()
    await asyncio.to_thread(store.s3.start)
    await own_system.start(own_system.stages(**HASTY))
    jobs = await asyncio.gather(*(own_system.finished(job_id) for job_id in ids))

    assert status == 0
    assert {job["status"] for job in jobs} == {"completed"}
    for job_id in ids:
        verdict = await verify(own_system.database, job_id)
        assert {attempt["attempt"] for attempt in verdict.attempts} == {1}
