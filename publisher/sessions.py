"""One broker session's life: open it, make sure of the topology, work until it breaks."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from schema.runtime.broker import BrokerSession
from schema.runtime.settings import BrokerSettings
from schema.runtime.topology import declare_topology

WATCH_SECONDS: Final = 5.0


async def hold_session(
    settings: BrokerSettings,
    name: str,
    *works: Callable[[BrokerSession], Awaitable[None]],
    publish_channels: int = 0,
) -> None:
    """Run ``works`` on a new session until the first of them ends; the caller starts it again with backoff.

    The topology is declared every time, because a broker that lost its disk comes back without any.

    Raises:
        BrokerUnavailableError: the session broke.
    """
    session = await BrokerSession.open(settings, name, publish_channels=publish_channels)
    loops: list[asyncio.Future[None]] = []
    try:
        await declare_topology(session)
        loops = [
            asyncio.ensure_future(loop) for loop in (session.watch(WATCH_SECONDS), *(work(session) for work in works))
        ]
        ended, _ = await asyncio.wait(loops, return_when=asyncio.FIRST_COMPLETED)
        for loop in ended:
            loop.result()
    finally:
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        await session.close()
