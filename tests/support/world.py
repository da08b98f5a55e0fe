"""A small world around a real database: workers, a broker that loses and doubles, clients, and time on demand.

Rows, claims, moves, deferrals and liveness locks are the real ones; the broker is a bag out of which any message may
come next, which is more than a queue may do. Nothing happens by itself, so that whoever drives the world decides
the order of everything.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any, Self
from uuid import UUID

from intake import commands
from intake.problems import Problem
from schema.db import checkpoints, deferrals, moves, outbox, redrives, stage_runs, workers
from schema.db.deferrals import Deferral
from schema.db.engine import Database
from schema.db.redrives import RedriveAnswer
from schema.db.stage_runs import Claimed
from schema.domain.ids import new_id
from schema.domain.moves import Move, cancel, lose, release
from schema.domain.outcomes import Completed, Outcome
from schema.domain.runs import Claim, RunView
from schema.domain.states import RunStatus, Stage
from schema.wire.messages import StageMessage
from stages.ledger import Ledger, Record
from stages.reception import Copy, Reception
from tests.support.eventually import eventually
from tests.support.factories import LEASE, AcceptedJob, rows
from tests.support.invariants import Awaited, awaited
from tests.support.protocol import (
    DONE,
    POLICY,
    Hand,
    Quiet,
    accepted_jobs,
    change,
    current,
    decided,
    front_desk,
    retention,
    sweeper,
)

AT_ONCE = timedelta(0)


class Leaps:
    """A clock that moves by a second with every look, so that nobody's patience lasts."""

    def __init__(self) -> None:
        """Begin at zero."""
        self._seconds = count()

    def monotonic(self) -> float:
        """Return the next second."""
        return float(next(self._seconds))


@dataclass(frozen=True, slots=True)
class Sent:
    """One copy of a message in the broker."""

    message: StageMessage
    copy: Copy


@dataclass(slots=True, eq=False)
class InHand:
    """A claim being worked on, and the delivery it came by, as long as the broker has not taken that back."""

    claimed: Claimed
    delivery: Sent | None


@dataclass(slots=True, eq=False)
class Worker:
    """One incarnation with its liveness lock and what it works on."""

    id: int
    lock: workers.LivenessLock
    ledger: Ledger
    reception: Reception
    hands: list[InHand] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Glance:
    """A run as somebody saw it, who will act on that later; ``gone`` when its owner was."""

    run: RunView
    gone: bool


@dataclass(slots=True)
class World:
    """Everything that can happen to a few jobs, one thing at a time."""

    database: Database
    jobs: list[AcceptedJob] = field(default_factory=list)
    workers: list[Worker] = field(default_factory=list)
    broker: list[Sent] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    glances: list[Glance] = field(default_factory=list)
    forgotten: set[UUID] = field(default_factory=set)

    @classmethod
    async def begin(cls, database: Database, *, jobs: int, workers: int) -> Self:
        """Accept the jobs and start the workers."""
        world = cls(database, await accepted_jobs(database, jobs))
        for _ in range(workers):
            await world.start_worker()
        return world

    async def get_ahead(self, job: AcceptedJob, stages: int) -> None:
        """Complete a job's first stages without any trouble."""
        for _ in range(stages):
            await self.relay()
            (sent,) = [one for one in self.broker if one.message.job_id == job.id]
            hand = await self.deliver(sent, self.workers[0])
            assert hand is not None
            await self.finish(self.workers[0], hand, DONE)

    async def close(self) -> None:
        """Let every worker go."""
        for worker in self.workers:
            await worker.lock.close()

    # Workers and what happens to them.

    async def start_worker(self) -> None:
        """Start an incarnation that is seen by its lock."""
        stages = [stage.value for stage in Stage]
        async with self.database.transaction() as conn:
            worker_id = await workers.register(conn, stages=stages)
            await workers.lives_by(conn, worker_id, stages=stages, liveness="lock")
        lock = await workers.LivenessLock.take(self.database.url, worker_id, lambda: None)
        assert lock is not None
        hand: Any = Hand(worker_id)
        ledger = Ledger(self.database, hand, Quiet(), lease=LEASE)  # type: ignore[arg-type] # all it needs of a waker
        self.workers.append(Worker(worker_id, lock, ledger, Reception(ledger, Leaps(), POLICY.lost_claims)))

    async def kill(self, worker: Worker) -> None:
        """End a process: its lock comes free, its deliveries come again, its last commits may still be on their way."""
        self.workers.remove(worker)
        await worker.lock.close()
        await eventually(lambda: self._is_gone(worker.id))
        self.lose_channel(worker)

    async def _is_gone(self, worker_id: int) -> bool:
        async with self.database.transaction() as conn:
            return worker_id in await workers.gone(conn, [worker_id])

    def lose_channel(self, worker: Worker) -> None:
        """Take a worker's deliveries back into the broker, while its handlers go on."""
        for hand in worker.hands:
            if hand.delivery is not None:
                self.broker.append(hand.delivery)
                hand.delivery = None

    def leak(self, worker: Worker, hand: InHand) -> None:
        """End a handler without an outcome: its delivery goes back, its claim stays, its process lives."""
        worker.hands.remove(hand)
        if hand.delivery is not None:
            self.broker.append(hand.delivery)

    def lose_messages(self) -> None:
        """Break the broker so that everything it had is gone."""
        lost = [*self.broker]
        self.broker.clear()
        for hand in (hand for worker in self.workers for hand in worker.hands):
            if hand.delivery is not None:
                lost.append(hand.delivery)
                hand.delivery = None
        self.forgotten |= {sent.message.job_id for sent in lost}

    # Messages.

    async def relay(self, *, crashes: bool = False) -> None:
        """Publish all that is owed; a relay that crashes before it deletes the rows publishes them again."""
        await change(self.database, "UPDATE outbox_event SET available_at = now()")
        async with self.database.transaction() as conn:
            taken = await outbox.take(conn, limit=1000, lock=AT_ONCE)
            if not crashes:
                await outbox.delete_published(conn, [row.id for row in taken])
        for row in taken:
            if row.kind == "stage":
                message = StageMessage(*awaited(row.payload))
                self.broker.append(Sent(message, Copy(row.event_id, row.deferrals)))

    async def deliver(self, sent: Sent, worker: Worker) -> InHand | None:
        """Hand a copy to a worker, whose reception finds out what it means; what is not claimed is acknowledged."""
        self.broker.remove(sent)
        claimed = await worker.reception.admit(sent.message, sent.copy)
        if claimed is None:
            return None
        hand = InHand(claimed, sent)
        worker.hands.append(hand)
        self.claims.append(claimed.claim)
        return hand

    def on_the_way(self) -> set[Awaited]:
        """Name the attempts of which a message is in the broker or in a worker's hands."""
        sent = [*self.broker, *(hand.delivery for worker in self.workers for hand in worker.hands if hand.delivery)]
        messages = [one.message for one in sent]
        return {(message.job_id, message.stage, message.series, message.attempt) for message in messages}

    # What claims come to.

    async def finish(self, worker: Worker, hand: InHand, outcome: Outcome) -> bool:
        """Record a handler's outcome, then acknowledge its delivery."""
        written = await worker.ledger.record(Record(decided(hand.claimed.claim, outcome)))
        worker.hands.remove(hand)
        return written

    async def give_back(self, worker: Worker, hand: InHand) -> bool:
        """Release a claim, as a worker does that shuts down."""
        written = await worker.ledger.record(Record(release(hand.claimed.claim)))
        worker.hands.remove(hand)
        return written

    async def write(self, *wanted: Move) -> list[bool]:
        """Write moves in a transaction of their own, whoever they come from."""
        async with self.database.transaction() as conn:
            return await moves.lock_and_apply(conn, wanted)

    async def keep_page(self, claim: Claim, page: int) -> bool:
        """Keep a page for a claim, current or not."""
        async with self.database.transaction() as conn:
            kept = await checkpoints.advance(conn, claim, pages_done=page, pages_total=None, lease=LEASE)
            if kept:
                await checkpoints.keep_page(conn, claim, page=page, content="{}")
        return kept

    async def renew(self) -> None:
        """Renew every claim that anybody ever had."""
        if self.claims:
            async with self.database.transaction() as conn:
                await stage_runs.renew(conn, self.claims, lease=LEASE)

    async def is_current(self, claim: Claim) -> bool:
        """Say whether a claim still stands."""
        async with self.database.transaction() as conn:
            return bool(await stage_runs.held(conn, [claim]))

    # Those who read first and act later.

    async def glance(self, job: AcceptedJob) -> None:
        """Look at a job's run and its owner."""
        run = await current(self.database, job.id)
        gone = run.lease_expired or (run.worker_id is not None and await self._is_gone(run.worker_id))
        self.glances.append(Glance(run, gone))

    async def still(self, run: RunView) -> bool:
        """Say whether a run is just as it was seen."""
        now = await self._read(run)
        return (now.token, now.status, now.series, now.attempt) == (run.token, run.status, run.series, run.attempt)

    async def is_done(self, run: RunView) -> bool:
        """Say whether a run has been completed."""
        return (await self._read(run)).status is RunStatus.DONE

    async def _read(self, run: RunView) -> RunView:
        async with self.database.transaction() as conn:
            return (await stage_runs.read(conn, [(run.job_id, run.stage)]))[run.job_id, run.stage]

    async def take_over_late(self, seen: Glance, worker: Worker) -> bool:
        """Take a run from an owner that was gone at the glance, or give it up, as the reception would."""
        if seen.run.lost + 1 > POLICY.lost_claims:
            return (await self.write(lose(seen.run, lost_claims=POLICY.lost_claims)))[0]
        claimed = await worker.ledger.take_over(seen.run)
        if claimed is None:
            return False
        # The copy by which the worker came to it is one that was in the broker twice.
        worker.hands.append(InHand(claimed, None))
        self.claims.append(claimed.claim)
        return True

    async def defer_late(self, seen: Glance) -> bool:
        """Defer a copy because of an owner, or a due time, that was there at the glance."""
        async with self.database.transaction() as conn:
            return (await deferrals.defer(conn, [Deferral(seen.run, new_id(), AT_ONCE, 1)]))[0]

    async def cancel_late(self, seen: Glance) -> bool:
        """Cancel by what was seen at the glance."""
        return (await self.write(cancel(seen.run)))[0]

    # People.

    async def cancel(self, job: AcceptedJob) -> None:
        """Cancel a job, as its owner does."""
        await _allowed(commands.cancel, front_desk(self.database), job)

    async def retry(self, job: AcceptedJob) -> None:
        """Retry a job, as its owner does."""
        await _allowed(commands.retry, front_desk(self.database), job)

    async def delete(self, job: AcceptedJob) -> None:
        """Delete a job, as its owner does."""
        await _allowed(commands.delete, front_desk(self.database), job)

    async def redrive(self, job: AcceptedJob) -> set[RedriveAnswer]:
        """Redrive all of a job's letters, closed ones too, as an operator does."""
        letters = await rows(self.database, "SELECT id FROM dead_letter WHERE job_id = :id", id=job.id)
        async with self.database.transaction() as conn:
            answers = await redrives.redrive(conn, [row["id"] for row in letters], by="test", note="again")
        return set(answers.values())

    # Time.

    async def expire_lease(self, job: AcceptedJob) -> None:
        """Let the lease of a job's running run end."""
        await change(
            self.database,
            "UPDATE stage_run SET lease_expires_at = now() - interval '1 s' WHERE job_id = :id AND status = 'running'",
            id=job.id,
        )

    async def make_due(self, job: AcceptedJob) -> None:
        """Let the time of a job's retry come."""
        await change(
            self.database,
            "UPDATE stage_run SET next_attempt_at = now() WHERE job_id = :id AND status = 'retrying'",
            id=job.id,
        )

    async def pass_deadline(self, job: AcceptedJob) -> None:
        """Let a job's deadline pass, and sweep."""
        await change(self.database, "UPDATE job SET deadline_at = now() - interval '1 s' WHERE id = :id", id=job.id)
        await sweeper(self.database).deadline()

    async def expire(self, job: AcceptedJob) -> None:
        """Let a finished job's retention end, and sweep."""
        await change(self.database, "UPDATE job SET expires_at = now() - interval '1 s' WHERE id = :id", id=job.id)
        await retention(self.database).retention()

    async def sweep(self) -> None:
        """Run the rules that heal runs, a long time after everything that waits was issued."""
        await change(
            self.database,
            "UPDATE stage_run SET issued_at = now() - interval '10 years' WHERE status IN ('ready', 'retrying')",
        )
        rules = sweeper(self.database)
        await rules.expired_lease()
        await rules.silent(RunStatus.READY)
        await rules.silent(RunStatus.RETRYING)

    # The end of all trouble.

    async def settle(self, *, rounds: int = 60) -> None:
        """Let time pass and one healthy worker consume, and nothing else, until nothing more is delivered."""
        for worker in list(self.workers):
            await self.kill(worker)
        await self.start_worker()
        (worker,) = self.workers
        for _ in range(rounds):
            for job in self.jobs:
                await self.make_due(job)
            await self.relay()
            if not self.broker:
                return
            for sent in list(self.broker):
                if hand := await self.deliver(sent, worker):
                    await self.finish(worker, hand, Completed({}))
        message = f"messages go round for ever: {self.broker}"
        raise AssertionError(message)

    async def unfinished(self) -> set[UUID]:
        """Return the jobs that are not finished."""
        found = await rows(self.database, "SELECT id FROM job WHERE finished_at IS NULL")
        return {row["id"] for row in found} & {job.id for job in self.jobs}


async def _allowed(command: Callable[..., Any], desk: Any, job: AcceptedJob) -> None:
    """Try what an owner may be refused, by the state of the job."""
    with suppress(Problem):
        await command(desk, job.tenant_id, job.id)
