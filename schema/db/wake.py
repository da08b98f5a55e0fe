"""Waking the relay: a hint that the outbox has something, sent after a commit and never inside one.

Inside the transaction the notification costs a factor of ten in commits, because notifying commits queue up
behind one lock; so it is a statement of its own, and one for all commits of 10 ms.
"""

import asyncio
from typing import Final

import asyncpg

from schema.db.engine import SESSION_LIMITS, WAKE_CHANNEL, Database, plain_url

PAUSE_SECONDS: Final = 0.01
RETRY_SECONDS: Final = 1.0
ANSWER_SECONDS: Final = 5.0


class Waker:
    """Tells the relays of all machines to look; a hint that is lost costs one poll.

    It has a connection of its own, so that a hint never waits for a place in the pool, nor takes one.
    """

    def __init__(self, database: Database) -> None:
        """Take the database; nothing is connected before the first ``wake``."""
        self._url = plain_url(database.url)
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None
        self._wanted = False
        self._sending: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Ask for a notification and return at once; call it after the commit."""
        self._wanted = True
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def close(self) -> None:
        """Let the last notification go out, and close the connection."""
        if self._sending is not None:
            await self._sending
        if self._connection is not None:
            await self._connection.close(timeout=ANSWER_SECONDS)

    async def _send(self) -> None:
        """Notify as long as somebody asks, with a pause in between."""
        while self._wanted:
            self._wanted = False
            await asyncio.sleep(PAUSE_SECONDS if await self._notify() else RETRY_SECONDS)

    async def _notify(self) -> bool:
        """Send one notification; what goes wrong is left to the relay's own poll."""
        try:
            if self._connection is None or self._connection.is_closed():
                self._connection = await self._connect()
            await self._connection.execute(f"NOTIFY {WAKE_CHANNEL}", timeout=ANSWER_SECONDS)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
            self._drop()
            return False
        return True

    async def _connect(self) -> "asyncpg.Connection[asyncpg.Record]":
        """Open the connection."""
        return await asyncpg.connect(
            self._url,
            timeout=ANSWER_SECONDS,
            server_settings=SESSION_LIMITS | {"application_name": "docstage-waker"},
        )

    def _drop(self) -> None:
        """Give a broken connection up without waiting for it."""
        if self._connection is not None:
            self._connection.terminate()
        self._connection = None
