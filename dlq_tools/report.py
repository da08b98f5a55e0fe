"""What the tool prints: tables for people, JSON for programs."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final
from uuid import UUID

from rich import box
from rich.console import Console
from rich.table import Table

from dlq_tools.redrive import Ending, Progress
from schema.db.dead_letters import Group, Letter
from schema.db.redrives import RedriveAnswer

NONE: Final = "-"
# Wide enough that nothing is folded where nobody looks at a screen; ids have to survive being copied.
PIPE_WIDTH: Final = 240

_ENDINGS: Final = {
    Ending.DONE: "Done.",
    Ending.FAILED_AGAIN: "Stopped: too many of them failed again.",
    Ending.CANARY_UNDECIDED: "Stopped: it was not known in time what became of the first ones.",
    Ending.UNDECIDED: "All were brought back; it was not known in time what became of each.",
}
_REFUSALS: Final = {
    RedriveAnswer.CLOSED: "somebody has closed the letter meanwhile",
    RedriveAnswer.NO_JOB: "the message belongs to no job",
    RedriveAnswer.GONE: "the document was deleted",
    RedriveAnswer.NOT_FAILED: "the job has ended otherwise",
}

console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)


def as_json(value: Any) -> str:  # noqa: ANN401 - anything with ids and times in it
    """Write a value as JSON with ids and times as strings."""
    return json.dumps(value, default=_plain, ensure_ascii=False)


def emit(value: Any) -> None:  # noqa: ANN401 - as above
    """Print one line of JSON, without the console's wrapping."""
    sys.stdout.write(as_json(value) + "\n")


def show_groups(groups: Sequence[Group], *, as_lines: bool) -> None:
    """Print open letters by stage, code and reason."""
    if as_lines:
        emit([asdict(group) for group in groups])
        return
    table = _table("Open dead letters", "stage", "code", "reason", "letters", "oldest", "newest")
    for group in groups:
        table.add_row(
            group.stage or NONE,
            group.code,
            group.reason,
            str(group.letters),
            _time(group.oldest_at),
            _time(group.newest_at),
        )
    console.print(table)


def show_letters(letters: Iterable[Letter], *, as_lines: bool) -> None:
    """Print letters one by one."""
    if as_lines:
        emit([asdict(letter) for letter in letters])
        return
    table = _table("Dead letters", "id", "stage", "code", "series", "attempts", "state", "since")
    for letter in letters:
        table.add_row(
            str(letter.id),
            letter.stage or NONE,
            letter.code,
            str(letter.series),
            str(letter.attempts),
            letter.state.value,
            _time(letter.created_at),
        )
    console.print(table)


def show_records(title: str, records: Sequence[Mapping[str, Any]]) -> None:
    """Print records as a table whose columns are their keys."""
    if not records:
        return
    table = _table(title, *records[0])
    for record in records:
        table.add_row(*(_cell(value) for value in record.values()))
    console.print(table)


def say_redrive(ending: Ending, progress: Progress, *, of: int) -> None:
    """Say what a bulk redrive did with ``of`` letters, and why it ended."""
    say(f"{progress.redriven} of {of} letters brought back")
    for answer, count in progress.refused.items():
        say(f"{count} not brought back: {_REFUSALS[answer]}")
    if left := of - sum(progress.answers.values()):
        say(f"{left} left as they were")
    if progress.redriven:
        say(f"so far {progress.passed} passed, {progress.failed} failed again, {len(progress.watched)} are under way")
    say(_ENDINGS[ending])


def say(text: str) -> None:
    """Print one line for a person; a terminal's markup in it has no effect."""
    console.print(text, markup=False, highlight=False)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column == "id")
    return table


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def _cell(value: Any) -> str:  # noqa: ANN401 - a database value
    if value is None:
        return NONE
    if isinstance(value, datetime):
        return _time(value)
    return as_json(value) if isinstance(value, Mapping) else str(value)


def _plain(value: object) -> object:
    """Turn what JSON has no form for into a string."""
    match value:
        case datetime():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case UUID():
            return str(value)
        case Enum():
            return value.value
        case _:
            raise TypeError
