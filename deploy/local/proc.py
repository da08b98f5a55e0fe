"""What ``/proc`` knows of the processes on this machine."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

PROC = Path("/proc")
_STATE_FIELD = 0
_START_FIELD = 19


@dataclass(frozen=True, slots=True)
class Identity:
    """One process for good: ids are used again, also after a reboot, so the id alone names nobody."""

    pid: int
    started_ticks: int
    boot_id: str

    @classmethod
    def of(cls, pid: int) -> "Identity | None":
        """Identify a live process; ``None`` when there is none, or only a zombie."""
        fields = _stat(pid)
        if fields is None or fields[_STATE_FIELD] in "ZX":
            return None
        boot_id = (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return cls(pid, int(fields[_START_FIELD]), boot_id)

    @classmethod
    def recorded(cls, file: Path) -> "Identity | None":
        """Read a record; ``None`` when there is none, or it is unreadable, or its process has ended."""
        try:
            kept = cls(**json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return kept if cls.of(kept.pid) == kept else None

    def record(self, file: Path) -> None:
        """Write down which process this is."""
        file.write_text(json.dumps(asdict(self)), encoding="utf-8")


def pids() -> Iterator[int]:
    """Yield every process id but our own."""
    for entry in os.scandir(PROC):
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            yield int(entry.name)


def environment_has(pid: int, assignment: str) -> bool:
    """Tell whether the process was started with this ``NAME=value`` in its environment."""
    try:
        environment = (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False
    return assignment.encode() in environment.split(b"\0")


def command_line(pid: int) -> list[str]:
    """Return the arguments, or the title that took their place; unlike the environment anybody may read them."""
    try:
        text = (PROC / str(pid) / "cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.split("\0")


def _stat(pid: int) -> list[str] | None:
    """Return the fields after the command name, which may itself hold spaces and brackets."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()
