"""One soak from beginning to end: clients and harm together, then healing, counting, redriving, counting again."""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from schema.domain.backoff import RetryPolicy
from tests.soak import tally
from tests.soak.clients import Office
from tests.soak.facts import found
from tests.soak.fleet import Fleet, running_fleet
from tests.soak.gauges import Gauges
from tests.soak.harm import Harm
from tests.soak.judging import judge
from tests.soak.numbers import Evidence, Letters, completed, numbers
from tests.soak.report import Number, Report
from tests.soak.schedule import plan
from tests.soak.settle import LONGEST_SECONDS, settle
from tests.support.eventually import eventually
from tests.support.services import Services
from tests.support.system import ROOT, System

PROGRESS_SECONDS: Final = 10.0
# What the fleet's settings say.
POLICY: Final = RetryPolicy(attempts=6, lost_claims=3)
_PROGRESS: Final = "SELECT count(*) AS jobs, count(finished_at) AS finished FROM job"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for."""

    seed: int
    seconds: float
    clients: int


async def soak(wish: Wish, services: Services, system: System, say: Say) -> Report:
    """Run a soak on a system that has no processes yet, and report."""
    faults = plan(wish.seed, wish.seconds)
    async with running_fleet(system) as fleet:
        await eventually(lambda: _ready(fleet))
        office = Office(system.processes["intake"].url, system.key, wish.seed)
        harm, gauges = Harm(fleet, services), Gauges(fleet)
        async with _beside(gauges.run()), _beside(_tell(say, system, office, harm)):
            clients = asyncio.create_task(office.run(wish.clients))
            await asyncio.gather(harm.run(faults), asyncio.sleep(wish.seconds))
            say("all is healed; the clients see their last documents through")
            office.closed.set()
            waiting = await _unanswered(clients)
            rest = await settle(fleet, services.management_url)
            letters = await _redrive(fleet, services, office, say)
            last = await settle(fleet, services.management_url)
            await gauges.look()
            jobs, counted = await tally.jobs_of(system.database), await tally.row_counts(system.database)
            evidence = Evidence(office, jobs, letters, (rest, last), counted, waiting)
            return await _report(wish, evidence, fleet, harm, gauges)


async def _ready(fleet: Fleet) -> bool:
    assert await fleet.missing() == []
    return True


@asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run something while the block runs; if it fails, that is told at the end."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _tell(say: Say, system: System, office: Office, harm: Harm) -> None:
    """Say how it goes, now and then."""
    began = time.monotonic()
    while True:
        await asyncio.sleep(PROGRESS_SECONDS)
        (counted,) = await found(system.database, _PROGRESS)
        minutes, seconds = divmod(int(time.monotonic() - began), 60)
        hurt = ", ".join(f"{fault.deed} {fault.victim}" for fault in harm.going_on)
        say(
            f"{minutes:3}:{seconds:02} submitted {len(office.tickets)}, accepted {counted['jobs']},"
            f" finished {counted['finished']}, faults {harm.done.total()}{f' ({hurt})' if hurt else ''}"
        )


async def _unanswered(clients: "asyncio.Task[None]") -> int:
    """Wait for the clients; return 1 when one of them waits in vain."""
    done, _ = await asyncio.wait([clients], timeout=LONGEST_SECONDS)
    if done:
        await clients
        return 0
    clients.cancel()
    return 1


async def _redrive(fleet: Fleet, services: Services, office: Office, say: Say) -> Letters:
    """See that every dead letter is one that had to be; mend the store; bring all back with the operator's tool."""
    system = fleet.system
    letters = await tally.open_letters(system.database)
    shown = await tally.letters_shown(services.management_url, system.environment["DOCSTAGE_AMQP_URL"])
    by_job = {str(letter["job_id"]): letter for letter in letters}
    judged = judge(office.tickets, await tally.jobs_of(system.database), by_job)
    fleet.gate.open()
    if not letters:
        return Letters(letters, shown, judged, 0)
    say(f"{len(letters)} dead letters are redriven")
    tool = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dlq_tools", "redrive", "--all", "--json", "--by", "soak"),
        *("--reason", "the store is mended", "--canary", "2", "--rate", "20", "--patience", "2m"),
        cwd=ROOT,
        env={**system.environment, "PATH": "/usr/bin:/bin"},
        stdout=asyncio.subprocess.PIPE,
    )
    told, _ = await tool.communicate()
    return Letters(letters, shown, judged, int(json.loads(told).get("redriven", 0)))


async def _report(wish: Wish, evidence: Evidence, fleet: Fleet, harm: Harm, gauges: Gauges) -> Report:
    """Put everything together."""
    office, database, jobs = evidence.office, fleet.system.database, evidence.jobs
    still = {str(letter["job_id"]): letter for letter in await tally.open_letters(database)}
    judged = judge(office.tickets, jobs, still)
    async with fleet.system.client() as http:
        mixed = await tally.wrong_results(http, completed(office, jobs))
    notes = {
        "endings that are wrong": [*evidence.letters.judged.wrong, *judged.wrong],
        "results that are not the document's": mixed,
        "objections of the oracle": await tally.objections(database, sorted(jobs), POLICY),
        "answers that no client should get": office.surprises,
        "processes that ended by themselves": fleet.ends,
        "processes that are not ready": evidence.rests[-1].look.missing,
    }
    return Report(
        seed=wish.seed,
        seconds=wish.seconds,
        clients=wish.clients,
        schedule=[str(fault) for fault in plan(wish.seed, wish.seconds)],
        faults=dict(sorted(harm.done.items())),
        numbers=[*numbers(evidence), *(Number(about, len(lines), 0) for about, lines in notes.items())],
        counted={
            "documents by their end": judged.endings,
            "answers to clients": dict(office.answers.most_common()),
            "claims by their end": await tally.attempts(database),
            "told by the processes": dict(sorted(gauges.totals.items())),
            "given up by the faults, then redriven": dict(Counter(evidence.letters.judged.given_up)),
        },
        settled_after_seconds=[rest.seconds for rest in evidence.rests],
        notes=notes,
        stuck=[stuck for rest in evidence.rests for stuck in rest.stuck],
    )
