"""The parent's end of the socket to one child."""

import asyncio
import socket
from collections import deque
from typing import Final, NamedTuple, cast

from stages.sandbox.protocol import HEADER, FrameKind

_MAX_WAITING_BYTES: Final = 1 << 20
_FROM_CHILD: Final = frozenset({FrameKind.READY, FrameKind.EVENT, FrameKind.RESULT, FrameKind.FAILURE})


class ChannelError(Exception):
    """The child closed its end, or broke the protocol and was cut off."""


class Frame(NamedTuple):
    """One frame as it came."""

    kind: FrameKind
    payload: bytes


class Channel(asyncio.Protocol):
    """Frames to and from one child; nothing the child sends is trusted.

    A frame larger than ``frame_bytes``, more than ``output_bytes`` for one call, or a kind that a child may
    not send closes the channel. Frames are cut from the stream as bytes arrive, so that a call costs two
    wake-ups; when the reader is slower than the child, reading pauses.
    """

    def __init__(self, *, frame_bytes: int, output_bytes: int) -> None:
        """Make an end that is not connected yet."""
        self._frame_bytes = frame_bytes
        self._output_bytes = output_bytes
        self._received = 0
        self._buffer = bytearray()
        self._frames: deque[Frame] = deque()
        self._waiting_bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._paused = False
        self._closed = False

    @classmethod
    async def over(cls, end: socket.socket, *, frame_bytes: int, output_bytes: int) -> "Channel":
        """Return a channel connected to ``end``, which it owns from now on."""
        loop = asyncio.get_running_loop()
        _, channel = await loop.create_unix_connection(
            lambda: cls(frame_bytes=frame_bytes, output_bytes=output_bytes), sock=end
        )
        return channel

    @property
    def closed(self) -> bool:
        """Whether nothing more can come."""
        return self._closed

    def begin(self, message: bytes) -> None:
        """Send a call's frames; what the child sent unasked before does not belong to it.

        Raises:
            ChannelError: when the child is gone, or has spoken out of turn.
        """
        if self._transport is None or self._closed or self._frames or self._buffer:
            raise ChannelError
        self._received = 0
        self._transport.write(message)

    async def receive(self) -> Frame:
        """Wait for the next frame.

        Raises:
            ChannelError: when there will be none.
        """
        while not self._frames:
            if self._closed:
                raise ChannelError
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        frame = self._frames.popleft()
        self._waiting_bytes -= len(frame.payload)
        if self._paused and self._waiting_bytes <= _MAX_WAITING_BYTES and self._transport:
            self._paused = False
            self._transport.resume_reading()
        return frame

    def close(self) -> None:
        """Close this end."""
        self._closed = True
        if self._transport:
            self._transport.abort()
        self._wake()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport (called by the event loop)."""
        # A cast, because uvloop's transports are not instances of asyncio's.
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the reader that the child is gone (called by the event loop)."""
        del exc
        self._closed = True
        self._wake()

    def data_received(self, data: bytes) -> None:
        """Cut frames from the stream (called by the event loop)."""
        self._buffer += data
        self._received += len(data)
        if self._received > self._output_bytes:
            self.close()
            return
        while (frame := self._cut()) is not None:
            self._frames.append(frame)
            self._waiting_bytes += len(frame.payload)
        if self._waiting_bytes > _MAX_WAITING_BYTES and not self._paused and self._transport:
            self._paused = True
            self._transport.pause_reading()
        if self._frames:
            self._wake()

    def _cut(self) -> Frame | None:
        """Take one whole frame off the buffer; ``None`` when there is none yet."""
        if self._closed or len(self._buffer) < HEADER.size:
            return None
        kind, length = HEADER.unpack_from(self._buffer)
        if kind not in _FROM_CHILD or length > self._frame_bytes:
            self.close()
            return None
        end = HEADER.size + length
        if len(self._buffer) < end:
            return None
        payload = bytes(memoryview(self._buffer)[HEADER.size : end])
        del self._buffer[:end]
        return Frame(FrameKind(kind), payload)

    def _wake(self) -> None:
        """Let the reader look again."""
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)
