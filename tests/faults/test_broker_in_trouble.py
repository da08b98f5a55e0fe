"""A broker that cancels consumers, closes channels, is out of memory, or has lost its disk: nobody mends it by hand."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from deploy.local.rabbitmq import SERVER, RabbitMQ
from schema.domain.states import Lane
from schema.wire.queues import lane_queue
from tests.support import documents
from tests.support.aftermath import all_complete, counted, outcomes
from tests.support.eventually import eventually
from tests.support.factories import rows
from tests.support.services import private_broker
from tests.support.system import Process, System, running_system

TEXT = b"The broker carries hints.\n"
SCAN = documents.scan(*(f"This is page {page}." for page in range(1, 5)))
BACKLOG = 12
QUICK_REISSUE = {"DOCSTAGE_OVERTAKEN_SECONDS": "2", "DOCSTAGE_SILENT_SECONDS": "4"}
IDLE_IN_TRANSACTION = """
SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'
 AND state_change < now() - interval '1 second'
"""
USED_BY_DEFAULT, NOTHING_LEFT = "0.4", "0.00000001"

pytestmark = pytest.mark.skipif(not SERVER.exists(), reason="needs a RabbitMQ on this machine, to itself")


@pytest.fixture(scope="module")
def broker() -> Iterator[RabbitMQ]:
    """A broker that only this module uses."""
    with private_broker() as node:
        yield node


@pytest.fixture(scope="module")
async def system(
    broker: RabbitMQ, module_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[System]:
    """Everything, around that broker."""
    environment = module_environment | {"DOCSTAGE_AMQP_URL": broker.amqp_url}
    async with running_system(environment, tmp_path_factory.mktemp("system")) as made:
        await made.start_all(DOCSTAGE_PUBLISH_TIMEOUT_SECONDS="1", DOCSTAGE_MAX_BACKLOG=str(BACKLOG), **QUICK_REISSUE)
        yield made


async def _misses(process: Process, phrase: str) -> None:
    """Wait until /readyz names what the process lacks."""

    async def look() -> bool:
        return phrase in await process.missing()

    await eventually(look)


async def _still_works(system: System) -> None:
    await all_complete(system, [await system.submit(TEXT)])


async def _taken_on(system: System, body: bytes) -> str:
    """Submit until intake has seen that the jobs of the test before are finished: it counts them once a second."""
    return await eventually(lambda: system.submit(body))


async def test_a_deleted_queue_comes_back_and_its_messages_with_it(system, broker):
    """The broker cancels the consumer (``basic.cancel``): /readyz says so, and all is as before within seconds."""
    publisher, stages = system.processes["publisher"], system.processes["stages"]
    stages.pause()
    job_id = await system.submit(TEXT)
    await _lies_in(broker, Lane.VALIDATE)
    publisher.pause()
    await asyncio.to_thread(broker.control, "delete_queue", "docstage.v1.q.validate")

    stages.resume()

    # The publisher, which declares, is away for the moment: so the worker has nothing to consume, and says it.
    await _misses(stages, "no consumer on validate")
    publisher.resume()
    await stages.ready()
    await all_complete(system, [job_id])


async def _lies_in(broker: RabbitMQ, lane: Lane, count: str = "messages") -> None:
    """Wait until a message lies in a lane's queue, delivered or (``messages_ready``) not."""
    async with httpx.AsyncClient() as client:

        async def look() -> bool:
            answer = await client.get(f"{broker.management_url}/api/queues/%2F/{lane_queue(lane)}")
            return answer.status_code == 200 and answer.json().get(count, 0) > 0

        await eventually(look)


async def test_a_closed_channel_costs_neither_the_job_nor_the_consumer(system, broker):
    """The broker closes the channel of a delivery that takes too long for it; its owner finishes and consumes on."""
    limits = (
        "application:set_env(rabbit, consumer_timeout, {}), application:set_env(rabbit, channel_tick_interval, {})."
    )
    await asyncio.to_thread(broker.control, "eval", limits.format(1000, 500))
    # Stopped until the broker has lost patience, so that this certainly happens in the middle of its work.
    stages = system.stages(DOCSTAGE_FAILPOINTS="page_kept=stop")
    await system.start(stages)
    job_id = await system.submit(SCAN)
    await stages.stopped()
    await _lies_in(broker, Lane.EXTRACT_OCR, "messages_ready")
    stages.resume()
    await eventually(lambda: "BrokerUnavailableError" in stages.log.read_text())
    await asyncio.to_thread(broker.control, "eval", limits.format(1_800_000, 60_000))

    await all_complete(system, [job_id])

    assert await outcomes(system, job_id, "extract") == ["completed"]
    await stages.ready()
    await _still_works(system)


async def test_a_broker_without_memory_stops_the_relay_and_nobody_else(system, broker):
    """In alarm it stops reading: rows wait, the pool stays free, and intake goes on until its backlog is full."""
    publisher = system.processes["publisher"]
    await asyncio.to_thread(broker.control, "set_vm_memory_high_watermark", NOTHING_LEFT)
    try:
        ids = [await _taken_on(system, TEXT + str(number).encode()) for number in range(BACKLOG)]
        await counted(publisher, "docstage_broker_blocked 1.0")
        async with system.client() as client:
            refused = await client.post("/v1/jobs", data={"kind": "text"}, files={"file": ("t.txt", TEXT)})
        held = await rows(system.database, IDLE_IN_TRANSACTION)
        states = {(await system.status(job_id))["status"] for job_id in ids[1:]}
        ready = await system.processes["intake"].missing()
    finally:
        await asyncio.to_thread(broker.control, "set_vm_memory_high_watermark", USED_BY_DEFAULT)

    assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
    assert int(refused.headers["retry-after"]) > 0
    assert (held, states, ready) == ([], {"accepted"}, "")
    await all_complete(system, ids)
    await counted(publisher, "docstage_broker_blocked 0.0")


async def test_a_broker_that_lost_its_disk_is_filled_anew(system, broker):
    """No queue and no message is left: the topology is declared again, and every job's message issued again."""
    stages = system.processes["stages"]
    stages.kill()
    ids = [await _taken_on(system, TEXT + str(number).encode()) for number in range(5)]
    await eventually(lambda: _nothing_owed(system))
    await asyncio.to_thread(broker.kill)
    await asyncio.to_thread(broker.lose_data)
    await asyncio.to_thread(broker.start)

    await system.start(stages)

    await all_complete(system, ids)
    await system.processes["publisher"].ready()


async def _nothing_owed(system: System) -> bool:
    return await rows(system.database, "SELECT 1 FROM outbox_event") == []
