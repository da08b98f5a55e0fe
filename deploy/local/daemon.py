"""Start a long-running program apart from the launcher, find it again, and end it with all its children."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deploy.local import proc
from deploy.local.console import LauncherError
from deploy.local.instance import Instance

_MARK = "DOCSTAGE_LOCAL_DAEMON"
_LOG_LIMIT_BYTES = 20_000_000
_POLL_SECONDS = 0.05
# A parent must collect its dead children, or they stay as zombies and Python warns about each.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True, slots=True)
class Daemon:
    """One program of an instance; every process it leads to carries its mark in the environment.

    ``titles`` are beginnings of command line arguments that tell its processes where that mark cannot be read: those
    of another account, and those that overwrite it with a title.
    """

    name: str
    instance: Instance
    argv: Sequence[str]
    cwd: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    titles: tuple[str, ...] = ()

    def start(self) -> None:
        """Start the program in a session of its own, writing to ``logs/<name>.log``."""
        log = self.instance.logs / f"{self.name}.log"
        if log.exists() and log.stat().st_size > _LOG_LIMIT_BYTES:
            log.replace(log.with_suffix(".log.1"))
        with log.open("ab") as output:
            process = subprocess.Popen(
                self.argv,
                cwd=self.cwd,
                env={**base_environment(), **self.environment, _MARK: self._mark},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        _children[process.pid] = process
        identity = proc.Identity.of(process.pid)
        if identity is not None:
            identity.record(self._record)

    def pid(self) -> int | None:
        """Return the id of the running program; ``None`` when it does not run."""
        collect_children()
        identity = proc.Identity.recorded(self._record)
        return None if identity is None else identity.pid

    def members(self) -> list[int]:
        """Return every process of this program, also those that left its session or lost their parent."""
        first = self.pid()
        return [pid for pid in proc.pids() if pid == first or self._owns(pid)]

    def send(self, number: signal.Signals) -> None:
        """Send a signal to every process of this program."""
        for pid in self.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def stop(self, number: signal.Signals, grace_seconds: float) -> None:
        """Ask the program to end; kill what is left after the grace time."""
        self.send(signal.SIGCONT)
        pid = self.pid()
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            wait_until(lambda: self.pid() is None, grace_seconds)
        self.kill()

    def kill(self) -> None:
        """End every process of this program at once, those being born included.

        Raises:
            LauncherError: one cannot be killed (in an uninterruptible sleep, or another user's).
        """
        # Dead children of ours are collected by ``pid``; without that they would count as members for ever.
        deadline = time.monotonic() + 10
        while self.pid() is not None or any(proc.Identity.of(pid) for pid in self.members()):
            self.send(signal.SIGKILL)
            time.sleep(_POLL_SECONDS)
            if time.monotonic() > deadline:
                message = f"{self.name} cannot be killed"
                raise LauncherError(message)
        self._record.unlink(missing_ok=True)

    def _owns(self, pid: int) -> bool:
        if proc.environment_has(pid, f"{_MARK}={self._mark}"):
            return True
        return bool(self.titles) and any(argument.startswith(self.titles) for argument in proc.command_line(pid))

    @property
    def _mark(self) -> str:
        return f"{self.instance.root}:{self.name}"

    @property
    def _record(self) -> Path:
        return self.instance.pids / f"{self.name}.json"


def collect_children() -> None:
    """Forget the programs started from this process that have ended."""
    for pid, child in list(_children.items()):
        if child.poll() is not None:
            _children.pop(pid, None)


def wait_until(check: Callable[[], bool], seconds: float) -> bool:
    """Poll ``check`` until it holds; return whether it did in time."""
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def base_environment() -> dict[str, str]:
    """Return what any program needs, and nothing by which the machine's own services are configured."""
    path = os.environ.get("PATH", "")
    return {
        "PATH": f"{path}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": os.environ.get("HOME", "/"),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
    }
