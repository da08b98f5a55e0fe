"""What the tool prints: tables for people, JSON for programs."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final
from uuid import UUID

from dlq_tools.redrive import Ending, Plan, Progress
from schema.db.dead_letters import Group, Letter
from schema.db.redrives import RedriveAnswer
from schema.runtime.clock import Clock

NONE: Final = "-"
TICK_SECONDS: Final = 10.0

_ENDINGS: Final = {
    Ending.DONE: "Done.",
    Ending.FAILED_AGAIN: "Stopped: too many of them failed again.",
    Ending.CANARY_UNDECIDED: "Stopped: it was not known in time what became of the first ones.",
    Ending.UNDECIDED: "All were brought back; it was not known in time what became of each.",
    Ending.INTERRUPTED: "Interrupted; the same command goes on with what is left.",
}
_REFUSALS: Final = {
    RedriveAnswer.CLOSED: "somebody has closed the letter meanwhile",
    RedriveAnswer.NO_JOB: "the message belongs to no job",
    RedriveAnswer.GONE: "the document was deleted",
    RedriveAnswer.NOT_FAILED: "the job has ended otherwise",
}


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
    if not groups:
        say("no open letters")
        return
    show_records(
        "Open dead letters",
        [
            {
                "stage": group.stage,
                "code": group.code,
                "reason": group.reason,
                "letters": group.letters,
                "oldest": group.oldest_at,
                "newest": group.newest_at,
            }
            for group in groups
        ],
    )


def show_letters(letters: Sequence[Letter], *, of: int, as_lines: bool) -> None:
    """Print letters one by one, and whether they are all ``of`` those that match."""
    if as_lines:
        emit([asdict(letter) for letter in letters])
        return
    if not letters:
        say("no letter matches")
        return
    show_records(
        "Dead letters",
        [
            {
                "id": letter.id,
                "job": letter.job_id,
                "stage": letter.stage,
                "code": letter.code,
                "series": letter.series,
                "attempts": letter.attempts,
                "state": letter.state.value,
                "since": letter.created_at,
            }
            for letter in letters
        ],
    )
    if of > len(letters):
        say(f"the oldest {len(letters)} of {of} letters; --limit shows more")


def show_records(title: str, records: Sequence[Mapping[str, Any]]) -> None:
    """Print records as a table whose columns are their keys.

    As wide as it must be, whatever the screen: that folds a line by itself, and ids survive being copied.
    """
    if not records:
        return
    lines = [list(records[0]), *([_cell(value) for value in record.values()] for record in records)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    say(f"{title}\n")
    for line in lines:
        say("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    say("")


def say_plan(plan: Plan, letters: int) -> None:
    """Say how a bulk redrive will go."""
    ahead = plan.canary if plan.canary < letters else 0
    takes = timedelta(seconds=round((letters - ahead) / plan.rate))
    first = f"{ahead} first, and once these have passed the other " if ahead else ""
    tell(f"{letters} letters: {first}{letters - ahead} at {plan.rate:g} per second, which takes {takes}")


class Ticker:
    """Says from time to time how far a bulk redrive is."""

    def __init__(self, clock: Clock, *, of: int) -> None:
        """Count ``of`` so many letters."""
        self._clock = clock
        self._of = of
        self._due = clock.monotonic() + TICK_SECONDS

    def __call__(self, progress: Progress) -> None:
        """Say it, if nothing was said for a while."""
        if self._clock.monotonic() >= self._due:
            self._due = self._clock.monotonic() + TICK_SECONDS
            tell(f"{progress.redriven} of {self._of} brought back; {_known(progress)}")


def say_redrive(ending: Ending, progress: Progress, *, of: int) -> None:
    """Say what a bulk redrive did with ``of`` letters, and why it ended."""
    say(f"{progress.redriven} of {of} letters brought back")
    for answer, count in progress.refused.items():
        say(f"{count} not brought back: {_REFUSALS[answer]}")
    if left := of - sum(progress.answers.values()):
        say(f"{left} left as they were")
    if progress.redriven:
        say(f"so far {_known(progress)}")
    say(_ENDINGS[ending])


def say(text: str) -> None:
    """Print one line for a person."""
    sys.stdout.write(f"{text}\n")


def tell(text: str) -> None:
    """Print one line that is no part of the answer."""
    sys.stderr.write(f"{text}\n")


def _known(progress: Progress) -> str:
    return f"{progress.passed} passed, {progress.failed} failed again, {len(progress.watched)} are under way"


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _cell(value: Any) -> str:  # noqa: ANN401 - a database value
    if value is None:
        return NONE
    if isinstance(value, datetime):
        return _time(value)
    return as_json(value) if isinstance(value, Mapping | list) else str(value)


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
