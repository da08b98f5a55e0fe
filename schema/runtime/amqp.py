"""The AMQP library's edge: its socket, its silences and its exceptions, made ours."""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from aiormq.connection import TCPTransportFactory, TLSTransportFactory, TransportFactory
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


class Socket(TransportFactory):
    """Opens one transport, plain or TLS by the URL's scheme, and can abort it.

    The library closes politely: on a socket that the peer no longer reads that takes three heartbeats.
    """

    def __init__(self) -> None:
        """Nothing is open yet."""
        self._writer: asyncio.StreamWriter | None = None

    async def create(self, url: URL, **kwargs: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:  # noqa: ANN401 - the library's signature
        """Open the transport."""
        factory = TLSTransportFactory() if url.scheme == "amqps" else TCPTransportFactory()
        reader, self._writer = await factory.create(url, **kwargs)
        return reader, self._writer

    def abort(self) -> None:
        """Cut the connection without a word; nothing happens when it is closed already."""
        if self._writer is not None:
            self._writer.transport.abort()
