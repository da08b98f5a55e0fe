"""What a consumer receives, and what it can still answer for."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from aiormq.abc import DeliveredMessage
from aiormq.channel import Channel
from aiormq.exceptions import AMQPError

from schema.runtime import metrics
from schema.runtime.amqp import BrokerUnavailableError, answered

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
    tag: int
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

    queue: str
    channel: Channel = field(repr=False)
    tag: str
    on_delivery: OnDelivery = field(repr=False)
    lose: Callable[[str], None] = field(repr=False)
    taking: bool = True
    acking: bool = True

    @property
    def registered(self) -> bool:
        """Whether the library still knows the consumer; a broker that cancels it takes it off the list."""
        return self.tag in self.channel.consumers and not self.channel.is_closed

    async def arrive(self, message: DeliveredMessage) -> None:
        """Hand one message on; what arrives after ``stop`` goes back when the channel closes.

        Only a hand-over: the library runs this in a task that it cancels when the channel closes.
        """
        if not self.taking:
            return
        try:
            self.on_delivery(self._delivery(message))
        except Exception:
            # The library would log it and leave the delivery with us, unacknowledged, for ever.
            self.lose("callback_failed")
            raise

    def _delivery(self, message: DeliveredMessage) -> Delivery:
        properties = message.header.properties
        return Delivery(
            body=message.body,
            headers=properties.headers or {},
            message_id=properties.message_id,
            type=properties.message_type,
            routing_key=message.routing_key or "",
            redelivered=bool(message.redelivered),
            tag=message.delivery_tag or 0,
            consumer=self,
        )

    async def stop(self) -> None:
        """Ask for no more deliveries; those that are here stay ours and can be acknowledged."""
        if not self.taking:
            return
        self.taking = False
        metrics.CONSUMER_ACTIVE.labels(self.queue).set(0)
        with suppress(BrokerUnavailableError, AMQPError):
            await answered(self.channel.basic_cancel(self.tag, timeout=RPC_SECONDS), RPC_SECONDS)

    async def close(self) -> None:
        """Stop, then give back whatever was not acknowledged."""
        await self.stop()
        self.acking = False
        with suppress(BrokerUnavailableError, AMQPError):
            await answered(self.channel.close(), RPC_SECONDS)
