"""Endpoints, notices and a courier, for tests of how jobs' ends are told."""

import base64
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv4Address
from typing import Any
from uuid import UUID

from standardwebhooks import Webhook

from schema.db import webhook_endpoints
from schema.db.engine import Database
from schema.db.webhook_deliveries import Copy
from schema.db.webhook_endpoints import NewEndpoint
from schema.domain import moves
from schema.domain.errors import ErrorCode
from schema.domain.ids import new_id
from schema.domain.notices import NoticeType
from schema.domain.states import AttemptOutcome
from schema.domain.targets import Address, parse_networks
from schema.runtime.clock import SystemClock
from schema.runtime.vault import Vault
from schema.wire.messages import NoticeMessage
from schema.wire.webhooks import new_secret, shown_secret
from stages.deliver.courier import Courier
from stages.deliver.transport import Transport
from tests.support.factories import AcceptedJob, accepted_job, claim, rows, write
from tests.support.receiver import Received

KEY = secrets.token_bytes(32)
VAULT = Vault([KEY])
# The settings with which intake and a sender have a receiver on this machine.
HOOKS = {
    "DOCSTAGE_WEBHOOK_KEYS": base64.b64encode(KEY).decode(),
    "DOCSTAGE_WEBHOOK_NETWORKS": "127.0.0.0/8",
    "DOCSTAGE_WEBHOOK_SCHEDULE_SECONDS": "0.2,0.2,0.2",
}
LOOPBACK = "127.0.0.0/8,::1"
SCHEDULE = (timedelta(seconds=5), timedelta(minutes=5))


@dataclass(frozen=True, slots=True)
class OwnEndpoint:
    """An endpoint and the secret that its owner was shown."""

    id: UUID
    secret: str


class Names:
    """A resolver that gives the answers it was given, one after the other, the last one for ever."""

    def __init__(self, *answers: Sequence[str]) -> None:
        """Take the answers to come."""
        self.answers = [[IPv4Address(one) for one in answer] for answer in answers]
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int) -> Sequence[Address]:  # noqa: ARG002 - the port's signature
        """Give the next answer; none at all is a name that does not exist."""
        self.asked.append(host)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if not answer:
            raise OSError
        return answer


async def add_endpoint(
    database: Database, tenant_id: UUID, url: str, *, events: Sequence[NoticeType] = tuple(NoticeType)
) -> OwnEndpoint:
    """Keep an endpoint as the API does."""
    secret, endpoint_id = new_secret(), new_id()
    sealed = VAULT.seal(secret, owner=endpoint_id.bytes)
    async with database.transaction() as conn:
        added = await webhook_endpoints.add(conn, NewEndpoint(endpoint_id, tenant_id, url, events, sealed), bound=100)
    assert added
    return OwnEndpoint(endpoint_id, shown_secret(secret))


async def told_job(database: Database, url: str, **endpoint: Any) -> tuple[AcceptedJob, OwnEndpoint]:
    """Return a job whose tenant has an endpoint."""
    job = await accepted_job(database)
    return job, await add_endpoint(database, job.tenant_id, url, **endpoint)


async def fail_job(database: Database, job: AcceptedJob) -> None:
    """End a job as a permanent failure does."""
    claimed = await claim(database, job)
    assert claimed is not None
    code = ErrorCode.CORRUPT_DOCUMENT
    assert await write(database, moves.fail(claimed.claim, code, closes=AttemptOutcome.PERMANENT)) == [True]


async def owed(database: Database) -> list[Copy]:
    """Return the notices that the outbox owes, oldest first."""
    found = await rows(database, "SELECT payload, deferrals FROM outbox_event WHERE kind = 'notice' ORDER BY id")
    return [Copy(message_of(row["payload"]), row["deferrals"]) for row in found]


def message_of(payload: Any) -> NoticeMessage:
    """Read an outbox row's payload."""
    return NoticeMessage(UUID(payload["endpoint_id"]), UUID(payload["event_id"]), payload["series"], payload["attempt"])


@asynccontextmanager
async def courier(
    database: Database,
    *,
    networks: str = LOOPBACK,
    names: Names | None = None,
    schedule: Sequence[timedelta] = SCHEDULE,
    timeout_seconds: float = 20.0,
    ca_file: str = "",
    vault: Vault = VAULT,
    share: int = 8,
) -> AsyncIterator[Courier]:
    """Offer a courier that may go to this machine."""
    transport = Transport(
        resolver=names or Names([]), networks=parse_networks(networks), timeout_seconds=timeout_seconds, ca_file=ca_file
    )
    try:
        yield Courier(
            database=database,
            vault=vault,
            transport=transport,
            schedule=schedule,
            share=share,
            clock=SystemClock(),
        )
    finally:
        await transport.close()


def verified(received: Received, secret: str) -> Any:
    """Check a request with an implementation that is not ours, and return what it says."""
    return Webhook(secret).verify(received.body, received.headers)
