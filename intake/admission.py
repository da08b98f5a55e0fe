"""Admission: whether one more job is taken on, decided before its body is read.

The counts come from the database at most once a second and process; what was accepted since is added to them,
so that a burst between two looks does not slip through.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final
from uuid import UUID

from intake.problems import Problem, ProblemCode
from schema.db import backlog
from schema.db.backlog import Backlog
from schema.db.engine import Database
from schema.runtime import metrics
from schema.runtime.clock import Clock

FRESH_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 300.0
# What a refused client waits when nothing has finished of late, so that no rate can be told.
STANDSTILL_SECONDS: Final = 60.0
LONGEST_POLL_SECONDS: Final = 30.0
SLOT_WAIT_SECONDS: Final = 10.0


class Admission:
    """Says yes or no, and when to ask again."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        max_backlog: int,
        max_tenant_jobs: int,
        slots: int,
        tenant_slots: int,
    ) -> None:
        """Begin without having measured."""
        self.max_backlog = max_backlog
        self.max_tenant_jobs = max_tenant_jobs
        self._database = database
        self._clock = clock
        self._slots = asyncio.Semaphore(slots)
        self._tenant_slots = defaultdict[UUID, asyncio.Semaphore](lambda: asyncio.Semaphore(tenant_slots))
        self._measuring = asyncio.Lock()
        self._backlog = Backlog({}, 0.0)
        self._fresh_until = float("-inf")
        self._since: Counter[UUID] = Counter()

    async def refusal(self, tenant_id: UUID) -> Problem | None:
        """Say why a job of this tenant is not taken on now; ``None`` when it is."""
        await self._measure()
        total = self._backlog.total + self._since.total()
        if total >= self.max_backlog:
            wait = self._seconds_until(total - self.max_backlog + 1, self._backlog.rate)
            return _refused(ProblemCode.OVERLOADED, wait, self.max_backlog, total)
        jobs = self._jobs(tenant_id)
        if jobs >= self.max_tenant_jobs:
            # The fleet's rate, as far as it works for this tenant.
            wait = self._seconds_until(jobs - self.max_tenant_jobs + 1, self._backlog.rate * jobs / total)
            return _refused(ProblemCode.TOO_MANY_JOBS, wait, self.max_tenant_jobs, jobs)
        return None

    async def unfinished(self, tenant_id: UUID) -> int:
        """Return how many unfinished jobs the tenant has."""
        await self._measure()
        return self._jobs(tenant_id)

    def accepted(self, tenant_id: UUID) -> None:
        """Count a job that was accepted since the last look."""
        self._since[tenant_id] += 1

    def poll_after(self) -> float:
        """Return in how many seconds a job accepted now may be worth a look."""
        total = self._backlog.total + self._since.total()
        return min(LONGEST_POLL_SECONDS, total / self._backlog.rate) if self._backlog.rate else 1.0

    @asynccontextmanager
    async def slot(self, tenant_id: UUID) -> AsyncIterator[None]:
        """Hold one of the places for uploads, which bound the memory of all of them together.

        One tenant does not get them all: its slow uploads must not shut the others out.

        Raises:
            Problem: ``overloaded``, when none comes free in time.
        """
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(SLOT_WAIT_SECONDS):
                    await held.enter_async_context(self._tenant_slots[tenant_id])
                    await held.enter_async_context(self._slots)
            except TimeoutError:
                metrics.REFUSALS.labels(ProblemCode.OVERLOADED).inc()
                raise Problem(ProblemCode.OVERLOADED, "All places for uploads are taken.", retry_after=1) from None
            yield

    async def _measure(self) -> None:
        """Look at the database unless the last look is fresh; one at a time, the others wait for its answer."""
        async with self._measuring:
            if self._clock.monotonic() < self._fresh_until:
                return
            counted, self._since = self._since, Counter()
            try:
                async with self._database.transaction() as conn:
                    self._backlog = await backlog.read(conn, bound=self.max_backlog)
            except BaseException:
                self._since += counted
                raise
            self._fresh_until = self._clock.monotonic() + FRESH_SECONDS

    def _jobs(self, tenant_id: UUID) -> int:
        return self._backlog.by_tenant.get(tenant_id, 0) + self._since[tenant_id]

    @staticmethod
    def _seconds_until(jobs: int, rate: float) -> float:
        """Return how long finishing so many jobs takes."""
        return min(LONGEST_WAIT_SECONDS, jobs / rate) if rate else STANDSTILL_SECONDS


def _refused(code: ProblemCode, wait: float, limit: int, actual: int) -> Problem:
    metrics.REFUSALS.labels(code.value).inc()
    return Problem(code, retry_after=wait, limit=limit, actual=actual)
