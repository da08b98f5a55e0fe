"""One attempt to tell an endpoint, against a real receiver: what it gets, and what follows from its answer."""

from tests.support.factories import rows
from tests.support.receiver import receiving
from tests.support.webhooks import courier, fail_job, owed, told_job, verified


async def _delivery(database):
    (delivery,) = await rows(database, "SELECT * FROM webhook_delivery")
    return delivery


async def test_an_endpoint_gets_a_signed_thin_message_and_its_answer_is_written_down(database):
    """What arrives passes an independent verifier; of the answer only its status is kept."""
    async with receiving() as receiver, courier(database) as sender:
        job, endpoint = await told_job(database, receiver.url)
        await fail_job(database, job)
        (message,) = await owed(database)

        await sender.deliver(message)

    (got,) = receiver.requests
    assert (got.method, got.path, got.id) == ("POST", "/hooks", str(message.event_id))
    content = verified(got, endpoint.secret)
    assert content["type"] == "job.failed"
    assert content["data"]["id"] == str(job.id)
    delivery = await _delivery(database)
    assert delivery["status"] == "delivered"
    (entry,) = delivery["history"]
    assert (entry["attempt"], entry["status"], entry["code"]) == (1, 204, None)
