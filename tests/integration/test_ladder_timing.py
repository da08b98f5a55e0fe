"""The retry ladder on the real broker: delays are kept, never queue behind each other, and nothing stops the ladder."""

import asyncio
import random
from collections import Counter
from datetime import timedelta

from schema.domain.ids import new_id
from schema.domain.states import Lane
from schema.runtime.topology import declare_topology
from schema.wire.messages import STAGE_TYPE
from schema.wire.queues import LONGEST, PARKING, UNDELIVERABLE, UNIT, lane_queue, route
from tests.support.broker import delete_queue, inbox, topology_session
from tests.support.eventually import eventually

# How late a message may be on a machine that does ten other things; the ladder itself takes milliseconds.
SLACK_SECONDS = 2.0


async def _send(session, lane, delay, name):
    """Publish one message onto the ladder; return when."""
    where = route(lane, delay)
    sent = asyncio.get_running_loop().time()
    await session.publish(
        where.exchange,
        where.key,
        name.encode(),
        message_id=str(new_id()),
        message_type=STAGE_TYPE,
        headers={},
    )
    return sent


async def test_mixed_delays_come_back_in_the_order_of_their_times_and_never_early(amqp_url):
    """In one queue with a time per message the short ones would wait behind the long ones."""
    delays = {str(n): UNIT * n for n in (12, 1, 7, 2, 5, 3, 0)}
    lanes = {name: list(Lane)[index % len(Lane)] for index, name in enumerate(delays)}
    async with topology_session(amqp_url) as session, inbox(amqp_url, *map(lane_queue, Lane)) as box:
        sent = {name: await _send(session, lanes[name], delay, name) for name, delay in delays.items()}
        await eventually(lambda: len(box.deliveries) == len(delays))

    arrived = {d.body.decode(): (d, at) for d, at in zip(box.deliveries, box.times, strict=True)}
    for name, delay in delays.items():
        delivery, at = arrived[name]
        waited = at - sent[name]
        assert delivery.queue == lane_queue(lanes[name])
        assert waited >= delay.total_seconds(), name
        assert waited < delay.total_seconds() + SLACK_SECONDS, name


async def test_a_burst_with_jitter_comes_back_spread_over_its_window(amqp_url):
    """A thousand failures of one instant must not become a thousand retries of one instant."""
    draw, count = random.Random(7), 1000
    first, window = 4, 10
    delays = [timedelta(seconds=draw.uniform(first, first + window)) for _ in range(count)]
    async with topology_session(amqp_url) as session, inbox(amqp_url, lane_queue(Lane.VALIDATE)) as box:
        began = asyncio.get_running_loop().time()
        await asyncio.gather(*(_send(session, Lane.VALIDATE, delay, "x") for delay in delays))
        await eventually(lambda: len(box.deliveries) == count)

    tenths = Counter(int((at - began - first) * 10 // window) for at in box.times)
    share = max(tenths.values()) / count
    print(f"busiest tenth of the window: {share:.0%}")  # noqa: T201 - a figure for docs/reliability.md
    assert min(tenths) >= 0
    # A tenth would be ideal; a machine that stalls for seconds must not fail this, a lump has to.
    assert share < 0.6


async def test_retries_that_nobody_takes_are_parked_and_the_ladder_goes_on(amqp_url, services):
    """Without an alternate exchange 32 of them would stop a level for every stage."""
    async with topology_session(amqp_url) as session:
        await asyncio.to_thread(delete_queue, services, amqp_url, lane_queue(Lane.PERSIST))
        await asyncio.gather(*(_send(session, Lane.PERSIST, UNIT, "lost") for _ in range(40)))
        await _send(session, Lane.VALIDATE, UNIT, "found")

        await eventually(lambda: _holds(session, PARKING, 40))
        await eventually(lambda: _holds(session, lane_queue(Lane.VALIDATE), 1))


async def test_many_retries_in_a_row_of_one_job_all_come_back(amqp_url):
    """Up to 3.13 the broker drops an expired message that shows the same queue twice; fresh ones show none."""
    async with topology_session(amqp_url) as session, inbox(amqp_url, lane_queue(Lane.NORMALIZE)) as box:
        for attempt in range(1, 26):
            await _send(session, Lane.NORMALIZE, UNIT, str(attempt))
            await eventually(lambda wanted=attempt: len(box.deliveries) == wanted)


async def test_the_longest_delay_has_a_route_and_longer_ones_get_no_further(amqp_url):
    """A week's delay goes onto the ladder whole and is put back when it comes out."""
    async with topology_session(amqp_url) as session:
        for delay in (LONGEST, LONGEST * 3):
            await _send(session, Lane.VALIDATE, delay, "late")

        top = route(Lane.VALIDATE, LONGEST).exchange
        await eventually(lambda: _holds(session, top, 2))


async def test_declaring_again_changes_nothing(amqp_url):
    """Every publisher declares at every session, next to others and over queues that hold messages."""
    async with topology_session(amqp_url) as session:
        await _send(session, Lane.VALIDATE, timedelta(0), "kept")
        await asyncio.gather(*(declare_topology(session) for _ in range(3)))

        await eventually(lambda: _holds(session, lane_queue(Lane.VALIDATE), 1))


async def test_a_message_given_back_too_often_goes_to_the_undeliverable_queue(amqp_url):
    """The broker's own limit is a backstop; what it gives up must land where somebody reads it."""
    async with topology_session(amqp_url) as session:
        await _send(session, Lane.VALIDATE, timedelta(0), "poison")
        async with inbox(amqp_url, lane_queue(Lane.VALIDATE), acks=False) as box:
            handled = 0

            async def given_up():
                nonlocal handled
                while handled < len(box.deliveries):
                    await box.session.requeue(box.deliveries[handled])
                    handled += 1
                return await _holds(session, UNDELIVERABLE, 1)

            await eventually(given_up)
    assert handled > 200


async def _holds(session, queue, messages):
    depth = await session.inspect(queue)
    return depth is not None and depth.messages == messages
