"""Liveness: a dead worker is known at once, a hung one by its lease, a living one never taken for dead."""

import asyncio
from datetime import timedelta

import asyncpg
import pytest
from sqlalchemy import text

from schema.db import stage_runs, workers
from schema.domain import moves
from schema.domain.states import Stage
from schema.runtime.clock import SystemClock
from stages.liveness import Liveness
from tests.support.eventually import eventually
from tests.support.factories import accepted_job, claim, rows, write

SHORT = timedelta(seconds=1)
LIMIT = timedelta(seconds=30)


@pytest.fixture
async def liveness(database_url):
    """A worker's incarnation with a lease of one second."""
    made = Liveness(database_url, stages=[Stage.VALIDATE], lease=SHORT, clock=SystemClock())
    made.start()
    await made.ready()
    yield made
    await made.stop()


async def _gone(database, worker_id):
    async with database.transaction() as conn:
        return worker_id in await workers.gone(conn, [worker_id])


async def _server_is_old_enough(database):
    """For its first ten seconds a server proves nothing; the tests' may be that young."""

    async def look():
        async with database.transaction() as conn:
            return (
                await conn.execute(text("SELECT now() - pg_postmaster_start_time() > interval '10 seconds'"))
            ).scalar_one()

    await eventually(look)


async def test_a_living_worker_is_not_gone_and_a_stopped_one_is(database, liveness):
    """The lock is the proof, in both directions."""
    await _server_is_old_enough(database)
    assert not await _gone(database, liveness.worker_id)

    await liveness.stop()

    assert await eventually(lambda: _gone(database, liveness.worker_id))


async def test_two_who_ask_at_once_do_not_take_each_other_for_the_owner(database, liveness):
    """Probing is shared: eight consumers that ask together all hear that the owner is gone."""
    await _server_is_old_enough(database)
    await liveness.stop()
    await eventually(lambda: _gone(database, liveness.worker_id))

    answers = await asyncio.gather(*(_gone(database, liveness.worker_id) for _ in range(8)))

    assert answers == [True] * 8


async def _session(database):
    """Return the backend that holds the lock."""
    return await rows(
        database,
        "SELECT pid FROM pg_stat_activity"
        " WHERE application_name = 'docstage-liveness' AND datname = current_database()",
    )


async def test_a_cut_session_takes_the_lock_anew_before_it_goes_on(database, liveness):
    """Who cannot be seen alive may not claim; it comes back by itself, on another session."""
    (before,) = await _session(database)
    async with database.transaction() as conn:
        await conn.execute(text("SELECT pg_terminate_backend(:pid)"), before)

    async def reconnected():
        found = await _session(database)
        return found and before not in found

    await eventually(reconnected)
    await eventually(lambda: liveness.is_ready)
    assert not await _gone(database, liveness.worker_id)


async def test_a_lost_session_is_told_at_once_though_a_look_at_it_hangs(database, liveness, monkeypatch):
    """What ended the session may hold up every other one: the worker must not claim until that has timed out."""
    looks = asyncio.Event()

    async def hangs(*_):
        looks.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(workers, "lock_is_seen", hangs)
    await asyncio.wait_for(looks.wait(), 60)
    (session,) = await _session(database)
    async with database.transaction() as conn:
        await conn.execute(text("SELECT pg_terminate_backend(:pid)"), session)

    await asyncio.wait_for(liveness.lost(), 60)

    assert not liveness.is_ready


async def test_a_database_that_stalls_does_not_cost_the_lock(database, liveness, monkeypatch):
    """Given up, the lock would hand over every run of the fleet, with a lost worker each, once the stall is over."""
    answers, look = asyncio.Event(), workers.lock_is_seen

    async def stalls(*asked):
        if not answers.is_set():
            raise TimeoutError
        return await look(*asked)

    before = await _session(database)
    monkeypatch.setattr(workers, "lock_is_seen", stalls)
    await asyncio.wait_for(liveness.lost(), 60)
    assert not liveness.is_ready
    answers.set()
    await asyncio.wait_for(liveness.ready(), 60)

    assert await _session(database) == before


async def test_a_lock_that_could_not_be_taken_leaves_no_session_behind(database, liveness):
    """Each try would leave one more, and one of them might get the lock when nobody knows of it any more."""
    before = await _session(database)
    held = await workers.LivenessLock.take(database.url, liveness.worker_id, lambda: None)
    # The failure is kept: it keeps the connection that it came from.
    with pytest.raises(asyncpg.DataError) as failure:
        await workers.LivenessLock.take(database.url, 2**40, lambda: None)

    async def as_before():
        return await _session(database) == before

    assert await eventually(as_before)
    assert (held, failure.type) == (None, asyncpg.DataError)


async def test_a_worker_whose_row_was_forgotten_while_it_was_cut_off_writes_it_again(database, liveness):
    """Without its row its lock would prove nothing, and a takeover would have to wait for its lease."""
    (session,) = await _session(database)
    async with database.transaction() as conn:
        await conn.execute(text("DELETE FROM worker"))
        await conn.execute(text("SELECT pg_terminate_backend(:pid)"), session)

    async def known_again():
        found = await rows(database, "SELECT liveness FROM worker WHERE id = :id", id=liveness.worker_id)
        return found == [{"liveness": "lock"}]

    assert await eventually(known_again)


async def test_a_held_claim_outlives_its_lease_and_a_leaked_one_does_not(database, liveness):
    """Only claims with a live handler are renewed: one whose handler is gone runs out although the process lives."""
    held, leaked = await accepted_job(database), await accepted_job(database)
    claims = {job: await claim(database, job, worker_id=liveness.worker_id) for job in (held, leaked)}
    async with database.transaction() as conn:
        await conn.execute(text("UPDATE stage_run SET lease_expires_at = now() + interval '1 second'"))

    async def expired():
        found = await rows(database, "SELECT job_id FROM stage_run WHERE lease_expires_at < now()")
        return {row["job_id"] for row in found}

    with liveness.holding(claims[held].claim, LIMIT):
        await eventually(expired)
        assert await expired() == {leaked.id}


async def test_a_handler_is_told_when_its_run_is_cancelled(database, liveness):
    """The handler's event is set within a second, so its parser is killed soon after the client's 200."""
    job = await accepted_job(database)
    claimed = await claim(database, job, worker_id=liveness.worker_id)
    with liveness.holding(claimed.claim, LIMIT) as lost:
        async with database.transaction() as conn:
            run = (await stage_runs.read_current(conn, [job.id]))[job.id]
        await write(database, moves.cancel(run))

        await asyncio.wait_for(lost.wait(), 30)


async def test_a_busy_event_loop_does_not_starve_the_heartbeat(database, liveness):
    """A loop blocked for longer than the lease: the claim is still held, because the heart has its own thread."""
    job = await accepted_job(database)
    claimed = await claim(database, job, worker_id=liveness.worker_id)
    async with database.transaction() as conn:
        await conn.execute(text("UPDATE stage_run SET lease_expires_at = now() + interval '1 second'"))

    with liveness.holding(claimed.claim, LIMIT):
        _spin(2.5)
        (run,) = await rows(database, "SELECT lease_expires_at > now() AS held FROM stage_run")

    assert run["held"]


def _spin(seconds: float) -> None:
    """Keep this thread's event loop from doing anything else."""
    clock = SystemClock()
    ends = clock.monotonic() + seconds
    while clock.monotonic() < ends:
        sum(range(1000))


async def test_a_stop_in_good_order_is_written_down(liveness, database):
    """Who looks at the workers of last night can tell a deployment from a crash."""
    await liveness.stop()

    (row,) = await rows(database, "SELECT stopped_at FROM worker WHERE id = :id", id=liveness.worker_id)
    assert row["stopped_at"] is not None
