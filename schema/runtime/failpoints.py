"""Named points at which a test may kill, stop, block or break a real process; off, and one empty call, otherwise.

Armed by ``DOCSTAGE_FAILPOINTS``, such as ``outcome_committed=kill`` or ``job_committed=raise@3`` (at the third pass).
The points are the crash windows of docs/reliability.md: after what each is named for, before what follows. Actions:
``kill`` by SIGKILL, ``hang`` for ever or ``block`` for a while with the event loop held, ``stop`` all threads until
SIGCONT, ``raise`` what nobody expects, ``cut`` as a lost connection.
"""

import os
import signal
import time
from collections.abc import Callable
from enum import StrEnum
from itertools import count
from typing import Final, NoReturn


class Point(StrEnum):
    """Every point, by what has just happened when it is passed."""

    OBJECT_STORED = "object_stored"
    JOB_COMMITTED = "job_committed"
    ROWS_TAKEN = "rows_taken"
    PUBLISHED = "published"
    CONFIRMED = "confirmed"
    DELIVERED = "delivered"
    CLAIMED = "claimed"
    WORK_BEGUN = "work_begun"
    PAGE_KEPT = "page_kept"
    ANSWER_KEPT = "answer_kept"
    WORKED = "worked"
    OUTPUT_STORED = "output_stored"
    BATCH_WRITTEN = "batch_written"
    BATCH_COMMITTED = "batch_committed"
    OUTCOME_COMMITTED = "outcome_committed"
    WEBHOOK_SENT = "webhook_sent"
    RETRY_COMMITTED = "retry_committed"
    LETTER_COMMITTED = "letter_committed"
    REDRIVE_COMMITTED = "redrive_committed"
    GIVE_UP_COMMITTED = "give_up_committed"


# Longer than a broker with a heartbeat of 2 s waits for a silent peer.
BLOCK_SECONDS: Final = 12.0


class FailpointError(Exception):
    """What an armed point raises: nothing that any layer classifies."""


def _off(_: Point) -> None:
    """Do nothing."""


_hit: Callable[[Point], None] = _off


def hit(point: Point) -> None:
    """Pass a point."""
    _hit(point)


def arm(settings: str) -> None:
    """Arm points as told; ``""`` leaves all of them off.

    Raises:
        ValueError: a point or an action that does not exist, or a pass that is no number.
    """
    if settings:
        armed = dict(_parse(one) for one in settings.split(","))
        globals()["_hit"] = lambda point: armed.get(point, _off)(point)


def _parse(setting: str) -> tuple[Point, Callable[[Point], None]]:
    """Read ``point=action@pass``."""
    name, _, rest = setting.partition("=")
    action, _, number = rest.partition("@")
    if action not in _ACTIONS:
        raise ValueError(action)
    act, wanted, passes = _ACTIONS[action], int(number or 1), count(1)

    def passed(point: Point) -> None:
        if next(passes) == wanted:
            act(point)

    return Point(name), passed


def _kill(_: Point) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError  # the kernel does not return from this


def _hang(_: Point) -> NoReturn:
    while True:
        time.sleep(3600)


def _stop(_: Point) -> None:
    """Fall silent, all threads, until SIGCONT."""
    os.kill(os.getpid(), signal.SIGSTOP)


def _block(_: Point) -> None:
    """Keep the event loop from doing anything else for a while."""
    time.sleep(BLOCK_SECONDS)


def _raise(point: Point) -> NoReturn:
    raise FailpointError(point)


def _cut(point: Point) -> NoReturn:
    """Break off what is asked of the database, as the loss of its connection does."""
    raise ConnectionResetError(point)


_ACTIONS: Final[dict[str, Callable[[Point], None]]] = {
    "kill": _kill,
    "hang": _hang,
    "stop": _stop,
    "block": _block,
    "raise": _raise,
    "cut": _cut,
}
