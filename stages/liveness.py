"""Staying alive for others to see: the liveness lock and the leases, on a thread that no handler can starve."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from schema.db import stage_runs, workers
from schema.db.engine import Database, is_unavailable
from schema.domain.runs import Claim
from schema.domain.states import Stage
from schema.runtime.clock import Clock
from schema.runtime.lifecycle import backoff_seconds
from schema.runtime.logs import get_logger

log = get_logger()

# How soon a handler learns that its run was cancelled, or given to another worker.
WATCH_SECONDS: Final = 0.4
LOOK_SECONDS: Final = 5.0


@dataclass(slots=True)
class Hold:
    """A claim with a live handler; ``lost`` is set on the handler's loop when the claim is no longer current."""

    claim: Claim
    since: float
    limit_seconds: float
    lost: asyncio.Event


class Liveness:
    """One worker's incarnation: registers it, holds its lock, renews the leases of claims being worked on.

    A claim is renewed by its token and no longer than its limit after it was made: a handler that hangs in a
    living process loses its claim like one whose process died.
    """

    def __init__(self, url: str, *, stages: list[Stage], lease: timedelta, clock: Clock) -> None:
        """Keep the settings; ``start`` connects."""
        self._url = url
        self._stages = [stage.value for stage in stages]
        self._lease = lease
        self._clock = clock
        self._holds: dict[tuple[Claim, float], Hold] = {}
        self._guard = threading.Lock()
        self._worker_loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()
        self._lost = asyncio.Event()
        self._thread = threading.Thread(target=self._thread_main, name="liveness", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self.worker_id = 0

    def start(self) -> None:
        """Start the thread; it connects, and goes on trying as long as it must."""
        self._thread.start()

    async def ready(self) -> None:
        """Wait until the lock is held; who does not hold it may not claim."""
        await self._ready.wait()

    async def lost(self) -> None:
        """Wait until the lock, once held, is not."""
        await self._lost.wait()

    @property
    def is_ready(self) -> bool:
        """Whether claims may be made now."""
        return self._ready.is_set()

    async def stop(self) -> None:
        """Give the lock back and end the thread."""
        if self._loop is not None and self._stopping is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
        await asyncio.to_thread(self._thread.join, 5)

    @contextlib.contextmanager
    def holding(self, claim: Claim, limit: timedelta) -> Iterator[asyncio.Event]:
        """Renew ``claim`` while the block runs, for ``limit`` at most; the event says that it was lost."""
        hold = Hold(claim, self._clock.monotonic(), limit.total_seconds(), asyncio.Event())
        key = (claim, hold.since)
        with self._guard:
            self._holds[key] = hold
        try:
            yield hold.lost
        finally:
            with self._guard:
                del self._holds[key]

    def _thread_main(self) -> None:
        asyncio.run(self._live())

    async def _live(self) -> None:
        """Run the lock and the leases until told to stop."""
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        # What hangs has failed: there must be another try before the lease is over.
        database = Database.connect(
            self._url, application="docstage-heartbeat", pool_size=2, answer_seconds=LOOK_SECONDS
        )
        beats = [
            asyncio.create_task(self._repeat(self._keep_lock, database, 0.0)),
            asyncio.create_task(self._repeat(self._renew, database, self._lease.total_seconds() / 4)),
            asyncio.create_task(self._repeat(self._watch, database, WATCH_SECONDS)),
        ]
        await self._stopping.wait()
        for beat in beats:
            beat.cancel()
        await asyncio.gather(*beats, return_exceptions=True)
        await self._say_stopped(database)
        await database.close()

    async def _say_stopped(self, database: Database) -> None:
        """Write down a stop in good order; without a database the worker is gone all the same."""
        if self.worker_id:
            with contextlib.suppress(Exception):
                async with database.transaction() as conn:
                    await workers.stopped(conn, self.worker_id)

    async def _repeat(self, beat: "Callable[[Database], object]", database: Database, seconds: float) -> None:
        """Call ``beat`` for ever; a failure is told by its type and answered by backoff."""
        failures = 0
        while True:
            try:
                await beat(database)  # type: ignore[misc]  # all three beats are coroutines
                failures = 0
            except Exception as error:  # noqa: BLE001 - the heart must go on beating
                failures += 1
                log.warning("heartbeat_failed", exception_type=type(error).__name__)
            await asyncio.sleep(backoff_seconds(failures) if failures else seconds)

    async def _keep_lock(self, database: Database) -> None:
        """Register once, take the lock, and return only when its session is lost."""
        if not self.worker_id:
            async with database.transaction() as conn:
                self.worker_id = await workers.register(conn, stages=self._stages)
        lost = asyncio.Event()
        lock = await workers.LivenessLock.take(self._url, self.worker_id, lost.set)
        if lock is None:
            message = "an earlier session still holds the lock"
            raise TimeoutError(message)
        try:
            seen = await self._say_how_alive(database)
            self._tell(held=True)
            await self._until_lost(database, lost, looks=seen)
            log.warning("liveness_lost", worker_id=self.worker_id)
        finally:
            self._tell(held=False)
            await lock.close()

    def _tell(self, *, held: bool) -> None:
        """Tell the handlers' loop whether the lock is held."""
        now, before = (self._ready, self._lost) if held else (self._lost, self._ready)
        self._worker_loop.call_soon_threadsafe(before.clear)
        self._worker_loop.call_soon_threadsafe(now.set)

    async def _until_lost(self, database: Database, lost: asyncio.Event, *, looks: bool) -> None:
        """Wait for the lock's session to end; returns at once when it does.

        A session whose other end went silently would seem to live here for ever, although PostgreSQL has given
        its lock away: so the lock is looked at from a second session now and then.
        """
        ends: list[asyncio.Task[Any]] = [asyncio.create_task(lost.wait())]
        if looks:
            ends.append(asyncio.create_task(self._until_unseen(database)))
        try:
            # A look may hang in what has just ended the session, and must not keep the news back.
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in done:
                end.result()
        finally:
            for end in ends:
                end.cancel()

    async def _until_unseen(self, database: Database) -> None:
        """Look now and then from a second session, until the lock is not held any more.

        A look without an answer says nothing about the lock. Nothing is claimed until the next one; but to give the
        lock up would hand over all that is being worked on, for a database that only stalled.
        """
        seen = True
        while seen:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                async with database.transaction() as conn:
                    seen = await workers.lock_is_seen(conn, self.worker_id)
            except Exception as error:
                if not is_unavailable(error):
                    raise
                log.warning("liveness_unanswered", exception_type=type(error).__name__)
                self._tell(held=False)
            else:
                self._tell(held=seen)

    async def _say_how_alive(self, database: Database) -> bool:
        """Check from a second session that the lock is seen; behind a pooler only the lease is left."""
        async with database.transaction() as conn:
            seen = await workers.lock_is_seen(conn, self.worker_id)
            liveness = "lock" if seen else "lease"
            await workers.lives_by(conn, self.worker_id, stages=self._stages, liveness=liveness)
        log.info("worker_registered", worker_id=self.worker_id, liveness=liveness)
        return seen

    def _living(self, older_than: float) -> list[Hold]:
        """Return the holds between ``older_than`` seconds and their limit."""
        now = self._clock.monotonic()
        with self._guard:
            return [hold for hold in self._holds.values() if older_than <= now - hold.since < hold.limit_seconds]

    async def _renew(self, database: Database) -> None:
        holds = self._living(0)
        if holds:
            async with database.transaction() as conn:
                await stage_runs.renew(conn, [hold.claim for hold in holds], lease=self._lease)

    async def _watch(self, database: Database) -> None:
        """Tell handlers whose claim is no longer current; most are done before the first look."""
        holds = self._living(WATCH_SECONDS)
        if not holds:
            return
        async with database.transaction() as conn:
            current = await stage_runs.held(conn, [hold.claim for hold in holds])
        for hold in holds:
            claim = hold.claim
            if (claim.job_id, claim.stage, claim.token) not in current:
                self._worker_loop.call_soon_threadsafe(hold.lost.set)
