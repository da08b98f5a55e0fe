"""How much memory processes have, as the kernel tells."""

import os
import re
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from typing import Final

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
# Places in /proc/<pid>/stat after the command's name: process group and resident pages.
_GROUP, _RESIDENT = 2, 21

# The kernel's number for it, see proc(5).
_RESET_PEAK: Final = b"5"

_PEAK_RESIDENT: Final = re.compile(r"^VmHWM:\s+(\d+) kB", re.MULTILINE)
_PEAK_ADDRESS_SPACE: Final = re.compile(r"^VmPeak:\s+(\d+) kB", re.MULTILINE)


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
    return _status_bytes(pid, _PEAK_RESIDENT)


def forget_peak_resident(pid: int) -> None:
    """Let the kernel count a process's peak anew from what it has now."""
    with suppress(OSError):
        Path("/proc", str(pid), "clear_refs").write_bytes(_RESET_PEAK)


def peak_address_space_bytes(pid: int) -> int:
    """Return the largest that a process's address space ever was; 0 when it is gone."""
    return _status_bytes(pid, _PEAK_ADDRESS_SPACE)


def _status_bytes(pid: int, line: re.Pattern[str]) -> int:
    try:
        status = Path("/proc", str(pid), "status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    found = line.search(status)
    return int(found[1]) * 1024 if found else 0
