"""A TCP proxy in front of a service: what a network does to connections, done on purpose.

It runs on a thread of its own, so that neither a test's event loop nor a blocked one slows it down. A peer that
goes silent here still answers TCP's own keepalives, because the kernel at the proxy does: what is left to
notice the silence are the heartbeats, limits and leases of those who talk.
"""

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

CHUNK_BYTES: Final = 65536
# Linger for no time at all: the socket ends with RST, and nothing of what was on its way arrives.
_RESET: Final = struct.pack("ii", 1, 0)
_T = TypeVar("_T")

_Pipe = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Proxy:
    """One port that leads to another; all its methods may be called from any thread."""

    def __init__(self, url: str) -> None:
        """Lead to where ``url`` points; ``proxied`` starts it."""
        self._target = urlsplit(url)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._flowing = asyncio.Event()
        self._refusing = False
        self._delay = 0.0
        self._writers: set[asyncio.StreamWriter] = set()
        self._carrying: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """The same URL by way of this proxy."""
        login, at, _ = self._target.netloc.rpartition("@")
        return self._target._replace(netloc=f"{login}{at}127.0.0.1:{self.port}").geturl()

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._carrying)

    def reset(self) -> None:
        """End every connection by RST; new ones go through."""
        self._call(self._abort_all())

    def cut(self) -> None:
        """End every connection by RST, and each new one at once, until ``heal``."""
        self._call(self._become(refusing=True))
        self.reset()

    def freeze(self) -> None:
        """Let nothing pass in either direction, not even an end; connections stay open and new ones are accepted."""
        self._call(self._become(frozen=True))

    def slow(self, seconds: float) -> None:
        """Hold everything for so long in each direction; what has begun to wait waits as it did."""
        self._call(self._become(delay=seconds))

    def heal(self) -> None:
        """Let everything pass; what was held by ``freeze`` arrives now."""
        self._call(self._become())

    def start(self) -> None:
        """Listen on a port of its own."""
        self._thread.start()
        self._call(self._listen())

    def stop(self) -> None:
        """Cut everything and end the thread."""
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _listen(self) -> None:
        self._flowing.set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _become(self, *, refusing: bool = False, frozen: bool = False, delay: float = 0.0) -> None:
        self._refusing, self._delay = refusing, delay
        if frozen:
            self._flowing.clear()
        else:
            self._flowing.set()

    async def _abort_all(self) -> None:
        for writer in list(self._writers):
            _abort(writer)
        for task in list(self._carrying):
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)

    async def _end(self) -> None:
        if self._server is not None:
            self._server.close()
        await self._become(refusing=True)
        await self._abort_all()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection, in a task that is not the server's: that one logs what ends it."""
        task = self._loop.create_task(self._carry((reader, writer)))
        self._carrying.add(task)
        task.add_done_callback(self._carrying.discard)

    async def _carry(self, near: _Pipe) -> None:
        """Connect to the target and pump; what does not end in good order on both sides ends by RST."""
        ends = [near[1]]
        self._writers.add(near[1])
        try:
            await self._flowing.wait()
            if not self._refusing:
                far = await asyncio.open_connection(self._target.hostname, self._target.port)
                ends.append(far[1])
                self._writers.add(far[1])
                await self._join(near, far)
                for end in ends:
                    end.close()
                    await end.wait_closed()
        except OSError:
            return  # one side is gone, and so the other goes
        finally:
            self._writers.difference_update(ends)
            for end in ends:
                _abort(end)

    async def _join(self, near: _Pipe, far: _Pipe) -> None:
        """Pump both ways until both sides have ended, or one breaks."""
        pumps = [asyncio.create_task(self._pump(near[0], far[1])), asyncio.create_task(self._pump(far[0], near[1]))]
        try:
            await asyncio.gather(*pumps)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while True:
            chunk = await self._read(source)
            await self._flowing.wait()
            await asyncio.sleep(self._delay)
            await self._flowing.wait()
            if not chunk:
                sink.write_eof()
                return
            sink.write(chunk)
            await sink.drain()

    async def _read(self, source: asyncio.StreamReader) -> bytes:
        """Read what is there; a break is news too, and does not travel while nothing does."""
        try:
            return await source.read(CHUNK_BYTES)
        except OSError:
            await self._flowing.wait()
            raise


def _abort(writer: asyncio.StreamWriter) -> None:
    """Reset a connection; nothing happens when it is closed already."""
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


@contextlib.contextmanager
def proxied(url: str) -> Iterator[Proxy]:
    """Run a proxy to where ``url`` points for as long as the block runs."""
    proxy = Proxy(url)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
