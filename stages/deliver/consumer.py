"""Notices, read and handed to the courier."""

from schema.db.webhook_deliveries import Copy
from schema.runtime.broker import Delivery
from schema.runtime.lifecycle import Health
from schema.runtime.settings import DeliverSettings
from schema.wire.messages import (
    HEADER_DEFERRALS,
    HEADER_TRACEPARENT,
    NoticeMessage,
    UnreadableMessageError,
    decode_notice,
)
from schema.wire.queues import NOTICES
from stages.consumer import Desk
from stages.deliver.courier import Courier
from stages.deliveries import WATCH_SECONDS, Deliveries


class NoticeConsumer:
    """Consumes the queue of notices, over as many broker sessions as it takes."""

    def __init__(self, *, settings: DeliverSettings, courier: Courier, desk: Desk, health: Health) -> None:
        """Keep the ports."""
        self._courier = courier
        self._desk = desk
        queues = {NOTICES: settings.webhook_in_flight}
        self._deliveries = Deliveries(settings, queues, handle=self._handle, health=health)

    async def run(self) -> None:
        """Consume until the session breaks; the caller starts it again with backoff.

        Raises:
            BrokerUnavailableError: with a code that says what broke.
        """
        async with self._deliveries.session("docstage-deliver") as session:
            await session.watch(WATCH_SECONDS)

    async def drain(self, grace_seconds: float) -> None:
        """Take nothing more and let what is on its way end; the rest goes back to the queue and is sent again."""
        await self._deliveries.stop()
        await self._deliveries.settled(grace_seconds)

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
