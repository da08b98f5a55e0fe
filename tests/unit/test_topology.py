"""The ladder as arithmetic: whatever the delay, its route adds up to it and ends at the right stage."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.domain.states import Lane
from schema.wire.queues import (
    DELIVER,
    LEVELS,
    LONGEST,
    PARKING,
    UNIT,
    WORK,
    delay_name,
    lane_queue,
    route,
    stage_of,
    topology,
)


def _matches(pattern, key):
    """Say whether a topic exchange would take ``key`` for ``pattern``; ``#`` only stands at an end."""
    if pattern.startswith("#."):
        return key.endswith(pattern.removeprefix("#"))
    wanted, given_ = pattern.removesuffix(".#").split("."), key.split(".")
    return len(given_) >= len(wanted) and all(w in ("*", g) for w, g in zip(wanted, given_, strict=False))


def _walk(lane, delay):
    """Follow a message through the bindings; return the time spent in queues and where it ended."""
    everything = topology()
    times = {queue.name: queue.arguments.get("x-message-ttl") for queue in everything.queues}
    onwards = {queue.name: queue.arguments.get("x-dead-letter-exchange") for queue in everything.queues}
    start = route(lane, delay)
    exchange, waited, ends = start.exchange, 0, []
    while exchange is not None:
        (binding,) = [b for b in everything.bindings if b.source == exchange and _matches(b.key, start.key)]
        if binding.to_exchange:
            exchange = binding.target
            continue
        ends.append(binding.target)
        ttl = times[binding.target]
        exchange = onwards[binding.target] if ttl else None
        waited += ttl or 0
    return timedelta(milliseconds=waited), ends[-1]


@given(st.floats(min_value=0.001, max_value=LONGEST.total_seconds()), st.sampled_from(list(Lane)))
def test_every_delay_is_waited_out_in_full_and_ends_at_its_lane(seconds, lane):
    """A retry that came early would burn an attempt; one at another stage's queue would be lost work."""
    waited, end = _walk(lane, timedelta(seconds=seconds))

    assert timedelta(0) <= waited - timedelta(seconds=seconds) < UNIT
    assert end == lane_queue(lane)


@given(st.sampled_from(list(Lane)))
def test_a_delay_beyond_the_ladder_gets_its_full_length(lane):
    """The rest is put back on it when the message comes out."""
    assert _walk(lane, LONGEST * 5) == (LONGEST, lane_queue(lane))


@pytest.mark.parametrize("lane", list(Lane))
def test_no_delay_goes_straight_to_the_stage(lane):
    """The ordinary message takes one hop."""
    where = route(lane, timedelta(0))

    assert (where.exchange, where.key) == (WORK, lane.value)
    assert route(lane, timedelta(seconds=-5)) == where


def test_every_queue_is_a_quorum_queue_and_none_can_lose_a_message_to_a_limit_unseen():
    """A queue with a limit and no way out drops what exceeds it; 4.x puts a limit of 20 where none is set."""
    for queue in topology().queues:
        assert queue.arguments["x-queue-type"] == "quorum"
        way_out = "x-dead-letter-exchange" in queue.arguments
        limit = queue.arguments.get("x-delivery-limit", 20 if not way_out else 0)
        assert way_out or limit > 1_000_000, queue.name


def test_dead_lettering_is_confirmed_wherever_it_happens():
    """At-least-once needs all of these together; with one missing the broker silently falls back."""
    for queue in topology().queues:
        if "x-dead-letter-exchange" in queue.arguments:
            assert queue.arguments["x-dead-letter-strategy"] == "at-least-once"
            assert queue.arguments["x-overflow"] == "reject-publish"


def test_what_comes_out_of_the_ladder_without_a_queue_is_parked():
    """Else 32 of them stop a level for every stage."""
    (deliver,) = [exchange for exchange in topology().exchanges if exchange.name == DELIVER]

    assert deliver.arguments == {"alternate-exchange": PARKING}


def test_each_level_waits_twice_as_long_as_the_one_below():
    """One time per queue is why nothing waits behind anything longer."""
    times = {queue.name: queue.arguments.get("x-message-ttl") for queue in topology().queues}

    assert [times[delay_name(level)] for level in range(LEVELS)] == [250 << level for level in range(LEVELS)]


@pytest.mark.parametrize("lane", Lane)
def test_a_queue_tells_the_stage_that_it_feeds(lane):
    """A message in another stage's queue is a producer's fault, and is found by this."""
    assert stage_of(lane_queue(lane)) == lane.stage.value
