"""A run's figures as tables for people."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tests.evaluation.comparison import Change
from tests.evaluation.exposition import PEAK
from tests.evaluation.fields import Verdict
from tests.evaluation.figures import by_field, by_kind
from tests.evaluation.manifest import Part
from tests.evaluation.running import HOSTILE, Record

MIB: Final = 1 << 20


def show(console: Console, records: Sequence[Record], seconds: float, metrics: Mapping[str, float]) -> None:
    """Print everything about a run."""
    console.print(outcome_table(records), *misfit_lines(records), sep="\n")
    console.print(kind_table(records), field_table(records))
    if hostile := [record for record in records if record.kind == HOSTILE]:
        console.print(hostile_table(hostile))
    pages = sum(record.pages for record in records)
    console.print(f"{len(records)} documents, {pages} pages in {seconds:.0f} s: {pages / seconds:.2f} pages/s")
    console.print(*_system_lines(records, metrics), sep="\n")


def outcome_table(records: Sequence[Record]) -> Table:
    """Show for every class that was expected what came, and how many of it may be."""
    fitting = sum(record.fits for record in records)
    table = Table("expected", "documents", "as may be", "got", title=f"Outcomes: {fitting} of {len(records)} as may be")
    for expected in sorted({record.expected for record in records}):
        members = [record for record in records if record.expected == expected]
        got = Counter(record.outcome for record in members)
        table.add_row(
            expected,
            str(len(members)),
            str(sum(record.fits for record in members)),
            ", ".join(f"{outcome} {count}" for outcome, count in got.most_common()),
        )
    return table


def misfit_lines(records: Iterable[Record]) -> list[str]:
    """Name the documents that did not end as they may."""
    return [
        f"[red]{escape(record.id)}[/red]: {record.expected} expected, {record.outcome} got ({record.code or 'result'})"
        for record in records
        if not record.fits
    ]


def kind_table(records: Iterable[Record]) -> Table:
    """Show text and speed by kind of document."""
    table = Table(
        "kind", "documents", "as may be", "word recall", "precision", "char. error", "pages", "s/doc.", "pages/s"
    )  # fmt: skip
    for kind, figures in by_kind(records).items():
        table.add_row(
            kind,
            str(figures.documents),
            str(figures.fitting),
            _share(figures.recall),
            _share(figures.precision),
            _share(figures.character_error),
            str(figures.pages),
            f"{figures.seconds / figures.documents:.2f}",
            _share(figures.pages_per_second),
        )
    return table


def hostile_table(records: Iterable[Record]) -> Table:
    """Show for each hostile document what it came to and what it cost."""
    table = Table(
        "hostile document", "outcome", "code", "attempts", "seconds", "peak memory", title="Hostile documents"
    )
    for record in sorted(records, key=lambda each: each.id):
        peak = "not measured" if record.peak_bytes is None else f"{record.peak_bytes / MIB:.0f} MiB"
        code, attempts = record.code or "", str(record.attempts)
        table.add_row(escape(record.id), record.outcome, code, attempts, f"{record.seconds:.2f}", peak)
    return table


def field_table(records: Sequence[Record]) -> Table:
    """Show how often each field was right, and how often on the documents that no rule was made with."""
    columns = ("group", "field", "documents", "right", "wrong", "missing", "right, open", "right, held out")
    table, held_out, opened = Table(*columns), by_field(records, Part.HELD_OUT), by_field(records, Part.OPEN)
    last = None
    for (group, name), figures in by_field(records).items():
        if last not in {None, group}:
            table.add_section()
        parts = [part.get((group, name)) for part in (opened, held_out)]
        table.add_row(
            group if group != last else "",
            name,
            str(figures.total),
            *(f"{figures.rate(verdict):.2f}" for verdict in Verdict),
            *(f"{part.counts[Verdict.RIGHT]}/{part.total}" if part else "" for part in parts),
        )
        last = group
    return table


def change_table(changes: Sequence[Change], earlier: str) -> Table:
    """Show what has become worse, then what has become better."""
    better = sum(change.is_better for change in changes)
    title = f"Since {earlier}: {better} better, {len(changes) - better} worse"
    table = Table("document", "what", "before", "now", title=escape(title))
    for change in sorted(changes, key=lambda each: each.is_better):
        colour = "green" if change.is_better else "red"
        table.add_row(escape(change.id), change.what, change.before, f"[{colour}]{escape(change.after)}")
    return table


def _system_lines(records: Sequence[Record], metrics: Mapping[str, float]) -> list[str]:
    peaks = {name.partition("/")[2]: value for name, value in metrics.items() if name.startswith(PEAK)}
    memory = ", ".join(f"{lane} {value / MIB:.0f} MiB" for lane, value in sorted(peaks.items()) if value)
    counts = ", ".join(f"{name} +{value:.0f}" for name, value in sorted(metrics.items()) if not name.startswith(PEAK))
    lost = sum(record.workers_lost for record in records)
    return [
        f"peak memory of the parsers since their workers started: {memory or 'not told (no metrics)'}",
        f"workers lost: {lost}; {counts or 'no parser killed'}",
    ]


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
