"""Batches: what is asked for while one round trip is under way goes together in the next."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from schema.db.engine import is_held_up, is_unavailable

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Batcher(Generic[Item, Answer]):
    """Gathers items and hands them to ``run`` in one call.

    An item waits for company only as long as the call before takes. A batch that fails is split and each item
    done alone, so that one bad row, or one that somebody holds locked, cannot fail its neighbours; only when the
    database does not answer at all is everyone told so at once.
    """

    def __init__(self, run: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]], *, limit: int) -> None:
        """Keep the call and the largest batch."""
        self._run = run
        self._limit = limit
        self._waiting: deque[tuple[Item, asyncio.Future[Answer]]] = deque()
        self._runner: asyncio.Task[None] | None = None

    async def submit(self, item: Item) -> Answer:
        """Wait for the item's answer, or for what its own call raised."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._runner is None:
            self._runner = asyncio.create_task(self._drain())
        return await future

    async def _drain(self) -> None:
        try:
            while self._waiting:
                count = min(self._limit, len(self._waiting))
                batch = [self._waiting.popleft() for _ in range(count)]
                await self._serve([(item, future) for item, future in batch if not future.done()])
        finally:
            self._runner = None

    async def _serve(self, batch: Sequence[tuple[Item, asyncio.Future[Answer]]]) -> None:
        """Answer a batch; alone, item by item, when it fails as one."""
        if not batch:
            return
        try:
            answers = await self._run([item for item, _ in batch])
        except Exception as error:  # noqa: BLE001 - it belongs to whoever waits
            if len(batch) == 1 or (is_unavailable(error) and not is_held_up(error)):
                for _, future in batch:
                    _fail(future, error)
                return
            for one in batch:
                await self._serve([one])
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            if not future.done():
                future.set_result(answer)


def _fail(future: asyncio.Future[Answer], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
