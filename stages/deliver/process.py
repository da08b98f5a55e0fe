"""``python -m stages deliver``: send webhooks until a signal.

Apart from the other stages: those read hostile documents and have no need to reach the internet, nor the keys of
the endpoints' secrets.
"""

import asyncio
import contextlib
from typing import Final

import uvloop

from schema.db.engine import Database
from schema.db.wake import Waker
from schema.runtime import failpoints, logs, metrics
from schema.runtime.clock import SystemClock
from schema.runtime.lifecycle import Health, serve_health, stop_on_signals, supervise
from schema.runtime.settings import DeliverSettings
from schema.runtime.vault import Vault
from stages.consumer import Desk
from stages.deliver.addresses import SystemResolver
from stages.deliver.consumer import NoticeConsumer
from stages.deliver.courier import Courier
from stages.deliver.transport import Transport

NAME: Final = "deliver"
POOL_SIZE: Final = 8

log = logs.get_logger()


def main() -> None:
    """Read the settings and run until a signal."""
    settings = DeliverSettings.load()
    failpoints.arm(settings.failpoints)
    logs.configure(NAME, settings.log_level)
    uvloop.run(run(settings))


async def run(settings: DeliverSettings) -> None:
    """Consume until SIGTERM or SIGINT, then drain."""
    stopping = stop_on_signals()
    health = Health()
    async with contextlib.AsyncExitStack() as stack:
        url = settings.database_url.get_secret_value()
        database = Database.connect(url, application="docstage-deliver", pool_size=POOL_SIZE)
        stack.push_async_callback(database.close)
        waker = Waker(database)
        stack.push_async_callback(waker.close)
        transport = Transport(
            resolver=SystemResolver(settings.webhook_in_flight),
            networks=settings.networks(),
            timeout_seconds=settings.webhook_timeout_seconds,
            ca_file=settings.webhook_ca_file,
        )
        stack.push_async_callback(transport.close)
        courier = Courier(
            database=database,
            vault=Vault(settings.keys()),
            transport=transport,
            schedule=settings.schedule(),
            share=settings.webhook_per_endpoint,
            clock=SystemClock(),
        )
        metrics.prepare_deliver()
        consumer = NoticeConsumer(settings=settings, courier=courier, desk=Desk(database, waker), health=health)
        await stack.enter_async_context(serve_health(settings.metrics_host, settings.metrics_port, health))
        consuming = asyncio.create_task(supervise("consumer", consumer.run))
        await stopping.wait()
        log.info("stopping")
        await consumer.drain(settings.grace_seconds)
        consuming.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await consuming
