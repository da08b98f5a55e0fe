"""``docstage-dlq``: the commands."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Final

from dlq_tools import report
from dlq_tools.arguments import letter_filter, parse
from dlq_tools.redrive import BulkRedrive, Ending, Plan
from schema.db import dead_letters, job_records
from schema.db.dead_letters import Letter, LetterFilter, LetterState, Place
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
PAGE: Final = 500
SHOWN: Final = 500


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
            report.show_letters(await self._letters(wanted, arguments.limit), as_lines=arguments.json)
            return OK
        async with self._database.transaction() as conn:
            groups = await dead_letters.list_groups(conn)
        report.show_groups(groups, as_lines=arguments.json)
        return OK

    async def show(self, arguments: argparse.Namespace) -> int:
        """Show one letter, and what its job went through."""
        async with self._database.transaction() as conn:
            letter = await dead_letters.find(conn, arguments.letter)
            if letter is None:
                report.say("no such letter")
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
        if arguments.dry_run or not letters:
            return self._rehearse(letters, arguments)
        plan = Plan(
            by=arguments.by,
            reason=arguments.reason,
            rate=arguments.rate,
            canary=arguments.canary,
            stop_at=arguments.stop_at,
            patience=arguments.patience,
            wait=arguments.wait,
        )
        bulk = BulkRedrive(database=self._database, clock=SystemClock(), plan=plan, redriven=self._waker.wake)
        ending = await bulk.run(letters)
        if arguments.json:
            report.emit(bulk.progress.told(ending, of=len(letters)))
        else:
            report.say_redrive(ending, bulk.progress, of=len(letters))
        await self._tidy()
        return OK if ending is Ending.DONE else STOPPED

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

    async def _letters(self, wanted: LetterFilter, limit: int) -> Sequence[Letter]:
        """Read up to ``limit`` letters, page by page, before anything is done: what fails again must not come round."""
        letters: list[Letter] = []
        after: Place | None = None
        while len(letters) < limit:
            async with self._database.transaction() as conn:
                page = await dead_letters.list_letters(conn, wanted, after=after, limit=min(PAGE, limit - len(letters)))
            letters += page
            if len(page) < PAGE:
                break
            after = Place(page[-1].created_at, page[-1].id)
        return letters

    def _rehearse(self, letters: Sequence[Letter], arguments: argparse.Namespace) -> int:
        """Say what would be done."""
        if not letters:
            report.say("no letter matches")
            return NOTHING
        report.show_letters(letters, as_lines=arguments.json)
        if not arguments.json:
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
            report.console.print("the broker does not answer; the queue is put right later", style="yellow")


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
    except Exception as error:
        # A reader that went away, such as `head`, is an OSError too.
        if isinstance(error, BrokenPipeError) or not is_unavailable(error):
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
    return asyncio.run(run(arguments, settings))
