"""Each broken state that nobody else would touch, and the rule that heals it; and what each must leave alone."""

import asyncio
import hashlib
from datetime import timedelta

import pytest
from sqlalchemy import text

from publisher.relay import Relay
from publisher.retention import Retention
from publisher.rules import JobRules
from publisher.sweeper import Sweeper
from schema.db import dead_letters, workers
from schema.db.sweeps import sweeping_alone
from schema.domain.decisions import Advance, RetryAfter
from schema.domain.errors import ErrorCode
from schema.domain.ids import new_id
from schema.domain.moves import LetterReason, fail, of_outcome
from schema.domain.outcomes import Completed, Transient
from schema.domain.states import AttemptOutcome, Lane, RunStatus
from schema.runtime import metrics
from schema.runtime.blobs import Blobs, document_key
from schema.runtime.clock import SystemClock
from schema.wire.queues import DLQ_TTL, lane_queue
from tests.support.broker import owe, publisher_settings, purge_queue, running, topology_session
from tests.support.eventually import eventually
from tests.support.factories import accepted_job, claim, rows, write
from tests.support.protocol import until_locks_prove_something

# Issued between an hour and forty minutes ago, oldest first.
BACKLOG = """
WITH accepted AS (
    INSERT INTO job (id, tenant_id, kind, deadline, retention, deadline_at, expires_at)
    SELECT gen_random_uuid(), :tenant, 'text', '6 hours', '1 day', now() + interval '6 hours', now() + interval '1 day'
    FROM generate_series(1, :jobs)
    RETURNING id
)
INSERT INTO stage_run (job_id, stage, lane, issued_at)
SELECT id, 'validate', 'validate', now() - interval '60 min' + random() * interval '20 min' FROM accepted
"""


@pytest.fixture
def settings(environment):
    """A publisher's settings."""
    return publisher_settings(environment)


@pytest.fixture
def rules(settings, database):
    """The rules about jobs."""
    return JobRules(settings, database, {})


@pytest.fixture
async def blobs(settings):
    """The object store."""
    store = Blobs.connect(settings)
    yield store
    store.close()


async def _age(database, statement, **values):
    """Make rows older than they are."""
    async with database.transaction() as conn:
        await conn.execute(text(statement), values)


async def _issued_ago(database, job, ago):
    await _age(
        database,
        "UPDATE stage_run SET issued_at = now() - CAST(:ago AS interval),"
        " next_attempt_at = CASE WHEN status = 'retrying' THEN now() - CAST(:ago AS interval) END WHERE job_id = :id",
        id=job.id,
        ago=ago,
    )


async def _expire_lease(database, job):
    await _age(database, "UPDATE stage_run SET lease_expires_at = now() - interval '1 s' WHERE job_id = :id", id=job.id)


async def _run(database, job):
    (run,) = await rows(database, "SELECT * FROM stage_run WHERE job_id = :id AND stage = 'validate'", id=job.id)
    return run


async def _job(database, job):
    found = await rows(database, "SELECT * FROM job WHERE id = :id", id=job.id)
    return found[0] if found else None


async def _owed(database, job):
    return await rows(database, "SELECT * FROM outbox_event WHERE job_id = :id ORDER BY id", id=job.id)


async def _failed(database, job, **changes):
    claimed = await claim(database, job)
    await write(
        database, fail(claimed.claim, ErrorCode.STORAGE_UNAVAILABLE, closes=AttemptOutcome.TRANSIENT, **changes)
    )


async def test_a_run_whose_lease_ran_out_is_ready_again_with_a_message_and_a_higher_token(database, rules):
    """A hung worker keeps its liveness lock; only the lease tells."""
    job = await accepted_job(database)
    await claim(database, job)
    await _expire_lease(database, job)

    assert await rules.expired_lease() == 1

    run = await _run(database, job)
    assert (run["status"], run["fencing_token"], run["lost"]) == ("ready", 2, 1)
    assert len(await _owed(database, job)) == 1
    assert await rules.expired_lease() == 0


async def test_a_live_lease_is_left_alone(database, rules):
    """Two owners would do the work twice."""
    job = await accepted_job(database)
    await claim(database, job)

    assert await rules.expired_lease() == 0


async def test_a_run_that_cost_too_many_workers_becomes_a_dead_letter(database, rules):
    """A document that kills workers must not kill the fleet."""
    job = await accepted_job(database)
    await claim(database, job)
    await _age(database, "UPDATE stage_run SET lost = 3")
    await _expire_lease(database, job)

    assert await rules.expired_lease() == 1

    (letter,) = await rows(database, "SELECT * FROM dead_letter")
    assert (letter["reason"], letter["code"], letter["job_id"]) == ("worker_lost", "worker_lost", job.id)
    assert (await _job(database, job))["state"] == "failed"


async def test_a_job_past_its_deadline_fails_without_a_dead_letter(database, rules):
    """A deadline is the client's own wish; no operator can bring the time back."""
    job = await accepted_job(database)
    claimed = await claim(database, job)
    await _age(database, "UPDATE job SET deadline_at = now() - interval '1 s'")

    assert await rules.deadline() == 1

    after = await _job(database, job)
    assert (after["state"], after["error"]["code"]) == ("failed", "deadline_exceeded")
    assert await rows(database, "SELECT * FROM dead_letter") == []
    (attempt,) = await rows(database, "SELECT outcome FROM stage_attempt")
    assert attempt["outcome"] == "deadline"
    done = of_outcome(claimed.claim, Completed({}), Advance())
    assert await write(database, done) == [False]


async def test_a_ready_run_that_others_went_past_is_issued_again(database, rules):
    """The broker lost its message; the next one of the lane, issued a minute later, has been claimed."""
    job, later = await accepted_job(database), await accepted_job(database)
    await _issued_ago(database, job, timedelta(minutes=5))
    await claim(database, later)

    assert await rules.silent(RunStatus.READY) == 1

    (owed,) = await _owed(database, job)
    assert (owed["payload"]["attempt"], owed["lane"]) == (1, "validate")
    assert (await _run(database, job))["issues"] == 2


async def test_a_ready_run_in_a_long_backlog_is_not_issued_again(database, rules):
    """Overdue alone would multiply every message of a backlog."""
    jobs = [await accepted_job(database) for _ in range(3)]
    for job in jobs:
        await _issued_ago(database, job, timedelta(minutes=5))

    assert await rules.silent(RunStatus.READY) == 0


async def test_a_backlog_whose_messages_wait_in_the_queue_is_not_issued_again(database, rules):
    """Five thousand jobs far over the time limit, in a lane that works them off one by one: no copy is made."""
    head = await accepted_job(database)
    await claim(database, head)
    # The lane moves: what it claimed just now had waited for an hour, and nobody was overtaken by it.
    await _issued_ago(database, head, timedelta(minutes=61))
    await _age(database, BACKLOG, tenant=head.tenant_id, jobs=5000)

    assert await rules.silent(RunStatus.READY) == 0

    assert await rows(database, "SELECT 1 FROM outbox_event") == []


async def test_a_queue_that_was_purged_by_hand_fills_again(database, amqp_url, services, settings):
    """Nobody told Docstage; the rows know what is owed, and every job gets exactly one message."""
    jobs = [await accepted_job(database) for _ in range(20)]
    for job in jobs:
        await owe(database, job_id=job.id)
    relay = Relay(settings=settings, database=database, clock=SystemClock())
    rules = JobRules(settings, database, {})
    async with topology_session(amqp_url) as session, running(relay.run()):

        async def holds(messages):
            return (await session.inspect(lane_queue(Lane.VALIDATE))).messages == messages

        await eventually(lambda: holds(20))
        await asyncio.to_thread(purge_queue, services, amqp_url, lane_queue(Lane.VALIDATE))
        await eventually(lambda: holds(0))
        for job in jobs:
            await _issued_ago(database, job, timedelta(minutes=11))

        assert await rules.silent(RunStatus.READY) == 20
        await eventually(lambda: holds(20))
        assert await rules.silent(RunStatus.READY) == 0


async def test_a_ready_run_that_is_silent_for_too_long_is_issued_again_with_nobody_past_it(database, rules):
    """Nothing may wait for ever for company."""
    job = await accepted_job(database)
    await _issued_ago(database, job, timedelta(minutes=11))

    assert await rules.silent(RunStatus.READY) == 1


async def test_a_run_whose_message_is_still_in_the_outbox_is_not_issued_again(database, rules):
    """It is owed one already."""
    job = await accepted_job(database)
    await _issued_ago(database, job, timedelta(hours=1))
    await owe(database, job_id=job.id)

    assert await rules.silent(RunStatus.READY) == 0


async def test_the_interval_doubles_with_every_message_issued_again(database, rules):
    """A queue that is only slow gets a handful of copies, not one per sweep."""
    job, later = await accepted_job(database), await accepted_job(database)
    await claim(database, later)
    ages = []
    for minutes in range(1, 16):
        await _issued_ago(database, job, timedelta(minutes=minutes, seconds=1))
        await _age(database, "DELETE FROM outbox_event")
        if await rules.silent(RunStatus.READY):
            ages.append(minutes)

    assert ages == [1, 3, 7, 15]


async def test_messages_lost_together_do_not_come_back_together(database, rules):
    """A broker that lost its disk is not greeted with everything at one instant."""
    for _ in range(20):
        await _issued_ago(database, await accepted_job(database), timedelta(hours=1))

    assert await rules.silent(RunStatus.READY) == 20

    (spread,) = await rows(database, "SELECT max(available_at) - min(available_at) AS seconds FROM outbox_event")
    assert spread["seconds"] > timedelta(seconds=2)


async def test_a_retry_whose_message_was_lost_is_issued_again(database, rules):
    """Its time has come, and the ladder has nothing for it."""
    job = await accepted_job(database)
    claimed = await claim(database, job)
    outcome = Transient(ErrorCode.STORAGE_UNAVAILABLE)
    await write(database, of_outcome(claimed.claim, outcome, RetryAfter(timedelta(seconds=1))))
    await _age(database, "DELETE FROM outbox_event")
    await _issued_ago(database, job, timedelta(minutes=11))

    assert await rules.silent(RunStatus.RETRYING) == 1

    (owed,) = await _owed(database, job)
    assert owed["payload"]["attempt"] == 2


async def test_a_job_that_somebody_holds_is_passed_over(database, rules):
    """A sweeper that waits for a lock is a sweeper that hangs."""
    job, free = await accepted_job(database), await accepted_job(database)
    for one in (job, free):
        await claim(database, one)
        await _expire_lease(database, one)

    async with database.transaction() as conn:
        await conn.execute(text("SELECT FROM job WHERE id = :id FOR UPDATE"), {"id": job.id})
        assert await rules.expired_lease() == 1

    assert (await _run(database, job))["status"] == "running"
    assert (await _run(database, free))["status"] == "ready"


async def test_expired_keys_are_forgotten_and_live_ones_kept(database, rules):
    """A key is remembered as long as was promised, and no longer."""
    job = await accepted_job(database)
    for key, expires in (("old", timedelta(hours=-1)), ("new", timedelta(hours=1))):
        await _age(
            database,
            "INSERT INTO idempotency_key (tenant_id, key, lease_expires_at, expires_at)"
            " VALUES (:tenant, :key, now(), now() + CAST(:expires AS interval))",
            tenant=job.tenant_id,
            key=key,
            expires=expires,
        )

    assert await rules.idempotency_keys() == 1

    assert await rows(database, "SELECT key FROM idempotency_key") == [{"key": "new"}]


async def test_an_expired_job_loses_its_content_and_keeps_a_tombstone(database, settings, blobs):
    """Content is kept as long as was promised; the row outlives every message that may still come."""
    job, kept = await accepted_job(database), await accepted_job(database)
    for one in (job, kept):
        await blobs.put(document_key(one.id), b"content")
        await _failed(database, one)
    await _age(database, "UPDATE job SET expires_at = now() - interval '1 s' WHERE id = :id", id=job.id)
    retention = Retention(settings=settings, database=database, blobs=blobs, clock=SystemClock())

    assert await retention.retention() == 1

    assert (await _job(database, job))["deleted_at"] is not None
    assert await rows(database, "SELECT job_id FROM document") == [{"job_id": kept.id}]
    assert not await blobs.exists(document_key(job.id))
    assert await blobs.exists(document_key(kept.id))


async def test_a_tombstone_goes_when_it_is_old(database, rules):
    """The table does not grow for ever."""
    job, recent = await accepted_job(database), await accepted_job(database)
    for one, days in ((job, 31), (recent, 29)):
        await _failed(database, one)
        await _age(
            database,
            "UPDATE job SET deleted_at = now() - make_interval(days => :days) WHERE id = :id",
            id=one.id,
            days=days,
        )

    assert await rules.tombstones() == 1

    assert await _job(database, job) is None
    assert await _job(database, recent) is not None


async def test_objects_without_a_job_are_deleted_once_they_are_old_enough(
    database, settings, blobs, services, monkeypatch
):
    """An upload whose job was never committed leaves its object behind; one still under way must not be touched."""
    job, stranger = await accepted_job(database), new_id()
    for owner in (job.id, stranger):
        await blobs.put(document_key(owner), b"content")
    store, bucket = services.s3_client(), settings.s3_bucket
    store.create_multipart_upload(Bucket=bucket, Key=document_key(stranger))
    retention = Retention(settings=settings, database=database, blobs=blobs, clock=SystemClock())

    assert await retention.orphaned_objects() == 0
    assert len(store.list_multipart_uploads(Bucket=bucket)["Uploads"]) == 1
    assert await blobs.exists(document_key(stranger))

    monkeypatch.setattr("publisher.retention.STRAY_AGE", timedelta(hours=-1))
    again = Retention(settings=settings, database=database, blobs=blobs, clock=SystemClock())
    assert await again.orphaned_objects() == 1
    assert not await blobs.exists(document_key(stranger))
    assert await blobs.exists(document_key(job.id))
    assert "Uploads" not in store.list_multipart_uploads(Bucket=bucket)


async def test_a_store_that_is_away_stops_no_rule(database, settings):
    """The database's part of an expiry is done, the rest waits as strays; and the sweeper does not look dead."""
    job = await accepted_job(database)
    await _failed(database, job)
    await _age(database, "UPDATE job SET expires_at = now() - interval '1 s' WHERE id = :id", id=job.id)
    away = Blobs.connect(settings.model_copy(update={"s3_endpoint": "http://127.0.0.1:9"}))
    retention = Retention(settings=settings, database=database, blobs=away, clock=SystemClock())

    assert await retention.retention() == 1
    assert await retention.orphaned_objects() == 0

    assert (await _job(database, job))["deleted_at"] is not None
    away.close()


async def test_letters_of_deleted_jobs_expire(database, rules):
    """A letter that nobody can act on is no work for an operator."""
    job, kept = await accepted_job(database), await accepted_job(database)
    for one in (job, kept):
        await _failed(database, one, letter=LetterReason.RETRIES_EXHAUSTED)
    await _age(database, "UPDATE job SET deleted_at = now() WHERE id = :id", id=job.id)

    assert await rules.expired_letters() == 1

    states = await rows(database, "SELECT job_id, state FROM dead_letter ORDER BY state")
    assert states == [{"job_id": job.id, "state": "expired"}, {"job_id": kept.id, "state": "open"}]


async def test_letters_of_no_job_expire_by_age_and_their_rows_stay(database, rules):
    """The broker forgets their messages after two weeks; the row remains and says how it was closed."""
    for body in (b"old", b"new"):
        async with database.transaction() as conn:
            await dead_letters.record_unreadable(
                conn, code=ErrorCode.UNREADABLE_MESSAGE, body=body, job_id=None, queue="q"
            )
    old = hashlib.sha256(b"old").digest()
    await _age(
        database,
        "UPDATE dead_letter SET created_at = now() - CAST(:age AS interval) WHERE body_sha256 = :body",
        age=DLQ_TTL,
        body=old,
    )

    assert await rules.expired_letters() == 1

    kept = {row["body_sha256"]: row for row in await rows(database, "SELECT * FROM dead_letter")}
    assert (kept.pop(old)["state"], [row["state"] for row in kept.values()]) == ("expired", ["open"])
    (expired,) = await rows(database, "SELECT history FROM dead_letter WHERE state = 'expired'")
    assert [(entry["by"], entry["action"]) for entry in expired["history"]] == [("sweeper", "expired")]


async def _old_worker(database, liveness):
    async with database.transaction() as conn:
        worker_id = await workers.register(conn, stages=["validate"])
        await workers.lives_by(conn, worker_id, stages=["validate"], liveness=liveness)
    await _age(database, "UPDATE worker SET started_at = now() - interval '31 days' WHERE id = :id", id=worker_id)
    return worker_id


async def test_workers_that_are_long_gone_are_forgotten_and_living_ones_and_owners_are_not(database, rules):
    """Every start of a worker adds a row; a living one is known by its lock, and a run may yet ask for its owner."""
    await until_locks_prove_something(database)
    living, owner, *_ = [await _old_worker(database, liveness) for liveness in ("lock", "lock", "lock", "lease")]
    async with database.transaction() as conn:
        recent = await workers.register(conn, stages=["validate"])
    await claim(database, await accepted_job(database), worker_id=owner)
    lock = await workers.LivenessLock.take(database.url, living, lambda: None)

    assert await rules.gone_workers() == 2
    await lock.close()

    left = await rows(database, "SELECT id FROM worker ORDER BY id")
    assert [row["id"] for row in left] == [living, owner, recent]


async def test_a_worker_cannot_take_its_lock_while_it_is_being_forgotten(database):
    """It waits for the end of the sweeper's transaction, and then finds out and writes its row again."""
    await until_locks_prove_something(database)
    worker_id = await _old_worker(database, "lock")

    async with database.transaction() as conn:
        assert await workers.forget_gone(conn, age=timedelta(days=30), limit=10) == 1
        assert await workers.LivenessLock.take(database.url, worker_id, lambda: None) is None

    lock = await workers.LivenessLock.take(database.url, worker_id, lambda: None)
    assert lock is not None
    await lock.close()


async def test_only_one_sweeps_at_a_time(database, settings, rules):
    """Any number of publishers may run; the lock goes with its holder's connection. Who sweeps says when."""
    metrics.SWEEP_TIMESTAMP.set(0)
    job = await accepted_job(database)
    await claim(database, job)
    await _expire_lease(database, job)
    sweeper = Sweeper(settings=settings, database=database, rules=rules.by_name(), healed=lambda: None)

    async with sweeping_alone(database) as alone:
        assert alone
        assert await sweeper.sweep() == {}
    assert metrics.SWEEP_TIMESTAMP._value.get() == 0  # noqa: SLF001 - the library has no other way to read one

    assert (await sweeper.sweep())["expired_lease"] == 1
    assert metrics.SWEEP_TIMESTAMP._value.get() > 0  # noqa: SLF001 - as above


async def test_a_rule_that_fails_keeps_no_other_from_running_and_the_sweep_does_not_count_as_full(database, settings):
    """A hung or broken sweeper has to show, and must not take the healthy rules with it."""

    async def broken():
        raise ZeroDivisionError

    async def healthy():
        return 3

    healed = []
    metrics.SWEEP_TIMESTAMP.set(0)
    sweeper = Sweeper(
        settings=settings,
        database=database,
        rules={"broken": broken, "healthy": healthy},
        healed=lambda: healed.append(True),
    )

    assert await sweeper.sweep() == {"healthy": 3}

    assert healed == [True]
    assert metrics.SWEEP_TIMESTAMP._value.get() == 0  # noqa: SLF001 - the library has no other way to read one
