"""RabbitMQ: one session that is whole or gone.

A session never repairs itself. Whatever breaks (socket, channel, consumer, a publish that hangs) ends it, ``watch``
raises, and the owner opens a new one with backoff: half-restored sessions are how consumers come to look
healthy and receive nothing. It stands on aio-pika's plain classes and reaches through them to the channel
underneath only where they hide something that this needs or cost a publish too much; each place says which.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from aio_pika import Connection, DeliveryMode, Message
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from schema.runtime import metrics
from schema.runtime.amqp import (
    BrokerError,
    BrokerUnavailableError,
    ConflictError,
    MismatchError,
    MissingError,
    NackedError,
    RefusedError,
    Socket,
    UnroutableError,
    answered,
    connect,
    disconnect,
    underlay,
    wire,
)
from schema.runtime.deliveries import RPC_SECONDS, Consumer, Delivery, OnDelivery
from schema.runtime.settings import BrokerSettings
from schema.wire.queues import Binding, Exchange, Queue

if TYPE_CHECKING:
    from aiormq.abc import AbstractChannel as Underlay
    from aiormq.channel import Channel

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

Declared = Exchange | Queue | Binding


@dataclass(frozen=True, slots=True)
class Depth:
    """What a queue holds: messages ready for delivery, and how many consume it."""

    messages: int
    consumers: int


class BrokerSession:
    """A connection with its channels; made by ``open``, over for good after the first thing that breaks."""

    def __init__(self, settings: BrokerSettings, connection: Connection, socket: Socket) -> None:
        """Watch the connection's end."""
        self._settings = settings
        # Both are kept: the library closes a connection that nobody holds, and only its wire tells of alarms.
        self._connection = connection
        self._wire = wire(connection)
        self._socket = socket
        self._publishers: list[Channel] = []
        self._turn = itertools.count()
        self._consumers: list[Consumer] = []
        self._declaring: AbstractChannel | None = None
        self._looking: Underlay | None = None
        self._asking = asyncio.Lock()
        self._lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._wire.closing.add_done_callback(lambda _: self._lose("connection_closed"))

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
        connection = await connect(
            settings.amqp_url.get_secret_value(), socket, name=name, heartbeat=settings.amqp_heartbeat_seconds
        )
        session = cls(settings, connection, socket)
        try:
            for _ in range(publish_channels):
                session._publishers.append(await underlay(await session._channel(confirms=True)))
        except BaseException:
            await disconnect(connection, socket, patience=0)
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
                await self._wire.ready()
            told = False
        except TimeoutError:
            told = True
        if self._publishers:
            metrics.BROKER_BLOCKED.set(int(told))
        return told

    async def unblocked(self) -> None:
        """Wait until the broker takes messages; without end when the session is lost meanwhile, as ``watch`` tells."""
        if await self.blocked():
            await self._wire.ready()
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
        message = Message(
            body,
            content_type="application/json",
            delivery_mode=DeliveryMode.PERSISTENT,
            headers=dict(headers),
            message_id=message_id,
            type=message_type,
        )
        channel = self._publishers[next(self._turn) % len(self._publishers)]
        # Underneath ``Exchange.publish``, which waits for the socket to drain: that holds the channel's lock for a
        # round trip of the event loop per message (a quarter of the rate) and for ever when blocked. What is in
        # flight is bounded by the caller.
        call = channel.basic_publish(
            message.body,
            exchange=exchange,
            routing_key=routing_key,
            properties=message.properties,
            mandatory=True,
            wait=False,
        )
        try:
            await answered(call, self._settings.publish_timeout_seconds)
        except RefusedError:
            raise
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
        channel = await self._channel()
        source = await channel.get_queue(queue, ensure=False)
        consumer = Consumer(source, await underlay(channel), f"{queue}-{channel.number}", on_delivery, self._lose)
        await answered(channel.set_qos(prefetch_count=prefetch, timeout=RPC_SECONDS), RPC_SECONDS)
        # Before the request: deliveries may overtake its answer.
        self._consumers.append(consumer)
        await consumer.start()
        return consumer

    async def ack(self, delivery: Delivery) -> bool:
        """Acknowledge a delivery.

        Returns:
            False when the delivery is no longer ours; it will come again, which its outcome is proof against.
        """
        return await self._settle(delivery, lambda message: message.ack())

    async def requeue(self, delivery: Delivery) -> bool:
        """Give a delivery back to its queue at once; ``False`` as with ``ack``."""
        return await self._settle(delivery, lambda message: message.nack())

    async def inspect(self, queue: str) -> Depth | None:
        """Look at a queue without declaring it; ``None`` when it does not exist.

        Raises:
            BrokerUnavailableError: nobody answers.
        """
        async with self._asking:
            # Opened underneath, because the broker closes it for every queue that is missing, and of each channel
            # that aio-pika opens the connection keeps some 3 kB until it ends.
            if self._looking is None or self._looking.is_closed:
                opening = self._wire.channel(publisher_confirms=False, timeout=RPC_SECONDS)
                self._looking = await answered(opening, RPC_SECONDS)
            look = self._looking.queue_declare(queue, passive=True, timeout=RPC_SECONDS)
            try:
                found = await answered(look, RPC_SECONDS)
            except MissingError:
                self._looking = None
                return None
        return Depth(found.message_count or 0, found.consumer_count or 0)

    async def declare(self, item: Declared) -> None:
        """Make sure that one durable thing exists, just like that; only ``schema.runtime.topology`` does this.

        Raises:
            MismatchError: it exists with other arguments.
            BrokerUnavailableError: nobody answers.
        """
        async with self._asking:
            if self._declaring is None or self._declaring.is_closed:
                self._declaring = await self._channel(vital=False)
            try:
                await answered(_declare(self._declaring, item), RPC_SECONDS)
            except RefusedError as error:
                self._declaring = None
                if isinstance(error, ConflictError):
                    raise MismatchError(item.source if isinstance(item, Binding) else item.name) from None
                raise

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

    def give_up(self, code: str) -> None:
        """Let ``watch`` raise: the owner cannot make use of the session now, and others can of its deliveries."""
        self._lose(code)

    async def close(self) -> None:
        """Stop consuming, close the channels, then the connection; cut the socket when the broker does not answer."""
        for consumer in self._consumers:
            await consumer.close()
        self._lose("closed")
        await disconnect(self._connection, self._socket)

    def _lose(self, code: str) -> None:
        """Note that the session is over; the first reason is the one that counts."""
        if not self._lost.done():
            self._lost.set_result(code)

    async def _channel(self, *, confirms: bool = False, vital: bool = True) -> AbstractChannel:
        """Open a channel; the end of a ``vital`` one is the end of the session."""
        opening = self._connection.channel(publisher_confirms=confirms, on_return_raises=confirms)
        channel = await answered(opening, RPC_SECONDS)
        if vital:
            # The channel's own callbacks would not be called if it has been closed since it was opened.
            (await underlay(channel)).closing.add_done_callback(lambda _: self._lose("channel_closed"))
        return channel

    async def _settle(self, delivery: Delivery, settle: Callable[[AbstractIncomingMessage], Awaitable[None]]) -> bool:
        """Answer for a delivery, unless its channel is closing or gone."""
        if self.lost or not delivery.consumer.acking:
            return False
        try:
            await answered(settle(delivery.message), RPC_SECONDS)
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


async def _declare(channel: AbstractChannel, item: Declared) -> None:
    """Put one thing into the library's words."""
    match item:
        case Exchange(name=name, kind=kind, arguments=arguments):
            await channel.declare_exchange(name, kind, durable=True, arguments=dict(arguments), timeout=RPC_SECONDS)
        case Queue(name=name, arguments=arguments):
            await channel.declare_queue(name, durable=True, arguments=dict(arguments), timeout=RPC_SECONDS)
        case Binding(source=source, target=target, key=key, to_exchange=True):
            exchange = await channel.get_exchange(target, ensure=False)
            await exchange.bind(source, key, timeout=RPC_SECONDS)
        case Binding(source=source, target=target, key=key):
            queue = await channel.get_queue(target, ensure=False)
            await queue.bind(source, key, timeout=RPC_SECONDS)
