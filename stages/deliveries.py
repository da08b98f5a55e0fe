"""Deliveries in hand: the one place where stages acknowledge, each after what came of it is committed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from schema.runtime import metrics
from schema.runtime.broker import BrokerSession, Consumer, Delivery
from schema.runtime.lifecycle import Health
from schema.runtime.logs import get_logger
from schema.runtime.settings import BrokerSettings
from schema.wire.queues import stage_of, work_of

log = get_logger()

WATCH_SECONDS: Final = 5.0
# So that a database that is down is not asked as fast as the broker can redeliver.
PAUSE_SECONDS: Final = 1.0


class Deliveries:
    """Takes deliveries from the queues of one process to a handler, over as many broker sessions as it takes."""

    def __init__(
        self,
        settings: BrokerSettings,
        queues: Mapping[str, int],
        *,
        handle: Callable[[Delivery], Awaitable[None]],
        health: Health,
    ) -> None:
        """Keep the ports; ``queues`` says how many of each may be in hand, and what is handled is acknowledged."""
        self._settings = settings
        self._queues = queues
        self._handle = handle
        self._consumers: list[Consumer] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopped = False
        health.checks.append(self._missing)

    def _missing(self) -> list[str]:
        """Name the queues that the broker does not deliver from."""
        active = {consumer.queue for consumer in self._consumers if consumer.registered and consumer.taking}
        return [f"no consumer on {work_of(queue)}" for queue in self._queues if queue not in active]

    @asynccontextmanager
    async def session(self, name: str) -> AsyncIterator[BrokerSession]:
        """Take deliveries over a session of its own while the block runs.

        Raises:
            BrokerUnavailableError: with a code that says what broke.
        """
        if self._stopped:
            # A session that breaks while this process drains is not replaced: nothing more is to be taken.
            await asyncio.Event().wait()
        session = await BrokerSession.open(self._settings, name)
        try:
            for queue, prefetch in self._queues.items():
                consumer = await session.consume(queue, prefetch=prefetch, on_delivery=partial(self._take, session))
                self._consumers.append(consumer)
            log.info("consuming", count=len(self._consumers))
            yield session
        finally:
            self._consumers.clear()
            await session.close()

    async def stop(self) -> None:
        """Take nothing more."""
        self._stopped = True
        for consumer in self._consumers:
            await consumer.stop()

    async def settled(self, seconds: float) -> None:
        """Wait so long at most until nothing is in hand."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    def _take(self, session: BrokerSession, delivery: Delivery) -> None:
        """Start on a delivery; ``prefetch`` bounds how many there are."""
        task = asyncio.create_task(self._settle(session, delivery))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _settle(self, session: BrokerSession, delivery: Delivery) -> None:
        """Handle a delivery, then acknowledge it.

        One that could not be handled goes back to its queue: nothing was recorded, so it must come again.
        """
        try:
            await self._handle(delivery)
        except Exception as error:  # noqa: BLE001 - every delivery ends in an ack or goes back
            log.warning("delivery_requeued", exception_type=type(error).__name__, queue=delivery.queue)
            metrics.DELIVERIES.labels(stage=stage_of(delivery.queue), outcome="requeued").inc()
            await asyncio.sleep(PAUSE_SECONDS)
            await session.requeue(delivery)
            return
        # A failed ack is normal: the delivery comes again, and its outcome is already recorded.
        await session.ack(delivery)
