"""One instance of the local stack: where it lives and what it remembers."""

import fcntl
import json
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from deploy.local import ports
from deploy.local.console import LauncherError

ROOT = Path(__file__).resolve().parents[2]
LOCAL = ROOT / ".local"


@dataclass(slots=True)
class State:
    """The ports and secrets an instance keeps over restarts."""

    file: Path
    ports: dict[str, int] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, file: Path) -> "State":
        """Read the state file; an instance that was never started has an empty one."""
        if not file.exists():
            return cls(file)
        kept = json.loads(file.read_text(encoding="utf-8"))
        return cls(file, ports=kept["ports"], secrets=kept["secrets"])

    def port(self, name: str) -> int:
        """Return the port of this name, choosing one the first time."""
        if name not in self.ports:
            self.ports[name] = ports.pick(self.ports.values())
            self.save()
        return self.ports[name]

    def secret(self, name: str) -> str:
        """Return the secret of this name, making one the first time."""
        if name not in self.secrets:
            self.keep(name, secrets.token_hex(16))
        return self.secrets[name]

    def keep(self, name: str, value: str) -> None:
        """Remember a secret that somebody else made."""
        self.secrets[name] = value
        self.save()

    def replace_taken(self, names: Sequence[str]) -> list[str]:
        """Choose anew those of the named ports that another program has taken; return their names."""
        taken = [name for name in names if name in self.ports and not ports.is_free(self.ports[name])]
        for name in taken:
            self.ports[name] = ports.pick(self.ports.values())
        if taken:
            self.save()
        return taken

    def save(self) -> None:
        """Write the state file whole, readable by its owner alone."""
        text = json.dumps({"ports": self.ports, "secrets": self.secrets}, indent=1)
        write_private(self.file, text)


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

    def state(self) -> State:
        """Read what this instance remembers."""
        return State.load(self.root / "state.json")

    @contextmanager
    def locked(self, on_wait: Callable[[], None]) -> Iterator[None]:
        """Hold the instance for one launcher at a time."""
        with locked(self.root / "lock", on_wait):
            yield


@contextmanager
def locked(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
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
    """Replace ``path`` in one step, with mode 0600 from the beginning."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        handle.write(text)
    fresh.replace(path)
