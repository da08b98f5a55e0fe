"""Submitting files and following their jobs, several at once, each with a bar of its own."""

import asyncio
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from intake.client.api import LONG_POLL_SECONDS, ApiClient, ApiError, Json

FINISHED: Final = frozenset({"completed", "failed", "cancelled"})


@dataclass(slots=True)
class Done:
    """What became of one file: its job as far as there is one, its result, or why there is none."""

    path: Path
    job: Json | None = None
    result: Json | None = None
    error: str | None = None
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Whether nothing went wrong as far as it was followed."""
        return self.error is None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of every file, and how."""

    fields: Mapping[str, str]
    wait: bool
    concurrency: int


def progress_bars(console: Console) -> Progress:
    """Return the display: file, bar, pages, status, time."""
    return Progress(
        TextColumn("{task.fields[file]}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[pages]}"),
        TextColumn("[bold]{task.fields[status]}"),
        TimeElapsedColumn(),
        console=console,
    )


async def run(client: ApiClient, paths: Sequence[Path], wanted: Wanted, progress: Progress) -> list[Done]:
    """Submit every file; with ``wanted.wait`` follow each to its end. One file's failure is its own."""
    places = asyncio.Semaphore(wanted.concurrency)

    async def one(path: Path) -> Done:
        task = progress.add_task("", total=None, start=False, file=path.name, pages="", status="waiting")
        async with places:
            progress.start_task(task)
            done = await _one(client, path, wanted, _Bar(progress, task))
        progress.update(task, total=1, completed=1, status=_word(done))
        progress.stop_task(task)
        return done

    return list(await asyncio.gather(*(one(path) for path in paths)))


@dataclass(frozen=True, slots=True)
class _Bar:
    """One file's line of the display."""

    progress: Progress
    task: TaskID

    def show(self, job: Json) -> None:
        """Show how far a job is."""
        done, total = job["progress"]["pages_done"], job["progress"]["pages_total"]
        pages = f"{done}/{total} pages" if total else ""
        status = job["status"] if job["status"] != "running" else job["stage"]
        self.progress.update(self.task, completed=done, total=total or None, pages=pages, status=status)


async def _one(client: ApiClient, path: Path, wanted: Wanted, bar: _Bar) -> Done:
    """See one file through."""
    done, began = Done(path), time.monotonic()
    try:
        done.job = await client.submit(path, wanted.fields, idempotency_key=uuid.uuid4().hex)
        bar.show(done.job)
        if wanted.wait:
            await _follow(client, done, bar)
    except ApiError as error:
        done.error = str(error)
    except OSError as error:
        done.error = f"The file cannot be read: {error.strerror}"
    done.seconds = time.monotonic() - began
    return done


async def _follow(client: ApiClient, done: Done, bar: _Bar) -> None:
    """Follow a job to its end and fetch its result."""
    job, etag = done.job or {}, None
    while job["status"] not in FINISHED:
        changed, etag = await client.job(job["id"], etag=etag, wait=LONG_POLL_SECONDS)
        job = changed or job
        bar.show(job)
    done.job = job
    if job["status"] == "completed":
        done.result = json.loads(await client.result(job["id"], with_text=True))
    elif job["error"]:
        done.error = f"{job['error']['detail']} ({job['error']['code']})"
    else:
        done.error = "The job was cancelled."


def _word(done: Done) -> str:
    """Return the last word on a file."""
    if not done.good:
        return "[red]failed"
    return f"[green]{done.job['status']}" if done.job else ""
