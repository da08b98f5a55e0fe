"""A whole system that lives through a module of crash tests; each cell starts anew only what it kills."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx
from sqlalchemy import text

from schema.db import moves, stage_runs
from schema.domain.moves import Move
from schema.domain.runs import Claim
from schema.domain.states import Stage
from schema.runtime.broker import BrokerSession
from schema.runtime.reconcile import reconcile
from schema.wire.messages import StageMessage
from schema.wire.queues import DLQ, topology
from tests.support.broker import broker_settings
from tests.support.eventually import eventually
from tests.support.factories import LEASE, rows
from tests.support.oracle import Verdict, verify
from tests.support.system import Process, System

# A relay's rows are its own for twice this and two seconds; a killed one's come back then.
SHORT_LOCK = {"DOCSTAGE_PUBLISH_TIMEOUT_SECONDS": "0.5"}
ONE_PARSER = {"DOCSTAGE_CHILD_PROCESSES": "1"}
SETTLED = {"completed", "failed", "cancelled"}


@dataclass(slots=True)
class Rig:
    """The system, a client of it, and an eye on its queues."""

    system: System
    client: httpx.AsyncClient
    broker: BrokerSession

    async def whole(self) -> None:
        """Start what a cell before has left dead."""
        parts = {"publisher": ("publisher",), "intake": ("intake",), "survivor": ("stages", *Stage)}
        dead = [name for name in parts if name not in self.system.processes or self.is_dead(name)]
        await self.system.start(*(self.system.process(name, *parts[name], **ONE_PARSER) for name in dead))

    def is_dead(self, name: str) -> bool:
        """Say whether a process has ended."""
        popen = self.system.processes[name].popen
        return popen is None or popen.poll() is not None

    async def post(self, body: bytes, key: str) -> httpx.Response:
        """Submit a document once, as a client with an Idempotency-Key."""
        return await self.client.post(
            f"{self.system.processes['intake'].url}/v1/jobs",
            data={"kind": "text"},
            files={"file": ("document", body)},
            headers={"Idempotency-Key": key},
        )

    async def submit(self, body: bytes) -> str:
        """Submit a document and return its job's id."""
        answer = await self.client.post(
            f"{self.system.processes['intake'].url}/v1/jobs", data={"kind": "text"}, files={"file": ("document", body)}
        )
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    async def doomed(self, stage: str, armed: str, **settings: str) -> Process:
        """Start a worker with armed points beside the one that survives."""
        made = self.system.stages("doomed", stage, DOCSTAGE_FAILPOINTS=armed, **ONE_PARSER, **settings)
        # What the one before it has said is not this one's.
        made.log.unlink(missing_ok=True)
        await self.system.start(made)
        return made

    async def strike(self, doomed: Process, bodies: Iterable[bytes], struck: Callable[[], bool]) -> str:
        """Submit one job after the other until ``doomed`` gets one and is struck; return that job.

        The broker deals deliveries out in turn, so this is the first or the second.
        """
        (newest,) = await rows(self.system.database, "SELECT max(id) AS id FROM worker")
        for body in bodies:
            job_id = await self.submit(body)
            await self.finished(job_id)
            claimed = await rows(
                self.system.database,
                "SELECT 1 FROM stage_attempt WHERE job_id = :job AND worker_id = :worker",
                job=job_id,
                worker=newest["id"],
            )
            if claimed:
                # The job may be finished a moment before the process is.
                await eventually(struck)
            if struck():
                return job_id
        message = f"{doomed.name} was not hit: {doomed.log.read_text()[-2000:]}"
        raise AssertionError(message)

    async def finished(self, job_id: str) -> None:
        """Wait until a job is finished, whoever has been killed."""

        async def look() -> bool:
            (job,) = await rows(self.system.database, "SELECT finished_at FROM job WHERE id = :id", id=job_id)
            return job["finished_at"] is not None

        await eventually(look)

    async def verdict(self, job_id: str) -> Verdict:
        """Wait until all is said and done, then ask the oracle; nothing owed and no message left."""
        await self.finished(job_id)
        await eventually(self.settled)
        return await verify(self.system.database, job_id)

    async def settled(self) -> bool:
        """Say whether neither outbox nor broker holds anything but the messages of open dead letters."""
        if owed := await rows(self.system.database, "SELECT * FROM outbox_event"):
            raise AssertionError(owed)
        left = {queue.name: await self.depth(queue.name) for queue in topology().queues}
        assert {name: depth for name, depth in left.items() if depth and name != DLQ} == {}
        return True

    async def depth(self, queue: str) -> int:
        """Return how many messages wait in a queue."""
        found = await self.broker.inspect(queue)
        return found.messages if found else 0

    async def letters_agree(self) -> bool:
        """Say whether the dead-letter queue shows each open letter once, after the sweeper's look at it."""
        (open_,) = await rows(self.system.database, "SELECT count(*) AS n FROM dead_letter WHERE state = 'open'")
        if await self.depth(DLQ) != open_["n"]:
            await reconcile(broker_settings(self.system.environment["DOCSTAGE_AMQP_URL"]), self.system.database)
        assert await self.depth(DLQ) == open_["n"]
        return True

    async def forget_letters(self) -> None:
        """Begin without dead letters."""
        async with self.system.database.transaction() as conn:
            await conn.execute(text("DELETE FROM dead_letter"))
        await eventually(self.letters_agree)

    async def claim(self, job_id: str) -> Claim:
        """Claim a job's first run as a worker would that nobody else knows."""
        message = StageMessage(UUID(job_id), Stage.VALIDATE, 1, 1)
        async with self.system.database.transaction() as conn:
            (claimed,) = await stage_runs.claim(conn, [message], worker_id=0, lease=LEASE)
        assert claimed is not None
        return claimed.claim

    async def write(self, move: Move) -> None:
        """Write a move."""
        async with self.system.database.transaction() as conn:
            assert await moves.lock_and_apply(conn, [move]) == [True]

    async def stop_publisher(self) -> None:
        """End the publisher, so that what is owed from now on stays owed."""
        self.system.processes["publisher"].close()

    async def kill_publisher(self, failpoints: str) -> None:
        """Let a publisher work until it dies at a point, then start another as whoever supervises it would."""
        doomed = self.system.process("publisher", "publisher", DOCSTAGE_FAILPOINTS=failpoints, **SHORT_LOCK)
        doomed.start()
        assert await doomed.wait() == -9
        await self.whole()


@asynccontextmanager
async def rigged(system: System) -> AsyncIterator[Rig]:
    """Offer a rig around a system."""
    headers: Mapping[str, Any] = {"Authorization": f"Bearer {system.key}"}
    settings = broker_settings(system.environment["DOCSTAGE_AMQP_URL"])
    async with (
        # A connection that is kept may be closed by the server just as it is used again.
        httpx.AsyncClient(headers=headers, timeout=60, limits=httpx.Limits(max_keepalive_connections=0)) as client,
        await BrokerSession.open(settings, "docstage-test-rig") as broker,
    ):
        yield Rig(system, client, broker)
