"""Batches: company while a round trip lasts, and no neighbour hurt by a bad item."""

import asyncio

import pytest
from sqlalchemy.exc import DBAPIError, InterfaceError

from stages.batching import Batcher


class _LockNotHadError(Exception):
    """What the driver raises for a lock that was not had in time."""

    sqlstate = "55P03"


class Recorder:
    """Answers doubled numbers, one batch at a time, and remembers the batches."""

    def __init__(self, *, bad: frozenset[int] = frozenset(), error: Exception | None = None) -> None:
        """Start with an open list and a closed gate."""
        self.batches: list[list[int]] = []
        self.gate = asyncio.Event()
        self._bad = bad
        self._error = error or ValueError("bad row")

    async def run(self, items):
        """Wait for the gate, then answer or fail."""
        self.batches.append(list(items))
        await self.gate.wait()
        if self._bad & set(items):
            raise self._error
        return [item * 2 for item in items]


async def test_what_comes_during_a_round_trip_goes_together_in_the_next():
    """The first item waits for nobody; the others share one statement."""
    recorder = Recorder()
    batcher = Batcher(recorder.run, limit=10)

    first = asyncio.create_task(batcher.submit(1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    others = [asyncio.create_task(batcher.submit(n)) for n in (2, 3, 4)]
    await asyncio.sleep(0)
    recorder.gate.set()

    assert await asyncio.gather(first, *others) == [2, 4, 6, 8]
    assert recorder.batches == [[1], [2, 3, 4]]


async def test_a_batch_is_never_larger_than_its_limit():
    """One statement's size stays bounded under any load."""
    recorder = Recorder()
    recorder.gate.set()
    batcher = Batcher(recorder.run, limit=3)

    await asyncio.gather(*(batcher.submit(n) for n in range(10)))

    assert max(map(len, recorder.batches)) == 3


async def test_one_bad_item_fails_alone():
    """The batch is split, and its neighbours get their answers."""
    recorder = Recorder(bad=frozenset({2}))
    recorder.gate.set()
    batcher = Batcher(recorder.run, limit=10)

    answers = await asyncio.gather(*(batcher.submit(n) for n in (1, 2, 3)), return_exceptions=True)

    assert [answers[0], answers[2]] == [2, 6]
    assert isinstance(answers[1], ValueError)


async def test_a_database_that_does_not_answer_is_not_asked_item_by_item():
    """Everyone hears at once that it is down; a hundred items do not wait for a hundred time-outs."""
    down = InterfaceError("SELECT", None, Exception("gone"))
    recorder = Recorder(bad=frozenset({1}), error=down)
    recorder.gate.set()
    batcher = Batcher(recorder.run, limit=10)

    answers = await asyncio.gather(*(batcher.submit(n) for n in (1, 2, 3)), return_exceptions=True)

    assert answers == [down, down, down]
    assert len(recorder.batches) == 1


async def test_a_row_that_somebody_holds_does_not_hold_up_its_neighbours():
    """One job locked by a process that hangs must not send a hundred others back to their queue."""
    held = DBAPIError("SELECT", None, _LockNotHadError("locked"))
    recorder = Recorder(bad=frozenset({2}), error=held)
    recorder.gate.set()
    batcher = Batcher(recorder.run, limit=10)

    answers = await asyncio.gather(*(batcher.submit(n) for n in (1, 2, 3)), return_exceptions=True)

    assert answers == [2, held, 6]


async def test_a_caller_that_gave_up_is_left_out():
    """Work for nobody is not done."""
    recorder = Recorder()
    batcher = Batcher(recorder.run, limit=10)
    first = asyncio.create_task(batcher.submit(1))
    second = asyncio.create_task(batcher.submit(2))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second

    recorder.gate.set()

    assert await first == 2
    assert [2] not in recorder.batches
