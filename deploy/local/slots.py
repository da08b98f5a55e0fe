"""Instances for tests: each run has services of its own, however many run at once."""

import fcntl
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from deploy.local import services
from deploy.local.console import Console
from deploy.local.instance import Instance
from deploy.local.rabbitmq import RabbitMQ
from deploy.local.service import Service

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
    """Hold all services of a free slot."""
    with free_slot(prefix) as instance:
        _hold(instance, services.ServiceSet.of(instance).all(), console)


def hold_broker(prefix: str, console: Console) -> None:
    """Hold a broker alone, for tests that take its data or its memory away."""
    with free_slot(prefix) as instance:
        _hold(instance, [RabbitMQ(instance)], console)


def _hold(instance: Instance, wanted: Sequence[Service], console: Console) -> None:
    """Run services until standard input ends, then end them at once: nobody needs their data.

    The end of a pipe is the one message that also a killed test run sends.
    """
    with instance.locked(lambda: console.say("waiting for another launcher")):
        try:
            services.start(wanted, console)
            print(instance.name, flush=True)
            sys.stdin.read()
        finally:
            services.kill(wanted)
