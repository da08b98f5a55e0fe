"""Who used how much of the processors: the figure that load by others changes least."""

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

_PROC = Path("/proc")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PARENT, _USER, _SYSTEM = 1, 11, 12
_LOCAL = Path(__file__).resolve().parents[2] / ".local"


def spent_seconds(processes: Mapping[str, int]) -> Counter[str]:
    """Return the CPU seconds that each process, with its children, and each service has used so far.

    Args:
        processes: names of our own processes and their ids.
    """
    fields = {pid: found for pid in _pids() if (found := _stat(pid)) is not None}
    roots = {pid: name for name, pid in processes.items()}
    spent: Counter[str] = Counter()
    for pid, values in fields.items():
        name = _service(pid) or _owner(pid, roots, fields)
        if name is not None:
            spent[name] += (int(values[_USER]) + int(values[_SYSTEM])) / _TICKS_PER_SECOND
    return spent


def _owner(pid: int, roots: Mapping[int, str], fields: Mapping[int, list[str]]) -> str | None:
    """Name the process of ours that ``pid`` is or descends from; a parser child is counted apart."""
    child = False
    while pid in fields:
        if pid in roots:
            return f"{roots[pid]} parser" if child else roots[pid]
        pid, child = int(fields[pid][_PARENT]), True
    return None


def _service(pid: int) -> str | None:
    """Name the local service that runs in a folder of its own below ``.local``."""
    try:
        folder = (_PROC / str(pid) / "cwd").readlink()
    except OSError:
        return None
    below = folder.relative_to(_LOCAL).parts if folder.is_relative_to(_LOCAL) else ()
    return below[1] if len(below) > 1 else None


def _pids() -> list[int]:
    return [int(entry.name) for entry in os.scandir(_PROC) if entry.name.isdecimal()]


def _stat(pid: int) -> list[str] | None:
    """Return the fields after the program's name; ``None`` when the process has ended."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()
