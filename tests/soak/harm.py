"""Doing what the schedule says, and undoing it."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from tests.soak.fleet import Fleet
from tests.soak.schedule import Fault
from tests.support.services import Handle, Services

SLOW_SECONDS: Final = 0.2


@dataclass(slots=True)
class Harm:
    """The hand that does it. ``going_on`` are the faults of this moment, ``done`` counts those that are over."""

    fleet: Fleet
    services: Services
    going_on: list[Fault] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    _one_service: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self, faults: Sequence[Fault]) -> None:
        """Do everything at its time, each in its own task."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for fault in faults:
                group.create_task(self._at_its_time(fault, began))

    async def _at_its_time(self, fault: Fault, began: float) -> None:
        await asyncio.sleep(max(0.0, fault.at - (time.monotonic() - began)))
        if fault.kind == "service":
            # One that is slow to start must not make two that are down.
            async with self._one_service:
                await self._inflict(fault)
        else:
            await self._inflict(fault)

    async def _inflict(self, fault: Fault) -> None:
        """Do it, let it last, undo it."""
        self.going_on.append(fault)
        does, undoes = self._means(fault)
        # Processes are waited for in one thread only; services take their time.
        apart = asyncio.to_thread if fault.kind == "service" else _here
        try:
            await apart(does)
            await asyncio.sleep(fault.seconds)
        finally:
            await asyncio.shield(apart(undoes))
            self.going_on.remove(fault)
            self.done[f"{fault.kind} {fault.deed}"] += 1

    def _means(self, fault: Fault) -> tuple[Callable[[], None], Callable[[], None]]:
        """Say how a fault is done, and how undone; a process that has ended is started again by its fleet."""
        name = fault.victim
        match fault.kind:
            case "process":
                deeds = {"kill": self.fleet.kill, "terminate": self.fleet.terminate, "pause": self.fleet.pause}
                return partial(deeds[fault.deed], name), partial(self.fleet.resume, name)
            case "link":
                link = self.fleet.links[name]
                if fault.deed == "slow":
                    return partial(link.slow, SLOW_SECONDS), link.heal
                return getattr(link, fault.deed), link.heal
        handle: Handle = getattr(self.services, name)
        return getattr(handle, fault.deed), handle.resume if fault.deed == "pause" else handle.start


async def _here(do: Callable[[], None]) -> None:
    do()
