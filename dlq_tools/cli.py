"""``docstage-dlq``: the commands."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Final

from dlq_tools import report
from dlq_tools.arguments import letter_filter, parse
from dlq_tools.redrive import BulkRedrive, Ending, Plan
from schema.db import dead_letters, job_records
from schema.db.dead_letters import Letter, LetterFilter, LetterState, Place, grouped
from schema.db.engine import Database, is_unavailable
from schema.db.wake import Waker
from schema.runtime import failpoints, logs
from schema.runtime.broker import BrokerSession, BrokerUnavailableError, MismatchError
from schema.runtime.clock import SystemClock
from schema.runtime.reconcile import reconcile
from schema.runtime.settings import ToolSettings
from schema.runtime.topology import declare_topology

OK: Final = 0
NOTHING: Final = 1
STOPPED: Final = 3
UNAVAILABLE: Final = 4
INTERRUPTED: Final = 130
PAGE: Final = 500
SHOWN: Final = 500
_STATUSES: Final = {Ending.DONE: OK, Ending.INTERRUPTED: INTERRUPTED}


class Tool:
    """The commands on one database and broker; each returns the exit status."""

    def __init__(self, settings: ToolSettings, database: Database, waker: Waker) -> None:
        """Keep the ports."""
        self._settings = settings
        self._database = database
        self._waker = waker

    def commands(self) -> Mapping[str, Callable[[argparse.Namespace], Awaitable[int]]]:
        """Return the commands by name."""
        return {
            "list": self.list,
            "show": self.show,
            "redrive": self.redrive,
            "discard": self.discard,
            "export": self.export,
            "stats": self.stats,
            "reconcile": self.reconcile,
            "topology": self.topology,
        }

    async def list(self, arguments: argparse.Namespace) -> int:
        """Show groups of open letters, or the letters that a filter means."""
        wanted = letter_filter(arguments)
        if arguments.letters or wanted != LetterFilter():
            letters = await self._letters(wanted, arguments.limit)
            async with self._database.transaction() as conn:
                matching = await dead_letters.count(conn, wanted)
            report.show_letters(letters, of=matching, as_lines=arguments.json)
            return OK
        async with self._database.transaction() as conn:
            groups = await dead_letters.list_groups(conn)
        report.show_groups(groups, as_lines=arguments.json)
        return OK

    async def show(self, arguments: argparse.Namespace) -> int:
        """Show one letter, and what its job went through."""
        async with self._database.transaction() as conn:
            letter = await dead_letters.find(conn, arguments.id)
            if letter is None:
                report.say("no letter and no job with letters has this id")
                return NOTHING
            job_id = letter.job_id
            attempts = await job_records.attempts(conn, job_id=job_id, bound=SHOWN) if job_id else []
            events = await job_records.events(conn, job_id=job_id, after=0, bound=SHOWN) if job_id else []
        told = asdict(letter)
        tried, happened = [asdict(attempt) for attempt in attempts], [asdict(event) for event in events]
        if arguments.json:
            report.emit({"letter": told, "attempts": tried, "events": happened})
            return OK
        report.show_records("Letter", [{"name": name, "value": value} for name, value in told.items()])
        report.show_records("Attempts", tried)
        report.show_records("Events", happened)
        return OK

    async def redrive(self, arguments: argparse.Namespace) -> int:
        """Bring letters back, carefully."""
        letters = await self._letters(letter_filter(arguments), arguments.limit)
        plan = Plan(
            by=arguments.by,
            reason=arguments.reason,
            rate=arguments.rate,
            canary=arguments.canary,
            stop_at=arguments.stop_at,
            patience=arguments.patience,
            wait=arguments.wait,
        )
        if letters:
            report.say_plan(plan, len(letters))
        if arguments.dry_run or not letters:
            return self._rehearse(letters, arguments)
        clock = SystemClock()
        bulk = BulkRedrive(
            database=self._database,
            clock=clock,
            plan=plan,
            redriven=self._waker.wake,
            told=report.Ticker(clock, of=len(letters)),
        )
        with _interrupting(bulk):
            ending = await bulk.run(letters)
        if arguments.json:
            report.emit(bulk.progress.told(ending, of=len(letters)))
        else:
            report.say_redrive(ending, bulk.progress, of=len(letters))
        await self._tidy()
        return _STATUSES.get(ending, STOPPED)

    async def discard(self, arguments: argparse.Namespace) -> int:
        """Close letters for good."""
        letters = await self._letters(letter_filter(arguments), arguments.limit)
        if arguments.dry_run or not letters:
            return self._rehearse(letters, arguments)
        closed = 0
        for start in range(0, len(letters), PAGE):
            ids = [letter.id for letter in letters[start : start + PAGE]]
            async with self._database.transaction() as conn:
                closed += len(
                    await dead_letters.close(
                        conn, ids=ids, state=LetterState.DISCARDED, by=arguments.by, note=arguments.reason
                    )
                )
        self._tell("Discard", {"discarded": closed}, arguments)
        await self._tidy()
        return OK

    async def export(self, arguments: argparse.Namespace) -> int:
        """Write letters as JSON lines."""
        for letter in await self._letters(letter_filter(arguments), arguments.limit):
            report.emit(asdict(letter))
        return OK

    async def stats(self, arguments: argparse.Namespace) -> int:
        """Count all letters by state, and open ones by group."""
        async with self._database.transaction() as conn:
            states = await dead_letters.count_by_state(conn)
            groups = await dead_letters.list_groups(conn)
        if arguments.json:
            counted = {state.value: count for state, count in states.items()}
            report.emit({"states": counted, "open": [asdict(group) for group in groups]})
            return OK
        report.show_records("Letters", [{"state": state.value, "letters": count} for state, count in states.items()])
        report.show_groups(groups, as_lines=False)
        return OK

    async def reconcile(self, arguments: argparse.Namespace) -> int:
        """Make the queue say what the rows say."""
        done = await reconcile(self._settings, self._database)
        self._waker.wake()
        self._tell("Reconcile", asdict(done), arguments)
        return OK

    async def topology(self, arguments: argparse.Namespace) -> int:
        """Declare exchanges, queues and bindings."""
        async with await BrokerSession.open(self._settings, "docstage-dlq") as session:
            declared = await declare_topology(session)
        self._tell("Topology", {"declared": declared}, arguments)
        return OK

    async def _letters(self, wanted: LetterFilter, limit: int | None) -> Sequence[Letter]:
        """Read the letters, page by page, before anything is done: what fails again must not come round."""
        letters: list[Letter] = []
        after: Place | None = None
        while limit is None or len(letters) < limit:
            size = PAGE if limit is None else min(PAGE, limit - len(letters))
            async with self._database.transaction() as conn:
                page = await dead_letters.list_letters(conn, wanted, after=after, limit=size)
            letters += page
            if len(page) < PAGE:
                break
            after = Place(page[-1].created_at, page[-1].id)
        return letters

    def _rehearse(self, letters: Sequence[Letter], arguments: argparse.Namespace) -> int:
        """Show what would be done."""
        if arguments.json or not letters:
            report.show_letters(letters, of=len(letters), as_lines=arguments.json)
            return OK if letters else NOTHING
        report.show_groups(grouped(letters), as_lines=False)
        report.say(f"{len(letters)} letters; nothing was changed")
        return OK

    def _tell(self, title: str, told: Mapping[str, object], arguments: argparse.Namespace) -> None:
        if arguments.json:
            report.emit(told)
        else:
            report.show_records(title, [told])

    async def _tidy(self) -> None:
        """Drop the messages whose letters were closed; without a broker the sweeper does it later."""
        try:
            await reconcile(self._settings, self._database)
        except BrokerUnavailableError:
            report.tell("the broker does not answer; the queue is put right later")


@contextmanager
def _interrupting(bulk: BulkRedrive) -> Iterator[None]:
    """Let the first signal end a redrive in good order; the second is the usual death."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)

    def usual() -> None:
        for number in numbers:
            loop.remove_signal_handler(number)

    def interrupt() -> None:
        usual()
        bulk.interrupt()

    for number in numbers:
        loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        usual()


async def run(arguments: argparse.Namespace, settings: ToolSettings) -> int:
    """Run one command."""
    url = settings.database_url.get_secret_value()
    database = Database.connect(url, application="docstage-dlq", pool_size=2)
    waker = Waker(database)
    try:
        return await Tool(settings, database, waker).commands()[arguments.command](arguments)
    except BrokerUnavailableError:
        report.say("the broker does not answer")
        return UNAVAILABLE
    except MismatchError as error:
        report.say(f"{error.args[0]} exists with other arguments")
        return UNAVAILABLE
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough; what is still buffered must not fail at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Exception as error:
        if not is_unavailable(error):
            raise
        report.say("the database does not answer")
        return UNAVAILABLE
    finally:
        await waker.close()
        await database.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line and settings; return the exit status."""
    arguments = parse(argv)
    settings = ToolSettings.load()
    failpoints.arm(settings.failpoints)
    logs.configure("dlq", "ERROR")
    try:
        return asyncio.run(run(arguments, settings))
    except KeyboardInterrupt:
        return INTERRUPTED
