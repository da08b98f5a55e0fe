"""The database: one way to a connection, with limits on everything that could hang."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

WAKE_CHANNEL: Final = "docstage_outbox"

# Milliseconds where PostgreSQL takes bare numbers; keepalives in seconds.
SESSION_LIMITS: Final = {
    "timezone": "UTC",
    "jit": "off",
    "statement_timeout": "30000",
    "lock_timeout": "2000",
    "idle_in_transaction_session_timeout": "5000",
    "client_connection_check_interval": "100",
    # All that runs here looks rows up by their keys. A plan made before the planner has seen the tables, or for a
    # batch it takes to be large, must not read them whole: prepared plans are kept, and the tables grow.
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "random_page_cost": "1.1",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}

# What a caller may see as "the database is not answering right now".
DatabaseUnavailable: Final = (OperationalError, InterfaceError, PoolTimeoutError, OSError, TimeoutError)
LOCK_NOT_HAD: Final = "55P03"
# The same from a server that answers: connections, a standby that was asked to write (a failover under way),
# serialization and deadlocks, resources, a lock not had in time, operators' interventions (a statement that took too
# long, a shutdown, a start). The driver's adapter has no class of its own for these.
NOT_NOW: Final = ("08", "25006", "40", "53", LOCK_NOT_HAD, "57")


def async_url(url: str) -> str:
    """Name SQLAlchemy's asyncpg driver in a plain ``postgresql://`` URL."""
    return url.replace("postgresql://", "postgresql+asyncpg://", 1)


def plain_url(url: str) -> str:
    """Take a driver's name out of the URL again."""
    return url.replace("postgresql+asyncpg://", "postgresql://", 1)


def is_unavailable(error: BaseException) -> bool:
    """Say whether ``error`` means that the database does not answer now, and not that it refuses for good."""
    if isinstance(error, DBAPIError) and (error.connection_invalidated or _state(error).startswith(NOT_NOW)):
        return True
    return isinstance(error, DatabaseUnavailable)


def is_held_up(error: BaseException) -> bool:
    """Say whether ``error`` means that one row is locked by somebody else, and says nothing about other rows."""
    return isinstance(error, DBAPIError) and _state(error) == LOCK_NOT_HAD


def _state(error: DBAPIError) -> str:
    """Return PostgreSQL's SQLSTATE of an error, empty when it has none."""
    return getattr(error.orig, "sqlstate", None) or ""


@dataclass(frozen=True, slots=True)
class Database:
    """A pool of connections with session limits, and the only way to a transaction."""

    engine: AsyncEngine
    url: str

    @classmethod
    def connect(cls, url: str, *, application: str, pool_size: int, answer_seconds: float = 35) -> "Database":
        """Make the pool; nothing is connected before the first transaction.

        An answer is waited for a little longer than the server may take over a statement, or ``answer_seconds``.

        ``pre_ping`` is off because a dead connection fails its first statement anyway, and every caller
        retries by redelivery, poll or answer 503.
        """
        engine = create_async_engine(
            async_url(url),
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=10,
            connect_args={
                "server_settings": SESSION_LIMITS | {"application_name": application},
                "timeout": 5,
                "command_timeout": answer_seconds,
            },
        )
        return cls(engine, url)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """Commit when the block ends, roll back when it raises."""
        async with self.engine.begin() as connection:
            yield connection

    async def ping(self) -> None:
        """Ask for an answer: an empty transaction sends nothing, and would call a dead server alive."""
        async with self.transaction() as connection:
            await connection.execute(text("SELECT 1"))

    async def close(self) -> None:
        """Close every connection."""
        await self.engine.dispose()
