"""Endpoints: where a tenant wants to be told, of what, and signed with which sealed secret."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from schema.db.tables import webhook_endpoint
from schema.domain.notices import NoticeType


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint, as its owner may see it; secrets are not among what can be read here."""

    id: UUID
    tenant_id: UUID
    url: str
    events: Sequence[NoticeType]
    created_at: datetime
    disabled_at: datetime | None
    disabled_reason: str | None
    previous_until: datetime | None


@dataclass(frozen=True, slots=True)
class NewEndpoint:
    """What an owner asks for, checked; ``secret`` is sealed."""

    id: UUID
    tenant_id: UUID
    url: str
    events: Sequence[NoticeType]
    secret: bytes


# The tenant's row is locked, so that of two that add the last allowed one at the same moment one is refused.
_LOCK_TENANT = text("SELECT FROM tenant WHERE id = :tenant_id FOR NO KEY UPDATE")

_ADD = text("""
INSERT INTO webhook_endpoint (id, tenant_id, url, events, secret)
SELECT :id, :tenant_id, :url, CAST(:events AS text[]), CAST(:secret AS bytea)
WHERE (SELECT count(*) FROM webhook_endpoint WHERE tenant_id = :tenant_id) < :bound
RETURNING id
""")

# What is null stays as it is. An endpoint that is enabled already keeps no trace of having been disabled.
_CHANGE = text("""
UPDATE webhook_endpoint SET
    url = coalesce(:url, url),
    events = coalesce(CAST(:events AS text[]), events),
    disabled_at = CASE CAST(:enabled AS boolean) WHEN true THEN NULL WHEN false THEN coalesce(disabled_at, now())
                  ELSE disabled_at END,
    disabled_reason = CASE CAST(:enabled AS boolean) WHEN true THEN NULL
                      WHEN false THEN coalesce(disabled_reason, 'owner') ELSE disabled_reason END
WHERE id = :id AND tenant_id = :tenant_id
""")

_ROTATE = text("""
UPDATE webhook_endpoint SET
    previous_secret = secret, previous_until = now() + CAST(:overlap AS interval), secret = CAST(:secret AS bytea)
WHERE id = :id AND tenant_id = :tenant_id
""")

_REMOVE = text("DELETE FROM webhook_endpoint WHERE id = :id AND tenant_id = :tenant_id")

_COLUMNS = tuple(webhook_endpoint.c[name] for name in Endpoint.__dataclass_fields__)


async def add(conn: AsyncConnection, endpoint: NewEndpoint, *, bound: int) -> bool:
    """Keep an endpoint; ``False`` when its tenant has ``bound`` of them already."""
    await conn.execute(_LOCK_TENANT, {"tenant_id": endpoint.tenant_id})
    values = {
        "id": endpoint.id,
        "tenant_id": endpoint.tenant_id,
        "url": endpoint.url,
        "events": [event.value for event in endpoint.events],
        "secret": endpoint.secret,
        "bound": bound,
    }
    return (await conn.execute(_ADD, values)).one_or_none() is not None


async def list_of(conn: AsyncConnection, *, tenant_id: UUID) -> list[Endpoint]:
    """Read a tenant's endpoints, oldest first."""
    statement = select(*_COLUMNS).where(webhook_endpoint.c.tenant_id == tenant_id).order_by(webhook_endpoint.c.id)
    return [_endpoint(row) for row in await conn.execute(statement)]


async def find(conn: AsyncConnection, *, endpoint_id: UUID, tenant_id: UUID) -> Endpoint | None:
    """Read one of a tenant's endpoints; ``None`` when there is none of this id, or it is another tenant's."""
    statement = select(*_COLUMNS).where(webhook_endpoint.c.id == endpoint_id, webhook_endpoint.c.tenant_id == tenant_id)
    row = (await conn.execute(statement)).one_or_none()
    return _endpoint(row) if row else None


async def change(
    conn: AsyncConnection,
    *,
    endpoint_id: UUID,
    tenant_id: UUID,
    url: str | None,
    events: Sequence[NoticeType] | None,
    enabled: bool | None,
) -> bool:
    """Change what is given; ``False`` when the tenant has no such endpoint."""
    values = {
        "id": endpoint_id,
        "tenant_id": tenant_id,
        "url": url,
        "events": [event.value for event in events] if events is not None else None,
        "enabled": enabled,
    }
    return (await conn.execute(_CHANGE, values)).rowcount == 1


async def rotate(
    conn: AsyncConnection, *, endpoint_id: UUID, tenant_id: UUID, secret: bytes, overlap: timedelta
) -> bool:
    """Replace the secret; the one before signs too for ``overlap``. ``False`` when there is no such endpoint."""
    values = {"id": endpoint_id, "tenant_id": tenant_id, "secret": secret, "overlap": overlap}
    return (await conn.execute(_ROTATE, values)).rowcount == 1


async def remove(conn: AsyncConnection, *, endpoint_id: UUID, tenant_id: UUID) -> bool:
    """Remove an endpoint with its secrets and deliveries; ``False`` when there is no such endpoint."""
    return (await conn.execute(_REMOVE, {"id": endpoint_id, "tenant_id": tenant_id})).rowcount == 1


def _endpoint(row: Row[Any]) -> Endpoint:
    values = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it
    return Endpoint(**values | {"events": [NoticeType(event) for event in row.events]})
