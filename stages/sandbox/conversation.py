"""One call's exchange with a child, within its budget."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from stages.sandbox.channel import Channel
from stages.sandbox.failures import ProtocolViolationError, decode, failure
from stages.sandbox.protocol import FrameKind
from stages.sandbox.settings import Budget

OnEvent = Callable[[dict[str, Any]], Awaitable[None]]


class BudgetSpentError(Exception):
    """A call took longer than it may; ``reason`` is the budget that was spent."""

    def __init__(self, reason: str) -> None:
        """Keep the reason."""
        super().__init__(reason)
        self.reason = reason


async def converse(
    channel: Channel, message: bytes, on_event: OnEvent | None, budget: Budget
) -> dict[str, Any] | Exception:
    """Send a call, hand its events on, and return the result or the error that the child told.

    The time that ``on_event`` takes counts against the whole budget, not as the child's silence.

    Raises:
        BudgetSpentError: when the child takes too long.
        ChannelError: when the child is gone.
        ProtocolViolationError: when the child says what no child may say.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + budget.total_seconds
    channel.begin(message)
    while True:
        quiet_until = loop.time() + budget.silence_seconds
        try:
            async with asyncio.timeout_at(min(deadline, quiet_until)):
                frame = await channel.receive()
        except TimeoutError:
            raise BudgetSpentError("timeout" if deadline <= quiet_until else "silence") from None
        match frame.kind:
            case FrameKind.RESULT:
                return decode(frame.payload)
            case FrameKind.FAILURE:
                return failure(frame.payload)
            case FrameKind.EVENT if on_event is not None:
                await on_event(decode(frame.payload))
            case _:
                raise ProtocolViolationError
