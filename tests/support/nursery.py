"""Processes of Docstage's forked from one that has imported everything, because importing takes most of a start.

``python -m tests.support.nursery`` reads orders from its input, one JSON object a line: ``{"start": ...}`` is answered
with a process id, ``{"reap": pid}`` with that process's exit status once it has ended. What is forked is a process of
its own in every way that matters here: session, environment, sockets, and SIGKILL ends it alone.
"""

import importlib
import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PROGRAMS = {
    "intake": ("intake.__main__", "main"),
    "publisher": ("publisher.__main__", "main"),
    "stages": ("stages.__main__", "main"),
    "dlq_tools": ("dlq_tools.cli", "main"),
}
ROOT = Path(__file__).resolve().parents[2]


class Forked:
    """A forked process, with what tests use of ``subprocess.Popen``."""

    def __init__(self, nursery: "Nursery", pid: int) -> None:
        """Watch a process that was just started."""
        self.pid = pid
        self.returncode: int | None = None
        self._nursery = nursery
        self._handle = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """Return the exit status, ``None`` while it runs."""
        return self._ended(timeout=0)

    def wait(self) -> int:
        """Wait for the end and return the exit status, negative for a signal."""
        status = self._ended(timeout=None)
        assert status is not None
        return status

    def terminate(self) -> None:
        """Send SIGTERM."""
        os.kill(self.pid, 15)

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._handle], [], [], timeout)[0]:
            self.returncode = self._nursery.reap(self.pid)
            os.close(self._handle)
        return self.returncode


class Nursery:
    """The process that others are forked from."""

    def __init__(self) -> None:
        """Start it; it imports while the caller goes on."""
        self._lock = threading.Lock()
        self._popen = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", __spec__.name], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """End it; what was forked from it is its starter's to end."""
        self._popen.communicate()

    def start(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> Forked:
        """Start a program as ``python -m`` would, its output appended to ``log``."""
        order = {"start": list(command), "environment": dict(environment), "log": str(log)}
        return Forked(self, self._ask(order))

    def reap(self, pid: int) -> int:
        """Return the exit status of a process that has ended."""
        return self._ask({"reap": pid})

    def _ask(self, order: Mapping[str, Any]) -> int:
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        with self._lock:
            self._popen.stdin.write(json.dumps(order) + "\n")
            self._popen.stdin.flush()
            return int(self._popen.stdout.readline())


def main() -> None:
    """Import everything, then take orders until the input ends."""
    programs = {name: getattr(importlib.import_module(module), run) for name, (module, run) in PROGRAMS.items()}
    for line in sys.stdin:
        order = json.loads(line)
        if "reap" in order:
            answer = os.waitstatus_to_exitcode(os.waitpid(order["reap"], 0)[1])
        else:
            answer = os.fork() or _become(programs, order)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def _become(programs: Mapping[str, Callable[[], object]], order: Mapping[str, Any]) -> int:
    """Be the program that was ordered, and end with its status."""
    os.setsid()
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number, source in ((0, os.open(os.devnull, os.O_RDONLY)), (1, log), (2, log)):
        os.dup2(source, number)
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115 - the parent's orders are read no further
    os.environ.clear()  # noqa: TID251 - a process's own environment, given by the test
    os.environ.update(order["environment"])  # noqa: TID251 - as above
    sys.argv = list(order["start"])
    status = 1
    try:
        ended = programs[order["start"][0]]()
        status = ended if isinstance(ended, int) else 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdout.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
