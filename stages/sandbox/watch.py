"""Watches what a child and its tools take together: resident memory and temporary files.

The kernel's own limits hold for each process and each file by itself; these hold for their sums.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from schema.domain.errors import ErrorCode
from schema.domain.limits import LimitName
from stages.sandbox.memory import resident_by_group
from stages.sandbox.process import Child, Excess
from stages.sandbox.scratch import used_bytes


class Watch:
    """Kills children that outgrow a limit.

    A call that is over before the next look costs nothing but its entry; only longer ones are measured.

    Args:
        memory_bytes: what a child and its tools may have resident.
        scratch_bytes: what a call's temporary files may take.
        on_memory: told the resident bytes of a group at each look.
        interval_seconds: between two looks.
    """

    def __init__(
        self,
        *,
        memory_bytes: int,
        scratch_bytes: int,
        on_memory: Callable[[int], None] = lambda _: None,
        interval_seconds: float = 0.25,
    ) -> None:
        """Watch nobody yet."""
        self._memory_bytes = memory_bytes
        self._scratch_bytes = scratch_bytes
        self._on_memory = on_memory
        self._interval_seconds = interval_seconds
        self._fresh: dict[Child, Path] = {}
        self._seasoned: dict[Child, Path] = {}
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def over(self, child: Child, place: Path) -> Iterator[None]:
        """Watch ``child`` for the length of a call whose temporary files lie in ``place``."""
        self._fresh[child] = place
        child.call_peak_bytes = 0
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._interval_seconds, self._look)
        try:
            yield
        finally:
            self._fresh.pop(child, None)
            self._seasoned.pop(child, None)

    def _look(self) -> None:
        """Measure the children that were already busy at the last look."""
        if self._seasoned:
            resident = resident_by_group({child.pid for child in self._seasoned})
            for child, place in self._seasoned.items():
                self._measure(child, resident.get(child.pid, 0), used_bytes(place))
        self._seasoned |= self._fresh
        self._fresh.clear()
        self._timer = None
        if self._seasoned:
            self._timer = asyncio.get_running_loop().call_later(self._interval_seconds, self._look)

    def _measure(self, child: Child, resident: int, written: int) -> None:
        """Kill a child that has too much of either."""
        self._on_memory(resident)
        child.call_peak_bytes = max(child.call_peak_bytes, resident)
        for code, name, limit, actual in (
            (ErrorCode.MEMORY_LIMIT, LimitName.MEMORY_BYTES, self._memory_bytes, resident),
            (ErrorCode.SCRATCH_LIMIT, LimitName.SCRATCH_BYTES, self._scratch_bytes, written),
        ):
            if actual > limit:
                child.excess = Excess(code, name, limit, actual)
                child.kill()
                return
