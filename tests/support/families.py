"""Parsers and their tools as the kernel shows them: each parser leads a process group of its own."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_ZOMBIE = "Z"


@dataclass(frozen=True, slots=True)
class Member:
    """One living process."""

    pid: int
    name: str
    parent: int
    group: int


def members(group: int) -> list[Member]:
    """Return who lives in a process group."""
    return [one for one in _living() if one.group == group]


def group_at_work(worker: int, tool: str) -> int | None:
    """Return the group of the worker's parser that is running ``tool`` just now."""
    everybody = list(_living())
    parsers = {one.pid for one in everybody if one.parent == worker}
    return next((one.group for one in everybody if one.name == tool and one.group in parsers), None)


def _living() -> Iterator[Member]:
    for entry in _PROC.iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            before, _, after = (entry / "stat").read_text().rpartition(")")
        except OSError:
            # It has ended since its folder was listed.
            continue
        state, parent, group = after.split()[:3]
        if state != _ZOMBIE:
            yield Member(int(entry.name), before.partition("(")[2], int(parent), int(group))
