"""``make long-scan``: read a scan of many pages through the whole system, and see whether memory stays flat.

The pages are small pictures of text, each another one, so that what counts is how many they are.
"""

import argparse
import asyncio
import io
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from alembic import command
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from schema.migrations.__main__ import config
from stages.sandbox.memory import resident_by_group
from tests.conftest import settings_for
from tests.support.services import fresh_bucket, fresh_database, fresh_vhost, running_services
from tests.support.system import System, running_system

MIB = 1 << 20
PARTS = 6
SIDES = (420, 594)
LOOK_SECONDS = 0.5
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Look:
    """Resident bytes of the extracting worker and of its parsers with their tools, when so many pages were done."""

    pages: int
    worker: int
    children: int


def scanned(pages: int) -> bytes:
    """Make the scan; every page says its number."""
    buffer, font = io.BytesIO(), ImageFont.load_default(22)
    canvas = Canvas(buffer, pagesize=SIDES)
    for number in range(1, pages + 1):
        image = Image.new("L", (SIDES[0] * 2, SIDES[1] * 2), "white")
        lines = [
            f"Page {number} of the manual",
            *(f"Paragraph {number}.{line} says what to do." for line in range(1, 6)),
        ]
        ImageDraw.Draw(image).multiline_text((60, 80), "\n".join(lines), fill="black", font=font, spacing=16)
        canvas.drawImage(ImageReader(image), 0, 0, *SIDES)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def look(worker: int, pages: int) -> Look:
    """Measure a worker and the groups of processes that it leads parsers in."""
    own = int(Path(f"/proc/{worker}/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    return Look(pages, own, sum(resident_by_group(set(_children(worker))).values()))


def _children(parent: int) -> Iterator[int]:
    """Yield the processes that ``parent`` started."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            # A process that ends meanwhile is none.
            with suppress(OSError):
                fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                if int(fields[1]) == parent:
                    yield int(entry.name)


async def measure(system: System, pages: int) -> tuple[list[Look], float]:
    """Send the scan, and look until it is read; return the looks and the seconds it took."""
    document = scanned(pages)
    await system.start_apart()
    worker = system.processes["extract"]
    job = await system.submit(document, name="manual.pdf", ocr="fast", deadline_seconds="7200")
    looks, began = [], time.perf_counter()
    with Progress(console=Console(stderr=True)) as progress:
        bar = progress.add_task("pages", total=pages)
        while (status := await system.status(job))["status"] not in {"completed", "failed", "cancelled"}:
            looks.append(look(worker.pid, status["progress"]["pages_done"]))
            progress.update(bar, completed=looks[-1].pages)
            await asyncio.sleep(LOOK_SECONDS)
    if status["status"] != "completed":
        message = f"the job ended as {status['status']}: {status['error']}"
        raise SystemExit(message)
    return looks, time.perf_counter() - began


def show(looks: Sequence[Look], pages: int, seconds: float) -> None:
    """Print mean and peak for each part of the run."""
    table = Table("pages", "worker, mean MiB", "worker, peak MiB", "parsers, mean MiB", "parsers, peak MiB")
    for part in range(PARTS):
        first, last = pages * part // PARTS, pages * (part + 1) // PARTS
        found = [each for each in looks if first < each.pages <= last]
        if found:
            columns = ([each.worker for each in found], [each.children for each in found])
            figures = (f"{value / MIB:.0f}" for column in columns for value in (fmean(column), max(column)))
            table.add_row(f"{first + 1} to {last}", *figures)
    Console().print(table, f"{pages} pages in {seconds:.0f} s: {pages / seconds:.2f} pages/s")


async def run(pages: int) -> None:
    """Start the services and a system, measure, and print."""
    with (
        running_services() as services,
        fresh_database(services) as url,
        fresh_vhost(services) as amqp,
        fresh_bucket(services) as bucket,
        tempfile.TemporaryDirectory() as folder,
    ):
        await asyncio.to_thread(command.upgrade, config(url), "head")
        async with running_system(settings_for(services, url, amqp, bucket), Path(folder)) as system:
            looks, seconds = await measure(system, pages)
    show(looks, pages, seconds)


def main() -> None:
    """Read how many pages."""
    parser = argparse.ArgumentParser(prog="python -m tests.long_scan", description=__doc__)
    parser.add_argument("--pages", type=int, default=600)
    asyncio.run(run(parser.parse_args().pages))


if __name__ == "__main__":
    main()
