"""``python -m intake``: serve the HTTP API."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Final

import uvicorn
import uvloop

from intake.app import create_app
from intake.problems import ProblemCode
from intake.services import opened
from schema.domain.kinds import Kind
from schema.runtime import failpoints, logs, metrics
from schema.runtime.lifecycle import stop_on_signals
from schema.runtime.settings import IntakeSettings

CLEANUP_SECONDS: Final = 5.0

log = logs.get_logger()


class Server(uvicorn.Server):
    """uvicorn without its own signal handlers, which would end the process by the signal after a clean stop."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say where."""
        await super().startup(sockets)
        for server in self.servers:
            log.info("intake_listening", port=server.sockets[0].getsockname()[1])


def main() -> None:
    """Read the settings and serve until a signal."""
    settings = IntakeSettings()
    failpoints.arm(settings.failpoints)
    logs.configure("intake", settings.log_level)
    refusals = (ProblemCode.OVERLOADED, ProblemCode.TOO_MANY_JOBS, ProblemCode.DOCUMENT_TOO_LARGE)
    metrics.prepare_intake(kinds=[kind.value for kind in Kind], refusals=[code.value for code in refusals])
    uvloop.run(serve(settings))


async def serve(settings: IntakeSettings) -> None:
    """Serve until SIGTERM or SIGINT; uploads under way may end, those who wait are answered at once."""
    stopping = stop_on_signals()
    async with opened(settings) as services:
        config = uvicorn.Config(
            create_app(services),
            host=settings.http_host,
            port=settings.http_port,
            http="httptools",
            loop="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=int(settings.grace_seconds),
        )
        server = Server(config)
        serving = asyncio.create_task(server.serve())
        stopped = asyncio.create_task(stopping.wait())
        await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
        services.watcher.stop()
        server.should_exit = True
        await serving
        # Those cut off by the end of the grace time take back what they stored.
        if server.server_state.tasks:
            await asyncio.wait(server.server_state.tasks, timeout=CLEANUP_SECONDS)
        stopped.cancel()
    log.info("intake_stopped")


if __name__ == "__main__":
    main()
