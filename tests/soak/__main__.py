"""``make soak``: clients submit while everything that can break is broken; then every job is accounted for.

The seed decides what is done to whom and when, and what the clients submit. Exit status 0 means that every number is
what it has to be.
"""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from rich.console import Console

from schema.migrations.__main__ import config
from tests.conftest import settings_for
from tests.soak import report
from tests.soak.run import Wish, soak
from tests.support.services import Services, fresh_bucket, fresh_database, fresh_vhost, running_services
from tests.support.system import running_system


@contextmanager
def _place(services: Services) -> Iterator[Mapping[str, str]]:
    """Make a migrated database, a vhost and a bucket; return the settings with which to reach them."""
    with fresh_database(services) as url, fresh_vhost(services) as amqp, fresh_bucket(services) as bucket:
        command.upgrade(config(url), "head")
        yield settings_for(services, url, amqp, bucket)


async def _run(wish: Wish, services: Services, environment: Mapping[str, str], folder: Path) -> report.Report:
    console = Console(stderr=True)
    async with running_system(environment, folder) as system:
        return await soak(wish, services, system, lambda line: console.print(line, highlight=False))


def main() -> int:
    """Run a soak and print its report; the logs stay when a number is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long faults happen (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="replay the schedule of this seed")
    parser.add_argument("--clients", type=int, default=4, help="clients at once (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="write the report here as JSON")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 20) if options.seed is None else options.seed
    wish = Wish(seed, options.minutes * 60, options.clients)
    folder = Path(tempfile.mkdtemp(prefix="docstage-soak-"))
    Console(stderr=True).print(f"seed {seed}, logs in {folder}", highlight=False)
    with running_services() as services, _place(services) as environment:
        done = asyncio.run(_run(wish, services, environment, folder))
    report.show(done, Console())
    if options.out:
        report.write(done, options.out)
    if done.right:
        shutil.rmtree(folder)
    return 0 if done.right else 1


if __name__ == "__main__":
    sys.exit(main())
