"""The end of content: what is kept no longer, and objects that belong to nobody."""

import asyncio
import contextlib
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from schema.db import jobs, sweeps
from schema.db.engine import Database
from schema.db.locks import lock_jobs
from schema.domain.errors import TransientError
from schema.runtime.blobs import JOBS_PREFIX, Blobs, job_of, job_prefix
from schema.runtime.clock import Clock
from schema.runtime.settings import PublisherSettings

LISTED: Final = 1000
STRAY_AGE: Final = timedelta(hours=1)
ROUND_PAUSE_SECONDS: Final = 600.0


@dataclass(slots=True)
class Retention:
    """The rules that need the object store; their database part commits first, so that a crash leaves only strays."""

    settings: PublisherSettings
    database: Database
    blobs: Blobs
    clock: Clock
    _cursor: str = field(default="", init=False)
    _resumes_at: float = field(default=0.0, init=False)

    async def retention(self) -> int:
        """Bury finished jobs that are past their time, then delete their objects."""
        async with self.database.transaction() as conn:
            found = await sweeps.find_expired_jobs(conn, limit=self.settings.sweep_batch)
            free = await lock_jobs(conn, found, skip_locked=True)
            buried = await jobs.bury(conn, sorted(free))
        # Where the store is away the objects are strays from now on, and wait for the rule below.
        with contextlib.suppress(TransientError):
            await asyncio.gather(*(self.blobs.delete_prefix(job_prefix(job_id)) for job_id in buried))
        return len(buried)

    async def orphaned_objects(self) -> int:
        """Look at the next objects in the store and delete those of jobs that do not exist or have been deleted.

        They come from uploads whose job was never committed, deletions that a crash cut short, and workers that
        wrote an output after their job was gone.
        """
        if self.clock.monotonic() < self._resumes_at:
            return 0
        try:
            return await self._look()
        except TransientError:
            # Intake and the workers say so already; what the database needs swept must not look unswept for it.
            return 0

    async def _look(self) -> int:
        """Look at the next objects; return how many were strays."""
        entries = await self.blobs.list(JOBS_PREFIX, after=self._cursor, limit=LISTED)
        owned = {entry.key: owner for entry in entries if (owner := job_of(entry.key))}
        async with self.database.transaction() as conn:
            owners = await sweeps.find_owners(conn, sorted(set(owned.values())), age=STRAY_AGE)
        stray = [
            entry.key
            for entry in entries
            if entry.key in owned and owned[entry.key] not in owners.alive and entry.modified_at < owners.before
        ]
        await self.blobs.delete(stray)
        if len(entries) < LISTED:
            await self.blobs.abort_uploads(JOBS_PREFIX, before=owners.before)
            self._resumes_at = self.clock.monotonic() + ROUND_PAUSE_SECONDS
        self._cursor = entries[-1].key if len(entries) == LISTED else ""
        return len(stray)
