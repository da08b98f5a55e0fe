"""Keep the processes of an instance running until told to stop."""

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.local import application, proc
from deploy.local.application import Process
from deploy.local.console import Console
from deploy.local.instance import ROOT, Instance

# What a process takes at the longest: 20 s to finish what it can, 10 s to give back the rest, and its connections.
GRACE_SECONDS = 40.0
_FIRST_DELAY_SECONDS = 0.5
_LONGEST_DELAY_SECONDS = 30.0
_STEADY_SECONDS = 60.0


def restart_delay_seconds(deaths: int) -> float:
    """Return how long to wait before a restart: under half a second first, then doubling, spread by chance.

    The spread keeps seven processes that lost the same database from coming back at one instant.
    """
    longest = min(_LONGEST_DELAY_SECONDS, _FIRST_DELAY_SECONDS * 2 ** (deaths - 1))
    return random.uniform(longest / 2, longest)  # noqa: S311 - spreads load, hides nothing


@dataclass(frozen=True, slots=True)
class Supervisor:
    """Restarts what dies, and on SIGTERM ends all processes side by side."""

    instance: Instance
    console: Console
    stopping: asyncio.Event
    grace_seconds: float = GRACE_SECONDS

    async def run(self, processes: Sequence[Process]) -> None:
        """Run the processes until ``stopping`` is set and each has ended."""
        async with asyncio.TaskGroup() as group:
            for process in processes:
                group.create_task(self._keep(process))

    async def _keep(self, process: Process) -> None:
        deaths = 0
        while not self.stopping.is_set():
            began = time.monotonic()
            status = await self._run_once(process)
            if self.stopping.is_set():
                return
            deaths = 1 if time.monotonic() - began > _STEADY_SECONDS else deaths + 1
            delay = restart_delay_seconds(deaths)
            self.console.say(f"{process.name} ended with status {status}; starting it again in {delay:.1f} s")
            await self._stopped_within(delay)

    async def _run_once(self, process: Process) -> int:
        """Run a process to its end, ours or its own; return its status."""
        with (self.instance.logs / f"{process.name}.log").open("ab") as log:
            child = await asyncio.create_subprocess_exec(
                *process.argv,
                cwd=ROOT,
                env={**os.environ, **process.environment},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if (identity := proc.Identity.of(child.pid)) is not None:
            identity.record(self._record(process))
        ended = asyncio.create_task(child.wait())
        stopped = asyncio.create_task(self.stopping.wait())
        await asyncio.wait([ended, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not ended.done():
            with contextlib.suppress(ProcessLookupError):
                child.terminate()
            await asyncio.wait([ended], timeout=self.grace_seconds)
        # Whatever it had started goes with it, also when it died without a word.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        status = await ended
        self._record(process).unlink(missing_ok=True)
        return status

    async def _stopped_within(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), seconds)

    def _record(self, process: Process) -> Path:
        return self.instance.pids / f"{process.name}.json"


def supervise(name: str, console: Console) -> None:
    """Supervise an instance in this process until SIGTERM or SIGINT."""
    asyncio.run(_supervise(Instance.named(name), console))


async def _supervise(instance: Instance, console: Console) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    await Supervisor(instance, console, stopping).run(application.processes(instance))
    console.say("all processes ended")
