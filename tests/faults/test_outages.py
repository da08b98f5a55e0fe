"""Services that go and come back in the middle of work: no accepted job is lost or doubled, and no hand is needed."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.support import documents
from tests.support.aftermath import all_complete, outcomes, pages_kept
from tests.support.eventually import eventually
from tests.support.factories import rows
from tests.support.services import Services
from tests.support.system import Process, System

TEXT = b"Whatever goes away comes back.\n"
# Beyond what is kept in the database too, so that every stage fetches it from the store.
LARGE_TEXT = b"A line of a document that only the object store has.\n" * 3000
SCAN = documents.scan(*(f"This is page {page}." for page in range(1, 5)))
# The store is away for longer than the quick retries of the tests would last.
PATIENT = {"DOCSTAGE_RETRY_ATTEMPTS": "100", "DOCSTAGE_S3_TIMEOUT_SECONDS": "2"}


@pytest.fixture(scope="module")
async def everything(system: System) -> System:
    """All processes; none of them is started again in this module."""
    await system.start_all(**PATIENT)
    return system


@pytest.fixture(params=["postgres", "rabbitmq"])
def victim(request: pytest.FixtureRequest, services: Services) -> Iterator[str]:
    """The service to be restarted; it runs again when the test is over, however that went."""
    yield request.param
    getattr(services, request.param).start()


async def test_a_restart_in_the_middle_of_work_costs_nothing(everything, services, victim):
    """Twenty texts on their way and a scan half read: all end once, and the scan's owner keeps it."""
    scan = await everything.submit(SCAN)
    texts = await asyncio.gather(*(everything.submit(TEXT + str(number).encode()) for number in range(20)))
    await pages_kept(everything, scan)

    await asyncio.to_thread(getattr(services, victim).stop)
    await asyncio.to_thread(getattr(services, victim).start)

    await everything.database.close()  # the test's own connections died with the server
    await all_complete(everything, [scan, *texts])
    assert await outcomes(everything, scan, "extract") == ["completed"]
    for process in everything.processes.values():
        await process.ready()


async def test_a_store_that_is_away_costs_time_and_no_job(everything, services):
    """What was accepted waits for its document; what comes meanwhile is refused and leaves nothing."""
    stages = everything.processes["stages"]
    stages.pause()
    ids = [await everything.submit(LARGE_TEXT + str(number).encode()) for number in range(3)]
    await asyncio.to_thread(services.s3.stop)
    try:
        stages.resume()
        await eventually(lambda: _paused(stages))
        async with everything.client() as client:
            refused = await client.post("/v1/jobs", data={"kind": "text"}, files={"file": ("t.txt", TEXT)})
        unfinished = await rows(everything.database, "SELECT id FROM job WHERE finished_at IS NULL")
    finally:
        await asyncio.to_thread(services.s3.start)

    assert (refused.status_code, refused.json()["code"]) == (503, "dependency_unavailable")
    assert {str(row["id"]) for row in unfinished} == set(ids)
    await all_complete(everything, ids)


async def _paused(stages: Process) -> bool:
    """Say whether the worker has found the store missing."""
    return 'docstage_stages_paused{code="storage_unavailable"} 1.0' in await stages.metrics()


async def test_a_database_that_freezes_is_missing_from_readiness(everything, services):
    """Its connections stay open and nothing answers on them: a load balancer must hear of it all the same."""
    intake = everything.processes["intake"]
    await everything.submit(TEXT)
    services.postgres.pause()
    try:
        missing = await intake.missing()
    finally:
        services.postgres.resume()

    assert "missing: database" in missing
    await intake.ready()
