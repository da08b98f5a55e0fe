"""P6: a cancel wins or loses, never both, against everything else that can happen to a job.

Each race is run some hundred times (``DOCSTAGE_STRESS`` multiplies): a third with the cancel first, a third with
the other first, and a third at once, the cancel late by a few round trips. Whatever the cancel answered must be true
for good, and what the other one was told about its own write as well.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from intake import commands
from intake.problems import Problem
from schema.db import checkpoints, deferrals, redrives, reissues, stage_runs
from schema.db.deferrals import Deferral
from schema.db.engine import Database
from schema.db.reissues import Reissue
from schema.domain import moves
from schema.domain.errors import ErrorCode
from schema.domain.ids import new_id
from schema.domain.outcomes import Outcome
from schema.domain.runs import Claim, RunView
from schema.domain.states import Stage
from tests.support.effort import STRESS
from tests.support.factories import LEASE, AcceptedJob, rows, write
from tests.support.invariants import inspect
from tests.support.protocol import (
    BUG,
    DAMAGED,
    DONE,
    POLICY,
    STORAGE,
    accepted_jobs,
    change,
    claim_all,
    current_all,
    decided,
    front_desk,
    retention,
    sweeper,
    write_all,
)

ROUNDS = 200 * STRESS
AT_ONCE = 4

Rival = Callable[[Database, AcceptedJob, Any], Awaitable[bool]]
Prepare = Callable[[Database, Sequence[AcceptedJob]], Awaitable[Sequence[Any]]]


# What jobs are like before the race: each returns what the rival needs to know of each job.


async def _ready(database: Database, crowd: Sequence[AcceptedJob]) -> Sequence[RunView]:
    return await current_all(database, crowd)


async def _running(database: Database, crowd: Sequence[AcceptedJob]) -> Sequence[Claim]:
    return await claim_all(database, crowd)


async def _extracting(database: Database, crowd: Sequence[AcceptedJob]) -> Sequence[Claim]:
    await write_all(database, [decided(claim, DONE) for claim in await claim_all(database, crowd)])
    return await claim_all(database, crowd, Stage.EXTRACT)


async def _persisting(database: Database, crowd: Sequence[AcceptedJob]) -> Sequence[Claim]:
    for stage in (Stage.VALIDATE, Stage.EXTRACT, Stage.NORMALIZE):
        await write_all(database, [decided(claim, DONE) for claim in await claim_all(database, crowd, stage)])
    return await claim_all(database, crowd, Stage.PERSIST)


async def _owned(database: Database, crowd: Sequence[AcceptedJob]) -> Sequence[RunView]:
    await claim_all(database, crowd)
    await change(database, "UPDATE stage_run SET lease_expires_at = now() - interval '1 s' WHERE status = 'running'")
    return await current_all(database, crowd)


async def _retrying(database: Database, crowd: Sequence[AcceptedJob]) -> Sequence[RunView]:
    await write_all(database, [decided(claim, STORAGE) for claim in await claim_all(database, crowd)])
    return await current_all(database, crowd)


async def _last_attempt(database: Database, crowd: Sequence[AcceptedJob]) -> Sequence[Claim]:
    await _retrying(database, crowd)
    await change(database, "UPDATE stage_run SET next_attempt_at = now() WHERE status = 'retrying'")
    return await claim_all(database, crowd, attempt=POLICY.attempts)


async def _too_often_lost(database: Database, crowd: Sequence[AcceptedJob]) -> Sequence[RunView]:
    await claim_all(database, crowd)
    await change(database, "UPDATE stage_run SET lost = :lost", lost=POLICY.lost_claims)
    return await current_all(database, crowd)


async def _late(database: Database, crowd: Sequence[AcceptedJob]) -> Sequence[None]:
    await claim_all(database, crowd)
    await change(database, "UPDATE job SET deadline_at = now() - interval '1 s'")
    return [None] * len(crowd)


async def _failed(database: Database, crowd: Sequence[AcceptedJob]) -> Sequence[Any]:
    claims = await _last_attempt(database, crowd)
    await write_all(database, [decided(claim, STORAGE) for claim in claims])
    letters = await rows(database, "SELECT id, job_id FROM dead_letter")
    by_job = {row["job_id"]: row["id"] for row in letters}
    return [by_job[job.id] for job in crowd]


# The rivals: each says whether its write came to pass.


def _outcome(outcome: Outcome) -> Rival:
    async def record(database: Database, _: AcceptedJob, claim: Claim) -> bool:
        return (await write(database, decided(claim, outcome)))[0]

    return record


async def _claim(database: Database, job: AcceptedJob, _: RunView) -> bool:
    async with database.transaction() as conn:
        (claimed,) = await stage_runs.claim(conn, [job.message()], worker_id=2, lease=LEASE)
    return claimed is not None


async def _take_over(database: Database, _: AcceptedJob, run: RunView) -> bool:
    async with database.transaction() as conn:
        (claimed,) = await stage_runs.take_over(conn, [run], worker_id=2, lease=LEASE)
    return claimed is not None


async def _release(database: Database, _: AcceptedJob, claim: Claim) -> bool:
    return (await write(database, moves.release(claim)))[0]


async def _give_up(database: Database, _: AcceptedJob, run: RunView) -> bool:
    return (await write(database, moves.lose(run, lost_claims=POLICY.lost_claims)))[0]


async def _undeliverable(database: Database, _: AcceptedJob, run: RunView) -> bool:
    reason, closes = moves.LetterReason.DELIVERY_LIMIT, moves.AttemptOutcome.WORKER_LOST
    return (await write(database, moves.fail(run, ErrorCode.DELIVERY_LIMIT, closes=closes, letter=reason)))[0]


async def _defer(database: Database, _: AcceptedJob, run: RunView) -> bool:
    async with database.transaction() as conn:
        return (await deferrals.defer(conn, [Deferral(run, new_id(), timedelta(seconds=1), 1)]))[0]


async def _reissue(database: Database, job: AcceptedJob, run: RunView) -> bool:
    async with database.transaction() as conn:
        await conn.execute(text("SELECT FROM job WHERE id = :id FOR NO KEY UPDATE"), {"id": job.id})
        return bool(await reissues.reissue(conn, [Reissue(run)]))


async def _keep_page(database: Database, _: AcceptedJob, claim: Claim) -> bool:
    async with database.transaction() as conn:
        kept = await checkpoints.advance(conn, claim, pages_done=1, pages_total=2, lease=LEASE)
        if kept:
            await checkpoints.keep_page(conn, claim, page=1, content="{}")
    return kept


async def _renew(database: Database, _: AcceptedJob, claim: Claim) -> bool:
    async with database.transaction() as conn:
        await stage_runs.renew(conn, [claim], lease=LEASE)
    return False


async def _sweep_leases(database: Database, _: AcceptedJob, __: Any) -> bool:
    await sweeper(database).expired_lease()
    return False


async def _sweep_deadlines(database: Database, _: AcceptedJob, __: Any) -> bool:
    await sweeper(database).deadline()
    return False


async def _sweep_content(database: Database, _: AcceptedJob, __: Any) -> bool:
    await retention(database).retention()
    return False


async def _redrive(database: Database, _: AcceptedJob, letter: Any) -> bool:
    async with database.transaction() as conn:
        answers = await redrives.redrive(conn, [letter], by="test", note="again")
    return answers[letter] is redrives.RedriveAnswer.REDRIVEN


async def _asked(command: Callable[..., Awaitable[Any]], database: Database, job: AcceptedJob) -> bool:
    """Say whether a command of the job's owner was carried out."""
    try:
        await command(front_desk(database), job.tenant_id, job.id)
    except Problem:
        return False
    return True


async def _retry(database: Database, job: AcceptedJob, _: Any) -> bool:
    return await _asked(commands.retry, database, job)


async def _delete(database: Database, job: AcceptedJob, _: Any) -> bool:
    return await _asked(commands.delete, database, job)


# Moves that end the job: exactly one of the two wins.
ENDS: dict[str, tuple[Prepare, Rival]] = {
    "the last stage's completion": (_persisting, _outcome(DONE)),
    "a permanent failure": (_running, _outcome(DAMAGED)),
    "the last attempt's failure": (_last_attempt, _outcome(STORAGE)),
    "an unknown failure": (_running, _outcome(BUG)),
    "a give-up of a run that cost too many workers": (_too_often_lost, _give_up),
    "a give-up of the broker": (_ready, _undeliverable),
}

# Moves after which the job is still there to be cancelled.
STEPS: dict[str, tuple[Prepare, Rival]] = {
    "a claim": (_ready, _claim),
    "a takeover": (_owned, _take_over),
    "a stage's completion": (_running, _outcome(DONE)),
    "a retry's scheduling": (_running, _outcome(STORAGE)),
    "a release": (_running, _release),
    "a lost worker": (_owned, _give_up),
    "a deferral": (_owned, _defer),
    "a deferral of an early copy": (_retrying, _defer),
    "a message issued again": (_ready, _reissue),
    "a page kept": (_extracting, _keep_page),
    "a heartbeat": (_running, _renew),
    "the sweep of leases": (_owned, _sweep_leases),
    "a delete": (_running, _delete),
}

# Moves of many jobs at once, or of jobs that have failed: what the cancel was told decides alone.
OTHERS: dict[str, tuple[Prepare, Rival]] = {
    "the sweep of deadlines": (_late, _sweep_deadlines),
    "the sweep of content": (_running, _sweep_content),
    "a redrive": (_failed, _redrive),
    "an owner's retry": (_failed, _retry),
}


async def _race(database: Database, job: AcceptedJob, rival: Awaitable[bool], number: int) -> tuple[bool, bool]:
    """Let the cancel run first, second, or at the same time; return what both were told."""

    async def cancel(late_by: int) -> bool:
        for _ in range(late_by):
            await rows(database, "SELECT 1")
        return await _asked(commands.cancel, database, job)

    if number % 3 == 0:
        cancelled = await cancel(0)
        return cancelled, await rival
    if number % 3 == 1:
        won = await rival
        return await cancel(0), won
    cancelled, won = await asyncio.gather(cancel(random.randrange(4)), rival)
    return cancelled, won


async def _run(
    database: Database, prepare: Prepare, rival: Rival
) -> list[tuple[AcceptedJob, tuple[bool, bool], dict[str, Any]]]:
    """Run all rounds; return each job with what cancel and rival were told, and its row in the end."""
    crowd = await accepted_jobs(database, ROUNDS)
    known = await prepare(database, crowd)
    gate = asyncio.Semaphore(AT_ONCE)

    async def round_of(number: int) -> tuple[bool, bool]:
        async with gate:
            return await _race(database, crowd[number], rival(database, crowd[number], known[number]), number)

    told = await asyncio.gather(*(round_of(number) for number in range(ROUNDS)))
    found = {row["id"]: row for row in await rows(database, "SELECT * FROM job")}
    assert (await inspect(database, [job.id for job in crowd], POLICY)).broken == []
    return [(job, answers, found[job.id]) for job, answers in zip(crowd, told, strict=True)]


@pytest.mark.parametrize("name", ENDS)
async def test_a_cancel_and_what_ends_a_job_have_one_winner(database: Database, name: str) -> None:
    """Cancelled means that nothing else happened; refused means that the other end did, and stands."""
    ended = await _run(database, *ENDS[name])

    assert all(cancelled != won for _, (cancelled, won), _ in ended)
    assert all((row["state"] == "cancelled") == cancelled for _, (cancelled, _), row in ended)
    assert {cancelled for _, (cancelled, _), _ in ended} == {True, False}


@pytest.mark.parametrize("name", STEPS)
async def test_a_cancel_wins_over_every_step_that_does_not_end_the_job(database: Database, name: str) -> None:
    """The step may come before the cancel, and then counts; it never undoes it."""
    ended = await _run(database, *STEPS[name])

    refused = [job.id for job, (cancelled, _), row in ended if not cancelled and row["deleted_at"] is None]
    assert refused == []
    assert {row["state"] for _, _, row in ended} == {"cancelled"}


@pytest.mark.parametrize("name", OTHERS)
async def test_what_a_cancel_was_told_stays_true(database: Database, name: str) -> None:
    """Sweeps and redrives of many jobs pass over those that were cancelled, and a cancel is refused what has failed."""
    ended = await _run(database, *OTHERS[name])

    assert [job.id for job, (cancelled, _), row in ended if cancelled != (row["state"] == "cancelled")] == []
