"""The relay on a real database and broker: nothing is lost, whatever is down, and nothing is deleted unconfirmed."""

import asyncio
from datetime import timedelta
from functools import partial

from publisher.relay import Relay
from schema.db import outbox
from schema.db.listening import listen
from schema.db.wake import Waker
from schema.domain.states import Lane
from schema.runtime.clock import SystemClock
from schema.runtime.lifecycle import supervise
from schema.wire.messages import HEADER_DEFERRALS, HEADER_EVENT_ID, STAGE_TYPE, decode
from schema.wire.queues import lane_queue
from tests.support.broker import delete_queue, inbox, owe, publisher_settings, running, topology_session
from tests.support.eventually import eventually
from tests.support.factories import rows
from tests.support.protocol import change

VALIDATE = lane_queue(Lane.VALIDATE)


def _relay(environment, database, **changes):
    settings = publisher_settings(environment, **{"relay_poll_seconds": 0.05} | changes)
    return Relay(settings=settings, database=database, clock=SystemClock())


async def _left(database):
    return await rows(database, "SELECT * FROM outbox_event ORDER BY id")


async def _is_empty(database):
    return not await _left(database)


async def test_a_row_becomes_one_persistent_message_and_is_then_gone(database, environment, amqp_url):
    """The message says what its row says, and the table stays small however long the system runs."""
    event_id = await owe(database)

    async with running(_relay(environment, database).run()):
        await eventually(partial(_is_empty, database))
        async with inbox(amqp_url, VALIDATE) as box:
            await eventually(lambda: box.deliveries)

    (delivery,) = box.deliveries
    assert delivery.type == STAGE_TYPE
    assert delivery.headers[HEADER_EVENT_ID] == str(event_id)
    assert delivery.headers[HEADER_DEFERRALS] == 0
    assert decode(delivery.body).attempt == 1


async def test_a_backlog_goes_out_whole_and_every_message_has_an_id_of_its_own(database, environment, amqp_url):
    """The library tells returned messages apart by this id, so two alike would be mixed up."""
    events = {str(await owe(database)) for _ in range(40)}

    async with running(_relay(environment, database, relay_batch=8).run()):
        await eventually(partial(_is_empty, database))
        async with inbox(amqp_url, VALIDATE) as box:
            await eventually(lambda: len(box.deliveries) == 40)

    assert {delivery.headers[HEADER_EVENT_ID] for delivery in box.deliveries} == events
    assert len({delivery.message_id for delivery in box.deliveries}) == 40


async def test_an_unroutable_row_stays_with_its_reason_and_goes_out_once_there_is_a_queue(
    database, environment, amqp_url, services
):
    """The broker confirms what it cannot route; taking that for success would lose the job."""
    relay = _relay(environment, database)
    async with running(relay.run()):
        await eventually(lambda: relay.missing() == [])
        await asyncio.to_thread(delete_queue, services, amqp_url, VALIDATE)
        await owe(database)

        async def refused():
            (row,) = await _left(database)
            return row["attempts"] >= 1 and row["last_error"] == "unroutable"

        await eventually(refused)
        async with topology_session(amqp_url):
            await eventually(partial(_is_empty, database))


async def test_a_crash_between_confirm_and_delete_publishes_again(database, environment, amqp_url):
    """Two messages are harmless, none is not: the row comes back when its lock runs out."""
    event_id = await owe(database)
    settings = publisher_settings(environment, publish_timeout_seconds=0.1)
    async with topology_session(amqp_url) as session:
        async with database.transaction() as conn:
            (taken,) = await outbox.take(conn, limit=10, lock=settings.row_lock / 10)
        crashed = Relay(settings=settings, database=database, clock=SystemClock())
        await crashed._publish(session, taken)  # noqa: SLF001 - exactly up to the point of the crash

    async with running(_relay(environment, database).run()), inbox(amqp_url, VALIDATE) as box:
        await eventually(lambda: len(box.deliveries) == 2)
        await eventually(partial(_is_empty, database))

    assert {delivery.headers[HEADER_EVENT_ID] for delivery in box.deliveries} == {str(event_id)}
    assert len({delivery.message_id for delivery in box.deliveries}) == 2


async def test_a_row_that_another_relay_has_taken_is_left_alone(database):
    """Any number of relays may run; the lock is what keeps them from sending the same rows."""
    await owe(database)
    lock = timedelta(seconds=30)

    async with database.transaction() as conn:
        first = await outbox.take(conn, limit=10, lock=lock)
    async with database.transaction() as conn:
        second = await outbox.take(conn, limit=10, lock=lock)

    assert len(first) == 1
    assert second == []


async def test_rows_owed_while_the_broker_is_down_go_out_when_it_is_back(database, environment, amqp_url, services):
    """A broker restart is an ordinary day: nothing is lost and nobody has to do anything."""
    relay = _relay(environment, database)
    async with running(supervise("relay", relay.run)):
        await owe(database)
        await eventually(partial(_is_empty, database))

        await asyncio.to_thread(services.rabbitmq.kill)
        try:
            for _ in range(20):
                await owe(database)
            await eventually(lambda: relay.missing() != [])
        finally:
            await asyncio.to_thread(services.rabbitmq.start)
        await eventually(partial(_is_empty, database))

    async with inbox(amqp_url, VALIDATE) as box:
        await eventually(lambda: len({d.headers[HEADER_EVENT_ID] for d in box.deliveries}) == 21)


async def test_a_frozen_broker_holds_no_database_connection(database, environment, services):
    """A broker in alarm once emptied the pool of a public service for 21 hours."""
    relay = _relay(environment, database, publish_timeout_seconds=0.5)
    async with running(supervise("relay", relay.run)):
        await eventually(lambda: relay.missing() == [])
        services.rabbitmq.pause()
        try:
            for _ in range(20):
                await owe(database)

            async def tried():
                return any(row["last_error"] == "broker_unavailable" for row in await _left(database))

            await eventually(tried)
            idle = await rows(
                database,
                "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database()"
                " AND state = 'idle in transaction'",
            )
            assert idle == [{"n": 0}]
        finally:
            services.rabbitmq.resume()
        await eventually(partial(_is_empty, database))


async def test_a_wake_up_call_is_answered_before_the_poll(database, environment, database_url):
    """Between commit and publish lies a notification, not half a second of polling."""
    relay = _relay(environment, database, relay_poll_seconds=3600)
    waker = Waker(database)
    async with running(relay.run()), running(listen(database_url, application="test", heard=relay.wake)):
        await owe(database)
        waker.wake()
        await eventually(partial(_is_empty, database))
        await owe(database)
        waker.wake()
        await eventually(partial(_is_empty, database))
    await waker.close()


async def test_a_row_of_an_unknown_kind_is_put_off_and_harms_no_other(database, environment, amqp_url):
    """A newer release may write what this one cannot send; the rest of the outbox must not wait for it."""
    await change(database, "ALTER TABLE outbox_event DROP CONSTRAINT outbox_event_kind_check")
    await owe(database, kind="news")
    await owe(database)

    async with running(_relay(environment, database).run()), inbox(amqp_url, VALIDATE) as box:
        await eventually(lambda: box.deliveries)

        async def only_the_news():
            (row,) = await _left(database)
            return row["kind"] == "news" and row["last_error"] == "no_route"

        await eventually(only_the_news)
