"""Processes killed between a job's end and its owner's knowledge of it: told at least once, always under one id."""

import pytest
from sqlalchemy import text

from tests.support.crashes import RELAY_POINTS, SENDER_POINTS
from tests.support.eventually import eventually
from tests.support.factories import rows
from tests.support.receiver import answer, receiving
from tests.support.rig import SHORT_LOCK
from tests.support.system import System
from tests.support.webhooks import HOOKS, verified

TEXT = b"Docstage never loses a job.\nIt never leaves one stuck.\n"


@pytest.fixture(scope="module")
async def front(system: System) -> System:
    """Intake and publisher, which live through all of this module."""
    await system.start(system.process("intake", "intake", **HOOKS), system.process("publisher", "publisher"))
    return system


@pytest.fixture
async def receiver():
    """Who is to be told."""
    async with receiving() as made:
        yield made


def sender(front, name="deliver", **settings):
    """Make a process that sends webhooks."""
    return front.process(name, "stages", "deliver", **HOOKS, **settings)


async def endpoint(front, receiver):
    """Add an endpoint and return it with its secret, in the place of any before."""
    async with front.client() as client:
        for old in (await client.get("/v1/webhooks")).json()["endpoints"]:
            await client.delete(f"/v1/webhooks/{old['id']}")
        added = await client.post("/v1/webhooks", json={"url": receiver.url})
        assert added.status_code == 201, added.text
        return added.json()


async def settled(front, job_id):
    """Wait until a job is finished and nothing is owed about it, and return its deliveries."""
    await front.finished(job_id)

    async def look():
        deliveries = await rows(front.database, "SELECT * FROM webhook_delivery WHERE job_id = :id", id=job_id)
        owed = await rows(front.database, "SELECT 1 FROM outbox_event WHERE job_id = :id", id=job_id)
        return deliveries if not owed and all(one["status"] != "pending" for one in deliveries) else None

    return await eventually(look)


@pytest.mark.parametrize("point", SENDER_POINTS)
async def test_a_sender_killed_after_the_post_sends_again_under_the_same_id(front, receiver, point):
    """W14: nobody knows that it was told, so it is told again; the receiver knows it by its id."""
    hook = await endpoint(front, receiver)
    stages, doomed = front.stages(), sender(front, "doomed", DOCSTAGE_FAILPOINTS=f"{point}=kill")
    await front.start(stages, doomed)
    job_id = await front.submit(TEXT)
    assert await doomed.wait() == -9
    assert len(receiver.requests) == 1

    heir = sender(front)
    await front.start(heir)

    (delivery,) = await settled(front, job_id)
    first, second = receiver.requests
    assert first.id == second.id == str(delivery["event_id"])
    assert verified(first, hook["secret"]) == verified(second, hook["secret"])
    assert first.json["data"]["id"] == job_id
    assert (delivery["status"], delivery["attempt"], len(delivery["history"])) == ("delivered", 1, 1)
    heir.close()
    stages.close()


async def test_a_worker_killed_after_the_last_commit_has_told_its_end(front, receiver):
    """W13: the notice is in the outcome's own transaction, so it is owed whoever dies after it, and once."""
    await endpoint(front, receiver)
    rest = front.stages("rest", "validate", "extract", "normalize")
    doomed = front.stages("doomed", "persist", DOCSTAGE_FAILPOINTS="outcome_committed=kill")
    await front.start(rest, doomed)
    job_id = await front.submit(TEXT)
    assert await doomed.wait() == -9

    heir, deliver = front.stages("heir", "persist"), sender(front)
    await front.start(heir, deliver)

    (delivery,) = await settled(front, job_id)
    (got,) = receiver.requests
    assert (got.json["type"], got.json["data"]["id"]) == ("job.completed", job_id)
    assert delivery["status"] == "delivered"
    for process in (rest, heir, deliver):
        process.close()


async def test_a_cancel_whose_intake_is_killed_is_told_all_the_same(front, receiver):
    """What is committed is owed, although nobody was woken and nobody who decided it is alive."""
    await endpoint(front, receiver)
    front.processes["publisher"].close()
    job_id = await front.submit(TEXT)
    async with front.client() as client:
        assert (await client.post(f"/v1/jobs/{job_id}/cancel")).status_code == 200
    front.processes["intake"].kill()

    deliver = sender(front)
    await front.start(front.process("publisher", "publisher"), front.process("intake", "intake", **HOOKS), deliver)

    await settled(front, job_id)
    (got,) = receiver.requests
    assert (got.json["type"], got.json["data"]["id"]) == ("job.cancelled", job_id)
    deliver.close()


@pytest.mark.parametrize("point", RELAY_POINTS)
async def test_a_relay_killed_over_a_notice_tells_it_under_one_id(front, receiver, point):
    """W13: whatever the broker has of it already, the owner hears of the end, and of one event alone."""
    await endpoint(front, receiver)
    front.processes["publisher"].close()
    job_id = await front.submit(TEXT)
    async with front.client() as client:
        assert (await client.post(f"/v1/jobs/{job_id}/cancel")).status_code == 200
    async with front.database.transaction() as conn:
        # The first row that the relay takes is the notice.
        await conn.execute(text("DELETE FROM outbox_event WHERE kind = 'stage'"))
    doomed = front.process("publisher", "publisher", DOCSTAGE_FAILPOINTS=f"{point}=kill", **SHORT_LOCK)
    doomed.start()
    assert await doomed.wait() == -9

    deliver = sender(front)
    await front.start(front.process("publisher", "publisher"), deliver)

    (delivery,) = await settled(front, job_id)
    assert (delivery["status"], delivery["attempt"]) == ("delivered", 1)
    assert {got.id for got in receiver.requests} == {str(delivery["event_id"])}
    assert {(got.json["type"], got.json["data"]["id"]) for got in receiver.requests} == {("job.cancelled", job_id)}
    deliver.close()


async def test_a_receiver_that_was_down_is_told_when_it_is_back(front, receiver):
    """Attempts go on by schedule over the outbox, and the owner sees each of them."""
    hook = await endpoint(front, receiver)
    receiver.answering = lambda _: answer(503 if len(receiver.requests) < 3 else 200)
    deliver, stages = sender(front), front.stages()
    await front.start(deliver, stages)
    job_id = await front.submit(TEXT)

    await settled(front, job_id)

    async with front.client() as client:
        (delivery,) = (await client.get(f"/v1/webhooks/{hook['id']}/deliveries")).json()["deliveries"]
    assert [attempt["status"] for attempt in delivery["attempts"]] == [503, 503, 200]
    assert len({got.id for got in receiver.requests}) == 1
    for got in receiver.requests:
        verified(got, hook["secret"])
    told = await deliver.metrics()
    assert 'docstage_webhook_deliveries_total{code="",outcome="delivered"} 1.0' in told
    assert 'docstage_webhook_deliveries_total{code="http_status",outcome="retrying"} 2.0' in told
    deliver.close()
    stages.close()


async def test_a_sender_that_is_asked_to_stop_ends_what_it_has_begun(front, receiver):
    """A deployment must not make every receiver hear things twice."""
    await endpoint(front, receiver)
    deliver, stages = sender(front), front.stages()
    await front.start(deliver, stages)
    receiver.answering = lambda _: deliver.terminate() or answer(200)
    await front.submit(TEXT)

    assert await deliver.wait() == 0

    (delivery,) = await rows(front.database, "SELECT * FROM webhook_delivery")
    assert delivery["status"] == "delivered"
    assert len(receiver.requests) == 1
    stages.close()
