"""The tests' own proxy: what it does to a connection is what the fault tests believe it does."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from tests.support.eventually import eventually
from tests.support.proxy import Proxy, proxied

SOON_SECONDS = 0.2
LONG = bytes(2**20)


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionResetError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
    writer.close()


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    """A proxy to a server that says back what it is told."""
    server = await asyncio.start_server(_echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with proxied(f"echo://user:secret@127.0.0.1:{port}/path") as made:
        yield made
    server.close()


@pytest.fixture
async def line(proxy: Proxy) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection by way of the proxy."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    yield reader, writer
    writer.transport.abort()


async def _said_back(line, what: bytes) -> bytes:
    reader, writer = line
    writer.write(what)
    return await asyncio.wait_for(reader.readexactly(len(what)), 30)


async def _heard_from_a_new_connection(proxy: Proxy) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    try:
        return await reader.read(1)
    finally:
        writer.transport.abort()


async def test_everything_passes_and_both_ends_end_in_good_order(proxy, line):
    """Who leaves it alone must not notice it: a megabyte there and back, and an end that travels after it."""
    reader, writer = line
    writer.write(LONG)
    writer.write_eof()

    assert await asyncio.wait_for(reader.read(-1), 30) == LONG
    await eventually(lambda: proxy.connections == 0)
    assert proxy.url == f"echo://user:secret@127.0.0.1:{proxy.port}/path"


async def test_a_reset_ends_what_is_open_and_lets_the_next_one_through(proxy, line):
    """A broken connection, as when a router forgets it."""
    assert await _said_back(line, b"before") == b"before"

    proxy.reset()

    with pytest.raises(ConnectionResetError):
        await line[0].read(1)
    fresh = await asyncio.open_connection("127.0.0.1", proxy.port)
    assert await _said_back(fresh, b"after") == b"after"
    fresh[1].transport.abort()


async def test_a_cut_lasts_until_it_is_healed(proxy, line):
    """A partition that says so: nobody gets through, and everybody is told."""
    assert await _said_back(line, b"before") == b"before"

    proxy.cut()

    with pytest.raises(ConnectionResetError):
        await line[0].read(1)
    with pytest.raises(ConnectionResetError):
        await _heard_from_a_new_connection(proxy)
    proxy.heal()
    fresh = await asyncio.open_connection("127.0.0.1", proxy.port)
    assert await _said_back(fresh, b"after") == b"after"
    fresh[1].transport.abort()


async def test_frozen_nothing_passes_and_nothing_is_lost(proxy, line):
    """A partition that says nothing: old and new connections stay open, and all arrives once it is over."""
    assert await _said_back(line, b"before") == b"before"
    proxy.freeze()
    fresh = await asyncio.open_connection("127.0.0.1", proxy.port)
    for _, writer in (line, fresh):
        writer.write(b"held")
    for reader, _ in (line, fresh):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(4), SOON_SECONDS)

    proxy.heal()

    for reader, _ in (line, fresh):
        assert await asyncio.wait_for(reader.readexactly(4), 30) == b"held"
    fresh[1].transport.abort()


async def test_frozen_not_even_an_end_passes(proxy, line):
    """A lost machine says no goodbye: its peer goes on believing in the connection."""
    assert await _said_back(line, b"before") == b"before"
    proxy.freeze()

    line[1].transport.abort()

    with pytest.raises(AssertionError):
        await eventually(lambda: proxy.connections == 0, seconds=SOON_SECONDS)
    proxy.heal()
    await eventually(lambda: proxy.connections == 0)


async def test_slow_it_takes_its_time(proxy, line):
    """There and back costs the delay twice at least."""
    proxy.slow(0.1)
    began = time.monotonic()

    assert await _said_back(line, b"late") == b"late"

    assert time.monotonic() - began >= 0.2
