"""A job's end and its notice are one transaction: who has an endpoint is told, and nobody else."""

import asyncio

import pytest
from sqlalchemy import text

from publisher.rules import JobRules
from schema.db import stage_runs
from schema.db.moves import lock_and_apply
from schema.domain import moves
from schema.domain.decisions import Advance
from schema.domain.errors import ErrorCode
from schema.domain.notices import NoticeType
from schema.domain.outcomes import Completed
from schema.domain.states import AttemptOutcome, RunStatus, Stage
from tests.support.broker import publisher_settings
from tests.support.eventually import eventually
from tests.support.factories import accepted_job, claim, rows, write
from tests.support.protocol import change
from tests.support.webhooks import add_endpoint, fail_job, owed, told_job

URL = "https://example.com/hooks"


async def _deliveries(database):
    return await rows(database, "SELECT * FROM webhook_delivery ORDER BY event_id")


async def _complete(database, job):
    for stage in Stage:
        claimed = await claim(database, job, stage=stage)
        move = moves.of_outcome(claimed.claim, Completed({"found": "something"}), Advance())
        assert await write(database, move) == [True]


async def _cancel(database, job):
    assert await write(database, moves.cancel(await _run(database, job))) == [True]


async def _lose(database, job):
    """Give a job up that has cost too many workers."""
    await claim(database, job)
    assert await write(database, moves.lose(await _run(database, job), lost_claims=0)) == [True]


async def _expire(database, job):
    late = moves.fail(await _run(database, job), ErrorCode.DEADLINE_EXCEEDED, closes=AttemptOutcome.DEADLINE)
    assert await write(database, late) == [True]


@pytest.mark.parametrize(
    ("end", "notice", "error"),
    [
        (_complete, NoticeType.COMPLETED, None),
        (fail_job, NoticeType.FAILED, {"code": "corrupt_document", "stage": "validate"}),
        (_cancel, NoticeType.CANCELLED, None),
        (_lose, NoticeType.FAILED, {"code": "worker_lost", "stage": "validate"}),
        (_expire, NoticeType.FAILED, {"code": "deadline_exceeded", "stage": "validate"}),
    ],
)
async def test_every_end_is_told_once_with_one_event_and_one_message(database, end, notice, error):
    """The notice is in the outbox as soon as the job is finished, and says which job ended and how."""
    job, endpoint = await told_job(database, URL)

    await end(database, job)

    (delivery,) = await _deliveries(database)
    (copy,) = await owed(database)
    message = copy.message
    assert (delivery["endpoint_id"], delivery["job_id"], delivery["type"]) == (endpoint.id, job.id, notice)
    assert (message.endpoint_id, message.event_id) == (endpoint.id, delivery["event_id"])
    assert (message.series, message.attempt) == (1, 1)
    status = notice.removeprefix("job.")
    assert delivery["data"] == {
        "id": str(job.id), "kind": "text", "status": status, "client_tag": None, "error": error,
    }  # fmt: skip


async def test_all_of_a_tenants_endpoints_are_told_of_one_event(database):
    """Each has a delivery of its own; the event's id is the same, so that a receiver behind two knows it again."""
    job, first = await told_job(database, URL)
    second = await add_endpoint(database, job.tenant_id, URL)

    await fail_job(database, job)

    deliveries = await _deliveries(database)
    assert {delivery["endpoint_id"] for delivery in deliveries} == {first.id, second.id}
    assert len({delivery["event_id"] for delivery in deliveries}) == 1
    assert {copy.message.endpoint_id for copy in await owed(database)} == {first.id, second.id}


@pytest.mark.parametrize("why", ["another_tenant", "another_event", "disabled"])
async def test_who_did_not_ask_is_not_told(database, why):
    """Nothing is recorded and nothing is owed for others' endpoints, other events, and disabled ones."""
    job = await accepted_job(database)
    other = await accepted_job(database)
    tenant_id = other.tenant_id if why == "another_tenant" else job.tenant_id
    events = [NoticeType.COMPLETED] if why == "another_event" else list(NoticeType)
    await add_endpoint(database, tenant_id, URL, events=events)
    if why == "disabled":
        await rows(database, "UPDATE webhook_endpoint SET disabled_at = now(), disabled_reason = 'owner' RETURNING id")

    await fail_job(database, job)

    assert await _deliveries(database) == []
    assert await owed(database) == []


async def test_a_move_that_is_fenced_off_tells_nothing(database):
    """A late worker's outcome is no event."""
    job, _ = await told_job(database, URL)
    claimed = await claim(database, job)
    late = moves.fail(claimed.claim, ErrorCode.CORRUPT_DOCUMENT, closes=AttemptOutcome.PERMANENT)
    assert await write(database, moves.release(claimed.claim)) == [True]

    assert await write(database, late) == [False]

    assert await _deliveries(database) == []


async def test_a_notice_goes_with_its_transaction(database):
    """An outcome that is rolled back was never told."""
    job, _ = await told_job(database, URL)
    claimed = await claim(database, job)
    move = moves.fail(claimed.claim, ErrorCode.CORRUPT_DOCUMENT, closes=AttemptOutcome.PERMANENT)

    async with database.engine.connect() as conn:
        assert await lock_and_apply(conn, [move]) == [True]
        await conn.rollback()

    assert await _deliveries(database) == []
    assert await owed(database) == []


async def test_an_endpoint_that_is_being_removed_fails_nobodys_outcome(database):
    """The move waits for the removal and goes on without the endpoint, rather than break a foreign key with it."""
    job, _ = await told_job(database, URL)
    claimed = await claim(database, job)
    move = moves.fail(claimed.claim, ErrorCode.CORRUPT_DOCUMENT, closes=AttemptOutcome.PERMANENT)
    async with database.transaction() as removing:
        await removing.execute(text("DELETE FROM webhook_endpoint"))
        writing = asyncio.create_task(write(database, move))
        await eventually(lambda: _waits(database))

    assert await writing == [True]
    assert await _deliveries(database) == []


async def _waits(database):
    return await rows(database, "SELECT 1 FROM pg_locks WHERE NOT granted")


async def test_a_job_that_ends_twice_is_two_events(database):
    """A failed job that was brought back and failed again is told as both, under two ids."""
    job, _ = await told_job(database, URL)
    await fail_job(database, job)
    run = await _run(database, job)
    assert await write(database, moves.redrive(run, by="test", note="test")) == [True]

    assert await write(database, moves.cancel(await _run(database, job))) == [True]

    first, second = await _deliveries(database)
    assert [first["type"], second["type"]] == ["job.failed", "job.cancelled"]
    assert first["event_id"] != second["event_id"]


async def test_a_notice_that_is_owed_for_days_does_not_hide_a_run_that_was_forgotten(database, environment):
    """P2: the sweeper asks for the run's own message, not for any that the outbox holds about its job."""
    job, _ = await told_job(database, URL)
    await fail_job(database, job)
    assert await write(database, moves.redrive(await _run(database, job), by="test", note="test")) == [True]
    await change(database, "DELETE FROM outbox_event WHERE kind = 'stage'")
    await change(database, "UPDATE stage_run SET issued_at = now() - interval '1 day'")

    assert await JobRules(publisher_settings(environment), database, {}).silent(RunStatus.READY) == 1


async def _run(database, job):
    async with database.transaction() as conn:
        return (await stage_runs.read_current(conn, [job.id]))[job.id]
