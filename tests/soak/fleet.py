"""The processes of a soak, each started again when it ends, and the links between them and the services."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from deploy.local.supervisor import restart_delay_seconds
from tests.soak.gate import Gate, gated
from tests.soak.schedule import LINKS, WORKERS
from tests.support.eventually import eventually
from tests.support.nursery import Nursery
from tests.support.proxy import Proxy, proxied
from tests.support.system import Process, System

STEADY_SECONDS: Final = 5.0
URLS: Final = {"postgres": "DOCSTAGE_DATABASE_URL", "rabbitmq": "DOCSTAGE_AMQP_URL"}
# Everything that waits for a time does so for less of it, so that minutes see what otherwise takes hours.
SETTINGS: Final = {
    "DOCSTAGE_LEASE_SECONDS": "6",
    "DOCSTAGE_AMQP_HEARTBEAT_SECONDS": "2",
    "DOCSTAGE_PUBLISH_TIMEOUT_SECONDS": "1",
    "DOCSTAGE_S3_TIMEOUT_SECONDS": "2",
    "DOCSTAGE_PROBE_SECONDS": "0.5",
    "DOCSTAGE_RESERVATION_SECONDS": "3",
    "DOCSTAGE_CHILD_PROCESSES": "1",
    "DOCSTAGE_MAX_TENANT_JOBS": "200",
}


@dataclass(slots=True)
class Fleet:
    """What runs. ``ends`` are the exit statuses of each process that nobody asked to end with them."""

    system: System
    links: Mapping[str, Proxy]
    gate: Gate
    ends: list[str] = field(default_factory=list)
    restarts: int = 0
    _expected: dict[str, set[int]] = field(default_factory=dict)

    @property
    def processes(self) -> Mapping[str, Process]:
        """Its processes by name."""
        return self.system.processes

    def kill(self, name: str) -> None:
        """End a process as a power cut would."""
        if self.is_running(name):
            self._expected[name] = {-9}
            self.processes[name].kill()

    def terminate(self, name: str) -> None:
        """Ask a process to end; one that has only just begun may not have heard of good order yet."""
        if self.is_running(name):
            self._expected[name] = {0, -15}
            self.processes[name].terminate()

    def pause(self, name: str) -> None:
        """Freeze a process."""
        if self.is_running(name):
            self.processes[name].pause()

    def resume(self, name: str) -> None:
        """Let a process go on."""
        if self.is_running(name):
            self.processes[name].resume()

    def is_running(self, name: str) -> bool:
        """Say whether a process runs now."""
        popen = self.processes[name].popen
        return popen is not None and popen.poll() is None

    async def keep(self, name: str) -> None:
        """Watch a process, and start it again whenever it ends, as the launcher's supervisor does."""
        process, deaths = self.processes[name], 0
        while True:
            began = time.monotonic()
            await eventually(lambda: not self.is_running(name), seconds=math.inf)
            assert process.popen is not None
            status = process.popen.wait()
            if status not in self._expected.pop(name, set()):
                self.ends.append(f"{name} ended with status {status}")
            self.restarts += 1
            deaths = 1 if time.monotonic() - began > STEADY_SECONDS else deaths + 1
            await asyncio.sleep(restart_delay_seconds(deaths))
            process.start()

    async def missing(self) -> list[str]:
        """Say what the processes lack to be ready."""
        lacking = []
        for name, process in self.processes.items():
            missing = "not answering"
            with suppress(Exception):
                missing = await process.missing()
            lacking += [f"{name}: {missing.strip()}"] if missing else []
        return lacking


@asynccontextmanager
async def running_fleet(system: System) -> AsyncIterator[Fleet]:
    """Run everything while the block runs, each link by way of a proxy of its own."""
    async with AsyncExitStack() as stack:
        system.nursery = stack.enter_context(Nursery())
        gate = stack.enter_context(gated(system.environment["DOCSTAGE_S3_ENDPOINT"]))
        links = {name: stack.enter_context(proxied(system.environment[URLS[name.partition(":")[2]]])) for name in LINKS}
        fleet = Fleet(system, links, gate)
        settings = SETTINGS | {"DOCSTAGE_S3_ENDPOINT": gate.url}
        system.process("intake", "intake", **settings)
        system.process("publisher", "publisher", **settings, **_ways(links, "publisher"))
        for worker in WORKERS:
            system.stages(worker, **settings, **_ways(links, worker))
        stack.callback(_end, system)
        for process in system.processes.values():
            # The first one waits for the nursery to have imported everything.
            await asyncio.to_thread(process.start)
        keepers = [asyncio.create_task(fleet.keep(name)) for name in system.processes]
        stack.push_async_callback(_stop, keepers)
        yield fleet


def _ways(links: Mapping[str, Proxy], name: str) -> dict[str, str]:
    """Return the settings with which a process takes its own links."""
    mine = {link.partition(":")[2]: proxy for link, proxy in links.items() if link.startswith(f"{name}:")}
    return {URLS[service]: proxy.url for service, proxy in mine.items()}


def _end(system: System) -> None:
    """End every process."""
    for process in system.processes.values():
        process.close()


async def _stop(keepers: list["asyncio.Task[None]"]) -> None:
    """Start nothing again; an error of the supervisor itself is not passed over."""
    for keeper in keepers:
        keeper.cancel()
    for ended in await asyncio.gather(*keepers, return_exceptions=True):
        if isinstance(ended, Exception):
            raise ended
