"""The sweeper's rules: each finds one kind of broken state and heals a bounded number of its rows.

A rule is a transaction of its own. It locks the jobs that nobody else holds, reads them again, and acts on what
they say then; so it can run at any moment, next to anything, and twice.
"""

import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from schema.db import moves, reissues, stage_runs, sweeps, webhook_deliveries, workers
from schema.db.engine import Database
from schema.db.locks import lock_jobs
from schema.db.reissues import Reissue
from schema.db.sweeps import Finder, LaneProgress, Patience
from schema.domain.errors import ErrorCode
from schema.domain.moves import Move, fail, lose
from schema.domain.runs import RunView
from schema.domain.states import AttemptOutcome, Lane, RunStatus
from schema.runtime import metrics
from schema.runtime.settings import PublisherSettings
from schema.wire.queues import DLQ_TTL

# Messages issued again go out spread over this time: what was lost together must not come back together.
SPREAD: Final = timedelta(seconds=10)

Rule = Callable[[], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class JobRules:
    """The rules about jobs and their runs; all they need is the database."""

    settings: PublisherSettings
    database: Database
    seen: dict[Lane, LaneProgress]

    def by_name(self) -> Mapping[str, Rule]:
        """Return the rules in the order in which they run, under the names by which they are counted."""
        return {
            "expired_lease": self.expired_lease,
            "deadline": self.deadline,
            "silent_ready": lambda: self.silent(RunStatus.READY),
            "silent_retrying": lambda: self.silent(RunStatus.RETRYING),
            "idempotency_keys": self.idempotency_keys,
            "tombstones": self.tombstones,
            "expired_letters": self.expired_letters,
            "silent_notices": self.silent_notices,
            "gone_workers": self.gone_workers,
        }

    async def expired_lease(self) -> int:
        """Take runs from owners that did not renew their lease, whatever their liveness lock says."""

        def decide(run: RunView) -> Move | None:
            lost = run.status is RunStatus.RUNNING and run.lease_expired
            return lose(run, lost_claims=self.settings.lost_claims) if lost else None

        return await self._move(sweeps.find_expired_leases, decide)

    async def deadline(self) -> int:
        """Fail jobs whose deadline has passed; that is an answer to the client and no dead letter."""

        def decide(run: RunView) -> Move | None:
            late = not run.state.terminal and run.time_left <= timedelta(0)
            return fail(run, ErrorCode.DEADLINE_EXCEEDED, closes=AttemptOutcome.DEADLINE) if late else None

        return await self._move(sweeps.find_past_deadline, decide)

    async def silent(self, status: RunStatus) -> int:
        """Issue the message again of runs that wait, are owed nothing by the outbox, and were passed by others."""
        patience = Patience(
            overtaken=timedelta(seconds=self.settings.overtaken_seconds),
            silent=timedelta(seconds=self.settings.silent_seconds),
        )
        async with self.database.transaction() as conn:
            self._remember(await sweeps.measure_progress(conn))
            found = await sweeps.find_forgotten(
                conn, status, progress=self.seen, patience=patience, limit=self.settings.sweep_batch
            )
            free = await lock_jobs(conn, found, skip_locked=True)
            runs = await stage_runs.read_current(conn, list(free))
            wishes = [Reissue(run, _jitter()) for run in runs.values() if run.status is status]
            return len(await reissues.reissue(conn, wishes)) if wishes else 0

    async def idempotency_keys(self) -> int:
        """Forget keys that are past their time."""
        async with self.database.transaction() as conn:
            return await sweeps.drop_expired_keys(conn, limit=self.settings.sweep_batch)

    async def tombstones(self) -> int:
        """Remove what is left of jobs that were deleted long ago; longer than any message can be on its way."""
        age = timedelta(days=self.settings.tombstone_days)
        async with self.database.transaction() as conn:
            return await sweeps.drop_tombstones(conn, age=age, limit=self.settings.sweep_batch)

    async def expired_letters(self) -> int:
        """Close dead letters that nobody can act on any more."""
        async with self.database.transaction() as conn:
            return await sweeps.expire_letters(conn, age=DLQ_TTL, limit=self.settings.sweep_batch)

    async def silent_notices(self) -> int:
        """Issue the message again of tellings that should long have been made and are owed nothing by the outbox."""
        silent = timedelta(seconds=self.settings.silent_seconds)
        async with self.database.transaction() as conn:
            return await webhook_deliveries.reissue_silent(
                conn, silent=silent, spread=SPREAD, limit=self.settings.sweep_batch
            )

    async def gone_workers(self) -> int:
        """Forget incarnations of workers that are long gone; the attempts they made keep their numbers."""
        age = timedelta(days=self.settings.tombstone_days)
        async with self.database.transaction() as conn:
            return await workers.forget_gone(conn, age=age, limit=self.settings.sweep_batch)

    async def _move(self, find: Finder, decide: Callable[[RunView], Move | None]) -> int:
        """Find jobs, lock those that are free, decide by what they say then, and write the moves."""
        async with self.database.transaction() as conn:
            found = await find(conn, limit=self.settings.sweep_batch)
            free = await lock_jobs(conn, found, skip_locked=True)
            runs = await stage_runs.read_current(conn, list(free))
            decided = [move for move in map(decide, runs.values()) if move is not None]
            written = await moves.apply(conn, decided) if decided else []
        for move in (move for move, was in zip(decided, written, strict=True) if was):
            metrics.count_end(move, runs[move.job_id].kind)
        return sum(written)

    def _remember(self, measured: Mapping[Lane, LaneProgress]) -> None:
        """Keep how far each lane has come: a sample may miss what an earlier one has seen."""
        for lane, now in measured.items():
            before = self.seen.get(lane, now)
            self.seen[lane] = LaneProgress(max(before.claimed_until, now.claimed_until), now.wait)


def _jitter() -> timedelta:
    return random.uniform(0, 1) * SPREAD  # noqa: S311 - spreading, not secrecy
