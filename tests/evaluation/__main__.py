"""``make eval``: send a corpus through a running system, and say how much of it comes out right.

The system is the one that ``DOCSTAGE_URL`` and ``DOCSTAGE_API_KEY`` name, in the environment or in
``.local/docstage.env``.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from intake.client.api import ApiClient
from tests.evaluation import exposition, report
from tests.evaluation.cases import Case, cases
from tests.evaluation.comparison import compare
from tests.evaluation.manifest import load
from tests.evaluation.running import Record, Runner

WIDTH: Final = 132
ENV_FILE: Final = Path(".local/docstage.env")


def environment(file: Path) -> dict[str, str]:
    """Return the environment, and what the launcher wrote down where that says nothing."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    pairs = (line.removeprefix("export ").split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return {name.strip(): value.strip().strip("'\"") for name, value in pairs} | dict(os.environ)  # noqa: TID251 - a tool for people, outside of every process


def metrics_urls(settings: Mapping[str, str]) -> list[str]:
    """Return where the processes of the system tell their metrics."""
    return [value for name, value in settings.items() if name.startswith(exposition.URL_PREFIX)]


async def run(settings: Mapping[str, str], chosen: Sequence[Case], options: argparse.Namespace) -> list[Record]:
    """Send all cases, with a progress bar."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    url, key = settings["DOCSTAGE_URL"], settings["DOCSTAGE_API_KEY"]
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("documents", total=len(chosen))
        async with ApiClient.connect(url, key, connections=options.jobs * 2) as client:
            fields = dict(pair.split("=", 1) for pair in options.field)
            runner = Runner(client, fields, options.limit, lambda: exposition.read(metrics_urls(settings)))
            return await runner.all(chosen, options.jobs, lambda: progress.advance(bar))


def evaluate(options: argparse.Namespace, console: Console) -> int:
    """Run, print, write and compare; return the exit status."""
    settings = environment(ENV_FILE)
    if missing := [name for name in ("DOCSTAGE_URL", "DOCSTAGE_API_KEY") if not settings.get(name)]:
        console.print(f"{' and '.join(missing)} not set and not in {ENV_FILE}: is the system running (make run)?")
        return 2
    earlier = json.loads(options.compare.read_text(encoding="utf-8")) if options.compare else None
    urls = metrics_urls(settings)
    with tempfile.TemporaryDirectory() as folder:
        chosen = [case for case in cases(load(options.corpus), Path(folder)) if _is_wanted(case, options.only)]
        before, began = exposition.read(urls), time.monotonic()
        records = asyncio.run(run(settings, chosen, options))
        seconds = time.monotonic() - began
    metrics = exposition.changes(before, exposition.read(urls))
    report.show(console, records, seconds, metrics)
    if earlier is not None:
        console.print(report.change_table(compare(earlier["records"], records), str(options.compare)))
    if options.out:
        options.out.write_text(json.dumps(_document(records, seconds, metrics), indent=1, ensure_ascii=False))
    return 0 if all(record.fits for record in records) else 1


def _is_wanted(case: Case, only: str) -> bool:
    return case.key.startswith(only) or case.group.startswith(only)


def _document(records: Sequence[Record], seconds: float, metrics: Mapping[str, float]) -> dict[str, Any]:
    return {
        "version": 1,
        "seconds": round(seconds, 1),
        "metrics": dict(metrics),
        "records": [asdict(record) for record in records],
    }


def main() -> None:
    """Read the command line; status 1 when a document did not end as it may."""
    parser = argparse.ArgumentParser(prog="python -m tests.evaluation", description=__doc__)
    parser.add_argument("corpus", type=Path, help="folder with a manifest.jsonl, or such a file")
    parser.add_argument("--out", type=Path, help="write everything here as JSON")
    parser.add_argument("--compare", type=Path, help="what an earlier run wrote")
    parser.add_argument("--only", default="", help="only documents whose id or group begins so")
    parser.add_argument("--jobs", type=int, default=4, help="documents at once (4)")
    parser.add_argument("--limit", type=float, default=1800, help="seconds after which a document is given up (1800)")
    parser.add_argument("--field", action="append", default=[], metavar="NAME=VALUE", help="send this with each")
    console = Console()
    # Where nobody looks, as in a log, tables need not fit a window.
    raise SystemExit(evaluate(parser.parse_args(), console if console.is_terminal else Console(width=WIDTH)))


if __name__ == "__main__":
    main()
