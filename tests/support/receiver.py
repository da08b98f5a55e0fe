"""A receiver of webhooks: a small HTTP server of the test's own that keeps what it gets and answers as it is told."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

NO_CONTENT = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Received:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def id(self) -> str:
        """The event's id."""
        return self.headers["webhook-id"]


def answer(status: int, *, body: bytes = b"", **headers: str) -> bytes:
    """Return the bytes of an answer; underscores in header names stand for hyphens."""
    lines = [f"HTTP/1.1 {status} Told", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


@dataclass(slots=True)
class Receiver:
    """What came, and what is answered: the same to everything, or by ``answering`` to each request as it is."""

    host: str
    port: int
    requests: list[Received] = field(default_factory=list)
    answering: Callable[[Received], bytes] = lambda _: NO_CONTENT
    """Returns raw bytes; none hold the connection open without a word."""

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{self.host}:{self.port}/hooks"

    def of(self, event_id: str) -> list[Received]:
        """Return the requests about one event."""
        return [request for request in self.requests if request.id == event_id]


@asynccontextmanager
async def receiving(host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    """Listen on a free port while the block runs."""
    talking: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talking.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await _exchange(receiver, reader, writer)
        finally:
            talking.discard(task)
            writer.close()

    server = await asyncio.start_server(talk, host, 0, ssl=tls)
    receiver = Receiver(host, server.sockets[0].getsockname()[1])
    try:
        yield receiver
    finally:
        server.close()
        for task in talking:
            task.cancel()
        await asyncio.gather(*talking, return_exceptions=True)


async def _exchange(receiver: Receiver, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read one request, keep it, answer it."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    received = Received(method, path, headers, body)
    receiver.requests.append(received)
    answered = receiver.answering(received)
    writer.write(answered)
    await writer.drain()
    if not answered:
        await reader.read()
