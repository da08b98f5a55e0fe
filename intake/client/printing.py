"""What people read at the end: a few lines per document, by what was asked of it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from intake.client.api import Json
from intake.client.submissions import Done

EXCERPT_CHARACTERS: Final = 400
SECTIONS: Final = frozenset({"invoice", "contract"})


def print_done(console: Console, done: Done) -> None:
    """Print what became of one file."""
    name = escape(done.path.name)
    identity = f" [dim]{done.job['id']}[/dim]" if done.job else ""
    if not done.good:
        console.print(f"[red]✗[/red] {name}{identity}  {escape(done.error or '')}")
        return
    if done.result is None:
        console.print(f"[green]✓[/green] {name}{identity}  {done.job['status'] if done.job else ''}")
        return
    console.print(f"[green]✓[/green] {name}{identity}  {done.seconds:.1f} s, {_pages(done.result)}")
    for warning in done.result["warnings"]:
        pages = ", ".join(str(page) for page in warning["pages"])
        console.print(f"  [yellow]![/yellow] {escape(warning['code'])}{f' on page {pages}' if pages else ''}")
    console.print(Padding(summary(done.result), (0, 0, 1, 2)))


def print_job(console: Console, job: Json) -> None:
    """Print how a job is doing."""
    table = Table.grid(padding=(0, 2))
    for name in ("id", "kind", "status", "stage", "series", "attempt", "next_attempt_at", "client_tag"):
        if job[name] is not None:
            table.add_row(f"[dim]{name}[/dim]", escape(str(job[name])))
    done, total = job["progress"]["pages_done"], job["progress"]["pages_total"]
    if total:
        table.add_row("[dim]pages[/dim]", f"{done} of {total}")
    if job["error"]:
        table.add_row("[dim]error[/dim]", f"[red]{escape(job['error']['detail'])}[/red] ({job['error']['code']})")
    for name in ("created_at", "finished_at", "deadline_at", "expires_at"):
        if job[name] is not None:
            table.add_row(f"[dim]{name}[/dim]", job[name])
    console.print(table)


def summary(result: Json) -> RenderableType:
    """Return what matters most of a result."""
    kind = result["kind"]
    if kind in SECTIONS:
        return _fields(result[kind])
    text = result["summary"]["text"] if kind == "summary" else result.get("text", "")
    words = " ".join(text.split())
    return escape(words if len(words) <= EXCERPT_CHARACTERS else words[:EXCERPT_CHARACTERS] + " …")


def _pages(result: Json) -> str:
    pages = result["pages"]
    read = sum(page["source"] == "ocr" for page in pages)
    recognized = f", {read} by text recognition" if read else ""
    return f"{len(pages)} page{'s' if len(pages) != 1 else ''}{recognized}"


def _fields(section: Mapping[str, Any]) -> Table:
    """List the fields that were found, with how sure and on which page."""
    table = Table.grid(padding=(0, 2))
    for name, value, confidence, page in _rows(section):
        sure = f"{confidence:.0%}" if confidence is not None else ""
        place = f"p. {page}" if page else ""
        table.add_row(f"[dim]{name}[/dim]", escape(value), f"[dim]{sure}[/dim]", f"[dim]{place}[/dim]")
    return table


def _rows(section: Mapping[str, Any]) -> Iterator[tuple[str, str, float | None, int | None]]:
    """Yield name, value, confidence and page of whatever is known."""
    for name, found in section.items():
        for item in found if isinstance(found, list) else [found]:
            if item and "value" in item:
                yield name, item["value"], item["confidence"], item["page"]
            elif item:
                yield name, "  ".join(str(value) for value in item.values() if value is not None), None, None
