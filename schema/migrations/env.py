"""Run migrations: one at a time over all machines, none waiting long for a lock, each in one transaction."""

import asyncio

from alembic import context
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from schema.db.engine import async_url
from schema.db.locks import MIGRATION_LOCK
from schema.db.tables import metadata


def _run(connection: Connection) -> None:
    # Whoever comes second waits for the first, however long that takes.
    connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": MIGRATION_LOCK})
    # A migration that waits for a lock makes every later query on that table wait behind it.
    connection.execute(text("SET lock_timeout = '2s'"))
    connection.commit()
    try:
        context.configure(connection=connection, target_metadata=metadata, transaction_per_migration=True)
        with context.begin_transaction():
            context.run_migrations()
    finally:
        connection.rollback()
        connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": MIGRATION_LOCK})
        connection.commit()


async def _main() -> None:
    engine = create_async_engine(async_url(context.config.attributes["database_url"]), poolclass=NullPool)
    async with engine.connect() as connection:
        await connection.run_sync(_run)
    await engine.dispose()


asyncio.run(_main())
