"""Questions to a database that may be gone just now, and to a broker's management API."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import httpx

from schema.db.engine import Database, is_unavailable
from tests.support.factories import rows

PAUSE_SECONDS: Final = 0.2
T = TypeVar("T")


async def patiently(database: Database, ask: Callable[[], Awaitable[T]]) -> T:
    """Ask until the database answers; its pool is made anew each time that it does not."""
    while True:
        try:
            return await ask()
        except Exception as error:
            if not is_unavailable(error):
                raise
            await database.close()
            await asyncio.sleep(PAUSE_SECONDS)


async def found(database: Database, statement: str, **values: object) -> list[dict[str, Any]]:
    """Return what a query finds, whenever the database answers."""
    return await patiently(database, lambda: rows(database, statement, **values))


async def messages(management_url: str, amqp_url: str) -> Mapping[str, int]:
    """Return how many messages each queue of a vhost holds, those that are out for delivery included.

    The management API is up to five seconds late.
    """
    async with httpx.AsyncClient(timeout=10, trust_env=False) as client:
        answer = await client.get(f"{management_url}/api/queues/{urlsplit(amqp_url).path.strip('/')}")
    answer.raise_for_status()
    return {queue["name"]: int(queue.get("messages", 0)) for queue in answer.json()}
