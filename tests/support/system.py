"""Docstage's own processes, real ones, for tests that submit documents and for tests that kill what works on them."""

import asyncio
import hashlib
import os
import secrets
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import httpx

from schema.db import tenants
from schema.db.engine import Database
from tests.support.eventually import eventually
from tests.support.nursery import Forked, Nursery

ROOT = Path(__file__).resolve().parents[2]
# Made once: a client that is made for one question would read every certificate of the machine for it.
TLS = ssl.create_default_context()
FINISHED = {"completed", "failed", "cancelled"}
# Quick retries, so that a test of them is over soon; every promise holds for any values.
QUICK = {
    "DOCSTAGE_RETRY_BASE_SECONDS": "0.25",
    "DOCSTAGE_RETRY_CAP_SECONDS": "2",
    "DOCSTAGE_SWEEP_SECONDS": "0.5",
    "DOCSTAGE_GRACE_SECONDS": "10",
}


def free_port() -> int:
    """Return a port that was free just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(slots=True)
class Process:
    """One process of Docstage's, killed with everything it started."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    port: int
    log: Path
    nursery: Nursery | None = None
    popen: subprocess.Popen[bytes] | Forked | None = None
    _sink: BinaryIO | None = None

    @property
    def url(self) -> str:
        """Where it serves HTTP."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self.popen is not None
        return self.popen.pid

    def start(self) -> None:
        """Start it in a session of its own."""
        environment = {**os.environ, **self.environment}  # noqa: TID251 - PATH and the like
        if self.nursery is not None:
            self.popen = self.nursery.start(self.command, environment, self.log)
            return
        if self._sink is not None:
            self._sink.close()
        self._sink = self.log.open("ab")
        self.popen = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", *self.command],
            cwd=ROOT,
            env=environment,
            stdout=self._sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    async def ready(self) -> None:
        """Wait until it says that nothing is missing."""
        async with httpx.AsyncClient(verify=TLS) as client:

            async def look() -> bool:
                assert self.popen is not None
                if self.popen.poll() is not None:
                    message = f"{self.name} ended: {self.log.read_text()[-2000:]}"
                    raise RuntimeError(message)
                with suppress(httpx.HTTPError):
                    return (await client.get(f"{self.url}/readyz")).status_code == 200
                return False

            await eventually(look)

    async def missing(self) -> str:
        """Return what it says is missing; empty when it is ready."""
        async with httpx.AsyncClient(verify=TLS) as client:
            answer = await client.get(f"{self.url}/readyz")
        return "" if answer.status_code == 200 else answer.text

    async def stopped(self) -> None:
        """Wait until it has been frozen, by itself or another."""
        await eventually(lambda: Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")

    async def metrics(self) -> str:
        """Return what it tells Prometheus."""
        async with httpx.AsyncClient(verify=TLS) as client:
            return (await client.get(f"{self.url}/metrics", follow_redirects=True)).text

    def kill(self) -> None:
        """End it as a power cut would."""
        self._signal(signal.SIGKILL)

    def pause(self) -> None:
        """Freeze it: it is alive and says nothing."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def terminate(self) -> None:
        """Ask it to end in good order."""
        assert self.popen is not None
        self.popen.terminate()

    async def wait(self) -> int:
        """Wait for its end and return its exit status."""
        assert self.popen is not None
        return await asyncio.to_thread(self.popen.wait)

    def _signal(self, number: int) -> None:
        """Signal the process alone; its children must notice by themselves."""
        assert self.popen is not None
        with suppress(ProcessLookupError):
            os.kill(self.popen.pid, number)
        if number == signal.SIGKILL:
            self.popen.wait()

    def close(self) -> None:
        """Make sure that nothing of it is left."""
        if self.popen is not None and self.popen.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.popen.pid, signal.SIGKILL)
            self.popen.wait()
        if self._sink is not None:
            self._sink.close()


@dataclass(slots=True)
class System:
    """Some or all of Docstage's processes around one database, vhost and bucket."""

    environment: Mapping[str, str]
    folder: Path
    database: Database
    key: str = ""
    nursery: Nursery | None = None
    processes: dict[str, Process] = field(default_factory=dict)

    def process(self, name: str, *command: str, **settings: str) -> Process:
        """Make a process of this system's, in the place of one of the same name; the caller starts it."""
        if name in self.processes:
            self.processes[name].close()
        port = free_port()
        environment = {
            **self.environment,
            **QUICK,
            "DOCSTAGE_METRICS_PORT": str(port),
            "DOCSTAGE_HTTP_PORT": str(port),
            "DOCSTAGE_SCRATCH_DIR": str(self.folder / f"{name}.scratch"),
            **settings,
        }
        made = Process(name, command, environment, port, self.folder / f"{name}.log", self.nursery)
        self.processes[name] = made
        return made

    def stages(self, name: str = "stages", *stages: str, **settings: str) -> Process:
        """Make a process for some stages, all four when none is named."""
        return self.process(name, "stages", *(stages or ("validate", "extract", "normalize", "persist")), **settings)

    async def start(self, *processes: Process) -> None:
        """Start processes together and wait until all are ready."""
        for process in processes:
            process.start()
        await asyncio.gather(*(process.ready() for process in processes))

    async def start_all(self, **settings: str) -> None:
        """Start intake, one publisher and one process for all stages."""
        await self.start(
            self.process("intake", "intake", **settings),
            self.process("publisher", "publisher", **settings),
            self.stages(**settings),
        )

    def apart(self, **settings: str) -> list[Process]:
        """Make what ``make run`` starts: intake, one publisher, and a process for each stage."""
        return [
            self.process("intake", "intake", **settings),
            self.process("publisher", "publisher", **settings),
            *(self.stages(stage, stage, **settings) for stage in ("validate", "extract", "normalize", "persist")),
        ]

    async def start_apart(self, **settings: str) -> None:
        """Start them."""
        await self.start(*self.apart(**settings))

    async def add_tenant(self, name: str) -> str:
        """Make a tenant and return a key of its."""
        key = f"ds_{secrets.token_urlsafe(24)}"
        async with self.database.transaction() as conn:
            tenant_id = await tenants.ensure_tenant(conn, name=name)
            key_hash = hashlib.sha256(key.encode()).digest()
            await tenants.add_key(conn, tenant_id=tenant_id, name="test", key_hash=key_hash)
        return key

    def client(self, key: str | None = None) -> httpx.AsyncClient:
        """Return a client of the API, with this system's key."""
        headers = {"Authorization": f"Bearer {key or self.key}"}
        return httpx.AsyncClient(base_url=self.processes["intake"].url, headers=headers, timeout=60, verify=TLS)

    async def submit(self, body: bytes, kind: str = "text", name: str = "document", **options: str) -> str:
        """Submit a document and return its job's id."""
        async with self.client() as client:
            answer = await client.post("/v1/jobs", data={"kind": kind, **options}, files={"file": (name, body)})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    async def status(self, job_id: str) -> dict[str, Any]:
        """Return the job as clients see it."""
        async with self.client() as client:
            answer = await client.get(f"/v1/jobs/{job_id}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def finished(self, job_id: str, *, seconds: float = 240.0) -> dict[str, Any]:
        """Wait until the job is finished and return it."""

        async def look() -> dict[str, Any] | None:
            job = await self.status(job_id)
            return job if job["status"] in FINISHED else None

        job = await eventually(look, seconds=seconds)
        assert job is not None
        return job

    def logs(self) -> str:
        """Return everything that was logged."""
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("*.log")))


@asynccontextmanager
async def running_system(environment: Mapping[str, str], folder: Path) -> AsyncIterator[System]:
    """Offer a system without processes, and clear away those that were started."""
    database = Database.connect(environment["DOCSTAGE_DATABASE_URL"], application="docstage-test", pool_size=4)
    system = System(environment, folder, database)
    system.key = await system.add_tenant("test")
    try:
        yield system
    finally:
        for process in system.processes.values():
            process.close()
        await database.close()
