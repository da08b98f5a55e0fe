"""A process's life: signals, supervised loops, and /livez, /readyz and /metrics on a port of its own."""

import asyncio
import contextlib
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from schema.runtime.logs import get_logger

log = get_logger()

RESTART_BASE_SECONDS: Final = 0.2
RESTART_CAP_SECONDS: Final = 10.0
MAX_REQUEST_BYTES: Final = 8192

Check = Callable[[], Iterable[str]]


@dataclass(slots=True)
class Health:
    """What is missing for this process to do its work, told by named checks."""

    checks: list[Check] = field(default_factory=list)

    def missing(self) -> list[str]:
        """Return plain phrases such as ``no consumer on extract``; empty when ready."""
        return [phrase for check in self.checks for phrase in check()]


def stop_on_signals() -> asyncio.Event:
    """Return an event that is set by SIGTERM or SIGINT."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    return stopping


async def supervise(name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Run a loop for ever: one that raises or returns is started again, with jittered backoff."""
    failures = 0
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        try:
            await run()
        except Exception as error:  # noqa: BLE001 - whatever it was, the loop must come back
            log.warning("loop_failed", where=name, exception_type=type(error).__name__)
        failures = 0 if loop.time() - began > RESTART_CAP_SECONDS else failures + 1
        await asyncio.sleep(backoff_seconds(failures))


def backoff_seconds(failures: int) -> float:
    """Draw a pause after the ``failures``-th failure in a row, with full jitter above a floor."""
    bound = min(RESTART_CAP_SECONDS, RESTART_BASE_SECONDS * 2 ** min(failures, 16))
    return random.uniform(bound / 4, bound)  # noqa: S311 - spreading, not secrecy


@contextlib.asynccontextmanager
async def serve_health(host: str, port: int, health: Health) -> AsyncIterator[None]:
    """Serve /livez, /readyz and /metrics while the block runs."""
    server = await asyncio.start_server(lambda r, w: _answer(r, w, health), host, port)
    try:
        yield
    finally:
        server.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(server.wait_closed(), 1)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, health: Health) -> None:
    """Answer one request and close."""
    try:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
        status, kind, body = _respond(head.split(b" ", 2)[1].split(b"?")[0], health)
        writer.write(
            f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n".encode()
            + body
        )
        await writer.drain()
    except (OSError, TimeoutError, IndexError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass  # a peer that talks no HTTP, or went away, gets nothing
    finally:
        writer.close()


def _respond(path: bytes, health: Health) -> tuple[str, str, bytes]:
    """Return status, content type and body for a path."""
    if path == b"/metrics":
        return "200 OK", CONTENT_TYPE_LATEST, generate_latest()
    if path == b"/livez":
        return "200 OK", "text/plain", b"alive\n"
    if path == b"/readyz":
        missing = health.missing()
        status = "503 Service Unavailable" if missing else "200 OK"
        return status, "text/plain", ("\n".join(missing) or "ready").encode() + b"\n"
    return "404 Not Found", "text/plain", b"try /livez, /readyz or /metrics\n"
