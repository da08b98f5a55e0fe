"""The sweeper's look at the dead-letter queue: it heals what it can, and leaves alone what it cannot."""

from dataclasses import dataclass
from functools import partial

import pytest

from publisher import letter_queue
from publisher.letter_queue import PAUSE_SECONDS, letter_queue_rule
from schema.domain.ids import new_id
from schema.runtime.reconcile import Reconciled, reconcile
from schema.wire.messages import LETTER_TYPE, encode_letter
from schema.wire.queues import DLQ, DLX
from tests.support.broker import publisher_settings, topology_session
from tests.support.eventually import eventually


@dataclass
class Hand:
    """A clock that is moved by hand."""

    now: float = 0.0

    def monotonic(self):
        """Return where the hand stands."""
        return self.now


@pytest.fixture
def looks(monkeypatch):
    """Collect what each look at the queue's messages came to."""
    seen = []

    async def counted(*arguments):
        seen.append(await reconcile(*arguments))
        return seen[-1]

    monkeypatch.setattr(letter_queue, "reconcile", counted)
    return seen


async def _put(session, body):
    await session.publish(DLX, "", body, message_id=str(new_id()), message_type=LETTER_TYPE, headers={})


async def _holds(session, messages):
    return (await session.inspect(DLQ)).messages == messages


async def test_a_message_that_is_not_ours_is_looked_at_once(database, environment, amqp_url, looks):
    """Nobody can make it anew, so it stays; what is ours beside it is still found."""
    clock = Hand()
    rule = letter_queue_rule(publisher_settings(environment), database, clock)
    closed = encode_letter(letter_id=new_id(), job_id=None, stage=None, series=1, code="worker_lost")

    async with topology_session(amqp_url, publish_channels=1) as session:
        await _put(session, b"a stranger's")
        await rule()
        await eventually(partial(_holds, session, 1))
        clock.now += 2 * PAUSE_SECONDS
        await rule()
        assert looks == [Reconciled(dropped=0, kept=0, foreign=1, issued=0)]

        await _put(session, closed)
        clock.now += PAUSE_SECONDS
        assert await rule() == 1
        await eventually(partial(_holds, session, 1))


async def test_looks_that_find_nothing_to_do_become_rare(monkeypatch):
    """A queue that cannot be put right is not taken and given back every minute for ever."""
    clock, looks = Hand(), []

    async def differ(*_, **__):
        return False

    async def look(*_):
        looks.append(clock.now)
        return Reconciled(0, 0, 0, 0)

    monkeypatch.setattr(letter_queue, "numbers_agree", differ)
    monkeypatch.setattr(letter_queue, "reconcile", look)
    rule = letter_queue_rule(None, None, clock)
    for clock.now in range(0, 4 * 3600, 5):
        await rule()

    assert looks == [0, 120, 360, 840, 1800, 3720, 7320, 10920]
