"""``make figures``: how long a job waits when something dies under it, measured with real processes.

- kill to takeover: a worker is killed while it works; until another has claimed its run.
- lost machine to takeover: no connection ends, so the lease has to run out, with the default settings.
- cancel to silence: a scan is being recognized; from the 200 of its cancel until parser and tool are dead.
- retries of one instant: a thousand attempts fail at once; the share of them that comes back, over the relay and the
  ladder, in the busiest tenth of the window.
- store back to flowing: a minute without the object store while fifty jobs wait, with the default settings; from the
  moment it can be reached again until the first and the last of them is completed, none of which may lose an attempt.
- restart to flowing: from the moment a service is told to stop until a job submitted meanwhile is completed, the
  service's own stop and start included.

Figures of a busy machine are worse than those of an idle one; the load is printed with them.
"""

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

import httpx
from alembic import command
from rich.console import Console
from rich.table import Table

from schema.domain.backoff import RetryPolicy, retry_delay
from schema.domain.decisions import RetryAfter
from schema.domain.errors import ErrorCode
from schema.domain.moves import of_outcome
from schema.domain.outcomes import Transient
from schema.domain.states import Lane
from schema.migrations.__main__ import config
from schema.wire.queues import lane_queue
from tests.conftest import settings_for
from tests.support.broker import inbox
from tests.support.documents import scan
from tests.support.eventually import eventually
from tests.support.factories import rows
from tests.support.families import group_at_work, members
from tests.support.protocol import accepted_jobs, claim_all, write_all
from tests.support.proxy import proxied
from tests.support.services import Services, fresh_bucket, fresh_database, fresh_vhost, running_services
from tests.support.system import QUICK, Process, System, running_system

TEXT: Final = b"How long does it take?\n"
SCANNED: Final = [f"Page {number} of a long scan, which nobody wants any more." for number in range(1, 21)]
LOSS_SECONDS: Final = 300
FAILURES: Final = 1000
# The first retry comes after 10 to 20 s: a window long enough to see it filled evenly.
LONG_WINDOW: Final = RetryPolicy(base=timedelta(seconds=10))
WAITING: Final = 50
OUTAGE_SECONDS: Final = 60
# Beyond what is kept in the database, so that the stages have to ask the store.
LARGE: Final = 1000
_ATTEMPTS = "SELECT DISTINCT attempt FROM stage_attempt WHERE job_id = ANY(CAST(:ids AS uuid[]))"
_ENDS = "SELECT finished_at FROM job WHERE id = ANY(CAST(:ids AS uuid[]))"
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


async def cancel_to_silence(system: System, _: Services) -> float:
    """Cancel a job while a page of its scan is being recognized."""
    reader = system.stages("reader", "extract")
    await system.start(reader)
    job_id = await system.submit(scan(*SCANNED))
    group = await eventually(lambda: group_at_work(reader.pid, "tesseract"))
    async with system.client() as client:
        (await client.post(f"/v1/jobs/{job_id}/cancel")).raise_for_status()
    told = time.monotonic()
    await eventually(lambda: not members(group))
    seconds = time.monotonic() - told
    assert (await system.status(job_id))["status"] == "cancelled"
    reader.close()
    return seconds


async def busiest_tenth(system: System, _: Services) -> float:
    """Fail many attempts in one transaction, where nobody works off what comes back."""
    system.processes["rest"].close()
    claims = await claim_all(system.database, await accepted_jobs(system.database, FAILURES))
    outcome = Transient(ErrorCode.STORAGE_UNAVAILABLE)
    failed = [
        of_outcome(one, outcome, RetryAfter(retry_delay(LONG_WINDOW, one.attempt, random.uniform))) for one in claims
    ]
    first = LONG_WINDOW.base.total_seconds()
    async with inbox(system.environment["DOCSTAGE_AMQP_URL"], lane_queue(Lane.VALIDATE)) as box:
        began = asyncio.get_running_loop().time()
        await write_all(system.database, failed)
        # Their first messages come as well.
        await eventually(lambda: len(box.deliveries) == 2 * FAILURES)
    arrived = [at - began for body, at in zip(box.bodies(), box.times, strict=True) if body["attempt"] == 2]
    tenths = Counter(int((at - first) * 10 // first) for at in arrived)
    return max(tenths.values()) / FAILURES


async def _ends_after_outage(system: System) -> list[float]:
    """Take the store from workers that have all to do; return when each job ended, in seconds from its return."""
    system.processes["rest"].close()
    with proxied(system.environment["DOCSTAGE_S3_ENDPOINT"]) as way:
        ids = [await system.submit(TEXT * LARGE + str(number).encode()) for number in range(WAITING)]
        way.cut()
        workers = system.stages("rest", DOCSTAGE_S3_ENDPOINT=way.url)
        workers.environment = {name: value for name, value in workers.environment.items() if name not in QUICK}
        workers.start()
        await eventually(lambda: _pauses(workers))
        await asyncio.sleep(OUTAGE_SECONDS)
        (back,) = await rows(system.database, _NOW)
        way.heal()
        jobs = await asyncio.gather(*(system.finished(job_id) for job_id in ids))
        attempts = await rows(system.database, _ATTEMPTS, ids=ids)
        ends = await rows(system.database, _ENDS, ids=ids)
    assert {job["status"] for job in jobs} == {"completed"}
    assert {attempt["attempt"] for attempt in attempts} == {1}
    await system.start(system.stages("rest", "validate", "normalize", "persist"))
    return [(end["finished_at"] - back["now"]).total_seconds() for end in ends]


async def _pauses(workers: Process) -> bool:
    with suppress(httpx.HTTPError):
        return "paused" in await workers.missing()
    return False


async def store_to_first(system: System, _: Services) -> float:
    """Give the store back and wait for the first job."""
    return min(await _ends_after_outage(system))


async def store_to_last(system: System, _: Services) -> float:
    """Give the store back and wait for the last job."""
    return max(await _ends_after_outage(system))


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
    "cancel -> parser and tool dead": (cancel_to_silence, 20),
    "store back after a minute -> first of 50 jobs": (store_to_first, 2),
    "store back after a minute -> last of 50 jobs": (store_to_last, 2),
    "RabbitMQ restart -> flowing": (broker_restart, 3),
    "PostgreSQL restart -> flowing": (database_restart, 3),
    # The last one: it leaves its jobs behind, and no worker for their stage.
    "1,000 retries, busiest tenth of the window (share)": (busiest_tenth, 1),
}


def show(figures: dict[str, Sequence[float]]) -> None:
    """Print the figures as a table, with the machine's size and load."""
    table = Table("what, in seconds", "times", "median", "worst")
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


async def measure_all(
    services: Services, environment: dict[str, str], folder: Path, wanted: Sequence[str]
) -> dict[str, Sequence[float]]:
    """Take the figures that are wanted, each as often as the table says."""
    figures: dict[str, Sequence[float]] = {}
    async with running_system(environment, folder) as system:
        await system.start(
            system.process("intake", "intake"),
            system.process("publisher", "publisher"),
            system.stages("rest", "validate", "normalize", "persist"),
        )
        for name in wanted:
            measure, times = MEASURES[name]
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
    parser = argparse.ArgumentParser(prog="python -m tests.figures", description=__doc__)
    parser.add_argument("--only", choices=MEASURES, action="append", help="one figure; may be given several times")
    wanted = parser.parse_args().only or list(MEASURES)
    with running_services() as services, _place(services) as (environment, folder):
        command.upgrade(config(environment["DOCSTAGE_DATABASE_URL"]), "head")
        show(asyncio.run(measure_all(services, environment, folder, wanted)))


if __name__ == "__main__":
    main()
