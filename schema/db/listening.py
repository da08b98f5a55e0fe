"""Hearing the wake-up calls that ``schema.db.wake`` sends."""

import asyncio
from collections.abc import Callable
from typing import Final

import asyncpg

from schema.db.engine import SESSION_LIMITS, WAKE_CHANNEL, plain_url

ALIVE_SECONDS: Final = 30.0
ANSWER_SECONDS: Final = 10.0


async def listen(url: str, *, application: str, heard: Callable[[], None]) -> None:
    """Call ``heard`` for every notification until the connection is gone; it never returns otherwise.

    On a connection of its own, which a pool would take back. A call may get lost, so whoever listens polls too;
    this asks now and then whether the connection still lives, for a dead one is silent like an idle one.

    Raises:
        ConnectionError: the connection is gone.
    """
    connection = await asyncpg.connect(
        plain_url(url),
        timeout=ANSWER_SECONDS,
        command_timeout=ANSWER_SECONDS,
        server_settings=SESSION_LIMITS | {"application_name": application},
    )
    try:
        await connection.add_listener(WAKE_CHANNEL, lambda *_: heard())
        heard()
        while not connection.is_closed():
            await asyncio.sleep(ALIVE_SECONDS)
            await connection.execute("SELECT 1")
    finally:
        connection.terminate()
    raise ConnectionError
