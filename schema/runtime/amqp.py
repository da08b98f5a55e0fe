"""The AMQP library's edge: its socket, its silences and its exceptions, made ours."""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from aiormq.connection import SSLContextProvider, TransportFactory
from aiormq.exceptions import ChannelNotFoundEntity, ChannelPreconditionFailed, DeliveryError
from yarl import URL

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


async def answered(call: Awaitable[T], seconds: float) -> T:
    """Wait for the library, and not longer.

    The library's own limits do not cover a socket that the broker has stopped reading, and what it raises
    when a session ends is anything down to a bare ``Exception`` or a cancellation that nobody asked for.

    Raises:
        BrokerUnavailableError: there was no answer.
    """
    try:
        async with asyncio.timeout(seconds):
            return await call
    except (DeliveryError, ChannelNotFoundEntity, ChannelPreconditionFailed, BrokerError):
        raise
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        code = "session_ended"
        raise BrokerUnavailableError(code) from None
    except Exception as error:  # noqa: BLE001 - the library's own type for it
        raise BrokerUnavailableError(type(error).__name__) from None


class GatheringWriter(asyncio.StreamWriter):
    """Sends what is written within one turn of the event loop as one.

    The library writes message by message, and a system call costs as much as all the rest of a message.
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

    async def drain(self) -> None:
        """Send what is kept and wait until there is room for more."""
        self._flush()
        await super().drain()

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
