"""RabbitMQ: one session that is whole or gone.

A session never repairs itself. Whatever breaks (socket, channel, consumer, a publish that hangs) ends it, ``watch``
raises, and the owner opens a new one with backoff: half-restored sessions are how consumers come to look
healthy and receive nothing. It stands on ``aiormq`` alone, because the layer above it adds reconnecting and
callbacks that a session without repair has no use for.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar, cast

import aiormq
from aiormq.channel import Channel
from aiormq.exceptions import ChannelNotFoundEntity, ChannelPreconditionFailed, DeliveryError, PublishError
from pamqp.commands import Basic
from yarl import URL

from schema.runtime import metrics
from schema.runtime.amqp import (
    BrokerError,
    BrokerUnavailableError,
    MismatchError,
    NackedError,
    Socket,
    UnroutableError,
    answered,
)
from schema.runtime.deliveries import RPC_SECONDS, Consumer, Delivery, OnDelivery
from schema.runtime.settings import BrokerSettings
from schema.wire.queues import Binding, Exchange, Queue

__all__ = [
    "BrokerError",
    "BrokerSession",
    "BrokerUnavailableError",
    "Consumer",
    "Declared",
    "Delivery",
    "Depth",
    "MismatchError",
    "NackedError",
    "OnDelivery",
    "UnroutableError",
]

CONNECT_SECONDS: Final = 10.0
CLOSE_SECONDS: Final = 5.0
PERSISTENT: Final = 2

T = TypeVar("T")
Declared = Exchange | Queue | Binding


@dataclass(frozen=True, slots=True)
class Depth:
    """What a queue holds: messages ready for delivery, and how many consume it."""

    messages: int
    consumers: int


class BrokerSession:
    """A connection with its channels; made by ``open``, over for good after the first thing that breaks."""

    def __init__(self, settings: BrokerSettings, connection: aiormq.Connection, socket: Socket) -> None:
        """Watch the connection's end."""
        self._settings = settings
        self._connection = connection
        self._socket = socket
        self._publishers: list[Channel] = []
        self._turn = itertools.count()
        self._consumers: list[Consumer] = []
        self._questions: Channel | None = None
        self._asking = asyncio.Lock()
        self._lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        connection.closing.add_done_callback(lambda _: self._lose("connection_closed"))

    @classmethod
    async def open(cls, settings: BrokerSettings, name: str, *, publish_channels: int = 0) -> Self:
        """Connect.

        Args:
            settings: where the broker is, and its limits.
            name: how the connection is called in the broker's own views.
            publish_channels: channels with confirms to spread ``publish`` over; publish and consume on
                sessions of their own, because an alarm blocks the one that publishes.

        Raises:
            BrokerUnavailableError: nobody answers, or not to these credentials.
        """
        socket = Socket()
        connection = aiormq.Connection(
            URL(settings.amqp_url.get_secret_value()).update_query(heartbeat=settings.amqp_heartbeat_seconds),
            transport_factory=socket,
            client_properties={"connection_name": name},
        )
        try:
            await answered(connection.connect(), CONNECT_SECONDS)
            session = cls(settings, connection, socket)
            for _ in range(publish_channels):
                session._publishers.append(await session._channel(publisher_confirms=True))
        except BaseException:
            socket.abort()
            raise
        return session

    async def __aenter__(self) -> Self:
        """Return the session."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()

    @property
    def lost(self) -> bool:
        """Whether the session is over."""
        return self._lost.done()

    async def blocked(self) -> bool:
        """Say whether the broker has told that it takes no messages for now.

        It tells so only to a connection that has published since its alarm began.
        """
        try:
            async with asyncio.timeout(0):
                await self._connection.ready()
            told = False
        except TimeoutError:
            told = True
        if self._publishers:
            metrics.BROKER_BLOCKED.set(int(told))
        return told

    async def unblocked(self) -> None:
        """Wait until the broker takes messages; without end when the session is lost meanwhile, as ``watch`` tells."""
        if await self.blocked():
            await self._connection.ready()
            await self.blocked()

    async def publish(
        self,
        exchange: str,
        routing_key: str,
        body: bytes,
        *,
        message_id: str,
        message_type: str,
        headers: Mapping[str, Any],
    ) -> None:
        """Publish a persistent, mandatory message and wait until the broker has it in a queue.

        Args:
            exchange: where to.
            routing_key: by which key.
            body: the message.
            message_id: unique per call: the library tells returned messages apart by it.
            message_type: its type and version.
            headers: what goes along; strings and numbers.

        Raises:
            UnroutableError: no queue is bound for it.
            NackedError: the broker refused it.
            BrokerUnavailableError: no confirm came in time; it may be in a queue all the same.
        """
        properties = Basic.Properties(
            content_type="application/json",
            delivery_mode=PERSISTENT,
            headers=dict(headers),
            message_id=message_id,
            message_type=message_type,
        )
        channel = self._publishers[next(self._turn) % len(self._publishers)]
        # Not waiting for the socket to drain: that would hold the channel's lock for a round trip of the event
        # loop per message, and for ever when blocked. What is in flight is bounded by the caller.
        call = channel.basic_publish(
            body, exchange=exchange, routing_key=routing_key, properties=properties, mandatory=True, wait=False
        )
        try:
            await answered(call, self._settings.publish_timeout_seconds)
        except PublishError:
            code = "unroutable"
            raise UnroutableError(code) from None
        except DeliveryError:
            code = "nacked"
            raise NackedError(code) from None
        except (ChannelNotFoundEntity, ChannelPreconditionFailed) as error:
            raise BrokerUnavailableError(type(error).__name__) from None
        except BrokerUnavailableError:
            self._lose("publish_unanswered")
            raise

    async def consume(self, queue: str, *, prefetch: int, on_delivery: OnDelivery) -> Consumer:
        """Take deliveries from a queue, at most ``prefetch`` unacknowledged at once.

        Args:
            queue: must exist; this never declares.
            prefetch: bound of what is here and unacknowledged.
            on_delivery: called for each delivery; it hands over and returns. An exception ends the session.

        Raises:
            BrokerUnavailableError: the queue is missing, or nobody answers.
        """
        channel = await self._channel(publisher_confirms=False)
        consumer = Consumer(queue, channel, f"{queue}-{channel.number}", on_delivery, self._lose)
        try:
            await answered(channel.basic_qos(prefetch_count=prefetch, timeout=RPC_SECONDS), RPC_SECONDS)
            # Before the request: deliveries may overtake its answer.
            self._consumers.append(consumer)
            channel.on_consumer_cancel_callbacks.add(lambda _: self._lose("consumer_cancelled"))
            consume = channel.basic_consume(queue, consumer.arrive, consumer_tag=consumer.tag, timeout=RPC_SECONDS)
            await answered(consume, RPC_SECONDS)
        except ChannelNotFoundEntity:
            code = "queue_missing"
            raise BrokerUnavailableError(code) from None
        metrics.CONSUMER_ACTIVE.labels(queue).set(1)
        return consumer

    async def ack(self, delivery: Delivery) -> bool:
        """Acknowledge a delivery.

        Returns:
            False when the delivery is no longer ours; it will come again, which its outcome is proof against.
        """
        return await self._settle(delivery, lambda channel: channel.basic_ack(delivery.tag, wait=False))

    async def requeue(self, delivery: Delivery) -> bool:
        """Give a delivery back to its queue at once; ``False`` as with ``ack``."""
        return await self._settle(delivery, lambda channel: channel.basic_nack(delivery.tag, wait=False))

    async def inspect(self, queue: str) -> Depth | None:
        """Look at a queue without declaring it; ``None`` when it does not exist.

        Raises:
            BrokerUnavailableError: nobody answers.
        """
        try:
            declared = await self._ask(lambda channel: channel.queue_declare(queue, passive=True, timeout=RPC_SECONDS))
        except ChannelNotFoundEntity:
            return None
        return Depth(declared.message_count or 0, declared.consumer_count or 0)

    async def declare(self, item: Declared) -> None:
        """Make sure that one durable thing exists, just like that; only ``schema.runtime.topology`` does this.

        Raises:
            MismatchError: it exists with other arguments.
            BrokerUnavailableError: nobody answers.
        """
        try:
            await self._ask(lambda channel: _declaration(channel, item))
        except ChannelPreconditionFailed:
            raise MismatchError(item.source if isinstance(item, Binding) else item.name) from None
        except ChannelNotFoundEntity as error:
            raise BrokerUnavailableError(type(error).__name__) from None

    async def watch(self, interval: float) -> None:
        """Look after the session until something is wrong with it; it never returns otherwise.

        Raises:
            BrokerUnavailableError: with a code that says what is wrong.
        """
        while True:
            ended, _ = await asyncio.wait({self._lost}, timeout=interval)
            if ended:
                raise BrokerUnavailableError(self._lost.result())
            await self.blocked()
            for consumer in self._consumers:
                if consumer.taking:
                    await self._check(consumer)

    async def close(self) -> None:
        """Stop consuming, close the channels, then the connection; cut the socket when the broker does not answer."""
        for consumer in self._consumers:
            await consumer.close()
        self._lose("closed")
        code = "closed"
        with suppress(BrokerUnavailableError):
            await answered(self._connection.close(BrokerUnavailableError(code)), CLOSE_SECONDS)
        self._socket.abort()

    def _lose(self, code: str) -> None:
        """Note that the session is over; the first reason is the one that counts."""
        if not self._lost.done():
            self._lost.set_result(code)

    async def _channel(self, *, publisher_confirms: bool, vital: bool = True) -> Channel:
        """Open a channel; the end of a ``vital`` one is the end of the session."""
        opening = self._connection.channel(publisher_confirms=publisher_confirms, timeout=RPC_SECONDS)
        # What it makes is one of these; its declared type lacks what a publish without draining needs.
        channel = cast("Channel", await answered(opening, RPC_SECONDS))
        if vital:
            channel.closing.add_done_callback(lambda _: self._lose("channel_closed"))
        return channel

    async def _ask(self, question: Callable[[Channel], Awaitable[T]]) -> T:
        """Ask on the channel that is kept for questions; the broker closes it for a question it does not like."""
        async with self._asking:
            if self._questions is None or self._questions.is_closed:
                self._questions = await self._channel(publisher_confirms=False, vital=False)
            try:
                return await answered(question(self._questions), RPC_SECONDS)
            except (ChannelNotFoundEntity, ChannelPreconditionFailed):
                self._questions = None
                raise

    async def _settle(self, delivery: Delivery, settle: Callable[[Channel], Awaitable[None]]) -> bool:
        """Answer for a delivery, unless its channel is closing or gone."""
        if self.lost or not delivery.consumer.acking:
            return False
        try:
            await answered(settle(delivery.consumer.channel), RPC_SECONDS)
        except BrokerUnavailableError:
            self._lose("acknowledgement_failed")
            return False
        return True

    async def _check(self, consumer: Consumer) -> None:
        """End the session when the broker does not deliver to a consumer any more."""
        depth = await self.inspect(consumer.queue)
        active = consumer.registered and depth is not None and depth.consumers > 0
        metrics.CONSUMER_ACTIVE.labels(consumer.queue).set(int(active and consumer.taking))
        if not active and consumer.taking:
            self._lose("no_consumer")


def _declaration(channel: Channel, item: Declared) -> Awaitable[object]:
    """Put one thing into the library's words."""
    match item:
        case Exchange(name=name, kind=kind, arguments=arguments):
            return channel.exchange_declare(
                name, exchange_type=kind, durable=True, arguments=dict(arguments), timeout=RPC_SECONDS
            )
        case Queue(name=name, arguments=arguments):
            return channel.queue_declare(name, durable=True, arguments=dict(arguments), timeout=RPC_SECONDS)
        case Binding(source=source, target=target, key=key, to_exchange=True):
            return channel.exchange_bind(target, source, key, timeout=RPC_SECONDS)
        case Binding(source=source, target=target, key=key):
            return channel.queue_bind(target, source, key, timeout=RPC_SECONDS)
