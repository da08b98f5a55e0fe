"""One attempt to tell an endpoint, against a real receiver: what it gets, and what follows from its answer."""

import asyncio
import re
import secrets
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from standardwebhooks.webhooks import WebhookVerificationError

from publisher.rules import JobRules
from schema.db import webhook_endpoints
from schema.runtime.vault import Vault
from schema.wire.webhooks import new_secret, shown_secret
from tests.support.broker import publisher_settings, running
from tests.support.certificates import server_context
from tests.support.eventually import eventually
from tests.support.factories import rows
from tests.support.protocol import change
from tests.support.receiver import answer, receiving
from tests.support.webhooks import SCHEDULE, VAULT, Names, add_endpoint, courier, fail_job, owed, told_job, verified

HUGE = 1 << 30
API_PAGE = Path(__file__).parents[2] / "docs" / "api.md"


async def _delivery(database):
    (delivery,) = await rows(database, "SELECT * FROM webhook_delivery")
    return delivery


async def _told(database, url):
    """End a job of a tenant with an endpoint; return the endpoint and the copy that is owed."""
    job, endpoint = await told_job(database, url)
    await fail_job(database, job)
    (copy,) = await owed(database)
    return endpoint, copy


async def _after(database, url="https://example.com", **settings):
    """Make one attempt and return what is written down of it."""
    _, copy = await _told(database, url)
    async with courier(database, **settings) as sender:
        await sender.deliver(copy)
    return await _delivery(database)


async def test_an_endpoint_gets_a_signed_thin_message_and_its_answer_is_written_down(database):
    """What arrives passes an independent verifier; of the answer only its status is kept."""
    async with receiving() as receiver, courier(database) as sender:
        receiver.answering = lambda _: answer(200, body=b"thank you, and here is a secret")
        endpoint, copy = await _told(database, receiver.url)

        await sender.deliver(copy)

    (got,) = receiver.requests
    assert (got.method, got.path, got.id) == ("POST", "/hooks", str(copy.message.event_id))
    assert got.headers["content-type"] == "application/json"
    content = verified(got, endpoint.secret)
    assert content["type"] == "job.failed"
    assert content["data"]["error"] == {"code": "corrupt_document", "stage": "validate"}
    delivery = await _delivery(database)
    assert delivery["status"] == "delivered"
    (entry,) = delivery["history"]
    assert (entry["attempt"], entry["status"], entry["code"]) == (1, 200, None)
    assert "secret" not in str(delivery)


async def test_the_receiver_of_the_documentation_tells_our_messages_from_others(database):
    """What the API's page tells people to run is run here, against a message that was really sent."""
    verify = _documented()
    async with receiving() as receiver, courier(database) as sender:
        endpoint, copy = await _told(database, receiver.url)
        await sender.deliver(copy)
    (got,) = receiver.requests
    late = {**got.headers, "webhook-timestamp": str(int(got.headers["webhook-timestamp"]) - 301)}

    assert verify(endpoint.secret, got.headers, got.body)
    assert not verify(shown_secret(new_secret()), got.headers, got.body)
    assert not verify(endpoint.secret, got.headers, got.body + b" ")
    assert not verify(endpoint.secret, late, got.body)


def _documented():
    """Return the function that docs/api.md shows."""
    (snippet,) = re.findall(r"```python verify\n(.*?)```", API_PAGE.read_text(), re.DOTALL)
    names = {}
    exec(snippet, names)  # noqa: S102 - it is ours, and this is what it is tested by
    return names["verify"]


async def test_a_message_that_was_changed_on_its_way_is_not_ours(database):
    """A receiver that verifies believes nobody else."""
    async with receiving() as receiver, courier(database) as sender:
        endpoint, copy = await _told(database, receiver.url)
        await sender.deliver(copy)
    (got,) = receiver.requests

    for forged in (
        replace(got, body=got.body.replace(b"failed", b"fooled")),
        replace(got, headers={**got.headers, "webhook-id": "another"}),
    ):
        with pytest.raises(WebhookVerificationError):
            verified(forged, endpoint.secret)


async def test_what_fails_comes_again_by_schedule_until_it_has_failed_for_good(database):
    """Always the same id and body, each attempt signed anew; then the owner can see it, and nothing is owed."""
    async with receiving() as receiver, courier(database) as sender:
        receiver.answering = lambda _: answer(500)
        endpoint, copy = await _told(database, receiver.url)
        for number, pause in enumerate(SCHEDULE, start=1):
            await sender.deliver(copy)
            *_, copy = await owed(database)
            assert copy.message.attempt == number + 1
            (due,) = await rows(
                database,
                "SELECT extract(epoch FROM max(available_at) - now())::float8 AS seconds, max(available_at) AS due"
                " FROM outbox_event WHERE kind = 'notice'",
            )
            assert due["due"] == (await _delivery(database))["next_attempt_at"]
            assert 0.5 * pause.total_seconds() < due["seconds"] <= 1.2 * pause.total_seconds()
        before = len(await owed(database))
        await sender.deliver(copy)

    assert len(await owed(database)) == before
    assert {got.id for got in receiver.requests} == {str(copy.message.event_id)}
    assert len({got.body for got in receiver.requests}) == 1
    for got in receiver.requests:
        verified(got, endpoint.secret)
    delivery = await _delivery(database)
    assert (delivery["status"], delivery["next_attempt_at"]) == ("failed", None)
    assert [entry["status"] for entry in delivery["history"]] == [500, 500, 500]


async def test_a_copy_of_a_message_is_sent_no_second_time_once_its_attempt_is_recorded(database):
    """The broker delivers at least once; the row says what has been done."""
    async with receiving() as receiver, courier(database) as sender:
        _, copy = await _told(database, receiver.url)

        await sender.deliver(copy)
        await sender.deliver(copy)

    assert len(receiver.requests) == 1


async def test_of_two_senders_of_one_attempt_one_is_written_down(database):
    """Nobody claims a telling: both may send it under its one id, but it is one attempt and owes one message."""
    async with receiving() as receiver, courier(database) as one, courier(database) as other:
        receiver.answering = lambda _: answer(500)
        _, copy = await _told(database, receiver.url)
        met = asyncio.Barrier(2)
        for sender in (one, other):
            _hold(sender, met)

        await asyncio.gather(one.deliver(copy), other.deliver(copy))

    assert len(receiver.requests) == 2
    assert len({got.id for got in receiver.requests}) == 1
    delivery = await _delivery(database)
    assert (delivery["attempt"], len(delivery["history"])) == (1, 1)
    assert [one.message.attempt for one in await owed(database)] == [1, 2]


def _hold(sender, met):
    """Let a sender record only when the other has sent as well."""
    record = sender._record  # noqa: SLF001 - there is no other place between sending and recording

    async def together(attempt):
        await met.wait()
        return await record(attempt)

    sender._record = together  # noqa: SLF001 - as above


async def test_an_endpoint_that_is_gone_is_disabled(database):
    """410 is the receiver's way to say that it wants no more; it is asked no second time."""
    async with receiving() as receiver:
        receiver.answering = lambda _: answer(410)

        delivery = await _after(database, receiver.url)

    (endpoint,) = await rows(database, "SELECT disabled_at, disabled_reason FROM webhook_endpoint")
    assert (delivery["status"], delivery["history"][0]["code"]) == ("failed", "gone")
    assert endpoint["disabled_reason"] == "gone"
    assert endpoint["disabled_at"] is not None


async def test_what_is_owed_to_a_disabled_endpoint_has_failed_and_is_not_sent(database):
    """It can be made again once the endpoint is enabled."""
    async with receiving() as receiver, courier(database) as sender:
        _, copy = await _told(database, receiver.url)
        await change(database, "UPDATE webhook_endpoint SET disabled_at = now(), disabled_reason = 'owner'")

        await sender.deliver(copy)

    delivery = await _delivery(database)
    assert (delivery["status"], delivery["history"][0]["code"]) == ("failed", "endpoint_disabled")
    assert receiver.requests == []


async def test_a_message_to_a_removed_endpoint_is_settled(database):
    """Its rows are gone; there is nothing to send and nobody to tell."""
    async with receiving() as receiver, courier(database) as sender:
        _, copy = await _told(database, receiver.url)
        await change(database, "DELETE FROM webhook_endpoint")

        await sender.deliver(copy)

    assert receiver.requests == []


async def test_a_redirect_is_a_failure_and_is_not_followed(database):
    """Who answers may not choose where we go."""
    async with receiving() as elsewhere, receiving() as receiver:
        receiver.answering = lambda _: answer(307, Location=elsewhere.url)

        delivery = await _after(database, receiver.url)

    assert (delivery["status"], delivery["history"][0]["code"]) == ("pending", "redirect")
    assert elsewhere.requests == []


async def test_a_receiver_that_does_not_answer_costs_no_more_than_the_limit(database):
    """One that hangs must not hold a place for ever."""
    async with receiving() as receiver:
        receiver.answering = lambda _: b""

        delivery = await _after(database, receiver.url, timeout_seconds=0.3)

    assert (delivery["status"], delivery["history"][0]["code"]) == ("pending", "timeout")


async def test_a_huge_answer_is_not_read(database):
    """Only its status counts."""
    async with receiving() as receiver:
        receiver.answering = lambda _: f"HTTP/1.1 200 OK\r\nContent-Length: {HUGE}\r\n\r\n".encode() + b"x" * (1 << 20)

        delivery = await _after(database, receiver.url)

    assert delivery["status"] == "delivered"


async def test_an_answer_whose_body_never_ends_is_taken_by_its_status(database):
    """A receiver that has said 200 was told."""
    async with receiving() as receiver:
        receiver.answering = lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"

        delivery = await _after(database, receiver.url)

    assert delivery["status"] == "delivered"


@pytest.mark.parametrize("nonsense", [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"x" * (1 << 20)])
async def test_who_does_not_speak_http_is_a_failed_connection(database, nonsense):
    """A port of something else must not break anything, and its words go nowhere."""
    async with receiving() as receiver:
        receiver.answering = lambda _: nonsense

        delivery = await _after(database, receiver.url)

    assert delivery["history"][0]["code"] == "connection_failed"


async def test_nobody_there_is_a_failed_connection(database):
    """The port is closed; it will be tried again."""
    async with receiving() as receiver:
        url = receiver.url

    delivery = await _after(database, url)

    assert (delivery["status"], delivery["history"][0]["code"]) == ("pending", "connection_failed")


@pytest.mark.parametrize("status", [429, 503])
async def test_the_receivers_own_wish_is_honoured(database, status):
    """Whoever is overloaded knows best for how long; but not for longer than a day."""
    async with receiving() as receiver:
        receiver.answering = lambda _: answer(status, Retry_After="3600")

        delivery = await _after(database, receiver.url)

    assert delivery["next_attempt_at"] - delivery["issued_at"] == timedelta(0)
    assert timedelta(minutes=59) < delivery["next_attempt_at"] - delivery["created_at"] < timedelta(minutes=70)


@pytest.mark.parametrize("url", ["https://10.0.0.1/", "https://[::ffff:169.254.169.254]/", "http://127.0.0.1:1/"])
async def test_an_address_that_is_not_public_is_not_connected_to(database, url):
    """The metadata service of a cloud, or a neighbour without a password, is nobody's receiver."""
    delivery = await _after(database, url, networks="")

    assert (delivery["status"], delivery["history"][0]["code"]) == ("pending", "address_refused")


async def test_a_name_that_leads_to_a_private_address_is_refused(database):
    """What counts is where the name leads now, not what it is called."""
    async with receiving() as receiver:
        names = Names(["127.0.0.1"])

        delivery = await _after(database, f"https://inside.test:{receiver.port}/", networks="", names=names)

    assert delivery["history"][0]["code"] == "address_refused"
    assert names.asked == ["inside.test"]
    assert receiver.requests == []


async def test_a_name_that_changes_its_mind_after_the_check_is_not_followed(database):
    """The address that was checked is the one that is connected to: the name is not asked a second time."""
    async with receiving("127.0.0.2") as checked, receiving("127.0.0.3") as other:
        names = Names(["127.0.0.2"], ["127.0.0.3"])
        url = f"http://rebinding.test:{checked.port}/hooks"

        delivery = await _after(database, url, networks="127.0.0.2/32", names=names)

    assert delivery["status"] == "delivered"
    assert names.asked == ["rebinding.test"]
    (got,) = checked.requests
    assert got.headers["host"] == f"rebinding.test:{checked.port}"
    assert other.requests == []


async def test_of_several_addresses_only_permitted_ones_are_tried(database):
    """And the next one when the first does not answer."""
    async with receiving("127.0.0.2") as receiver:
        names = Names(["127.0.0.9", "127.0.0.3", "127.0.0.2"])
        url = f"http://several.test:{receiver.port}/"

        delivery = await _after(database, url, networks="127.0.0.2/32,127.0.0.3/32", names=names)

    assert delivery["status"] == "delivered"


async def test_a_name_that_does_not_exist_is_told_as_that(database):
    """The owner has mistyped it, or its name server is down; it is tried again."""
    delivery = await _after(database, "https://nowhere.test/", names=Names([]))

    assert (delivery["status"], delivery["history"][0]["code"]) == ("pending", "name_not_resolved")


async def test_tls_is_checked_by_the_targets_name_although_an_address_is_connected_to(database, tmp_path):
    """Pinning must not cost the proof of who is there."""
    context, trusted = server_context(tmp_path, "hooks.test")
    async with receiving(tls=context) as receiver:
        url = f"https://hooks.test:{receiver.port}/hooks"

        delivery = await _after(database, url, names=Names(["127.0.0.1"]), ca_file=str(trusted))

    assert delivery["status"] == "delivered"
    assert receiver.requests[0].headers["host"] == f"hooks.test:{receiver.port}"


async def test_a_certificate_for_another_name_is_refused(database, tmp_path):
    """Somebody else answers at that address."""
    context, trusted = server_context(tmp_path, "others.test")
    async with receiving(tls=context) as receiver:
        url = f"https://hooks.test:{receiver.port}/hooks"

        delivery = await _after(database, url, names=Names(["127.0.0.1"]), ca_file=str(trusted))

    assert (delivery["status"], delivery["history"][0]["code"]) == ("pending", "tls_failed")
    assert receiver.requests == []


async def _rotate(database, endpoint, overlap):
    secret = new_secret()
    sealed = VAULT.seal(secret, owner=endpoint.id.bytes)
    (row,) = await rows(database, "SELECT tenant_id FROM webhook_endpoint")
    async with database.transaction() as conn:
        assert await webhook_endpoints.rotate(
            conn, endpoint_id=endpoint.id, tenant_id=row["tenant_id"], secret=sealed, overlap=overlap
        )
    return shown_secret(secret)


async def test_after_a_rotation_both_secrets_verify_until_the_overlap_ends(database):
    """The receiver can change over without losing a message."""
    async with receiving() as receiver, courier(database) as sender:
        endpoint, copy = await _told(database, receiver.url)
        new = await _rotate(database, endpoint, timedelta(hours=1))

        await sender.deliver(copy)

    (got,) = receiver.requests
    assert len(got.headers["webhook-signature"].split(" ")) == 2
    assert verified(got, new) == verified(got, endpoint.secret)


async def test_when_the_overlap_is_over_only_the_new_secret_verifies(database):
    """A secret that leaked is worth nothing from then on."""
    async with receiving() as receiver, courier(database) as sender:
        endpoint, copy = await _told(database, receiver.url)
        new = await _rotate(database, endpoint, timedelta(0))

        await sender.deliver(copy)

    (got,) = receiver.requests
    verified(got, new)
    with pytest.raises(WebhookVerificationError):
        verified(got, endpoint.secret)


async def test_a_secret_that_cannot_be_opened_is_told_and_nothing_goes_out_unsigned(database):
    """The operator has changed the key without keeping the old one; once it is back, so are the deliveries."""
    async with receiving() as receiver:
        delivery = await _after(database, receiver.url, vault=Vault([secrets.token_bytes(32)]))

    assert (delivery["status"], delivery["history"][0]["code"]) == ("pending", "secret_unreadable")
    assert receiver.requests == []


async def _of(database, endpoint):
    """Return the copies that are owed about one endpoint."""
    return [copy for copy in await owed(database) if copy.message.endpoint_id == endpoint.id]


async def test_a_slow_endpoint_holds_up_nobody_else(database):
    """What is more than its share waits for its turn, at no cost of an attempt; another endpoint is told at once."""
    async with receiving() as slow, receiving() as quick, courier(database, share=1) as sender:
        slow.answering = lambda _: b""
        job, hanging = await told_job(database, slow.url)
        other = await add_endpoint(database, job.tenant_id, quick.url)
        await fail_job(database, job)
        (copy,), (told,) = await _of(database, hanging), await _of(database, other)
        async with running(sender.deliver(copy)):
            await eventually(lambda: slow.requests)

            await sender.deliver(copy)
            await sender.deliver(told)

            assert len(slow.requests) == len(quick.requests) == 1
            _, deferred = await _of(database, hanging)
            assert (deferred.message, deferred.deferrals) == (copy.message, 1)
            (row,) = await rows(database, "SELECT * FROM webhook_delivery WHERE endpoint_id = :id", id=hanging.id)
            assert (row["status"], row["attempt"], row["history"]) == ("pending", 0, [])


async def test_a_notice_whose_message_the_broker_lost_is_issued_again_less_often_each_time(database, environment):
    """P2: a telling that is owed has a message on its way or a due time."""
    await _told(database, "https://example.com")
    rules = JobRules(publisher_settings(environment), database, {})
    healed = []
    for minutes in (5, 15, 15, 35):
        await change(database, "DELETE FROM outbox_event")
        await change(
            database, "UPDATE webhook_delivery SET issued_at = now() - :age * interval '1 minute'", age=minutes
        )
        healed.append(await rules.silent_notices())

    assert healed == [0, 1, 0, 1]
    (copy,) = await owed(database)
    assert (copy.message.series, copy.message.attempt) == (1, 1)


async def test_a_notice_that_is_owed_by_the_outbox_is_not_forgotten(database, environment):
    """Behind a broker that is down it waits as long as it takes."""
    await _told(database, "https://example.com")
    await change(database, "UPDATE webhook_delivery SET issued_at = now() - interval '1 day'")

    assert await JobRules(publisher_settings(environment), database, {}).silent_notices() == 0
