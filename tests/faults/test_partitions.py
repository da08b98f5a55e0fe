"""Processes cut off from the database or the broker, by a network that says so (cut) and by one that does not (frozen).

A worker without its database loses its run at the lease and writes nothing afterwards. A worker without its broker
loses nothing: it is alive, and everybody can see that. A relay without its broker lets the rows wait.
"""

from collections.abc import Iterator

import pytest

from tests.support import documents
from tests.support.aftermath import all_complete, counted, footprint, outcomes
from tests.support.eventually import eventually
from tests.support.factories import rows
from tests.support.proxy import Proxy, proxied
from tests.support.system import Process, System

TEXT = b"The network is not reliable.\n"
SCAN = documents.scan(*(f"This is page {page}." for page in range(1, 5)))
SHORT_LEASE = {"DOCSTAGE_LEASE_SECONDS": "3"}
# The broker gives a silent peer up after two to three of these.
QUICK_HEARTBEAT = {"DOCSTAGE_AMQP_HEARTBEAT_SECONDS": "2"}
# It stops there until the network is gone, so that this certainly happens in the middle of its work.
IN_THE_MIDDLE = {"DOCSTAGE_FAILPOINTS": "page_kept=stop"}
IDLE_IN_TRANSACTION = """
SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'
 AND application_name LIKE 'docstage-publisher%' AND state_change < now() - interval '1 second'
"""

ways = pytest.mark.parametrize("way", ["cut", "freeze"])


@pytest.fixture
def database_proxy(front: System) -> Iterator[Proxy]:
    """The way to the database that a test may break."""
    with proxied(front.environment["DOCSTAGE_DATABASE_URL"]) as proxy:
        yield proxy


@pytest.fixture
def broker_proxy(front: System) -> Iterator[Proxy]:
    """The way to the broker that a test may break."""
    with proxied(front.environment["DOCSTAGE_AMQP_URL"]) as proxy:
        yield proxy


async def _misses(process: Process, phrase: str) -> None:
    """Wait until /readyz names what the process lacks."""

    async def look() -> bool:
        return phrase in await process.missing()

    await eventually(look)


@ways
async def test_a_worker_without_its_database_writes_nothing_after_its_lease(front, database_proxy, way):
    """The run goes to another at the lease; whoever comes back finds it fenced, and works again."""
    apart = front.stages("apart", "extract", DOCSTAGE_DATABASE_URL=database_proxy.url, **SHORT_LEASE, **IN_THE_MIDDLE)
    await front.start(apart)
    job_id = await front.submit(SCAN)
    await apart.stopped()

    getattr(database_proxy, way)()

    apart.resume()

    heir = front.stages("heir", "extract", **SHORT_LEASE)
    await front.start(heir)
    assert (await front.finished(job_id))["status"] == "completed"
    before = await footprint(front, job_id)
    await _misses(apart, "liveness lock not held")
    database_proxy.heal()
    await counted(apart, 'docstage_fenced_writes_total{stage="extract"} 1.0')
    assert await footprint(front, job_id) == before
    assert await outcomes(front, job_id, "extract") == ["worker_lost", "completed"]
    await apart.ready()
    heir.close()
    await all_complete(front, [await front.submit(TEXT)])


async def test_a_broken_connection_to_the_database_costs_nothing(front, database_proxy):
    """Every connection of a worker broken at once, in the middle of its work: it goes on with new ones."""
    apart = front.stages("apart", "extract", DOCSTAGE_DATABASE_URL=database_proxy.url, **IN_THE_MIDDLE)
    await front.start(apart)
    job_id = await front.submit(SCAN)
    await apart.stopped()

    database_proxy.reset()

    apart.resume()
    await all_complete(front, [job_id])
    assert await outcomes(front, job_id, "extract") == ["completed"]
    await apart.ready()


@ways
async def test_a_worker_without_its_broker_keeps_its_run(front, broker_proxy, way):
    """It cannot acknowledge, and the copy that another is given finds it alive; it consumes again once it can."""
    apart = front.stages("apart", "extract", DOCSTAGE_AMQP_URL=broker_proxy.url, **QUICK_HEARTBEAT, **IN_THE_MIDDLE)
    await front.start(apart)
    job_id = await front.submit(SCAN)
    await apart.stopped()

    getattr(broker_proxy, way)()

    apart.resume()
    heir = front.stages("heir", "extract", **QUICK_HEARTBEAT)
    await front.start(heir)
    await _misses(apart, "no consumer on extract.ocr")
    await all_complete(front, [job_id])
    assert await outcomes(front, job_id, "extract") == ["completed"]
    heir.close()
    broker_proxy.heal()
    await apart.ready()
    await all_complete(front, [await front.submit(TEXT)])


@ways
async def test_a_relay_without_its_broker_lets_the_rows_wait(front, broker_proxy, way):
    """Nothing is lost or held meanwhile: intake answers, no connection is kept waiting, and all goes out afterwards."""
    publisher = front.process(
        "publisher", "publisher", DOCSTAGE_AMQP_URL=broker_proxy.url, DOCSTAGE_PUBLISH_TIMEOUT_SECONDS="1"
    )
    await front.start(publisher, front.stages("heir", "extract"))
    await all_complete(front, [await front.submit(TEXT)])

    getattr(broker_proxy, way)()

    ids = [await front.submit(TEXT + str(number).encode()) for number in range(10)]
    await _misses(publisher, "no broker session")
    assert await rows(front.database, IDLE_IN_TRANSACTION) == []
    assert {(await front.status(job_id))["status"] for job_id in ids} == {"accepted"}
    broker_proxy.heal()
    await all_complete(front, ids)
    await publisher.ready()
