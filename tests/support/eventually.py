"""Waiting for something to become true, without guessing how long it takes."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

POLL_SECONDS = 0.02
DEFAULT_SECONDS = 120.0


async def eventually(look: Callable[[], T | Awaitable[T]], *, seconds: float = DEFAULT_SECONDS) -> T:
    """Return the first truthy answer of ``look``; an ``AssertionError`` raised by it counts as "not yet".

    The limit only decides how long a broken system is waited for; nothing is asserted about speed.
    """
    ends = time.monotonic() + seconds
    last: object = None
    while True:
        try:
            answer = look()
            if inspect.isawaitable(answer):
                answer = await answer
            if answer:
                return answer
            last = answer
        except AssertionError as error:
            last = error
        if time.monotonic() > ends:
            message = f"not within {seconds:.0f} s; last: {last!r}"
            raise AssertionError(message)
        await asyncio.sleep(POLL_SECONDS)
