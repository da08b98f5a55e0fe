"""The circuit breaker: whose fault a failure was, and one question at a time until the dependency is back."""

import asyncio
from dataclasses import dataclass, field

import pytest

from schema.domain.errors import ErrorCode, TransientError
from stages.breaker import Breaker
from tests.support.eventually import eventually

DOWN = ErrorCode.STORAGE_UNAVAILABLE


@dataclass
class Store:
    """A dependency that is up or down, and counts who asks."""

    up: bool = True
    asked: int = 0
    answers: asyncio.Event = field(default_factory=asyncio.Event)

    async def ping(self) -> None:
        """Answer once it may."""
        self.asked += 1
        await self.answers.wait()
        if not self.up:
            raise TransientError(DOWN)


@dataclass
class Hands:
    """A clock that stands where it was put."""

    at: float = 100.0

    def monotonic(self) -> float:
        """Return it."""
        return self.at


@pytest.fixture
def store():
    """A store that answers at once."""
    made = Store()
    made.answers.set()
    return made


@pytest.fixture
def hands():
    """A clock."""
    return Hands()


@pytest.fixture
async def breaker(store, hands):
    """A breaker that asks often."""
    made = Breaker(DOWN, store.ping, clock=hands, probe_seconds=0.01)
    yield made
    await made.end()


async def test_a_failure_that_the_probe_does_not_confirm_is_the_jobs_own(breaker, store):
    """One object that cannot be read must not stop a stage, and must not be tried without end."""
    assert await breaker.blames(DOWN, 200.0) is False
    assert store.asked == 1
    assert not breaker.is_open


async def test_a_failure_of_another_kind_asks_nobody(breaker, store):
    """A bad document says nothing about the store."""
    store.up = False

    assert await breaker.blames(ErrorCode.CORRUPT_DOCUMENT, 200.0) is False
    assert await breaker.blames(None, 200.0) is False
    assert store.asked == 0


async def test_a_failure_that_the_probe_confirms_stops_the_work_until_a_probe_is_answered(breaker, store):
    """Nothing passes meanwhile, and nobody has to do anything to let it pass again."""
    store.up = False

    assert await breaker.blames(DOWN, 200.0) is True
    assert list(breaker.missing()) == ["paused: storage_unavailable"]
    assert await breaker.passes(0) is False
    store.up = True
    assert await breaker.passes(30) is True
    assert list(breaker.missing()) == []


async def test_many_that_fail_at_once_share_one_question(breaker, store):
    """A store that is down must not be asked by every job that found out."""
    store.up = False
    store.answers.clear()

    asking = [asyncio.create_task(breaker.blames(DOWN, 200.0)) for _ in range(50)]
    await eventually(lambda: store.asked)
    asking[0].cancel()
    store.answers.set()
    blamed = await asyncio.gather(*asking[1:])

    assert all(blamed)
    assert store.asked - 1 <= 1  # the breaker's own first probe may have followed


async def test_the_end_of_the_process_during_a_question_gives_the_work_back(breaker, store):
    """A handler that was waiting for the answer must live to release its claim; else it counts as a lost worker."""
    store.answers.clear()
    asking = asyncio.create_task(breaker.blames(DOWN, 200.0))
    await eventually(lambda: store.asked)

    await breaker.end()

    assert await asking is True


async def test_work_that_began_before_an_outage_ended_is_excused_after_it(breaker, store, hands):
    """A call that hangs fails long after it was made; the store may be up again by then."""
    store.up = False
    assert await breaker.blames(DOWN, 200.0)
    hands.at = 300.0
    store.up = True
    assert await breaker.passes(30)

    assert await breaker.blames(DOWN, 250.0) is True
    assert await breaker.blames(DOWN, 350.0) is False


async def test_the_end_of_the_process_lets_nobody_wait(breaker, store):
    """What is held goes back to its queue at once, so that a stop takes no longer in an outage."""
    store.up = False
    await breaker.blames(DOWN, 200.0)
    waiting = asyncio.create_task(breaker.passes(3600))

    await breaker.end()

    assert await waiting is False
