"""What a soak found, as numbers that have to be what they should be, and as tables for people."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

LINES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Number:
    """One number: what it was, and what it had to be."""

    name: str
    got: int
    wanted: int

    @property
    def right(self) -> bool:
        """Say whether it was that."""
        return self.got == self.wanted


@dataclass(frozen=True, slots=True)
class Report:
    """Everything about one soak; ``notes`` are lists of what was wrong, by what it is about."""

    seed: int
    seconds: float
    clients: int
    schedule: Sequence[str]
    faults: Mapping[str, int]
    numbers: Sequence[Number]
    counted: Mapping[str, Mapping[str, int]]
    settled_after_seconds: Sequence[float]
    notes: Mapping[str, Sequence[str]]
    stuck: Sequence[Mapping[str, Any]]

    @property
    def right(self) -> bool:
        """Say whether every number is what it had to be."""
        return all(number.right for number in self.numbers)


def show(report: Report, console: Console) -> None:
    """Print a report."""
    console.print(Table("schedule", title=f"seed {report.seed}", box=None, expand=False))
    for line in report.schedule:
        console.print(line, highlight=False)
    for name, counted in {"faults": report.faults, **report.counted}.items():
        table = Table(name, "times")
        for what, times in counted.items():
            table.add_row(what, str(times))
        console.print(table)
    console.print(_number_table(report.numbers))
    for about, lines in report.notes.items():
        for line in lines[:LINES_SHOWN]:
            console.print(f"{about}: {line}", style="red", highlight=False)
    if report.stuck:
        console.print_json(json.dumps(report.stuck, default=str))
    waited = " and ".join(f"{seconds:.0f} s" for seconds in report.settled_after_seconds)
    console.print(
        f"seed {report.seed}, {report.seconds:.0f} s, {report.clients} clients; quiet after {waited}: "
        f"{'every number is right' if report.right else 'NOT RIGHT'}",
        style="green" if report.right else "bold red",
    )


def _number_table(numbers: Sequence[Number]) -> Table:
    table = Table("number", "is", "has to be", "")
    for number in numbers:
        table.add_row(number.name, str(number.got), str(number.wanted), "" if number.right else "WRONG")
    return table


def write(report: Report, file: Path) -> None:
    """Write a report as JSON."""
    file.write_text(json.dumps({**asdict(report), "right": report.right}, default=str, indent=1), encoding="utf-8")
