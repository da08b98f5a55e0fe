"""Claims, fences and moves on a real PostgreSQL: one winner, and nothing written by anybody else."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import text

from schema.db import stage_runs
from schema.db.deferrals import Deferral, defer
from schema.domain import moves
from schema.domain.decisions import Advance, GiveUp, RetryAfter
from schema.domain.errors import ErrorCode
from schema.domain.outcomes import Completed, Permanent, Transient, Warning_
from schema.domain.states import AttemptOutcome, Lane, Stage
from tests.support.factories import LEASE, accepted_job, claim, rows, write

GONE = ErrorCode.DOCUMENT_GONE
STORAGE = Transient(ErrorCode.STORAGE_UNAVAILABLE)
DONE = Completed({"pages": 1}, lane=Lane.EXTRACT_OCR, pages_total=3)


async def _current(database, job):
    async with database.transaction() as conn:
        return (await stage_runs.read_current(conn, [job.id]))[job.id]


async def _take_over(database, run, *, worker_id=2):
    async with database.transaction() as conn:
        (claimed,) = await stage_runs.take_over(conn, [run], worker_id=worker_id, lease=LEASE)
    return claimed


async def _job(database, job):
    (row,) = await rows(database, "SELECT * FROM job WHERE id = :id", id=job.id)
    return row


async def _runs(database, job):
    found = await rows(database, "SELECT * FROM stage_run WHERE job_id = :id", id=job.id)
    return {row["stage"]: row for row in found}


async def _outbox(database, job):
    return await rows(database, "SELECT * FROM outbox_event WHERE job_id = :id ORDER BY id", id=job.id)


async def test_of_many_claims_at_once_one_wins(database):
    """The same message delivered twice at once is worked on once."""
    job = await accepted_job(database)

    answers = await asyncio.gather(*(claim(database, job, worker_id=n) for n in range(1, 9)))

    winners = [answer for answer in answers if answer]
    assert len(winners) == 1
    assert winners[0].claim.token == 1
    assert (await _job(database, job))["state"] == "validating"


async def test_two_equal_wishes_in_one_batch_give_one_claim(database):
    """Both copies may arrive at the same process and join the same statement."""
    job = await accepted_job(database)

    async with database.transaction() as conn:
        answers = await stage_runs.claim(conn, [job.message(), job.message()], worker_id=1, lease=LEASE)

    assert [answer is not None for answer in answers] == [True, False]


async def test_a_run_whose_document_is_gone_is_claimed_without_it(database):
    """Else the run would be held by a worker that knows nothing of it, until its lease is over."""
    job = await accepted_job(database)
    async with database.transaction() as conn:
        await conn.execute(text("DELETE FROM document WHERE job_id = :id"), {"id": job.id})

    claimed = await claim(database, job)

    assert claimed.document is None
    assert await write(database, moves.fail(claimed.claim, GONE, closes=AttemptOutcome.PERMANENT)) == [True]
    assert (await _job(database, job))["error"]["code"] == "document_gone"


async def test_completing_a_stage_opens_the_next_and_owes_its_message(database):
    """Output, next run, job and message are one transaction; none can be there without the others."""
    job = await accepted_job(database)
    claimed = await claim(database, job)

    assert await write(database, moves.of_outcome(claimed.claim, DONE, Advance())) == [True]

    runs, owed = await _runs(database, job), await _outbox(database, job)
    assert (runs["validate"]["status"], runs["extract"]["status"]) == ("done", "ready")
    assert (runs["extract"]["lane"], runs["extract"]["pages_total"]) == ("extract.ocr", 3)
    assert (await _job(database, job))["state"] == "extracting"
    assert [(row["lane"], row["payload"]["stage"], row["payload"]["attempt"]) for row in owed] == [
        ("extract.ocr", "extract", 1)
    ]
    assert len(await rows(database, "SELECT 1 FROM stage_output WHERE job_id = :id", id=job.id)) == 1


async def test_a_stale_token_writes_nothing(database):
    """A worker that comes back after its run was taken over changes not one row."""
    job = await accepted_job(database)
    slow = await claim(database, job, worker_id=1)
    quick = await _take_over(database, await _current(database, job))
    before = (await _job(database, job), await _runs(database, job), await _outbox(database, job))

    late = await write(database, moves.of_outcome(slow.claim, DONE, Advance()))

    assert late == [False]
    assert (await _job(database, job), await _runs(database, job), await _outbox(database, job)) == before
    assert await write(database, moves.of_outcome(quick.claim, DONE, Advance())) == [True]


async def test_the_same_outcome_twice_is_written_once(database):
    """A commit whose answer was lost is tried again with its token and found to be done."""
    job = await accepted_job(database)
    claimed = await claim(database, job)
    move = moves.of_outcome(claimed.claim, DONE, Advance())
    await write(database, move)

    assert await write(database, move) == [False]

    async with database.transaction() as conn:
        assert await stage_runs.closed_as(conn, claimed.claim) == "completed"


async def test_a_takeover_keeps_the_attempt_and_closes_the_lost_one(database):
    """The history tells the truth: the first claim ended with its worker, the second began at once."""
    job = await accepted_job(database)
    await claim(database, job, worker_id=1)
    await _take_over(database, await _current(database, job))

    history = await rows(database, "SELECT * FROM stage_attempt WHERE job_id = :id ORDER BY fencing_token", id=job.id)

    assert [(row["attempt"], row["worker_id"], row["outcome"]) for row in history] == [
        (1, 1, "worker_lost"),
        (1, 2, None),
    ]
    assert (await _runs(database, job))["validate"]["lost"] == 1


async def test_a_takeover_of_a_run_that_moved_gets_no_row(database):
    """What was read is no longer so; the answer is to read again and never to acknowledge."""
    job = await accepted_job(database)
    await claim(database, job, worker_id=1)
    seen = await _current(database, job)
    await _take_over(database, seen, worker_id=2)

    assert await _take_over(database, seen, worker_id=3) is None


async def test_a_retry_waits_for_its_time(database):
    """Row and message name the same moment, and nobody can claim before it."""
    job = await accepted_job(database)
    claimed = await claim(database, job)
    await write(database, moves.of_outcome(claimed.claim, STORAGE, RetryAfter(timedelta(hours=1))))

    assert await claim(database, job, attempt=2) is None

    run, (owed,) = (await _runs(database, job))["validate"], await _outbox(database, job)
    assert (run["status"], run["attempt"]) == ("retrying", 2)
    assert run["next_attempt_at"] == owed["not_before"]


async def test_a_lost_series_ends_in_one_dead_letter_and_a_redrive_opens_the_next(database):
    """Series, letters and tokens: one letter per series, a token that never goes down."""
    job = await accepted_job(database)
    tokens = []
    for series in (1, 2):
        claimed = await claim(database, job, series=series)
        tokens.append(claimed.claim.token)
        given_up = moves.of_outcome(claimed.claim, STORAGE, GiveUp(STORAGE.code, dead_letter=True))
        assert await write(database, given_up) == [True]
        assert (await _job(database, job))["state"] == "failed"
        await write(database, moves.redrive(await _current(database, job), by="test", note="again"))

    letters = await rows(database, "SELECT * FROM dead_letter WHERE job_id = :id ORDER BY series", id=job.id)

    assert [(row["series"], row["reason"], row["code"]) for row in letters] == [
        (1, "retries_exhausted", "storage_unavailable"),
        (2, "retries_exhausted", "storage_unavailable"),
    ]
    assert tokens == sorted(set(tokens))
    job_row, run = await _job(database, job), await _current(database, job)
    assert (job_row["state"], job_row["error"], job_row["finished_at"]) == ("validating", None, None)
    assert (run.series, run.attempt, run.lost) == (3, 1, 0)


async def test_a_permanent_failure_is_no_dead_letter(database):
    """A bad document is its sender's to mend; it must not wake an operator."""
    job = await accepted_job(database)
    claimed = await claim(database, job)
    outcome = Permanent(ErrorCode.TOO_MANY_PAGES, limit=10, actual=11)

    await write(database, moves.of_outcome(claimed.claim, outcome, GiveUp(outcome.code, dead_letter=False)))

    assert (await _job(database, job))["error"] == {
        "code": "too_many_pages",
        "stage": "validate",
        "limit": 10,
        "actual": 11,
    }
    assert await rows(database, "SELECT 1 FROM dead_letter WHERE job_id = :id", id=job.id) == []


@pytest.mark.parametrize("claimed_before", [False, True])
async def test_a_cancel_takes_the_run_from_its_owner(database, claimed_before):
    """After the 200 nothing completes, whoever was at work."""
    job = await accepted_job(database)
    claimed = await claim(database, job) if claimed_before else None

    assert await write(database, moves.cancel(await _current(database, job))) == [True]

    if claimed:
        assert await write(database, moves.of_outcome(claimed.claim, DONE, Advance())) == [False]
    assert (await _job(database, job))["state"] == "cancelled"
    assert await claim(database, job) is None


async def test_a_released_claim_counts_as_nothing_and_comes_back(database):
    """A rolling restart costs no attempt and no lost worker."""
    job = await accepted_job(database)
    claimed = await claim(database, job)

    await write(database, moves.release(claimed.claim))

    run = (await _runs(database, job))["validate"]
    assert (run["status"], run["attempt"], run["lost"], run["fencing_token"]) == ("ready", 1, 0, 2)
    assert len(await _outbox(database, job)) == 1
    assert await claim(database, job) is not None


async def test_a_run_that_costs_too_many_workers_is_given_up(database):
    """A document that kills workers must not kill the fleet."""
    job = await accepted_job(database)
    await claim(database, job)
    for _ in range(3):
        await _take_over(database, await _current(database, job))

    assert await write(database, moves.lose(await _current(database, job), lost_claims=3)) == [True]

    (letter,) = await rows(database, "SELECT * FROM dead_letter WHERE job_id = :id", id=job.id)
    assert (letter["reason"], letter["code"]) == ("worker_lost", "worker_lost")
    assert (await _job(database, job))["state"] == "failed"


async def test_the_audit_trail_has_no_gap_and_no_double(database):
    """Sequence numbers come from a counter under the job's lock."""
    job = await accepted_job(database)
    claimed = await claim(database, job)
    await write(database, moves.of_outcome(claimed.claim, Permanent(GONE), GiveUp(GONE, dead_letter=False)))

    events = await rows(database, "SELECT * FROM job_event WHERE job_id = :id ORDER BY sequence", id=job.id)

    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    assert [event["type"] for event in events] == ["started", "failed"]


async def test_warnings_add_up_over_the_stages(database):
    """What validate noticed is still told when extract has noticed something else."""
    job = await accepted_job(database)
    for stage, code in ((Stage.VALIDATE, "type_mismatch"), (Stage.EXTRACT, "no_text")):
        claimed = await claim(database, job, stage=stage)
        outcome = Completed({}, warnings=(Warning_(code, (1,)),))
        await write(database, moves.of_outcome(claimed.claim, outcome, Advance()))

    assert [warning["code"] for warning in (await _job(database, job))["warnings"]] == ["type_mismatch", "no_text"]


async def test_one_bad_row_does_not_reach_its_neighbours_database_error(database):
    """PostgreSQL refuses a NUL in JSON: the transaction is void, so whoever batches must split."""
    good, bad = await accepted_job(database), await accepted_job(database)
    claims = [await claim(database, job) for job in (good, bad)]
    decided = [
        moves.of_outcome(claims[0].claim, DONE, Advance()),
        moves.of_outcome(claims[1].claim, Completed({"text": "\0"}), Advance()),
    ]

    with pytest.raises(Exception, match="unsupported Unicode"):
        await write(database, *decided)

    assert await write(database, decided[0]) == [True]


async def test_a_copy_is_deferred_once_per_run_and_forgotten_when_the_run_moves(database):
    """However many copies arrive while an owner works, one is kept, and never in the way of a new token."""
    job = await accepted_job(database)
    await claim(database, job)
    run = await _current(database, job)
    first, second = job.id, job.tenant_id  # any two ids

    async def ask(copy, run):
        async with database.transaction() as conn:
            (kept,) = await defer(conn, [Deferral(run, copy, timedelta(seconds=1), 1)])
        return kept

    assert [await ask(first, run), await ask(second, run), await ask(first, run)] == [True, False, True]

    await _take_over(database, run)
    assert await ask(second, run) is False
    assert await ask(second, await _current(database, job)) is True


async def test_a_document_that_is_read_shows_all_its_pages_as_done(database):
    """Pages that were not worth a write of their own are done as well, and a bar that ends at 0 of 3 looks broken."""
    job = await accepted_job(database)
    first = await claim(database, job)
    await write(database, moves.of_outcome(first.claim, DONE, Advance()))
    second = await claim(database, job, stage=Stage.EXTRACT)

    await write(database, moves.of_outcome(second.claim, Completed({"pages": []}), Advance()))

    extract = (await _runs(database, job))["extract"]
    assert (extract["pages_done"], extract["pages_total"]) == (3, 3)
