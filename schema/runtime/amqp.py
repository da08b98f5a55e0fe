"""The AMQP library's edge: its socket, its silences and its exceptions, made ours."""

import asyncio
from collections.abc import Awaitable
from typing import Any, Final, TypeVar, cast

from aio_pika import Connection
from aio_pika.abc import AbstractChannel, ConnectionParameter
from aio_pika.connection import make_url
from aio_pika.exceptions import ChannelNotFoundEntity, ChannelPreconditionFailed, DeliveryError, PublishError
from aiormq.abc import AbstractConnection as Wire
from aiormq.channel import Channel
from aiormq.connection import SSLContextProvider, TransportFactory
from yarl import URL

CONNECT_SECONDS: Final = 10.0
CLOSE_SECONDS: Final = 5.0

T = TypeVar("T")


class BrokerError(Exception):
    """The broker did not do what it was asked; ``args[0]`` is a code, never its text."""


class BrokerUnavailableError(BrokerError):
    """The session is over or does not answer; what was under way may have happened or not."""


class UnroutableError(BrokerError):
    """The broker had no queue for a message and gave it back."""


class NackedError(BrokerError):
    """The broker refused a message."""


class MismatchError(BrokerError):
    """A queue or exchange is there already with other arguments; ``args[0]`` is its name."""


class RefusedError(BrokerUnavailableError):
    """The broker closed the channel over what it was asked; the connection lives."""


class MissingError(RefusedError):
    """What was asked about does not exist."""


class ConflictError(RefusedError):
    """What was asked contradicts what exists."""


async def answered(call: Awaitable[T], seconds: float) -> T:
    """Wait for the library, and not longer.

    Its own limits cover neither the opening of a channel nor a socket that the broker has stopped reading, and
    what it raises when a session ends is anything down to a bare ``Exception`` or a cancellation that nobody asked for.

    Raises:
        BrokerError: what the library raised, in our words; ``BrokerUnavailableError`` where there was no answer.
    """
    try:
        async with asyncio.timeout(seconds):
            return await call
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        code = "session_ended"
        raise BrokerUnavailableError(code) from None
    except Exception as error:  # noqa: BLE001 - the library's own type for it
        raise _ours(error) from None


def _ours(error: Exception) -> BrokerError:
    """Translate an exception; its text stays behind."""
    match error:
        case BrokerError():
            return error
        case PublishError():
            return UnroutableError("unroutable")
        case DeliveryError():
            return NackedError("nacked")
        case ChannelNotFoundEntity():
            return MissingError("missing")
        case ChannelPreconditionFailed():
            return ConflictError("conflict")
        case _:
            return BrokerUnavailableError(type(error).__name__)


class GatheringWriter(asyncio.StreamWriter):
    """Sends what is written within one turn of the event loop as one.

    The library writes message by message, and a system call costs as much as all the rest of a message. It also
    drains after every acknowledgement, so ``drain`` waits for room as ever but sends nothing ahead of the turn's end.
    """

    def __init__(self, transport: asyncio.Transport, reader: asyncio.StreamReader) -> None:
        """Write to ``transport``, whose protocol feeds ``reader``."""
        self._turn_loop = asyncio.get_running_loop()
        super().__init__(transport, transport.get_protocol(), reader, self._turn_loop)
        self._gathered = bytearray()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Keep the bytes until the end of this turn."""
        if not self._gathered:
            self._turn_loop.call_soon(self._flush)
        self._gathered += data

    def write_eof(self) -> None:
        """Send what is kept and say that it was the last."""
        self._flush()
        super().write_eof()

    def close(self) -> None:
        """Send what is kept and close."""
        self._flush()
        super().close()

    def _flush(self) -> None:
        if self._gathered:
            gathered, self._gathered = self._gathered, bytearray()
            super().write(gathered)


class Socket(TransportFactory):
    """Opens one transport, plain or TLS by the URL's scheme, and can abort it.

    The library closes politely: on a socket that the peer no longer reads that takes three heartbeats.
    """

    def __init__(self) -> None:
        """Nothing is open yet."""
        self._writer: GatheringWriter | None = None

    async def create(self, url: URL, **kwargs: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:  # noqa: ANN401 - the library's signature
        """Open the transport."""
        loop = asyncio.get_running_loop()
        tls: SSLContextProvider = kwargs.pop("ssl_context_provider")
        secure = await tls.get_context() if url.scheme == "amqps" else None
        reader = asyncio.StreamReader(loop=loop)
        transport, _ = await loop.create_connection(
            lambda: asyncio.StreamReaderProtocol(reader, loop=loop),
            url.host or "localhost",
            url.port or 5672,
            ssl=secure,
            **kwargs,
        )
        self._writer = GatheringWriter(transport, reader)
        return reader, self._writer

    def abort(self) -> None:
        """Cut the connection without a word; nothing happens when it is closed already."""
        if self._writer is not None:
            self._writer.transport.abort()


class SocketConnection(Connection):
    """A connection over a ``Socket``, which the library hands down only when told that there is such a parameter."""

    PARAMETERS = (
        *Connection.PARAMETERS,
        ConnectionParameter(name="transport_factory", parser=lambda socket: socket, is_kwarg=True),
    )


async def connect(url: str, socket: Socket, *, name: str, heartbeat: int) -> Connection:
    """Connect over ``socket``; cut it when that fails.

    Raises:
        BrokerUnavailableError: nobody answers, or not to these credentials.
    """
    connection = SocketConnection(
        make_url(url, heartbeat=heartbeat), client_properties={"connection_name": name}, transport_factory=socket
    )
    try:
        await answered(connection.connect(), CONNECT_SECONDS)
    except BaseException:
        await disconnect(connection, socket, patience=0)
        raise
    return connection


async def disconnect(connection: Connection, socket: Socket, *, patience: float = CLOSE_SECONDS) -> None:
    """Close a connection, and cut its socket when the broker takes longer than ``patience`` over it.

    A limit around the call would not do: when cancelled, the library goes on waiting, three heartbeats long.
    A connection that failed to open has to be closed too, or the library closes it when it is collected.
    """
    code = "closed"
    closing = asyncio.ensure_future(connection.close(BrokerUnavailableError(code)))
    try:
        await asyncio.wait({closing}, timeout=patience)
    finally:
        socket.abort()
    await asyncio.wait({closing}, timeout=CLOSE_SECONDS)


def wire(connection: Connection) -> Wire:
    """Return what is under an open connection: only that tells of the peer's closing and of the broker's alarms."""
    if connection.transport is None:
        code = "session_ended"
        raise BrokerUnavailableError(code)
    return connection.transport.connection


async def underlay(channel: AbstractChannel) -> Channel:
    """Return what is under an open channel; its declared type lacks consumers and publishing without draining."""
    return cast("Channel", await channel.get_underlay_channel())
