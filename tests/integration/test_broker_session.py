"""A broker session is whole or gone: whatever breaks it is noticed, and nothing is reported done that is not."""

import asyncio

import pytest

from schema.domain.states import Lane
from schema.runtime.amqp import CLOSE_SECONDS
from schema.runtime.broker import (
    BrokerSession,
    BrokerUnavailableError,
    MismatchError,
    UnroutableError,
)
from schema.wire.queues import DLQ, WORK, Queue, lane_queue
from tests.support.broker import broker_settings, delete_queue, inbox, topology_session
from tests.support.eventually import eventually

VALIDATE = lane_queue(Lane.VALIDATE)


async def _publish(session, key="validate", message_id="1"):
    await session.publish(WORK, key, b"{}", message_id=message_id, message_type="t", headers={})


async def _watched(session):
    """Return the code with which a session ends."""
    with pytest.raises(BrokerUnavailableError) as caught:
        async with asyncio.timeout(60):
            await session.watch(0.2)
    return caught.value.args[0]


async def test_a_published_message_arrives_with_all_that_was_said_about_it(amqp_url):
    """Stages never see the library's types, so what they need has to be on the delivery."""
    async with topology_session(amqp_url) as session, inbox(amqp_url, VALIDATE) as box:
        await session.publish(
            WORK, "validate", b'{"v":1}', message_id="7", message_type="docstage.stage.v1", headers={"a": 1}
        )
        await eventually(lambda: box.deliveries)

    (delivery,) = box.deliveries
    assert (delivery.body, delivery.headers, delivery.message_id) == (b'{"v":1}', {"a": 1}, "7")
    assert (delivery.type, delivery.routing_key, delivery.queue) == ("docstage.stage.v1", "validate", VALIDATE)
    assert delivery.redelivered is False
    assert "body" not in repr(delivery)


async def test_an_unroutable_message_is_an_error_and_the_session_goes_on(amqp_url):
    """A message for a missing queue must not take its neighbours with it."""
    async with topology_session(amqp_url) as session:
        with pytest.raises(UnroutableError):
            await _publish(session, "nowhere")
        await _publish(session)

        assert not session.lost


async def test_a_missing_exchange_ends_the_session(amqp_url):
    """The broker closes the channel for it, and with it whatever else was on its way there."""
    async with topology_session(amqp_url) as session:
        with pytest.raises(BrokerUnavailableError):
            await session.publish("docstage.none", "x", b"{}", message_id="1", message_type="t", headers={})

        assert await _watched(session) == "channel_closed"


async def test_a_consumer_whose_queue_is_deleted_is_noticed(amqp_url, services):
    """The broker cancels it; a worker that missed this would look healthy and receive nothing."""
    async with inbox(amqp_url, VALIDATE) as box:
        await asyncio.to_thread(delete_queue, services, amqp_url, VALIDATE)

        assert await _watched(box.session) in {"consumer_cancelled", "no_consumer"}


async def test_a_callback_that_raises_ends_the_session_and_its_delivery_comes_again(amqp_url):
    """Left alone, the delivery would stay unacknowledged with us for ever."""

    def broken(_):
        raise ZeroDivisionError

    async with topology_session(amqp_url) as session:
        await _publish(session)
        async with await BrokerSession.open(broker_settings(amqp_url), "test") as consuming:
            await consuming.consume(VALIDATE, prefetch=1, on_delivery=broken)
            assert await _watched(consuming) == "callback_failed"

    async with inbox(amqp_url, VALIDATE) as box:
        await eventually(lambda: box.deliveries)
    assert box.deliveries[0].redelivered


async def test_after_stop_deliveries_can_be_acknowledged_and_after_close_they_cannot(amqp_url):
    """An acknowledgement on a channel that is closing costs the whole connection; a late one is an ordinary no."""
    async with topology_session(amqp_url) as session:
        await _publish(session, message_id="1")
        await _publish(session, message_id="2")
        async with inbox(amqp_url, VALIDATE, acks=False) as box:
            await eventually(lambda: len(box.deliveries) == 2)
            first, second = box.deliveries
            await first.consumer.stop()

            assert await box.session.ack(first)
            await box.session.close()
            assert not await box.session.ack(second)

        async def only_the_second_is_back():
            depth = await session.inspect(VALIDATE)
            return depth.messages == 1

        await eventually(only_the_second_is_back)


async def test_a_frozen_broker_is_given_up_by_a_publish_in_the_outer_limit(amqp_url, services):
    """The library's own limit does not cover a socket that nobody reads."""
    settings = broker_settings(amqp_url, publish_timeout_seconds=0.5)
    async with topology_session(amqp_url):
        session = await BrokerSession.open(settings, "test", publish_channels=1)
        services.rabbitmq.pause()
        try:
            with pytest.raises(BrokerUnavailableError):
                await _publish(session)
            assert session.lost
        finally:
            services.rabbitmq.resume()
        await session.close()


async def test_publishes_under_way_end_when_the_session_is_closed(amqp_url, services):
    """The library would cancel them, which their callers would take for their own end."""
    async with topology_session(amqp_url):
        session = await BrokerSession.open(broker_settings(amqp_url), "test", publish_channels=1)
        services.rabbitmq.pause()
        try:
            publishing = asyncio.create_task(_publish(session))
            await asyncio.wait({publishing}, timeout=0.1)
            await session.close()
            with pytest.raises(BrokerUnavailableError):
                await publishing
        finally:
            services.rabbitmq.resume()


async def test_a_session_is_closed_in_time_though_nobody_reads_its_socket(amqp_url, services):
    """The library would wait for three heartbeats, and whoever closes is on the way to a new session."""
    settings = broker_settings(amqp_url, publish_timeout_seconds=0.5)
    more_than_the_socket_holds = bytes(2**25)
    async with topology_session(amqp_url):
        session = await BrokerSession.open(settings, "test", publish_channels=1)
        services.rabbitmq.pause()
        try:
            with pytest.raises(BrokerUnavailableError):
                await session.publish(
                    WORK, "validate", more_than_the_socket_holds, message_id="1", message_type="t", headers={}
                )
            async with asyncio.timeout(2 * CLOSE_SECONDS):
                await session.close()
        finally:
            services.rabbitmq.resume()


async def test_nobody_at_the_address_is_an_owned_error(services):
    """Every caller retries on this one error."""
    with pytest.raises(BrokerUnavailableError):
        await BrokerSession.open(broker_settings("amqp://guest:wrong@127.0.0.1:1/"), "test")
    wrong = services.amqp_url.replace("docstage:", "docstage:wrong")
    with pytest.raises(BrokerUnavailableError):
        await BrokerSession.open(broker_settings(wrong), "test")


async def test_a_queue_with_other_arguments_is_named(amqp_url):
    """Arguments of a live queue cannot be changed; whoever tries has to be told which one it is."""
    async with topology_session(amqp_url) as session:
        with pytest.raises(MismatchError, match=DLQ):
            await session.declare(Queue(DLQ, {"x-queue-type": "quorum"}))

        assert not session.lost
        assert await session.inspect("docstage.none") is None
        assert (await session.inspect(DLQ)).messages == 0
