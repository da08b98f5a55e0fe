"""Waking the relay: a hint that the outbox has something, sent after a commit and never inside one.

Inside the transaction the notification costs a factor of ten in commits, because notifying commits queue up
behind one lock; so it is a statement of its own, and one for all commits of 10 ms.
"""

import asyncio
from typing import Final

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from schema.db.engine import WAKE_CHANNEL, Database

PAUSE_SECONDS: Final = 0.01

_NOTIFY = text(f"NOTIFY {WAKE_CHANNEL}")


class Waker:
    """Tells the relays of all machines to look; a hint that is lost costs one poll."""

    def __init__(self, database: Database) -> None:
        """Take the pool; nothing runs before the first ``wake``."""
        self._database = database
        self._wanted = False
        self._sending: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Ask for a notification and return at once; call it after the commit."""
        self._wanted = True
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def close(self) -> None:
        """Let the last notification go out."""
        if self._sending is not None:
            await self._sending

    async def _send(self) -> None:
        """Notify as long as somebody asks, with a pause in between."""
        while self._wanted:
            self._wanted = False
            await self._notify()
            await asyncio.sleep(PAUSE_SECONDS)

    async def _notify(self) -> None:
        """Send one notification; what goes wrong is left to the relay's own poll."""
        try:
            async with self._database.engine.connect() as connection:
                alone = await connection.execution_options(isolation_level="AUTOCOMMIT")
                await alone.execute(_NOTIFY)
        except (SQLAlchemyError, OSError, TimeoutError):
            return
