"""``make figures``: how long a job waits when something dies under it, measured with real processes.

- kill to takeover: a worker is killed while it works; until another has claimed its run.
- lost machine to takeover: no connection ends, so the lease has to run out, with the default settings.
- restart to flowing: from the moment a service is told to stop until a job submitted meanwhile is completed, the
  service's own stop and start included.

Figures of a busy machine are worse than those of an idle one; the load is printed with them.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from alembic import command
from rich.console import Console
from rich.table import Table

from schema.migrations.__main__ import config
from tests.conftest import settings_for
from tests.support.eventually import eventually
from tests.support.factories import rows
from tests.support.proxy import proxied
from tests.support.services import Services, fresh_bucket, fresh_database, fresh_vhost, running_services
from tests.support.system import System, running_system

TEXT: Final = b"How long does it take?\n"
LOSS_SECONDS: Final = 300
_CLAIMS = "SELECT began_at FROM stage_attempt WHERE job_id = :id AND stage = 'extract' ORDER BY fencing_token"
_NOW = "SELECT clock_timestamp() AS now"
_PROVABLE = "SELECT now() - pg_postmaster_start_time() > interval '10 seconds' AS yes"

Measure = Callable[[System, Services], Awaitable[float]]


async def _claimed(system: System, job_id: str, times: int) -> bool:
    return len(await rows(system.database, _CLAIMS, id=job_id)) >= times


async def _seconds_to_second_claim(system: System, job_id: str, lose: Callable[[], None]) -> float:
    """Lose the worker that holds a run; return the seconds until another has it, by the database's clock."""
    await eventually(lambda: _claimed(system, job_id, 1))
    heir = system.stages("heir", "extract")
    await system.start(heir)
    (before,) = await rows(system.database, _NOW)
    lose()
    await eventually(lambda: _claimed(system, job_id, 2), seconds=LOSS_SECONDS)
    claims = await rows(system.database, _CLAIMS, id=job_id)
    await system.finished(job_id)
    heir.close()
    return (claims[1]["began_at"] - before["now"]).total_seconds()


async def kill_to_takeover(system: System, _: Services) -> float:
    """Kill a worker that hangs in the middle of its work."""
    doomed = system.stages("doomed", "extract", DOCSTAGE_FAILPOINTS="worked=hang")
    await system.start(doomed)
    return await _seconds_to_second_claim(system, await system.submit(TEXT), doomed.kill)


async def loss_to_takeover(system: System, _: Services) -> float:
    """Freeze the network of a worker, so that no connection ends, and kill it."""
    with ExitStack() as stack:
        database, broker = (
            stack.enter_context(proxied(system.environment[name]))
            for name in ("DOCSTAGE_DATABASE_URL", "DOCSTAGE_AMQP_URL")
        )
        lost = system.stages(
            "doomed",
            "extract",
            DOCSTAGE_FAILPOINTS="worked=hang",
            DOCSTAGE_DATABASE_URL=database.url,
            DOCSTAGE_AMQP_URL=broker.url,
        )
        await system.start(lost)

        def lose() -> None:
            database.freeze()
            broker.freeze()
            lost.kill()

        return await _seconds_to_second_claim(system, await system.submit(TEXT), lose)


async def _restart(system: System, stop: Callable[[], None], start: Callable[[], None]) -> float:
    """Restart a service under a running system; return the seconds until a job gets through again."""
    await system.start(system.stages("heir", "extract"))
    await system.finished(await system.submit(TEXT))
    began = time.monotonic()
    await asyncio.to_thread(stop)
    await asyncio.to_thread(start)
    await system.database.close()
    job_id = await eventually(lambda: _accepted(system))
    await system.finished(job_id)
    return time.monotonic() - began


async def _accepted(system: System) -> str:
    """Submit; a refusal counts as not yet."""
    return await system.submit(TEXT)


async def broker_restart(system: System, services: Services) -> float:
    """Restart RabbitMQ."""
    return await _restart(system, services.rabbitmq.stop, services.rabbitmq.start)


async def database_restart(system: System, services: Services) -> float:
    """Restart PostgreSQL."""
    return await _restart(system, services.postgres.stop, services.postgres.start)


MEASURES: Final[dict[str, tuple[Measure, int]]] = {
    "kill -> takeover": (kill_to_takeover, 20),
    "lost machine -> takeover": (loss_to_takeover, 3),
    "RabbitMQ restart -> flowing": (broker_restart, 3),
    "PostgreSQL restart -> flowing": (database_restart, 3),
}


def show(figures: dict[str, Sequence[float]]) -> None:
    """Print the figures as a table, with the machine's size and load."""
    table = Table("what", "times", "median s", "worst s")
    for name, seconds in figures.items():
        table.add_row(name, str(len(seconds)), f"{statistics.median(seconds):.3f}", f"{max(seconds):.3f}")
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    Console().print(table, f"{os.cpu_count()} processors, load {load}")


@contextmanager
def _place(services: Services) -> Iterator[tuple[dict[str, str], Path]]:
    """Make a database, a vhost and a bucket, and a folder for logs."""
    with (
        fresh_database(services) as url,
        fresh_vhost(services) as amqp,
        fresh_bucket(services) as bucket,
        tempfile.TemporaryDirectory() as folder,
    ):
        yield settings_for(services, url, amqp, bucket), Path(folder)


async def measure_all(services: Services, environment: dict[str, str], folder: Path) -> dict[str, Sequence[float]]:
    """Take every figure, as often as the table says."""
    figures: dict[str, Sequence[float]] = {}
    async with running_system(environment, folder) as system:
        await system.start(
            system.process("intake", "intake"),
            system.process("publisher", "publisher"),
            system.stages("rest", "validate", "normalize", "persist"),
        )
        for name, (measure, times) in MEASURES.items():
            await eventually(lambda: _locks_are_proof(system))
            figures[name] = [await measure(system, services) for _ in range(times)]
            show({name: figures[name]})
    return figures


async def _locks_are_proof(system: System) -> bool:
    """Say whether PostgreSQL has run for long enough that a free lock proves its owner gone."""
    (answer,) = await rows(system.database, _PROVABLE)
    return bool(answer["yes"])


def main() -> None:
    """Measure and print."""
    argparse.ArgumentParser(prog="python -m tests.figures", description=__doc__).parse_args()
    with running_services() as services, _place(services) as (environment, folder):
        command.upgrade(config(environment["DOCSTAGE_DATABASE_URL"]), "head")
        show(asyncio.run(measure_all(services, environment, folder)))


if __name__ == "__main__":
    main()
