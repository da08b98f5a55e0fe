"""API keys from the command line, straight from the database: whoever may do this needs no key of his own."""

from uuid import UUID

from rich.console import Console
from rich.table import Table

from intake.keys import key_hash, new_key
from schema.db import tenants
from schema.db.engine import Database


async def create(database: Database, *, tenant: str, name: str) -> str:
    """Make a key for a tenant, which is made when it is new; the key is returned here and nowhere else."""
    key = new_key()
    async with database.transaction() as conn:
        tenant_id = await tenants.ensure_tenant(conn, name=tenant)
        await tenants.add_key(conn, tenant_id=tenant_id, name=name, key_hash=key_hash(key))
    return key


async def show(database: Database, console: Console) -> None:
    """Print every key without the key itself."""
    async with database.transaction() as conn:
        keys = await tenants.list_keys(conn)
    table = Table("id", "tenant", "name", "created", "revoked", box=None)
    for key in keys:
        revoked = key.revoked_at.isoformat(timespec="seconds") if key.revoked_at else ""
        table.add_row(str(key.id), key.tenant, key.name, key.created_at.isoformat(timespec="seconds"), revoked)
    console.print(table)


async def revoke(database: Database, key_id: UUID) -> bool:
    """End a key; ``False`` when there is none of this id in use."""
    async with database.transaction() as conn:
        return await tenants.revoke_key(conn, key_id=key_id)
