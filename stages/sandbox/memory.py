"""Watches how much memory a child and its tools have resident together.

The address-space limit holds for each process by itself; this one holds for their sum.
"""

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from stages.sandbox.process import Child

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
# Places in /proc/<pid>/stat after the command's name: process group and resident pages.
_GROUP, _RESIDENT = 2, 21

_PEAK: Final = re.compile(r"^VmHWM:\s+(\d+) kB", re.MULTILINE)


class MemoryWatch:
    """Kills children whose group outgrows the limit.

    A call that is over before the next look costs nothing but its entry; only longer ones are measured.

    Args:
        limit_bytes: what a group may have resident.
        on_measured: told the resident bytes of a group at each look.
        interval_seconds: between two looks.
    """

    def __init__(
        self, limit_bytes: int, on_measured: Callable[[int], None] = lambda _: None, interval_seconds: float = 0.25
    ) -> None:
        """Watch nobody yet."""
        self._limit_bytes = limit_bytes
        self._on_measured = on_measured
        self._interval_seconds = interval_seconds
        self._fresh: set[Child] = set()
        self._seasoned: set[Child] = set()
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def over(self, child: Child) -> Iterator[None]:
        """Watch ``child`` for the length of a call."""
        self._fresh.add(child)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._interval_seconds, self._look)
        try:
            yield
        finally:
            self._fresh.discard(child)
            self._seasoned.discard(child)

    def _look(self) -> None:
        """Measure the children that were already busy at the last look."""
        if self._seasoned:
            resident = resident_by_group({child.pid for child in self._seasoned})
            for child in self._seasoned:
                held = resident.get(child.pid, 0)
                self._on_measured(held)
                if held > self._limit_bytes:
                    child.overweight = True
                    child.kill()
        self._seasoned |= self._fresh
        self._fresh.clear()
        self._timer = None
        if self._seasoned:
            self._timer = asyncio.get_running_loop().call_later(self._interval_seconds, self._look)


def resident_by_group(groups: AbstractSet[int]) -> dict[int, int]:
    """Add up the resident bytes of all processes of each of these process groups."""
    totals: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                group = int(fields[_GROUP])
                if group in groups:
                    totals[group] = totals.get(group, 0) + int(fields[_RESIDENT]) * _PAGE_BYTES
    return totals


def address_space_bytes(pid: int) -> int:
    """Return the size of a process's address space; 0 when it is gone."""
    try:
        return int(Path("/proc", str(pid), "statm").read_bytes().split()[0]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0


def peak_resident_bytes(pid: int) -> int:
    """Return the most that a process itself ever had resident; 0 when it is gone."""
    try:
        status = Path("/proc", str(pid), "status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    found = _PEAK.search(status)
    return int(found[1]) * 1024 if found else 0
