"""One instance of the local stack: where it lives and what it remembers."""

import fcntl
import json
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from deploy.local import ports
from deploy.local.console import LauncherError

ROOT = Path(__file__).resolve().parents[2]
LOCAL = ROOT / ".local"
ADMIN_GRPC_OFFSET = 10_000
# SeaweedFS's worker looks for its admin's second port at this distance, whatever port the admin was told to use.
_TWINS = {"admin": ADMIN_GRPC_OFFSET}
_Section: TypeAlias = dict[str, str]


@dataclass(frozen=True, slots=True)
class State:
    """The ports and secrets an instance keeps over restarts.

    Every question reads the file, so that no two users of one instance can disagree. What is missing is made by the
    first who asks: services start and stop side by side, so whoever makes something holds the state's own lock.
    """

    file: Path

    def port(self, name: str) -> int:
        """Return the port of this name, choosing one the first time."""
        return int(self._keep("ports", name, partial(_pick_port, name)))

    def secret(self, name: str) -> str:
        """Return the secret of this name, making one the first time."""
        return self._keep("secrets", name, lambda _: secrets.token_hex(16))

    def kept_secret(self, name: str) -> str | None:
        """Return the secret of this name if there is one."""
        return self._sections().get("secrets", {}).get(name)

    def keep_secret(self, name: str, value: str) -> str:
        """Remember a secret and return it."""
        return self._keep("secrets", name, lambda _: value, anew=True)

    def move_taken_ports(self, names: Sequence[str]) -> list[str]:
        """Choose anew those of the named ports that another program has taken; return their names."""
        taken = [name for name in names if not self._is_free(name)]
        for name in taken:
            self._keep("ports", name, partial(_pick_port, name), anew=True)
        return taken

    def _is_free(self, name: str) -> bool:
        port = self.port(name)
        return ports.is_free(port) and ports.is_free(port + _TWINS.get(name, 0))

    def _keep(self, section: str, name: str, make: Callable[[_Section], str], *, anew: bool = False) -> str:
        """Return what is kept under this name; ``make`` it from its section when it is missing, or ``anew``."""
        with locked(self.file.with_suffix(".lock")):
            sections = self._sections()
            kept = sections.setdefault(section, {})
            if anew or name not in kept:
                kept[name] = make(kept)
                write_private(self.file, json.dumps(sections, indent=1))
            return kept[name]

    def _sections(self) -> dict[str, _Section]:
        if not self.file.exists():
            return {}
        sections: dict[str, _Section] = json.loads(self.file.read_text(encoding="utf-8"))
        return sections


@dataclass(frozen=True, slots=True)
class Instance:
    """The directory of one instance, ``.local/<name>``."""

    name: str
    root: Path

    @classmethod
    def named(cls, name: str) -> "Instance":
        """Return the instance of this name, creating its directory.

        Raises:
            LauncherError: it belongs to another user, whose services this one could not run.
        """
        root = LOCAL / name
        # Others may pass through, not look: PostgreSQL runs as its own user when the launcher runs as root.
        root.mkdir(parents=True, exist_ok=True)
        root.chmod(0o711)
        if root.stat().st_uid != os.geteuid():
            message = f"{root} belongs to another user; run as that user, or move it away"
            raise LauncherError(message)
        instance = cls(name, root)
        instance.logs.mkdir(exist_ok=True)
        instance.pids.mkdir(exist_ok=True)
        return instance

    @property
    def logs(self) -> Path:
        """One log file per process."""
        return self.root / "logs"

    @property
    def pids(self) -> Path:
        """One record per process that was started."""
        return self.root / "pids"

    @property
    def state(self) -> State:
        """What this instance remembers."""
        return State(self.root / "state.json")

    @contextmanager
    def locked(self, on_wait: Callable[[], None]) -> Iterator[None]:
        """Hold the instance for one launcher at a time."""
        with locked(self.root / "lock", on_wait):
            yield


def _pick_port(name: str, chosen: _Section) -> str:
    """Return a free port that none of the ``chosen`` has, nor its twin."""
    taken = {int(port) + offset for other, port in chosen.items() for offset in (0, _TWINS.get(other, 0))}
    return str(ports.pick(taken, twin=_TWINS.get(name, 0)))


@contextmanager
def locked(path: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold an exclusive lock on ``path``; call ``on_wait`` before waiting for another holder.

    The kernel frees it with the process that held it, so a killed launcher leaves no stale lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def write_private(path: Path, text: str) -> None:
    """Replace ``path`` in one step, with mode 0600 from the beginning; the caller sees to it that nobody else does."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        handle.write(text)
    fresh.replace(path)
