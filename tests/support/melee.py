"""Everybody at once on the same few jobs, in batches that overlap in every order."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID

from intake import commands
from intake.problems import Problem
from schema.db import checkpoints, deferrals, moves, outbox, redrives, stage_runs
from schema.db.deferrals import Deferral
from schema.db.engine import Database
from schema.db.locks import lock_jobs
from schema.domain.ids import new_id
from schema.domain.moves import Move, cancel, lose, release
from schema.domain.runs import Claim, RunView
from schema.domain.states import RunStatus, Stage
from schema.wire.messages import StageMessage
from stages.patience import until_answered
from tests.support.factories import LEASE, AcceptedJob, rows
from tests.support.protocol import (
    BUG,
    DAMAGED,
    DONE,
    POLICY,
    STORAGE,
    accepted_jobs,
    change,
    decided,
    front_desk,
    retention,
    sweeper,
)

OUTCOMES = (*[DONE] * 12, STORAGE, STORAGE, STORAGE, BUG, DAMAGED)
KEPT_CLAIMS = 24
# How often that is done which ends jobs or takes them away, so that others get far.
SELDOM = 0.04

# A damaged document is neither retried nor redriven.
_GOES_ON = """
SELECT id FROM job WHERE id = ANY(:ids) AND deleted_at IS NULL
AND (finished_at IS NULL OR (state = 'failed' AND error ->> 'code' <> 'corrupt_document'))
"""

Told = tuple[UUID, Stage, int]


@dataclass(slots=True)
class Melee:
    """The jobs that are fought over, the claims that anybody still remembers, and what everybody was told."""

    database: Database
    crowd: int
    largest: int
    jobs: list[AcceptedJob] = field(default_factory=list)
    every: set[UUID] = field(default_factory=set)
    claims: list[Claim] = field(default_factory=list)
    granted: set[Told] = field(default_factory=set)
    closed: dict[Told, str] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    filling: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self, *, hands: int, operations: int, seconds: float) -> None:
        """Let ``hands`` work until both so many operations and so many seconds have passed."""
        await self._refill()
        ends = time.monotonic() + seconds

        async def work() -> None:
            while self.done.total() < operations or time.monotonic() < ends:
                deed = random.choice(self._deeds())
                await until_answered(deed)
                self.done[deed.__name__] += 1

        async with asyncio.TaskGroup() as group:
            for _ in range(hands):
                group.create_task(work())

    def _deeds(self) -> Sequence[Callable[[], Awaitable[None]]]:
        """Return what can be done, the ordinary more than once."""
        worker = (self.claim, self.claim, self.claim, self.record, self.record, self.record, self.take_over)
        rest = (self.give_back, self.defer, self.renew, self.keep_page, self.cancel_many, self.redrive, self.owner)
        return *worker, *rest, self.sweep, self.sweep_content, self.relay, self.pass_time, self._refill

    def _some(self) -> list[AcceptedJob]:
        """Draw a few jobs, in any order."""
        return random.sample(self.jobs, min(len(self.jobs), random.randint(1, self.largest)))

    async def _refill(self) -> None:
        """Put new jobs in the places of those that nothing more will happen to."""
        async with self.filling:
            goes_on = await rows(self.database, _GOES_ON, ids=[job.id for job in self.jobs])
            kept = {row["id"] for row in goes_on}
            self.jobs = [job for job in self.jobs if job.id in kept]
            self.jobs += await accepted_jobs(self.database, self.crowd - len(self.jobs))
            self.every |= {job.id for job in self.jobs}

    async def _views(self) -> list[RunView]:
        """Read runs without any lock, as a consumer does: what is read may be wrong by the time it is used."""
        ids = [job.id for job in self._some()]
        current = await rows(self.database, "SELECT id, current_stage FROM job WHERE id = ANY(:ids)", ids=ids)
        async with self.database.transaction() as conn:
            found = await stage_runs.read(conn, [(row["id"], Stage(row["current_stage"])) for row in current])
        return random.sample(list(found.values()), len(found))

    def _grant(self, taken: Sequence[stage_runs.Claimed | None]) -> None:
        claims = [one.claim for one in taken if one is not None]
        keys = {_key(claim) for claim in claims}
        assert not keys & self.granted, "one token was given twice"
        self.granted |= keys
        self.claims = [*self.claims, *claims][-KEPT_CLAIMS:]

    async def _write(self, wanted: Sequence[Move]) -> None:
        """Write a batch, and keep what was told about it."""
        if not wanted:
            return
        async with self.database.transaction() as conn:
            written = await moves.lock_and_apply(conn, wanted)
        for move in (move for move, was in zip(wanted, written, strict=True) if was and move.from_token):
            if move.from_status is RunStatus.RUNNING and move.closes is not None:
                key = (move.job_id, move.stage, move.from_token)
                assert key not in self.closed, "one claim was closed twice"
                self.closed[key] = move.closes.value

    async def claim(self) -> None:
        """Claim a batch of runs."""
        views = await self._views()
        messages = [StageMessage(run.job_id, run.stage, run.series, run.attempt) for run in views]
        async with self.database.transaction() as conn:
            taken = await stage_runs.claim(conn, messages, worker_id=1, lease=LEASE)
        self._grant(taken)

    async def take_over(self) -> None:
        """Take over a batch of runs whose owners are held to be gone."""
        seen = [run for run in await self._views() if run.status is RunStatus.RUNNING]
        views = [run for run in seen if run.lease_expired or random.random() < SELDOM]
        fit = [run for run in views if run.lost < POLICY.lost_claims]
        if fit:
            async with self.database.transaction() as conn:
                taken = await stage_runs.take_over(conn, fit, worker_id=2, lease=LEASE)
            self._grant(taken)
        await self._write([lose(run, lost_claims=POLICY.lost_claims) for run in views if run not in fit])

    async def record(self) -> None:
        """Record a batch of outcomes, of claims that stand and of others."""
        await self._write([decided(claim, random.choice(OUTCOMES)) for claim in self._remembered()])

    async def give_back(self) -> None:
        """Release a batch of claims."""
        await self._write([release(claim) for claim in self._remembered()])

    async def defer(self) -> None:
        """Defer a batch of copies."""
        if wishes := [Deferral(run, new_id(), LEASE, 1) for run in await self._views()]:
            async with self.database.transaction() as conn:
                await deferrals.defer(conn, wishes)

    async def renew(self) -> None:
        """Renew a batch of claims."""
        if claims := self._remembered():
            async with self.database.transaction() as conn:
                await stage_runs.renew(conn, claims, lease=LEASE)

    async def keep_page(self) -> None:
        """Keep a page."""
        for claim in [claim for claim in self._remembered() if claim.stage is Stage.EXTRACT][:1]:
            async with self.database.transaction() as conn:
                if await checkpoints.advance(conn, claim, pages_done=1, pages_total=2, lease=LEASE):
                    await checkpoints.keep_page(conn, claim, page=random.randint(1, 2), content="{}")

    def _remembered(self) -> list[Claim]:
        return random.sample(self.claims, min(len(self.claims), random.randint(1, self.largest)))

    async def cancel_many(self) -> None:
        """Cancel a batch, seldom a large one."""
        ids = [job.id for job in self._some() if random.random() < SELDOM]
        async with self.database.transaction() as conn:
            await lock_jobs(conn, ids)
            runs = await stage_runs.read_current(conn, ids)
            open_runs = [run for run in runs.values() if not run.state.terminal]
            wanted = [cancel(run) for run in random.sample(open_runs, len(open_runs))]
            assert not wanted or all(await moves.apply(conn, wanted)), "a run moved under its job's lock"
        self.closed |= {
            (run.job_id, run.stage, run.token): "cancelled" for run in open_runs if run.status is RunStatus.RUNNING
        }

    async def redrive(self) -> None:
        """Redrive a batch of letters, in any order."""
        letters = await rows(self.database, "SELECT id FROM dead_letter ORDER BY random() LIMIT :n", n=self.largest)
        async with self.database.transaction() as conn:
            await redrives.redrive(conn, [row["id"] for row in letters], by="test", note="again")

    async def owner(self) -> None:
        """Retry, cancel or delete one job, as its owner."""
        seldom = random.random() < 2 * SELDOM
        command = random.choice((commands.cancel, commands.delete)) if seldom else commands.retry
        job = random.choice(self.jobs)
        with suppress(Problem):
            await command(front_desk(self.database), job.tenant_id, job.id)

    async def sweep(self) -> None:
        """Run the rules about runs."""
        rules = sweeper(self.database)
        await rules.expired_lease()
        await rules.deadline()
        await rules.silent(random.choice((RunStatus.READY, RunStatus.RETRYING)))

    async def sweep_content(self) -> None:
        """Run the rules about what is kept no longer."""
        rules = sweeper(self.database)
        await retention(self.database).retention()
        await rules.expired_letters()
        await rules.tombstones()

    async def relay(self) -> None:
        """Take what is owed and delete it."""
        async with self.database.transaction() as conn:
            taken = await outbox.take(conn, limit=50, lock=LEASE)
        async with self.database.transaction() as conn:
            await outbox.delete_published(conn, [row.id for row in taken])

    async def pass_time(self) -> None:
        """Let something of one job run out."""
        statement = random.choice(
            (
                "UPDATE stage_run SET lease_expires_at = now() WHERE job_id = :id AND status = 'running'",
                "UPDATE stage_run SET next_attempt_at = now() WHERE job_id = :id AND status = 'retrying'",
                "UPDATE stage_run SET next_attempt_at = now() WHERE job_id = :id AND status = 'retrying'",
                "UPDATE stage_run SET issued_at = now() - interval '1 year' WHERE job_id = :id AND status = 'ready'",
                "UPDATE job SET deadline_at = now() WHERE id = :id AND random() < 0.05",
                "UPDATE job SET expires_at = now() WHERE id = :id AND random() < 0.05",
                "UPDATE job SET deleted_at = now() - interval '1 year' WHERE id = :id AND deleted_at IS NOT NULL",
            )
        )
        await change(self.database, statement, id=random.choice([*self.every]))


def _key(claim: Claim) -> Told:
    return claim.job_id, claim.stage, claim.token
