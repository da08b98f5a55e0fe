"""``make bench``: four-stage jobs per second and their latency, with tiny texts, and where the time goes.

Everything is real: HTTP, PostgreSQL with fsync, quorum queues, the object store, parser processes. Figures of one
machine say little about another; compare two runs on the same one, and ratios rather than numbers.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx
from alembic import command
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from schema.migrations.__main__ import config
from tests.conftest import settings_for
from tests.support.cpu import spent_seconds
from tests.support.factories import rows
from tests.support.services import fresh_bucket, fresh_database, fresh_vhost, running_services
from tests.support.system import System, running_system

TEXT = b"Docstage never loses a job. It never leaves one stuck, and it shows them why.\n"
_LATENCY = """
SELECT percentile_cont(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY extract(epoch FROM finished_at - created_at)) AS p
FROM job WHERE state = 'completed'
"""
_STAGES = """
SELECT a.stage,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM a.began_at - r.issued_at)) AS waited,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM a.ended_at - a.began_at)) AS worked
FROM stage_attempt a JOIN stage_run r USING (job_id, stage)
GROUP BY a.stage
"""
_FINISHED = "SELECT count(*) AS n FROM job WHERE finished_at IS NOT NULL"


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run measured; latencies in seconds from acceptance to the result."""

    jobs: int
    jobs_per_second: float
    accepted_per_second: float
    latency_p50: float
    latency_p99: float
    waited: dict[str, float]
    worked: dict[str, float]
    cpu_seconds: dict[str, float]


async def _submit(system: System, jobs: int, clients: int, progress: Progress) -> float:
    """Submit ``jobs`` texts by ``clients`` at once; return the seconds it took."""
    bar, left = progress.add_task("submit", total=jobs), iter(range(jobs))
    began = time.perf_counter()
    async with system.client() as client:
        await asyncio.gather(*(_client(client, left, lambda: progress.advance(bar)) for _ in range(clients)))
    return time.perf_counter() - began


async def _client(client: httpx.AsyncClient, left: Iterator[int], advance: Callable[[], None]) -> None:
    for number in left:
        body = TEXT + str(number).encode()
        answer = await client.post("/v1/jobs", data={"kind": "text"}, files={"file": ("t.txt", body)})
        answer.raise_for_status()
        advance()


async def _drain(system: System, jobs: int, progress: Progress) -> None:
    """Wait until every job is finished."""
    bar, done = progress.add_task("finish", total=jobs), 0
    while done < jobs:
        (counted,) = await rows(system.database, _FINISHED)
        done = int(str(counted["n"]))
        progress.update(bar, completed=done)
        await asyncio.sleep(0.1)


async def measure(system: System, jobs: int, clients: int, *, backlog: bool) -> Figures:
    """Run one load through a system; a ``backlog`` is submitted before anybody works."""
    intake, *workers = system.apart()
    await system.start(intake, *([] if backlog else workers))
    with Progress(console=Console(stderr=True)) as progress:
        submitting = asyncio.create_task(_submit(system, jobs, clients, progress))
        if backlog:
            await submitting
            await system.start(*workers)
        pids = {"these clients": os.getpid()} | {name: process.pid for name, process in system.processes.items()}
        before, began = spent_seconds(pids), time.perf_counter()
        await _drain(system, jobs, progress)
        drained = time.perf_counter() - began
        seconds = await submitting
    spent = spent_seconds(pids)
    (latency,), stages = await rows(system.database, _LATENCY), await rows(system.database, _STAGES)
    p50, p99 = latency["p"]
    return Figures(
        jobs=jobs,
        jobs_per_second=jobs / drained,
        accepted_per_second=jobs / seconds,
        latency_p50=p50,
        latency_p99=p99,
        waited={row["stage"]: row["waited"] for row in stages},
        worked={row["stage"]: row["worked"] for row in stages},
        cpu_seconds={name: (spent[name] - before[name]) / jobs for name in spent},
    )


def show(figures: Sequence[tuple[str, Figures]]) -> None:
    """Print the figures as tables."""
    table = Table("load", "jobs", "jobs/s", "accepted/s", "p50 s", "p99 s")
    for name, one in figures:
        table.add_row(
            name,
            str(one.jobs),
            f"{one.jobs_per_second:.0f}",
            f"{one.accepted_per_second:.0f}",
            f"{one.latency_p50:.3f}",
            f"{one.latency_p99:.3f}",
        )
    where = Table("load", "stage", "median wait ms", "median work ms")
    for name, one in figures:
        for stage in ("validate", "extract", "normalize", "persist"):
            where.add_row(name, stage, f"{one.waited[stage] * 1000:.1f}", f"{one.worked[stage] * 1000:.1f}")
    who = Table("processor per job, ms", *(name for name, _ in figures))
    names = {name for _, one in figures for name in one.cpu_seconds}
    spenders = {name: [one.cpu_seconds.get(name, 0.0) for _, one in figures] for name in names}
    for name, each in sorted(spenders.items(), key=lambda spender: -spender[1][-1]):
        who.add_row(name, *(f"{seconds * 1000:.2f}" for seconds in each))
    who.add_row("all", *(f"{sum(one.cpu_seconds.values()) * 1000:.2f}" for _, one in figures))
    Console().print(table, where, who)


async def run(arguments: argparse.Namespace) -> list[tuple[str, Figures]]:
    """Start the services and a system per load, and measure."""
    figures = []
    with running_services() as services:
        for name, jobs, clients, backlog in (
            ("one at a time", arguments.jobs // 20, 1, False),
            ("as fast as it goes", arguments.jobs, arguments.clients, False),
            ("a backlog", arguments.jobs, arguments.clients, True),
        ):
            with (
                fresh_database(services) as url,
                fresh_vhost(services) as amqp,
                fresh_bucket(services) as bucket,
                tempfile.TemporaryDirectory() as folder,
            ):
                await asyncio.to_thread(command.upgrade, config(url), "head")
                async with running_system(settings_for(services, url, amqp, bucket), Path(folder)) as system:
                    figures.append((name, await measure(system, jobs, clients, backlog=backlog)))
    return figures


def main() -> None:
    """Measure and print; ``--json`` writes the figures to a file for a later comparison."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    figures = asyncio.run(run(arguments))
    show(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps({name: asdict(one) for name, one in figures}, indent=2))


if __name__ == "__main__":
    main()
