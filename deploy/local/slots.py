"""Instances for tests: each run has services of its own, however many run at once."""

import fcntl
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from deploy.local import services
from deploy.local.console import Console
from deploy.local.instance import Instance

_SLOTS = 16


@contextmanager
def free_slot(prefix: str) -> Iterator[Instance]:
    """Lend the first instance of ``prefix``, ``prefix-2``, … that no live process holds."""
    for number in range(1, _SLOTS + 1):
        instance = Instance.named(prefix if number == 1 else f"{prefix}-{number}")
        with (instance.root / "holder").open("a") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield instance
            return


def hold(prefix: str, console: Console) -> None:
    """Run the services of a free slot until standard input ends, then end them at once: nobody needs their data.

    The end of a pipe is the one message that also a killed test run sends.
    """
    with free_slot(prefix) as instance, instance.locked(lambda: console.say("waiting for another launcher")):
        wanted = services.ServiceSet.of(instance).all()
        try:
            services.start(wanted, console)
            print(instance.name, flush=True)
            sys.stdin.read()
        finally:
            services.kill(wanted)
