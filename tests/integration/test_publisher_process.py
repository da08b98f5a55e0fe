"""The publisher as a process: it starts with everything down, says what is missing, and leaves in good order."""

import asyncio

import httpx

from schema.domain.states import Lane
from schema.wire.queues import lane_queue
from tests.support.broker import inbox, owe
from tests.support.eventually import eventually
from tests.support.factories import rows
from tests.support.system import Process, free_port


async def test_it_waits_for_what_is_down_says_so_and_then_does_its_work(
    services, environment, database, amqp_url, tmp_path
):
    """In which order things come up after a power cut is nobody's choice."""
    await owe(database)
    port = free_port()
    settings = environment | {"DOCSTAGE_METRICS_PORT": str(port), "DOCSTAGE_SWEEP_SECONDS": "0.2"}
    publisher = Process("publisher", ["publisher"], settings, port, tmp_path / "log")
    await asyncio.to_thread(services.rabbitmq.stop)
    try:
        publisher.start()
        async with httpx.AsyncClient() as client:

            async def misses_the_broker():
                try:
                    answer = await client.get(f"{publisher.url}/readyz")
                except httpx.HTTPError:
                    return False
                return answer.status_code == 503 and answer.text.splitlines() == ["no broker session"]

            await eventually(misses_the_broker)
            await asyncio.to_thread(services.rabbitmq.start)
            await publisher.ready()

        async def sent():
            return not await rows(database, "SELECT id FROM outbox_event")

        await eventually(sent)
        async with inbox(amqp_url, lane_queue(Lane.VALIDATE)) as box:
            await eventually(lambda: box.deliveries)

        async def swept():
            told = await publisher.metrics()
            return (
                "docstage_sweeper_last_timestamp_seconds 0.0" not in told and 'docstage_queue_messages{queue="' in told
            )

        await eventually(swept)
        publisher.terminate()
        assert await publisher.wait() == 0
        log = publisher.log.read_text()
        assert '"publisher_stopped"' in log
        assert "rule_failed" not in log
    finally:
        await asyncio.to_thread(services.rabbitmq.start)
        publisher.close()
