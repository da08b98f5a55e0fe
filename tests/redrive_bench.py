"""``make redrives``: ten thousand dead letters listed, and brought back at a rate while fresh jobs go on.

The letters are real: documents that the store has and does not give, each tried and given up by the workers. Then the
store gives them, and an operator's commands are timed as he would run them. Fresh jobs are submitted at a fixed pace,
whatever becomes of them, first alone and then beside the redrive.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from alembic import command
from rich.console import Console
from rich.table import Table

from intake.accept import SMALL_BYTES
from schema.migrations.__main__ import config
from tests.bench import TEXT
from tests.conftest import settings_for
from tests.soak.gate import MARK, gated
from tests.support.eventually import eventually
from tests.support.factories import rows
from tests.support.services import fresh_bucket, fresh_database, fresh_vhost, running_services
from tests.support.system import ROOT, System, running_system

CLIENTS: Final = 16
LISTINGS: Final = {
    "list": ["list"],
    "list --stage --code": ["list", "--stage", "validate", "--code", "storage_unavailable"],
    "list --letters, all of them": ["list", "--letters", "--limit", "1000000"],
}
TIMES: Final = 5
PATIENCE_SECONDS: Final = 3600.0
_OPEN: Final = "SELECT count(*) AS n FROM dead_letter WHERE state = 'open'"
_UNFINISHED: Final = "SELECT count(*) AS n FROM job WHERE state <> 'completed'"
_LATENCY: Final = """
SELECT count(*) AS jobs, percentile_cont(ARRAY[0.5, 0.99]) WITHIN GROUP (
    ORDER BY extract(epoch FROM finished_at - created_at)) AS p
FROM job WHERE id = ANY(CAST(:ids AS uuid[])) AND state = 'completed'
"""


@dataclass(frozen=True, slots=True)
class Latency:
    """How long fresh jobs took from acceptance to result, in seconds."""

    jobs: int
    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run measured, in seconds."""

    listings: Mapping[str, float]
    redrive_seconds: float
    report: str
    alone: Latency
    beside: Latency


@asynccontextmanager
async def _place() -> AsyncIterator[System]:
    """Make services, a database, a vhost and a bucket, and a system without processes."""
    with (
        running_services() as services,
        fresh_database(services) as url,
        fresh_vhost(services) as amqp,
        fresh_bucket(services) as bucket,
        tempfile.TemporaryDirectory() as folder,
    ):
        await asyncio.to_thread(command.upgrade, config(url), "head")
        async with running_system(settings_for(services, url, amqp, bucket), Path(folder)) as system:
            yield system


async def make_letters(system: System, letters: int) -> None:
    """Let so many jobs fail for want of their documents, and leave the system as it is by default, all of it up."""
    with gated(system.environment["DOCSTAGE_S3_ENDPOINT"]) as gate:
        await system.start_apart(DOCSTAGE_S3_ENDPOINT=gate.url, DOCSTAGE_RETRY_ATTEMPTS="1")
        left = iter(range(letters))
        # Beyond what is kept in the database, so that it must be fetched.
        document = MARK + TEXT * (SMALL_BYTES // len(TEXT) + 1)

        async def submit_some() -> None:
            for number in left:
                await system.submit(document + str(number).encode())

        await asyncio.gather(*(submit_some() for _ in range(CLIENTS)))
        await eventually(lambda: _is(system, _OPEN, letters), seconds=PATIENCE_SECONDS)
    await system.start_apart()


async def time_listings(system: System) -> Mapping[str, float]:
    """Take the median time of each way to look at them, from the command line to the last line of output."""
    return {
        name: statistics.median([await _timed(system, argv) for _ in range(TIMES)]) for name, argv in LISTINGS.items()
    }


async def _timed(system: System, argv: list[str]) -> float:
    began = time.perf_counter()
    await _tool(system, *argv)
    return time.perf_counter() - began


async def _tool(system: System, *argv: str) -> str:
    """Run ``docstage-dlq`` and return what it prints."""
    ran = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "dlq_tools", *argv],
        cwd=ROOT,
        env={**os.environ, **system.environment},  # noqa: TID251 - PATH and the like
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout


async def submit_fresh(system: System, pace: float, until: asyncio.Event) -> Latency:
    """Submit ``pace`` jobs per second, waiting for none of them, and tell how long they took."""
    began, submitting = time.monotonic(), list[asyncio.Task[str]]()
    while not until.is_set():
        submitting.append(asyncio.create_task(system.submit(TEXT + str(len(submitting)).encode())))
        await asyncio.sleep(max(0.0, began + len(submitting) / pace - time.monotonic()))
    ids = [await task for task in submitting]
    latency = await eventually(lambda: _latency(system, ids), seconds=PATIENCE_SECONDS)
    assert latency is not None
    return latency


async def _latency(system: System, ids: list[str]) -> Latency | None:
    (found,) = await rows(system.database, _LATENCY, ids=ids)
    return Latency(len(ids), *found["p"]) if found["jobs"] == len(ids) else None


async def measure(system: System, arguments: argparse.Namespace) -> Figures:
    """Take all figures from one system."""
    await make_letters(system, arguments.letters)
    listings = await time_listings(system)
    enough = asyncio.Event()
    asyncio.get_running_loop().call_later(arguments.seconds, enough.set)
    alone = await submit_fresh(system, arguments.fresh, enough)
    redriven = asyncio.Event()
    fresh = asyncio.create_task(submit_fresh(system, arguments.fresh, redriven))
    began = time.perf_counter()
    options = (
        "--all",
        "--limit",
        str(arguments.letters),
        "--rate",
        str(arguments.rate),
        "--reason",
        "they are given again",
    )
    report = await _tool(system, "redrive", *options)
    seconds = time.perf_counter() - began
    redriven.set()
    beside = await fresh
    await eventually(lambda: _is(system, _UNFINISHED, 0), seconds=PATIENCE_SECONDS)
    return Figures(listings, seconds, report, alone, beside)


async def _is(system: System, counting: str, number: int) -> bool:
    (counted,) = await rows(system.database, counting)
    return counted["n"] == number


def show(figures: Figures, letters: int) -> None:
    """Print the figures, with the machine's size and load."""
    listings = Table(f"{letters} letters", "median s")
    for name, seconds in figures.listings.items():
        listings.add_row(name, f"{seconds:.2f}")
    fresh = Table("fresh jobs", "jobs", "p50 s", "p99 s")
    for name, latency in (("alone", figures.alone), ("beside the redrive", figures.beside)):
        fresh.add_row(name, str(latency.jobs), f"{latency.p50:.3f}", f"{latency.p99:.3f}")
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    rate = letters / figures.redrive_seconds
    Console().print(
        listings,
        figures.report.strip(),
        f"redriven in {figures.redrive_seconds:.0f} s, {rate:.1f} letters per second",
        fresh,
        f"{os.cpu_count()} processors, load {load}",
    )


async def _run(arguments: argparse.Namespace) -> Figures:
    async with _place() as system:
        return await measure(system, arguments)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.redrive_bench", description=__doc__)
    parser.add_argument("--letters", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=20, help="letters brought back per second")
    parser.add_argument("--fresh", type=float, default=5, help="fresh jobs per second")
    parser.add_argument("--seconds", type=float, default=60, help="how long fresh jobs are alone")
    arguments = parser.parse_args()
    show(asyncio.run(_run(arguments)), arguments.letters)


if __name__ == "__main__":
    main()
