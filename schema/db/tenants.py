"""Tenants and their API keys; of a key only its hash is kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from schema.db.tables import api_key, tenant
from schema.domain.ids import new_id

_ENSURE = text("""
WITH made AS (
    INSERT INTO tenant (id, name) VALUES (:id, :name) ON CONFLICT (name) DO NOTHING RETURNING id
)
SELECT id FROM made UNION ALL SELECT id FROM tenant WHERE name = :name LIMIT 1
""")

_ADD_KEY = text("""
INSERT INTO api_key (id, tenant_id, name, key_hash) VALUES (:id, :tenant_id, :name, :key_hash)
""")


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """One key as its owner may see it."""

    id: UUID
    tenant: str
    name: str
    created_at: datetime
    revoked_at: datetime | None


async def ensure_tenant(conn: AsyncConnection, *, name: str) -> UUID:
    """Return the tenant of this name, which is made when it is new.

    Idempotent: yes, except that of two that make it at the same instant one may see none and raise.
    """
    found: UUID = (await conn.execute(_ENSURE, {"id": new_id(), "name": name})).scalar_one()
    return found


async def add_key(conn: AsyncConnection, *, tenant_id: UUID, name: str, key_hash: bytes) -> UUID:
    """Keep a key's hash; return the key's id."""
    key_id = new_id()
    await conn.execute(_ADD_KEY, {"id": key_id, "tenant_id": tenant_id, "name": name, "key_hash": key_hash})
    return key_id


async def tenant_of_key(conn: AsyncConnection, *, key_hash: bytes) -> UUID | None:
    """Return whose key it is; ``None`` when nobody's, or when it is revoked.

    The hash is the whole lookup: there is no comparison whose time could tell how much of a key was right.
    """
    statement = select(api_key.c.tenant_id).where(api_key.c.key_hash == key_hash, api_key.c.revoked_at.is_(None))
    found: UUID | None = (await conn.execute(statement)).scalar_one_or_none()
    return found


async def list_keys(conn: AsyncConnection) -> Sequence[KeyRecord]:
    """Return every key, tenant by tenant, oldest first."""
    statement = (
        select(api_key.c.id, tenant.c.name.label("tenant"), api_key.c.name, api_key.c.created_at, api_key.c.revoked_at)
        .join(tenant, tenant.c.id == api_key.c.tenant_id)
        .order_by(tenant.c.name, api_key.c.id)
    )
    return [KeyRecord(**row) for row in (await conn.execute(statement)).mappings()]


async def revoke_key(conn: AsyncConnection, *, key_id: UUID) -> bool:
    """Revoke a key for good; ``False`` when there is none of this id that is not revoked already."""
    statement = (
        update(api_key).where(api_key.c.id == key_id, api_key.c.revoked_at.is_(None)).values(revoked_at=func.now())
    )
    return (await conn.execute(statement)).rowcount == 1
