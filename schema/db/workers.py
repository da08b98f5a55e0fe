"""Worker incarnations, and the locks by which others see in milliseconds that one is gone."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

import asyncpg
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from schema.db.engine import SESSION_LIMITS, plain_url

# The first half of the advisory locks' key; only its constancy matters.
LIVENESS_CLASS: Final = 0x0D0C
ANSWER_SECONDS: Final = 5.0

_REGISTER = text("INSERT INTO worker (stages) VALUES (:stages) RETURNING id")
# A row that was forgotten while its worker was cut off comes back: without it the worker's lock would prove nothing.
_LIVES_BY = text("""
INSERT INTO worker (id, stages, liveness) OVERRIDING SYSTEM VALUE VALUES (:id, :stages, :liveness)
ON CONFLICT (id) DO UPDATE SET liveness = EXCLUDED.liveness
""")
_STOPPED = text("UPDATE worker SET stopped_at = now() WHERE id = :id")

# For 10 s after PostgreSQL has started every lock is free, whoever lives; it proves nothing then. Nor does
# the lock of a worker that nobody could see holding one.
_PROVABLE = text("""
SELECT id FROM worker
WHERE id = ANY(CAST(:ids AS int[])) AND liveness = 'lock'
  AND now() - pg_postmaster_start_time() > interval '10 seconds'
""")

# In any order, so that living ones at the front do not keep the others from ever being looked at.
_FORGETTABLE = text("""
SELECT id, liveness FROM worker
WHERE started_at <= now() - CAST(:age AS interval)
  AND id NOT IN (SELECT worker_id FROM stage_run WHERE status = 'running')
ORDER BY random() LIMIT :limit
""")
_FORGET = text("DELETE FROM worker WHERE id = ANY(CAST(:ids AS int[]))")

# Shared, so that two who ask at once do not take each other for the owner; until the transaction's end only.
_FREE = text("""
SELECT id, pg_try_advisory_xact_lock_shared(:class, id) AS free FROM unnest(CAST(:ids AS int[])) AS id
""")


async def register(conn: AsyncConnection, *, stages: Sequence[str]) -> int:
    """Write down a new incarnation and return its id."""
    row = await conn.execute(_REGISTER, {"stages": ",".join(stages)})
    return int(row.scalar_one())


async def lives_by(conn: AsyncConnection, worker_id: int, *, stages: Sequence[str], liveness: str) -> None:
    """Say whether this worker's ``lock`` can be seen, or it lives by ``lease`` alone."""
    await conn.execute(_LIVES_BY, {"id": worker_id, "stages": ",".join(stages), "liveness": liveness})


async def stopped(conn: AsyncConnection, worker_id: int) -> None:
    """Write down that the incarnation ended in good order."""
    await conn.execute(_STOPPED, {"id": worker_id})


async def gone(conn: AsyncConnection, worker_ids: Sequence[int]) -> set[int]:
    """Return which workers are provably gone: their lock can be had."""
    provable = list((await conn.execute(_PROVABLE, {"ids": list(worker_ids)})).scalars())
    if not provable:
        return set()
    rows = await conn.execute(_FREE, {"class": LIVENESS_CLASS, "ids": provable})
    return {row.id for row in rows if row.free}


async def forget_gone(conn: AsyncConnection, *, age: timedelta, limit: int) -> int:
    """Delete the rows of incarnations that began long ago, are gone, and own no run.

    A worker that lives holds its lock. Until the transaction ends nobody can take the locks that were found free, so
    one that is cut off just now takes its own afterwards, and writes its row again. Of a worker that lives by
    its lease nobody asks the row.

    Returns:
        How many were deleted.
    """
    old = (await conn.execute(_FORGETTABLE, {"age": age, "limit": limit})).all()
    unlocked = [row.id for row in old if row.liveness == "lease"]
    free = await gone(conn, [row.id for row in old if row.liveness == "lock"])
    return (await conn.execute(_FORGET, {"ids": [*unlocked, *free]})).rowcount


async def lock_is_seen(conn: AsyncConnection, worker_id: int) -> bool:
    """Say from another session whether the worker's lock is held; not so behind a transaction pooler."""
    rows = await conn.execute(_FREE, {"class": LIVENESS_CLASS, "ids": [worker_id]})
    return not rows.one().free


class LivenessLock:
    """A session that holds one worker's lock and runs nothing else, so that it dies with the process at once."""

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        """Keep the session."""
        self._connection = connection

    @classmethod
    async def take(cls, url: str, worker_id: int, on_lost: Callable[[], None]) -> "LivenessLock | None":
        """Open a session and take the lock; ``on_lost`` is called when the session ends.

        Returns:
            ``None`` while an earlier session, not yet noticed to be dead, holds the lock.
        """
        connection = await asyncpg.connect(
            plain_url(url),
            timeout=ANSWER_SECONDS,
            server_settings=SESSION_LIMITS | {"application_name": "docstage-liveness"},
        )
        taken = False
        try:
            connection.add_termination_listener(lambda _: on_lost())
            taken = await connection.fetchval(
                "SELECT pg_try_advisory_lock($1, $2)", LIVENESS_CLASS, worker_id, timeout=ANSWER_SECONDS
            )
        finally:
            # Without a word: the other end may be silent, and a session that was forgotten here might have the lock.
            if not taken:
                connection.terminate()
        return cls(connection) if taken else None

    async def close(self) -> None:
        """End the session and so free the lock."""
        await self._connection.close(timeout=2)
