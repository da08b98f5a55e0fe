"""``python -m stages STAGE…``: consume one or several stages' queues in this process."""

import argparse
import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Final

import uvloop

from schema.db.engine import Database
from schema.db.wake import Waker
from schema.domain.errors import ErrorCode
from schema.domain.states import Lane, Stage
from schema.runtime import failpoints, logs, metrics
from schema.runtime.blobs import Blobs
from schema.runtime.clock import Clock, SystemClock
from schema.runtime.lifecycle import Health, serve_health, stop_on_signals, supervise
from schema.runtime.settings import StagesSettings
from stages.breaker import Breaker
from stages.consumer import Desk, StageConsumer
from stages.deliver import process as deliver
from stages.lanes import LanePlan, plan
from stages.ledger import Ledger
from stages.liveness import Liveness
from stages.reception import Reception
from stages.registry import equip
from stages.runner import Runner, RunnerSettings

POOL_SIZE: Final = 8

log = logs.get_logger()


def main() -> None:
    """Read the arguments and settings, and run until a signal."""
    parser = argparse.ArgumentParser(
        prog="python -m stages",
        description="Consume the queues of one or several stages.",
        epilog="example: python -m stages validate normalize persist; deliver, which sends webhooks, runs by itself",
    )
    choices = [*(stage.value for stage in Stage), deliver.NAME]
    parser.add_argument("stages", nargs="+", choices=choices, metavar="STAGE")
    names = parser.parse_args().stages
    if deliver.NAME in names:
        if len(names) > 1:
            parser.error("deliver runs in a process of its own")
        deliver.main()
        return
    settings = StagesSettings.load()
    try:
        plans = plan([Stage(name) for name in names], settings)
    except ValueError as error:
        parser.error(str(error))
    failpoints.arm(settings.failpoints)
    logs.configure(f"stages-{'+'.join(names)}", settings.log_level)
    uvloop.run(run([Stage(name) for name in names], settings, plans))


async def run(stages: Sequence[Stage], settings: StagesSettings, plans: Mapping[Lane, LanePlan]) -> None:
    """Consume until SIGTERM or SIGINT, then drain."""
    stopping = stop_on_signals()
    health, clock = Health(), SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        url = settings.database_url.get_secret_value()
        database = Database.connect(url, application="docstage-stages", pool_size=POOL_SIZE)
        stack.push_async_callback(database.close)
        blobs = Blobs.connect(settings)
        stack.callback(blobs.close)
        liveness = Liveness(url, stages=list(stages), lease=settings.lease, clock=clock)
        health.checks.append(lambda: [] if liveness.is_ready else ["liveness lock not held"])
        metrics.prepare_stages(plans)
        workshop = equip(plans, settings=settings, blobs=blobs)
        await workshop.start()
        stack.push_async_callback(workshop.close)
        waker = Waker(database)
        stack.push_async_callback(waker.close)
        ledger = Ledger(database, liveness, waker, lease=settings.lease)
        breaker = _breaker(settings, blobs, clock)
        stack.push_async_callback(breaker.end)
        runner = Runner(
            ledger=ledger,
            liveness=liveness,
            database=database,
            outputs=blobs,
            handlers=workshop.handlers,
            settings=_runner_settings(settings, plans),
            clock=clock,
            breaker=breaker,
        )
        consumer = StageConsumer(
            settings=settings,
            lanes=plans,
            liveness=liveness,
            reception=Reception(ledger, clock, settings.lost_claims),
            runner=runner,
            desk=Desk(database, waker),
            breaker=breaker,
            health=health,
        )
        liveness.start()
        stack.push_async_callback(liveness.stop)
        await stack.enter_async_context(serve_health(settings.metrics_host, settings.metrics_port, health))
        consuming = asyncio.create_task(supervise("consumer", consumer.run))
        await stopping.wait()
        log.info("stopping")
        await consumer.drain(settings.grace_seconds)
        consuming.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await consuming


def _breaker(settings: StagesSettings, blobs: Blobs, clock: Clock) -> Breaker:
    """Make the breaker of the object store, which every stage may need: for documents, inputs or outputs."""
    return Breaker(ErrorCode.STORAGE_UNAVAILABLE, blobs.prove, clock=clock, probe_seconds=settings.probe_seconds)


def _runner_settings(settings: StagesSettings, plans: Mapping[Lane, LanePlan]) -> RunnerSettings:
    """Read the runner's limits from the settings."""
    return RunnerSettings(
        lease=settings.lease,
        limits={lane: made.limit for lane, made in plans.items()},
        inline_bytes=settings.inline_bytes,
        policy=settings.policy,
    )


if __name__ == "__main__":
    main()
