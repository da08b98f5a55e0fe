"""P1: what was answered with 202 is on disk. Each service is killed by SIGKILL right after the answer."""

import asyncio
from collections.abc import Iterator

import pytest

from intake.accept import SMALL_BYTES
from tests.support.oracle import verify
from tests.support.services import Services
from tests.support.system import System

TEXT = b"Accepted, therefore durable.\n"
# Too large to be kept in the database too: the stages have nothing but the object.
LARGE = TEXT * (2 * SMALL_BYTES // len(TEXT))


@pytest.fixture(params=["postgres", "rabbitmq", "s3"])
def victim(request: pytest.FixtureRequest, services: Services) -> Iterator[str]:
    """The service to be killed; it runs again when the test is over, however that went."""
    yield request.param
    getattr(services, request.param).start()


async def test_a_service_killed_right_after_the_answer_has_lost_nothing(own_system, services, victim):
    """Job, message and document were on disk when the client was told so; nobody mends anything by hand."""
    await own_system.start_all()
    ids = [await own_system.submit(LARGE + str(number).encode()) for number in range(5)]

    await asyncio.to_thread(getattr(services, victim).kill)
    await asyncio.to_thread(getattr(services, victim).start)
    await own_system.database.close()  # the test's own connections died with the server

    await _all_complete(own_system, ids)


async def test_jobs_are_accepted_while_the_broker_is_down(own_system, services):
    """Intake needs no broker: fifty documents are accepted at once and processed when it is back."""
    await own_system.start_all()
    await asyncio.to_thread(services.rabbitmq.stop)
    try:
        ids = await asyncio.gather(*(own_system.submit(TEXT + str(number).encode()) for number in range(50)))
        assert {(await own_system.status(job_id))["status"] for job_id in ids} == {"accepted"}
    finally:
        await asyncio.to_thread(services.rabbitmq.start)

    await _all_complete(own_system, ids)


async def _all_complete(system: System, ids: list[str]) -> None:
    jobs = await asyncio.gather(*(_finished(system, job_id) for job_id in ids))
    assert {job["status"] for job in jobs} == {"completed"}
    for job_id in ids:
        await verify(system.database, job_id)


async def _finished(system: System, job_id: str):
    return await system.finished(job_id, seconds=120)
