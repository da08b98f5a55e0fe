"""A way to the object store on which some documents cannot be fetched, as if their disk had a bad sector.

The store itself is up and says so, hence the failures are the jobs' own: they cost attempts, and the jobs become dead
letters. Once the gate is open everything can be fetched, and a redrive brings them back.
"""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.support.proxy import Proxy

# Whatever is stored with this in it cannot be fetched.
MARK: Final = b"a document that the store has and does not give\n"
_REQUEST: Final = re.compile(rb"(PUT|GET) (\S+) HTTP/1\.1\r\n")


class _Watched(asyncio.StreamReader):
    """A client's side of a connection, one request after the other; the connection breaks where it must."""

    def __init__(self, source: asyncio.StreamReader, gate: "Gate") -> None:
        """Read from ``source``."""
        super().__init__()
        self._source = source
        self._gate = gate
        self._storing = b""

    async def read(self, n: int = -1) -> bytes:
        """Read what the client sends.

        Raises:
            ConnectionResetError: it asks for what it shall not have.
        """
        chunk = await self._source.read(n)
        if request := _REQUEST.match(chunk):
            method, path = request.groups()
            self._storing = path if method == b"PUT" else b""
            if method == b"GET" and self._gate.holds_back(path):
                raise ConnectionResetError
        if self._storing and MARK in chunk:
            self._gate.marked.add(self._storing)
        return chunk


class Gate(Proxy):
    """A proxy to the store that breaks off when somebody fetches a marked object, until it is opened."""

    def __init__(self, url: str) -> None:
        """Lead to the store at ``url``; closed."""
        super().__init__(url)
        self.marked: set[bytes] = set()
        self.held_back = 0
        self._open = False

    def open(self) -> None:
        """Let everything be fetched from now on."""
        self._open = True

    def holds_back(self, path: bytes) -> bool:
        """Say whether the object at ``path`` may not be fetched, and count."""
        held = not self._open and path in self.marked
        self.held_back += held
        return held

    async def _join(
        self,
        near: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        far: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        """Pump both ways, with an eye on what the client asks for."""
        await super()._join((_Watched(near[0], self), near[1]), far)


@contextmanager
def gated(url: str) -> Iterator[Gate]:
    """Run a gate to where ``url`` points for as long as the block runs."""
    gate = Gate(url)
    gate.start()
    try:
        yield gate
    finally:
        gate.stop()
