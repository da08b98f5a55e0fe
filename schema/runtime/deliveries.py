"""What a consumer receives, and what it can still answer for."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from aio_pika.abc import AbstractIncomingMessage, AbstractQueue
from aiormq.channel import Channel

from schema.runtime import metrics
from schema.runtime.amqp import BrokerUnavailableError, answered
from schema.runtime.logs import get_logger

log = get_logger()

RPC_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Delivery:
    """One arrival of a message; acknowledge it through the session that it came from.

    ``body`` and ``headers`` are whatever was sent and stay out of every representation.
    """

    body: bytes = field(repr=False)
    headers: Mapping[str, Any] = field(repr=False)
    message_id: str | None
    type: str | None
    routing_key: str
    redelivered: bool
    message: AbstractIncomingMessage = field(repr=False, compare=False)
    consumer: "Consumer" = field(repr=False, compare=False)

    @property
    def queue(self) -> str:
        """The queue that it came from, which after the ladder is not its routing key."""
        return self.consumer.queue


OnDelivery = Callable[[Delivery], None]


@dataclass(slots=True, eq=False)
class Consumer:
    """A queue's deliveries on a channel of their own.

    ``taking`` ends with ``stop``; ``acking`` ends before the channel closes, because an acknowledgement on a
    channel that is closing costs the whole connection.
    """

    source: AbstractQueue = field(repr=False)
    underlay: Channel = field(repr=False)
    tag: str
    on_delivery: OnDelivery = field(repr=False)
    lose: Callable[[str], None] = field(repr=False)
    taking: bool = True
    acking: bool = True

    @property
    def queue(self) -> str:
        """The queue's name."""
        return self.source.name

    @property
    def registered(self) -> bool:
        """Whether the library still knows the consumer; a broker that cancels it takes it off the list."""
        return self.tag in self.underlay.consumers and not self.underlay.is_closed

    async def start(self) -> None:
        """Ask for deliveries; the first may be here before the answer.

        Raises:
            BrokerUnavailableError: the queue is missing, or nobody answers.
        """
        # Only the channel underneath tells when the broker cancels a consumer.
        self.underlay.on_consumer_cancel_callbacks.add(lambda _: self.lose("consumer_cancelled"))
        consume = self.source.consume(self._arrive, consumer_tag=self.tag, timeout=RPC_SECONDS)
        await answered(consume, RPC_SECONDS)
        metrics.CONSUMER_ACTIVE.labels(self.queue).set(1)

    async def _arrive(self, message: AbstractIncomingMessage) -> None:
        """Hand one message on; what arrives after ``stop`` goes back when the channel closes.

        Only a hand-over: the library runs this in a task that it cancels when the channel closes.
        """
        if not self.taking:
            return
        try:
            self.on_delivery(self._delivery(message))
        except Exception as error:  # noqa: BLE001 - told to the session's owner, and here
            # Left to the library, the delivery would stay with us, unacknowledged, for ever.
            log.error("delivery_refused", exception_type=type(error).__name__, queue=self.queue)  # noqa: TRY400 - no text
            self.lose("callback_failed")

    def _delivery(self, message: AbstractIncomingMessage) -> Delivery:
        return Delivery(
            body=message.body,
            headers=message.headers,
            message_id=message.message_id,
            type=message.type,
            routing_key=message.routing_key or "",
            redelivered=bool(message.redelivered),
            message=message,
            consumer=self,
        )

    async def stop(self) -> None:
        """Ask for no more deliveries; those that are here stay ours and can be acknowledged."""
        if not self.taking:
            return
        self.taking = False
        metrics.CONSUMER_ACTIVE.labels(self.queue).set(0)
        with suppress(BrokerUnavailableError):
            await answered(self.source.cancel(self.tag, timeout=RPC_SECONDS), RPC_SECONDS)

    async def close(self) -> None:
        """Stop, then give back whatever was not acknowledged."""
        await self.stop()
        self.acking = False
        with suppress(BrokerUnavailableError):
            await answered(self.source.channel.close(), RPC_SECONDS)
