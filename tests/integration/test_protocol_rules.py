"""The rules that the protocol cannot do without, each with the situation that goes wrong without it.

A model of every interleaving found these situations; here they are played with the parts of real workers.
"""

import asyncio
import inspect as sources
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy import text

import schema
from intake import commands
from schema.db import deferrals, moves, redrives, reissues, stage_runs, wake
from schema.db.deferrals import Deferral
from schema.db.engine import WAKE_CHANNEL, Database, plain_url
from schema.db.moves import StoredOutput
from schema.db.reissues import Reissue
from schema.db.wake import Waker
from schema.domain.errors import ErrorCode
from schema.domain.ids import new_id
from schema.domain.moves import LetterReason, fail, lose, release
from schema.domain.outcomes import Completed
from schema.domain.runs import Claim
from schema.domain.states import AttemptOutcome, Stage
from schema.runtime import metrics
from schema.runtime.clock import SystemClock
from schema.wire.messages import StageMessage
from schema.wire.pages import ExtractedPage
from schema.wire.results import PageSource
from stages.checkpoints import FencedError, RunCheckpoint
from stages.ledger import Ledger, Record
from stages.liveness import Liveness
from stages.reception import OWNER_GRACE_SECONDS, Copy
from tests.support.crew import Crew, Interrupted, Wavering, crew
from tests.support.eventually import eventually
from tests.support.factories import LEASE, AcceptedJob, rows, write
from tests.support.plans import caught
from tests.support.protocol import (
    DAMAGED,
    DONE,
    STORAGE,
    Quiet,
    accepted_jobs,
    change,
    claim_all,
    current,
    decided,
    front_desk,
    sweeper,
    until_locks_prove_something,
)

SECOND = timedelta(seconds=1)
SOON = 30.0


@pytest.fixture
async def owner(database: Database) -> AsyncIterator[Crew]:
    """The worker that has the claim."""
    await until_locks_prove_something(database)
    async with crew(database) as made:
        yield made


@pytest.fixture
async def heir(database: Database, owner: Crew) -> AsyncIterator[Crew]:
    """Another worker, to which copies of the same message come."""
    async with crew(database) as made:
        assert made.liveness.worker_id != owner.liveness.worker_id
        yield made


@pytest.fixture
async def job(database: Database) -> AcceptedJob:
    """A job that was just accepted, its first message taken out of the outbox."""
    (made,) = await accepted_jobs(database, 1)
    await change(database, "DELETE FROM outbox_event")
    return made


async def _run(database: Database, job: AcceptedJob, stage: Stage = Stage.VALIDATE) -> dict[str, Any]:
    (run,) = await rows(
        database, "SELECT * FROM stage_run WHERE job_id = :id AND stage = :stage", id=job.id, stage=stage.value
    )
    return run


async def _owed(database: Database, job: AcceptedJob) -> list[dict[str, Any]]:
    return await rows(database, "SELECT * FROM outbox_event WHERE job_id = :id ORDER BY id", id=job.id)


async def _expire_lease(database: Database) -> None:
    await change(database, "UPDATE stage_run SET lease_expires_at = now() - interval '1 s' WHERE status = 'running'")


async def _claim(worker: Crew, message: StageMessage) -> Claim:
    claimed = await worker.admit(message)
    assert claimed is not None
    return claimed.claim


# What arrives (who is live, and what an answer without a row means).


async def test_a_hung_owner_loses_its_run_by_its_lease_though_its_lock_is_held(database, job, owner, heir):
    """A hung process keeps its sockets, and so its lock; only the lease can tell."""
    lost = await _claim(owner, job.message())
    await _expire_lease(database)
    impatient = Interrupted(heir.ledger, "is_gone", lambda: _lose_patience(heir))

    taken = await heir.admit(job.message(), ledger=impatient)

    assert owner.liveness.is_ready
    assert taken is not None
    assert taken.claim.token == lost.token + 1
    assert await write(database, decided(lost, DONE)) == [False]


async def test_a_copy_that_meets_a_live_owner_is_deferred_and_not_dropped(database, job, owner, heir):
    """If that owner dies, this copy saves the job."""
    await _claim(owner, job.message())
    copy = Copy(new_id(), 0)
    impatient = Interrupted(heir.ledger, "is_gone", lambda: _lose_patience(heir))

    assert await heir.admit(job.message(), copy=copy, ledger=impatient) is None

    (owed,) = await _owed(database, job)
    assert (owed["event_id"], owed["deferrals"]) == (copy.event_id, 1)


async def _lose_patience(worker: Crew) -> None:
    worker.clock.seconds += 2 * OWNER_GRACE_SECONDS


async def test_a_copy_that_came_before_the_dead_owners_lock_was_free_looks_again(database, job, owner, heir):
    """The broker redelivers some milliseconds before PostgreSQL frees the lock: in a third of all kills."""
    lost = await _claim(owner, job.message())
    interrupted = Interrupted(heir.ledger, "is_gone", owner.liveness.stop)

    claimed = await heir.admit(job.message(), ledger=interrupted)

    assert claimed is not None
    assert claimed.claim.token == lost.token + 1
    assert interrupted.calls.count("is_gone") > 1
    assert await _owed(database, job) == []


async def test_a_claim_that_got_no_row_is_read_again_and_not_acknowledged(database, job, owner, heir):
    """Between the claim that failed and the look at the run its owner gave it back: this copy may be the only one."""
    first = await _claim(owner, job.message())
    interrupted = Interrupted(heir.ledger, "claim", lambda: write(database, release(first)))

    claimed = await heir.admit(job.message(), ledger=interrupted)

    assert claimed is not None
    assert (await _run(database, job))["worker_id"] == heir.liveness.worker_id


async def test_a_takeover_that_got_no_row_is_read_again_and_not_acknowledged(database, job, owner, heir):
    """Somebody else took the dead owner's run first, and gave it back."""
    await _claim(owner, job.message())
    await owner.liveness.stop()

    async def another_takes_it_and_gives_it_back() -> None:
        async with database.transaction() as conn:
            run = (await stage_runs.read_current(conn, [job.id]))[job.id]
            (taken,) = await stage_runs.take_over(conn, [run], worker_id=99, lease=LEASE)
        await write(database, release(taken.claim))

    interrupted = Interrupted(heir.ledger, "is_gone", another_takes_it_and_gives_it_back)

    claimed = await heir.admit(job.message(), ledger=interrupted)

    assert "take_over" in interrupted.calls
    assert claimed is not None
    assert claimed.claim.lost == 1


async def test_a_deferral_refused_because_the_run_moved_is_read_again(database, job, owner, heir):
    """A copy put aside for a token that is gone would wait for nobody."""
    first = await _claim(owner, job.message())

    async def the_owner_gives_it_back() -> None:
        await _lose_patience(heir)
        await write(database, release(first))

    interrupted = Interrupted(heir.ledger, "is_gone", the_owner_gives_it_back)

    claimed = await heir.admit(job.message(), ledger=interrupted)

    assert "defer" in interrupted.calls
    assert claimed is not None


async def test_a_deferral_refused_because_another_copy_is_kept_is_acknowledged(database, job, owner, heir):
    """However many copies there are, one waits in the ladder."""
    await _claim(owner, job.message())
    for _ in range(3):
        impatient = Interrupted(heir.ledger, "is_gone", lambda: _lose_patience(heir))
        assert await heir.admit(job.message(), ledger=impatient) is None

    assert len(await _owed(database, job)) == 1


@pytest.mark.parametrize("field", ["series", "attempt", "token"])
async def test_a_deferral_is_bound_to_the_series_attempt_and_token_that_were_read(database, job, field):
    """A copy of an older look would hide the one that the run needs now."""
    await claim_all(database, [job])
    seen = await current(database, job.id)
    column = "fencing_token" if field == "token" else field
    await change(database, f"UPDATE stage_run SET {column} = {column} + 1")  # noqa: S608 - one of the three above

    async with database.transaction() as conn:
        kept = await deferrals.defer(conn, [Deferral(seen, new_id(), SECOND, 1)])

    assert kept == [False]
    assert await _owed(database, job) == []


MOVES_OF_A_CLAIM: dict[str, Callable[[Claim], moves.Move]] = {
    "a retry": lambda claim: decided(claim, STORAGE),
    "a release": release,
    "a completion": lambda claim: decided(claim, DONE),
}


@pytest.mark.parametrize("name", MOVES_OF_A_CLAIM)
async def test_every_move_of_a_run_forgets_the_copy_that_waited(database, job, name):
    """A copy that waits for what is over must not keep those out that the run needs now."""
    (claim,) = await claim_all(database, [job])
    async with database.transaction() as conn:
        run = (await stage_runs.read_current(conn, [job.id]))[job.id]
        await deferrals.defer(conn, [Deferral(run, new_id(), SECOND, 1)])

    await write(database, MOVES_OF_A_CLAIM[name](claim))

    assert (await _run(database, job))["deferred_event"] is None


async def test_a_message_issued_again_is_not_turned_away_for_a_copy_that_may_be_lost(database, job):
    """The broker lost the copy that waited: the one made up for it must be able to wait as well."""
    async with database.transaction() as conn:
        seen = (await stage_runs.read_current(conn, [job.id]))[job.id]
        await deferrals.defer(conn, [Deferral(seen, new_id(), SECOND, 1)])
        await reissues.reissue(conn, [Reissue(seen)])
    issued = new_id()

    async with database.transaction() as conn:
        kept = await deferrals.defer(conn, [Deferral(await current(database, job.id), issued, SECOND, 1)])

    assert kept == [True]


@pytest.mark.parametrize("takes_over", [False, True])
async def test_every_claim_forgets_the_copy_that_waited(database, job, takes_over):
    """It waited for an owner or a time that is past; a copy that comes now must not be sent away for its sake."""
    (lost,) = await claim_all(database, [job])
    if not takes_over:
        await write(database, decided(lost, STORAGE))
    async with database.transaction() as conn:
        run = (await stage_runs.read_current(conn, [job.id]))[job.id]
        assert await deferrals.defer(conn, [Deferral(run, new_id(), SECOND, 1)]) == [True]
    await change(database, "UPDATE stage_run SET next_attempt_at = now() WHERE status = 'retrying'")

    if takes_over:
        async with database.transaction() as conn:
            assert await stage_runs.take_over(conn, [run], worker_id=2, lease=LEASE) != [None]
    else:
        assert len(await claim_all(database, [job], attempt=2)) == 1

    assert (await _run(database, job))["deferred_event"] is None


async def test_a_give_up_that_came_twice_is_made_good_once_more_and_then_no_more(database, job):
    """Nobody could say whether the first answer was written down; after it has been, the series has had its chance."""
    seen = await current(database, job.id)
    made_good = []
    for again in (False, True, False):
        async with database.transaction() as conn:
            made_good.append(await reissues.reissue(conn, [Reissue(seen)], given_up=True, again=again))

    assert made_good == [{job.id}, {job.id}, set()]


async def test_a_first_give_up_that_only_looks_like_a_second_is_noted(database, job):
    """The broker calls redelivered what no publisher had looked at; the next give-up must still be the last."""
    seen = await current(database, job.id)
    made_good = []
    for again in (True, False):
        async with database.transaction() as conn:
            made_good.append(await reissues.reissue(conn, [Reissue(seen)], given_up=True, again=again))

    assert made_good == [{job.id}, set()]


# Liveness.


async def test_a_claim_whose_handler_is_gone_runs_out_though_its_process_lives(database, job, heir):
    """A handler that was lost without a word must not be kept alive by its neighbours' heartbeat."""
    async with crew(database, lease=SECOND) as leaking:
        claimed = await leaking.admit(job.message())
        leaking.stub.gate.clear()
        working = asyncio.create_task(leaking.runner.work(claimed))
        await eventually(lambda: leaking.stub.begun)
        working.cancel()
        await asyncio.wait([working])

        await eventually(lambda: _lease_is_over(database), seconds=SOON)
        assert leaking.liveness.is_ready
        assert (await _claim(heir, job.message())).token == claimed.claim.token + 1


async def _lease_is_over(database: Database) -> bool:
    return bool(await rows(database, "SELECT 1 FROM stage_run WHERE status = 'running' AND lease_expires_at < now()"))


async def test_a_claim_is_not_renewed_beyond_its_limit_though_its_handler_lives(database, job):
    """A handler that hangs in a living process loses its run like one whose process died."""
    async with crew(database, lease=SECOND) as hanging:
        claim = await _claim(hanging, job.message())
        with hanging.liveness.holding(claim, SECOND):
            assert await eventually(lambda: _lease_is_over(database), seconds=SOON)


@pytest.mark.parametrize("takes_over", [False, True])
async def test_who_does_not_hold_its_lock_does_not_claim(database, job, takes_over, monkeypatch):
    """A worker that others take for dead would work on what they are taking from it."""
    liveness = Liveness(database.url, stages=list(Stage), lease=LEASE, clock=SystemClock())
    ledger = Ledger(database, liveness, Quiet(), lease=LEASE)
    if takes_over:
        await claim_all(database, [job])
    before = await _run(database, job)
    waits, ready = asyncio.Event(), liveness.ready

    async def tells_that_it_waits():
        waits.set()
        await ready()

    monkeypatch.setattr(liveness, "ready", tells_that_it_waits)
    asked = ledger.take_over(await current(database, job.id)) if takes_over else ledger.claim(job.message())
    claiming, waiting = asyncio.create_task(asked), asyncio.create_task(waits.wait())
    await asyncio.wait([claiming, waiting], timeout=SOON, return_when=asyncio.FIRST_COMPLETED)
    assert not claiming.done()
    assert await _run(database, job) == before

    liveness.start()

    assert await claiming is not None
    await liveness.stop()


@pytest.mark.parametrize("moved", ["taken over", "retrying"])
async def test_a_heartbeat_renews_by_token_and_only_what_runs(database, job, moved):
    """A heart that beats on for a claim of the past must not keep the successor's lease alive, who may be dead."""
    (late,) = await claim_all(database, [job])
    if moved == "retrying":
        await write(database, decided(late, STORAGE))
    else:
        run = await current(database, job.id)
        async with database.transaction() as conn:
            await stage_runs.take_over(conn, [run], worker_id=2, lease=LEASE)
    before = await _run(database, job)

    async with database.transaction() as conn:
        await stage_runs.renew(conn, [late], lease=2 * LEASE)

    assert await _run(database, job) == before


# The fence.


async def test_the_owner_before_a_redrive_writes_nothing_after_it(database, job):
    """A token that went down, or began anew, would be met again by the one who had it first."""
    (late,) = await claim_all(database, [job])
    reason = LetterReason.DELIVERY_LIMIT
    given_up = fail(late, ErrorCode.DELIVERY_LIMIT, closes=AttemptOutcome.WORKER_LOST, letter=reason)
    await write(database, given_up)
    (letter,) = await rows(database, "SELECT id FROM dead_letter")
    async with database.transaction() as conn:
        await redrives.redrive(conn, [letter["id"]], by="test", note="again")
    (now,) = await claim_all(database, [job], series=2)
    before = await _run(database, job), await _owed(database, job)

    assert await write(database, decided(late, DONE), decided(late, STORAGE), release(late)) == [False] * 3
    with pytest.raises(FencedError):
        await RunCheckpoint(database, late, lease=LEASE).pages_total(3)

    assert now.token > late.token
    assert (await _run(database, job), await _owed(database, job)) == before


async def _cancel(database: Database, job: AcceptedJob, _: Claim) -> None:
    await commands.cancel(front_desk(database), job.tenant_id, job.id)


async def _delete(database: Database, job: AcceptedJob, _: Claim) -> None:
    await commands.delete(front_desk(database), job.tenant_id, job.id)


async def _pass_deadline(database: Database, _: AcceptedJob, __: Claim) -> None:
    await change(database, "UPDATE job SET deadline_at = now()")
    assert await sweeper(database).deadline() == 1


async def _sweep_lease(database: Database, _: AcceptedJob, __: Claim) -> None:
    await _expire_lease(database)
    assert await sweeper(database).expired_lease() == 1


async def _give_up(database: Database, job: AcceptedJob, _: Claim) -> None:
    assert await write(database, lose(await current(database, job.id), lost_claims=0)) == [True]


async def _fail(database: Database, _: AcceptedJob, claim: Claim) -> None:
    assert await write(database, decided(claim, DAMAGED)) == [True]


async def _release(database: Database, _: AcceptedJob, claim: Claim) -> None:
    assert await write(database, release(claim)) == [True]


@pytest.mark.parametrize("takes", [_cancel, _delete, _pass_deadline, _sweep_lease, _give_up, _fail, _release])
async def test_every_move_that_takes_a_run_from_its_owner_raises_the_token(database, job, takes):
    """The owner has to find out by its token, whatever the run's status becomes later."""
    (claim,) = await claim_all(database, [job])

    await takes(database, job, claim)

    assert (await _run(database, job))["fencing_token"] > claim.token
    assert await write(database, decided(claim, DONE)) == [False]


async def test_a_token_that_is_still_the_runs_writes_only_while_it_runs(database, job):
    """A retry keeps the token: an outcome that comes once more must not end an attempt that nobody makes."""
    (claim,) = await claim_all(database, [job])
    await write(database, decided(claim, STORAGE))
    before = await _run(database, job), await _owed(database, job)

    assert await write(database, decided(claim, DONE), release(claim)) == [False, False]
    with pytest.raises(FencedError):
        await RunCheckpoint(database, claim, lease=LEASE).pages_total(3)

    assert (await _run(database, job), await _owed(database, job)) == before
    assert (before[0]["status"], before[0]["fencing_token"]) == ("retrying", claim.token)


async def test_a_page_of_an_owner_that_is_being_taken_over_just_now_is_not_kept(database, job):
    """The checkpoint begins by updating the run: it waits for the takeover, and then finds that it came to pass."""
    await write(database, decided((await claim_all(database, [job]))[0], DONE))
    (late,) = await claim_all(database, [job], Stage.EXTRACT)
    run, page = await current(database, job.id), ExtractedPage(number=1, source=PageSource.OCR, text="words")

    async with database.transaction() as conn:
        await stage_runs.take_over(conn, [run], worker_id=2, lease=LEASE)
        keeping = asyncio.create_task(RunCheckpoint(database, late, lease=LEASE).page(page))
        await eventually(lambda: _waits_for_a_lock(database))

    with pytest.raises(FencedError):
        await keeping
    assert await rows(database, "SELECT 1 FROM page_text") == []


async def test_a_cancel_leaves_no_page_that_was_being_kept_just_then(database, job):
    """Content of a cancelled job goes at once, also what was written while the cancel waited."""
    await write(database, decided((await claim_all(database, [job]))[0], DONE))
    (claim,) = await claim_all(database, [job], Stage.EXTRACT)

    async with database.transaction() as conn:
        await conn.execute(text("UPDATE stage_run SET pages_done = 1 WHERE fencing_token = 1 AND stage = 'extract'"))
        await conn.execute(
            text("INSERT INTO page_text (job_id, page, fencing_token, content) VALUES (:id, 1, :token, '{}')"),
            {"id": job.id, "token": claim.token},
        )
        cancelling = asyncio.create_task(_cancel(database, job, claim))
        await eventually(lambda: _waits_for_a_lock(database))
    await cancelling

    assert await rows(database, "SELECT 1 FROM page_text") == []


async def _waits_for_a_lock(database: Database) -> bool:
    question = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    return bool(await rows(database, question))


async def test_a_cancel_stops_the_handler_and_the_late_worker_writes_nothing(database, job, owner):
    """The handler hears of it by its heart; its worker is told that it is fenced, and may acknowledge."""
    claimed = await owner.admit(job.message())
    owner.stub.gate.clear()
    fenced = metrics.FENCED.labels(stage="validate")
    before = fenced._value.get()  # noqa: SLF001 - the client has no public way to read a counter
    working = asyncio.create_task(owner.runner.work(claimed))
    await eventually(lambda: owner.stub.begun)

    await _cancel(database, job, claimed.claim)
    await asyncio.wait_for(working, SOON)

    assert fenced._value.get() == before + 1  # noqa: SLF001 - as above
    (attempt,) = await rows(database, "SELECT * FROM stage_attempt")
    assert attempt["outcome"] == "cancelled"


# Outcomes that fail to commit, and batches.


@pytest.mark.parametrize("trouble", ["lost_answers", "lost_commits"])
async def test_an_outcome_whose_commit_was_lost_is_written_with_its_token_and_counts_as_success(database, job, trouble):
    """Whether the commit failed or only its answer, the same token again settles it: closed by it is success."""
    wavering = Wavering(database)
    async with crew(database, through=wavering) as worker:
        claimed = await worker.admit(job.message())
        setattr(wavering, trouble, 1)
        completed = metrics.ATTEMPTS.labels(stage="validate", outcome="completed", code="")
        fenced = metrics.FENCED.labels(stage="validate")
        before = completed._value.get(), fenced._value.get()  # noqa: SLF001 - no public way to read a counter

        await worker.runner.work(claimed)

        after = completed._value.get(), fenced._value.get()  # noqa: SLF001 - as above
        assert (after[0] - before[0], after[1] - before[1]) == (1, 0)
    (attempt,) = await rows(database, "SELECT * FROM stage_attempt")
    assert (attempt["fencing_token"], attempt["outcome"]) == (claimed.claim.token, "completed")
    assert len(await _owed(database, job)) == 1


async def test_one_bad_output_in_a_batch_is_unknown_and_its_neighbours_are_completed(database, owner):
    """PostgreSQL voids the whole batch because of one row; each is done alone then."""
    crowd = await accepted_jobs(database, 5)
    bad = crowd[2]
    owner.stub.gate.clear()
    owner.stub.answer = lambda work: Completed({"text": "\0"} if work.job_id == bad.id else {})
    claimed = [await owner.admit(job.message()) for job in crowd]
    working = [asyncio.create_task(owner.runner.work(one)) for one in claimed]
    await eventually(lambda: len(owner.stub.begun) == len(crowd))

    with caught(database.engine) as statements:
        owner.stub.gate.set()
        await asyncio.gather(*working)

    attempts = await rows(database, "SELECT * FROM stage_attempt")
    ended = {row["job_id"]: (row["outcome"], row["code"]) for row in attempts}
    assert ended.pop(bad.id) == ("unknown", "invalid_output")
    assert set(ended.values()) == {("completed", None)}
    assert max(len(ids) for ids in _batches(statements)) > 1
    assert len(attempts) == len(crowd)


async def test_an_output_with_a_number_that_json_has_not_never_enters_a_batch(database, owner):
    """What is known to be refused is not tried: the neighbours' batch is not split for it."""
    crowd = await accepted_jobs(database, 5)
    bad = crowd[2]
    owner.stub.gate.clear()
    owner.stub.answer = lambda work: Completed({"share": float("nan")} if work.job_id == bad.id else {})
    claimed = [await owner.admit(job.message()) for job in crowd]
    working = [asyncio.create_task(owner.runner.work(one)) for one in claimed]
    await eventually(lambda: len(owner.stub.begun) == len(crowd))

    with caught(database.engine) as statements:
        owner.stub.gate.set()
        await asyncio.gather(*working)

    (attempt,) = await rows(database, "SELECT * FROM stage_attempt WHERE job_id = :id", id=bad.id)
    assert (attempt["outcome"], attempt["code"]) == ("unknown", "invalid_output")
    assert max(len(ids) for ids in _batches(statements)) > 1


def _batches(statements: list[Any]) -> list[list[str]]:
    """Return the jobs of each batch of moves that was tried."""
    written = [one for one in statements if "jsonb_to_recordset(CAST($1" in one.sql and "stage_run r SET" in one.sql]
    return [[move["job_id"] for move in json.loads(one.parameters[0])] for one in written]


async def test_a_late_output_in_the_same_batch_is_not_taken_for_the_current_one(database, job):
    """A worker that comes back with an old claim may share a batch with the job's owner of now."""
    (late,) = await claim_all(database, [job])
    await write(database, decided(late, DONE))
    (now,) = await claim_all(database, [job], Stage.EXTRACT)
    liveness: Any = Quiet()
    ledger = Ledger(database, liveness, Quiet(), lease=LEASE)

    written = await asyncio.gather(
        ledger.record(Record(decided(now, DONE), StoredOutput("now", 1, blob_key="now"))),
        ledger.record(Record(decided(late, DONE), StoredOutput("late", 1, blob_key="late"))),
    )

    assert written == [True, False]
    (output,) = await rows(database, "SELECT * FROM stage_output WHERE stage = 'extract'")
    assert output["blob_key"] == "now"


async def test_of_two_moves_on_one_token_in_one_batch_one_is_told_that_it_was_written(database, job):
    """An owner and whoever takes its run from it may meet in one statement; only one of them has won."""
    (claim,) = await claim_all(database, [job])

    written = await write(database, decided(claim, DONE), release(claim))

    assert sorted(written) == [False, True]
    (attempt,) = await rows(database, "SELECT outcome FROM stage_attempt")
    assert attempt["outcome"] == ("completed" if written[0] else "released")


# Locks, and what must not be inside a transaction.


async def _claims(database: Database, job: AcceptedJob) -> None:
    await claim_all(database, [job])


async def _takes_over(database: Database, job: AcceptedJob) -> None:
    run = await _running_view(database, job)
    async with database.transaction() as conn:
        await stage_runs.take_over(conn, [run], worker_id=2, lease=LEASE)


async def _defers(database: Database, job: AcceptedJob) -> None:
    run = await _running_view(database, job)
    async with database.transaction() as conn:
        await deferrals.defer(conn, [Deferral(run, new_id(), SECOND, 1)])


async def _running_view(database: Database, job: AcceptedJob) -> Any:
    await claim_all(database, [job])
    return await current(database, job.id)


async def _records(database: Database, job: AcceptedJob) -> None:
    await write(database, decided((await claim_all(database, [job]))[0], DONE))


async def _retries(database: Database, job: AcceptedJob) -> None:
    await _lettered(database, job)
    await commands.retry(front_desk(database), job.tenant_id, job.id)


async def _redrives(database: Database, job: AcceptedJob) -> None:
    letter = await _lettered(database, job)
    async with database.transaction() as conn:
        await redrives.redrive(conn, [letter], by="test", note="again")


async def _lettered(database: Database, job: AcceptedJob) -> Any:
    run = await _running_view(database, job)
    await write(database, lose(run, lost_claims=0))
    (letter,) = await rows(database, "SELECT id FROM dead_letter")
    return letter["id"]


async def _cancels(database: Database, job: AcceptedJob) -> None:
    await commands.cancel(front_desk(database), job.tenant_id, job.id)


async def _deletes(database: Database, job: AcceptedJob) -> None:
    await commands.delete(front_desk(database), job.tenant_id, job.id)


async def _sweeps(database: Database, job: AcceptedJob) -> None:
    await claim_all(database, [job])
    await _expire_lease(database)
    rules = sweeper(database)
    for rule in (rules.expired_lease, rules.deadline):
        await rule()


WRITERS = [_claims, _takes_over, _defers, _records, _retries, _redrives, _cancels, _deletes, _sweeps]


@pytest.mark.parametrize("writer", WRITERS)
async def test_whoever_changes_a_job_locks_it_before_anything_else(
    database: Database, job: AcceptedJob, writer: Callable[[Database, AcceptedJob], Awaitable[None]]
) -> None:
    """A run that is locked before its job is one half of a deadlock; a lock inside the statement sees old rows."""
    with caught(database.engine) as statements:
        await writer(database, job)

    wrote = [number for number, one in enumerate(statements) if _changes_a_run(one.sql)]
    locked = [number for number, one in enumerate(statements) if _locks_jobs(one.sql)]
    assert wrote
    # Between two statements that write a run there is one that locks jobs, and one before the first.
    assert all(
        any(before < lock < write for lock in locked) for before, write in zip([-1, *wrote], wrote, strict=False)
    )


def _changes_a_run(sql: str) -> bool:
    return "UPDATE stage_run r SET" in sql and "FROM" in sql


def _locks_jobs(sql: str) -> bool:
    return bool(re.match(r"SELECT id FROM job WHERE id = ANY\(.*\) ORDER BY id FOR NO KEY UPDATE", sql))


async def test_the_sweeper_passes_over_a_job_that_somebody_is_busy_with(database, job):
    """It must neither wait for others nor decide by what they are about to change."""
    await claim_all(database, [job])
    await _expire_lease(database)
    rules = sweeper(database)

    async with database.transaction() as conn:
        await conn.execute(text("SELECT FROM job FOR NO KEY UPDATE"))
        assert await rules.expired_lease() == 0

    assert await rules.expired_lease() == 1


_WAKER_AT_REST = """
SELECT query FROM pg_stat_activity
WHERE application_name = 'docstage-waker' AND datname = current_database() AND state = 'idle'
"""


async def test_the_relay_is_notified_after_the_commit_and_outside_of_any_transaction(database, job):
    """Inside the transaction all commits queue up behind one lock: a tenth of them per second is left."""
    heard: asyncio.Queue[str] = asyncio.Queue()
    waker = Waker(database)
    liveness: Any = Quiet()
    ledger = Ledger(database, liveness, waker, lease=LEASE)
    (claim,) = await claim_all(database, [job])
    listener = await asyncpg.connect(plain_url(database.url))
    try:
        await listener.add_listener(WAKE_CHANNEL, lambda *_: heard.put_nowait("woken"))
        with caught(database.engine) as statements:
            assert await ledger.record(Record(decided(claim, DONE)))
        await asyncio.wait_for(heard.get(), SOON)
        (session,) = await eventually(lambda: rows(database, _WAKER_AT_REST))
    finally:
        await waker.close()
        await listener.close()

    assert not [one for one in statements if "notify" in one.sql.lower()]
    # Its last statement is the notification itself and no COMMIT: it was a transaction of its own.
    assert session["query"] == f"NOTIFY {WAKE_CHANNEL}"


def test_nothing_but_the_waker_notifies() -> None:
    """One more place that does, or a trigger, and the factor of ten is gone without a test that fails."""
    root = Path(schema.__file__).parents[1]
    code = [
        path
        for package in ("schema", "intake", "publisher", "stages", "dlq_tools")
        for path in (root / package).rglob("*.py")
    ]
    notifying = [path for path in code if re.search(r"\bNOTIFY\b|pg_notify", path.read_text())]

    assert notifying == [Path(sources.getfile(wake))]
