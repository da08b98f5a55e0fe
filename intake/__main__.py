"""``python -m intake``: serve the HTTP API."""

import argparse
import asyncio
import contextlib
import socket
import sys
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

BACKLOG: Final = 2048
CLEANUP_SECONDS: Final = 5.0

log = logs.get_logger()


class Server(uvicorn.Server):
    """uvicorn without its own signal handlers, which would end the process by the signal after a clean stop."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


def main() -> None:
    """Read the settings and serve until a signal."""
    parser = argparse.ArgumentParser(
        prog="python -m intake", description="Serve the HTTP API. Settings: docs/settings.md."
    )
    parser.parse_args()
    settings = IntakeSettings.load()
    failpoints.arm(settings.failpoints)
    logs.configure("intake", settings.log_level)
    refusals = (ProblemCode.OVERLOADED, ProblemCode.TOO_MANY_JOBS, ProblemCode.DOCUMENT_TOO_LARGE)
    metrics.prepare_intake(kinds=[kind.value for kind in Kind], refusals=[code.value for code in refusals])
    try:
        listener = listening(settings)
    except OSError as error:
        log.error("port_unavailable", port=settings.http_port, exception_type=type(error).__name__)  # noqa: TRY400 - its text stays here
        sys.exit(1)
    uvloop.run(serve(settings, listener))


def listening(settings: IntakeSettings) -> socket.socket:
    """Listen where the settings say; port 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in settings.http_host else socket.AF_INET
    return socket.create_server((settings.http_host, settings.http_port), family=family, backlog=BACKLOG)


async def serve(settings: IntakeSettings, listener: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT; uploads under way may end, those who wait are answered at once."""
    stopping = stop_on_signals()
    async with opened(settings) as services:
        config = uvicorn.Config(
            create_app(services),
            http="httptools",
            loop="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=int(settings.grace_seconds),
        )
        server = Server(config)
        serving = asyncio.create_task(server.serve([listener]))
        log.info("intake_listening", port=listener.getsockname()[1])
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
