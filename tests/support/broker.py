"""A broker's other end: sessions, queues that are emptied into a list, and rows for the outbox."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import httpx
from sqlalchemy import text

from schema.db.engine import Database
from schema.domain.ids import new_id
from schema.domain.states import Lane
from schema.runtime.broker import BrokerSession, Delivery
from schema.runtime.settings import BrokerSettings, PublisherSettings
from schema.runtime.topology import declare_topology
from tests.support.services import Services


def publisher_settings(environment: dict[str, str], **changes: object) -> PublisherSettings:
    """Return the settings of a publisher in a test's own part of the services."""
    values = {name.removeprefix("DOCSTAGE_").lower(): value for name, value in environment.items()}
    return PublisherSettings(**values | changes)


def broker_settings(amqp_url: str, **changes: object) -> BrokerSettings:
    """Return the settings of a session to a test's own virtual host."""
    return BrokerSettings(amqp_url=amqp_url, **changes)


@asynccontextmanager
async def topology_session(amqp_url: str, *, publish_channels: int = 1) -> AsyncIterator[BrokerSession]:
    """Open a session that can publish, with the topology declared."""
    async with await BrokerSession.open(
        broker_settings(amqp_url), "docstage-test", publish_channels=publish_channels
    ) as session:
        await declare_topology(session)
        yield session


def delete_queue(services: Services, amqp_url: str, queue: str) -> None:
    """Take a queue away, as an operator might by mistake."""
    vhost = amqp_url.rpartition("/")[2]
    httpx.delete(f"{services.management_url}/api/queues/{vhost}/{queue}").raise_for_status()


def purge_queue(services: Services, amqp_url: str, queue: str) -> None:
    """Throw away what a queue holds, as an operator might by mistake."""
    vhost = amqp_url.rpartition("/")[2]
    httpx.delete(f"{services.management_url}/api/queues/{vhost}/{queue}/contents").raise_for_status()


@dataclass(slots=True)
class Inbox:
    """What has arrived, and when by the loop's clock; acknowledged at once unless told otherwise."""

    session: BrokerSession
    acks: bool = True
    deliveries: list[Delivery] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    tasks: set[asyncio.Task[bool]] = field(default_factory=set)

    def take(self, delivery: Delivery) -> None:
        """Keep a delivery."""
        self.deliveries.append(delivery)
        self.times.append(asyncio.get_running_loop().time())
        if self.acks:
            task = asyncio.create_task(self.session.ack(delivery))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    def bodies(self) -> list[dict[str, object]]:
        """Return what the messages say."""
        return [json.loads(delivery.body) for delivery in self.deliveries]


@asynccontextmanager
async def inbox(amqp_url: str, *queues: str, acks: bool = True, prefetch: int = 1000) -> AsyncIterator[Inbox]:
    """Consume queues into one list for as long as the block runs."""
    async with await BrokerSession.open(broker_settings(amqp_url), "docstage-test-inbox") as session:
        await declare_topology(session)
        box = Inbox(session, acks)
        for queue in queues:
            await session.consume(queue, prefetch=prefetch, on_delivery=box.take)
        yield box


async def owe(
    database: Database,
    *,
    lane: Lane = Lane.VALIDATE,
    job_id: UUID | None = None,
    delay_seconds: float | None = None,
    kind: str = "stage",
) -> UUID:
    """Put one message into the outbox; return its event id."""
    event_id, job_id = new_id(), job_id or new_id()
    payload = {"job_id": str(job_id), "stage": lane.stage.value, "series": 1, "attempt": 1}
    async with database.transaction() as conn:
        await conn.execute(
            text(
                "INSERT INTO outbox_event (event_id, kind, job_id, lane, payload, not_before) VALUES"
                " (:event_id, :kind, :job_id, :lane, CAST(:payload AS jsonb),"
                "  now() + CAST(:delay AS float8) * interval '1 second')"
            ),
            {
                "event_id": event_id,
                "kind": kind,
                "job_id": job_id,
                "lane": lane.value,
                "payload": json.dumps(payload),
                "delay": delay_seconds,
            },
        )
    return event_id


@asynccontextmanager
async def running(loop: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    """Run a loop beside the block and cancel it afterwards; one that fails, fails the test."""
    task = asyncio.ensure_future(loop)
    try:
        yield task
    finally:
        if task.done():
            task.result()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
