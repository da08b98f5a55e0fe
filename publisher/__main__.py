"""``python -m publisher``: relay, sweeper, reader of what was given up, and gauges, in one process."""

import argparse
import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import uvloop

from publisher.gauges import Gauges
from publisher.letter_queue import letter_queue_rule
from publisher.relay import Relay
from publisher.retention import Retention
from publisher.rules import JobRules
from publisher.sessions import hold_session
from publisher.sweeper import Sweeper
from publisher.undeliverable import UndeliverableReader
from schema.db.engine import Database
from schema.db.listening import listen
from schema.runtime import failpoints, logs
from schema.runtime.blobs import Blobs
from schema.runtime.clock import SystemClock
from schema.runtime.lifecycle import Health, serve_health, stop_on_signals, supervise
from schema.runtime.settings import PublisherSettings

APPLICATION: Final = "docstage-publisher"
POOL_SIZE: Final = 8

log = logs.get_logger()

Loop = Callable[[], Awaitable[None]]


def main() -> None:
    """Read the settings and run until a signal."""
    parser = argparse.ArgumentParser(
        prog="python -m publisher", description="Relay the outbox to the broker, and sweep. Settings: docs/settings.md."
    )
    parser.parse_args()
    settings = PublisherSettings.load()
    failpoints.arm(settings.failpoints)
    logs.configure("publisher", settings.log_level)
    uvloop.run(run(settings))


async def run(settings: PublisherSettings) -> None:
    """Work until SIGTERM or SIGINT; whatever is down when it starts is waited for."""
    stopping = stop_on_signals()
    health = Health()
    async with contextlib.AsyncExitStack() as stack:
        database = Database.connect(
            settings.database_url.get_secret_value(), application=APPLICATION, pool_size=POOL_SIZE
        )
        stack.push_async_callback(database.close)
        blobs = Blobs.connect(settings)
        stack.callback(blobs.close)
        loops = _loops(settings, database, blobs, health)
        await stack.enter_async_context(serve_health(settings.metrics_host, settings.metrics_port, health))
        running = [asyncio.create_task(supervise(name, loop)) for name, loop in loops.items()]
        log.info("publisher_started", port=settings.metrics_port)
        await stopping.wait()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        log.info("publisher_stopped")


def _loops(settings: PublisherSettings, database: Database, blobs: Blobs, health: Health) -> Mapping[str, Loop]:
    """Wire the parts together and name the loops that have to run."""
    clock = SystemClock()
    relay = Relay(settings=settings, database=database, clock=clock)
    retention = Retention(settings=settings, database=database, blobs=blobs, clock=clock)
    rules = {
        **JobRules(settings, database, {}).by_name(),
        "retention": retention.retention,
        "orphaned_objects": retention.orphaned_objects,
        "reconcile": letter_queue_rule(settings, database, clock),
    }
    sweeper = Sweeper(settings=settings, database=database, rules=rules, healed=relay.wake)
    reader = UndeliverableReader(database=database, recorded=relay.wake)
    gauges = Gauges(database)
    health.checks.extend((relay.missing, gauges.missing))
    return {
        "relay": relay.run,
        "listen": lambda: listen(settings.database_url.get_secret_value(), application=APPLICATION, heard=relay.wake),
        "sweeper": sweeper.run,
        "undeliverable": lambda: hold_session(settings, APPLICATION, reader.work, gauges.work),
        "gauges": gauges.run,
    }


if __name__ == "__main__":
    main()
