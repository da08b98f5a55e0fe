"""Notices in, ack out: each delivery is acknowledged only after its attempt is committed."""

import asyncio
from typing import Final

from schema.db.webhook_deliveries import Copy
from schema.runtime import metrics
from schema.runtime.broker import BrokerSession, Consumer, Delivery
from schema.runtime.lifecycle import Health
from schema.runtime.logs import get_logger
from schema.runtime.settings import DeliverSettings
from schema.wire.messages import (
    HEADER_DEFERRALS,
    HEADER_TRACEPARENT,
    NoticeMessage,
    UnreadableMessageError,
    decode_notice,
)
from schema.wire.queues import NOTICES
from stages.consumer import WATCH_SECONDS, Desk
from stages.deliver.courier import Courier

log = get_logger()

PAUSE_SECONDS: Final = 1.0


class NoticeConsumer:
    """Consumes the queue of notices, over as many broker sessions as it takes."""

    def __init__(self, *, settings: DeliverSettings, courier: Courier, desk: Desk, health: Health) -> None:
        """Keep the ports."""
        self._settings = settings
        self._courier = courier
        self._desk = desk
        self._tasks: set[asyncio.Task[None]] = set()
        self._session: BrokerSession | None = None
        self._consumer: Consumer | None = None
        self._draining = False
        health.checks.append(self._missing)

    def _missing(self) -> list[str]:
        consumer = self._consumer
        active = consumer is not None and consumer.registered and consumer.taking
        return [] if active else ["no consumer on deliver"]

    async def run(self) -> None:
        """Consume until the session breaks; the caller starts it again with backoff.

        Raises:
            BrokerUnavailableError: with a code that says what broke.
        """
        if self._draining:
            await asyncio.Event().wait()
        session = await BrokerSession.open(self._settings, "docstage-deliver")
        self._session = session
        try:
            self._consumer = await session.consume(
                NOTICES, prefetch=self._settings.webhook_in_flight, on_delivery=self._take
            )
            log.info("consuming", count=1)
            await session.watch(WATCH_SECONDS)
        finally:
            self._consumer = None
            await session.close()

    async def drain(self, grace_seconds: float) -> None:
        """Take nothing more and let what is on its way end; the rest goes back to the queue and is sent again."""
        self._draining = True
        if self._consumer is not None:
            await self._consumer.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace_seconds)

    def _take(self, delivery: Delivery) -> None:
        session = self._session
        if session is None:
            return
        task = asyncio.create_task(self._settle(session, delivery))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _settle(self, session: BrokerSession, delivery: Delivery) -> None:
        """Handle a delivery, then acknowledge it; one that could not be handled goes back to its queue."""
        try:
            await self._handle(delivery)
        except Exception as error:  # noqa: BLE001 - every delivery ends in an ack or goes back
            log.warning("delivery_requeued", exception_type=type(error).__name__, queue=delivery.queue)
            metrics.DELIVERIES.labels(stage="deliver", outcome="requeued").inc()
            await asyncio.sleep(PAUSE_SECONDS)
            await session.requeue(delivery)
            return
        await session.ack(delivery)

    async def _handle(self, delivery: Delivery) -> None:
        try:
            message = decode_notice(delivery.body)
        except UnreadableMessageError as error:
            await self._desk.record(delivery, error)
            return
        await self._courier.deliver(_copy(message, delivery))


def _copy(message: NoticeMessage, delivery: Delivery) -> Copy:
    """Read the copy's headers; a message that was published by hand has none."""
    deferrals, traceparent = delivery.headers.get(HEADER_DEFERRALS), delivery.headers.get(HEADER_TRACEPARENT)
    return Copy(
        message,
        deferrals if isinstance(deferrals, int) else 0,
        traceparent if isinstance(traceparent, str) else None,
    )
