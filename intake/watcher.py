"""Watching jobs for everyone who waits: one query per turn and process, however many wait."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from schema.db import job_records
from schema.db.engine import Database
from schema.db.job_records import Mark

TURN_SECONDS: Final = 0.1
# A turn rests for at least this many times what its query took, so that watching never becomes the load.
REST_FACTOR: Final = 9
BATCH: Final = 1000


@dataclass(slots=True)
class Watch:
    """One waiter's view of one job."""

    job_id: UUID
    mark: Mark | None = None
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    async def changed(self, seconds: float) -> bool:
        """Wait until the job has changed since the last call, or was first looked at; ``False`` when time is up."""
        try:
            async with asyncio.timeout(seconds):
                await self._moved.wait()
        except TimeoutError:
            return False
        self._moved.clear()
        return True

    def tell(self, mark: Mark | None) -> None:
        """Take what the job is like now."""
        if mark != self.mark:
            self.mark = mark
            self._moved.set()

    def end(self) -> None:
        """Let the waiter go on although nothing changed."""
        self._moved.set()


class Watcher:
    """Looks at all watched jobs in turns; rests while there are none."""

    def __init__(self, database: Database) -> None:
        """Begin with nobody waiting."""
        self.stopping = False
        self._database = database
        self._watches: defaultdict[UUID, set[int]] = defaultdict(set)
        self._all: dict[int, Watch] = {}
        self._wanted = asyncio.Event()

    @contextlib.contextmanager
    def watch(self, job_id: UUID) -> Iterator[Watch]:
        """Watch a job while the block runs."""
        watch = Watch(job_id)
        if self.stopping:
            watch.end()
        self._all[id(watch)] = watch
        self._watches[job_id].add(id(watch))
        self._wanted.set()
        try:
            yield watch
        finally:
            del self._all[id(watch)]
            self._watches[job_id].discard(id(watch))
            if not self._watches[job_id]:
                del self._watches[job_id]

    def stop(self) -> None:
        """Let everyone who waits go on, now and from now on."""
        self.stopping = True
        for watch in self._all.values():
            watch.end()

    async def run(self) -> None:
        """Look and tell, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            await self._wanted.wait()
            began = loop.time()
            await self._look()
            if not self._all:
                self._wanted.clear()
            await asyncio.sleep(max(TURN_SECONDS, REST_FACTOR * (loop.time() - began)))

    async def _look(self) -> None:
        """Read the marks of all watched jobs and tell the waiters."""
        jobs = list(self._watches)
        for first in range(0, len(jobs), BATCH):
            batch = jobs[first : first + BATCH]
            async with self._database.transaction() as conn:
                marks = await job_records.marks(conn, batch)
            for job_id in batch:
                for number in tuple(self._watches.get(job_id, ())):
                    self._all[number].tell(marks.get(job_id))
