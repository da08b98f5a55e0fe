"""Workers that live and say nothing, and workers that only seem to: the lease takes from the first, not the second."""

from contextlib import ExitStack

import pytest

from tests.support import documents
from tests.support.aftermath import counted, footprint, outcomes, owners
from tests.support.eventually import eventually
from tests.support.proxy import proxied

TEXT = b"Nobody writes for somebody else.\n"
SCAN = documents.scan(*(f"This is page {page}." for page in range(1, 5)))
SHORT_LEASE = {"DOCSTAGE_LEASE_SECONDS": "3"}
# The broker gives a silent peer up after two to three of these.
QUICK_HEARTBEAT = {"DOCSTAGE_AMQP_HEARTBEAT_SECONDS": "2"}


@pytest.mark.parametrize("point", ["claimed", "worked", "outcome_committed"])
async def test_a_worker_that_fell_silent_writes_nothing_when_it_wakes(front, point):
    """Stopped at any point (SIGSTOP): its run goes to another at the lease, and it wakes to a job not its own."""
    silent = front.stages("silent", "extract", DOCSTAGE_FAILPOINTS=f"{point}=stop", **SHORT_LEASE)
    await front.start(silent)
    job_id = await front.submit(TEXT)
    await silent.stopped()
    await front.start(front.stages("heir", "extract", **SHORT_LEASE))
    assert (await front.finished(job_id))["status"] == "completed"
    before = await footprint(front, job_id)

    silent.resume()

    # What was committed before it fell silent is no loss, and there is nothing left to write.
    lost = point != "outcome_committed"
    await counted(silent, f'docstage_fenced_writes_total{{stage="extract"}} {float(lost)}')
    await silent.ready()
    assert await footprint(front, job_id) == before
    assert await outcomes(front, job_id, "extract") == (["worker_lost", "completed"] if lost else ["completed"])


async def test_a_scan_that_fell_silent_goes_on_where_it_was(front):
    """Stopped in the middle of a scan: the heir reads no kept page again, and the sleeper keeps none afterwards."""
    silent = front.stages("silent", "extract", DOCSTAGE_FAILPOINTS="page_kept=stop@2", **SHORT_LEASE)
    await front.start(silent)
    job_id = await front.submit(SCAN)
    await silent.stopped()
    heir = front.stages("heir", "extract", **SHORT_LEASE)
    await front.start(heir)
    assert (await front.finished(job_id))["status"] == "completed"
    before = await footprint(front, job_id)

    silent.resume()

    await counted(silent, 'docstage_fenced_writes_total{stage="extract"} 1.0')
    assert await footprint(front, job_id) == before
    assert 'docstage_pages_total{outcome="ocr"} 2.0' in await heir.metrics()
    assert await outcomes(front, job_id, "extract") == ["worker_lost", "completed"]


async def test_a_lost_machine_costs_the_lease(front):
    """No connection ends, because nobody is left to end it: the lock seems held, and the lease tells."""
    with ExitStack() as stack:
        database = stack.enter_context(proxied(front.environment["DOCSTAGE_DATABASE_URL"]))
        broker = stack.enter_context(proxied(front.environment["DOCSTAGE_AMQP_URL"]))
        urls = {"DOCSTAGE_DATABASE_URL": database.url, "DOCSTAGE_AMQP_URL": broker.url}
        # Stopped first, so that it is certainly in the middle of its work when the network goes.
        lost = front.stages("lost", "extract", DOCSTAGE_FAILPOINTS="page_kept=stop", **urls, **SHORT_LEASE)
        await front.start(lost)
        job_id = await front.submit(SCAN)
        await lost.stopped()
        await front.start(front.stages("heir", "extract", **SHORT_LEASE))

        database.freeze()
        broker.freeze()
        lost.kill()

        assert (await front.finished(job_id))["status"] == "completed"
        assert await outcomes(front, job_id, "extract") == ["worker_lost", "completed"]


async def test_a_blocked_event_loop_does_not_cost_the_job(front):
    """Blocked for longer than the broker waits for a heartbeat: redelivered, and yet left with its living owner."""
    busy = front.stages("busy", "extract", DOCSTAGE_FAILPOINTS="worked=block", **QUICK_HEARTBEAT, **SHORT_LEASE)
    await front.start(busy)
    job_id = await front.submit(TEXT)
    await eventually(lambda: owners(front, job_id, "extract"))
    heir = front.stages("heir", "extract", **SHORT_LEASE)
    await front.start(heir)

    # The heir was given the delivery, and looked at an owner that lives.
    await counted(heir, 'docstage_deliveries_total{outcome="deferred_owner_live",stage="extract"}')
    assert (await front.finished(job_id))["status"] == "completed"

    assert await outcomes(front, job_id, "extract") == ["completed"]
    await busy.ready()
