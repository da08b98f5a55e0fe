"""Ten thousand dead letters: looked at by index, brought back at a rate, and finished although the tool was killed."""

import asyncio
import json
import os
import signal
import sys
from datetime import timedelta

import pytest
from sqlalchemy import text

from dlq_tools.cli import INTERRUPTED
from dlq_tools.redrive import BulkRedrive, Ending, Plan
from schema.db import dead_letters
from schema.db.dead_letters import LetterFilter, Place
from schema.domain.errors import ErrorCode
from schema.domain.moves import LetterReason, fail
from schema.domain.states import AttemptOutcome
from schema.runtime.clock import SystemClock
from tests.support.eventually import eventually
from tests.support.factories import AcceptedJob, claim, rows, write
from tests.support.letters import fill_letters, letters_of
from tests.support.plans import caught, nodes
from tests.support.system import ROOT

LETTERS = 10_000


@pytest.fixture
async def full(database):
    """Ten thousand open letters beside ten times as many closed ones."""
    await fill_letters(database, LETTERS)
    async with database.transaction() as conn:
        await conn.execute(
            text(
                "INSERT INTO dead_letter (id, stage, reason, code, body_sha256, state, closed_at)"
                " SELECT gen_random_uuid(), 'extract', 'unreadable', 'unreadable_message',"
                " sha256(CAST(CAST(n AS text) AS bytea)), 'discarded', now() FROM generate_series(1, :closed) AS n"
            ),
            {"closed": LETTERS * 10},
        )
    async with database.engine.connect() as raw:
        conn = await raw.execution_options(isolation_level="AUTOCOMMIT")
        await conn.execute(text("VACUUM ANALYZE"))
    return database


@pytest.mark.parametrize("name", ["groups", "first page", "next page", "a stage", "number"])
async def test_open_letters_are_found_without_reading_the_closed_ones(full, name):
    """What was dealt with stays as history for years, and must not slow down tonight's look."""
    queries = {
        "groups": dead_letters.list_groups,
        "first page": lambda conn: dead_letters.list_letters(conn, LetterFilter(), limit=1000),
        "next page": lambda conn: dead_letters.list_letters(conn, LetterFilter(), after=place, limit=1000),
        "a stage": lambda conn: dead_letters.list_letters(conn, LetterFilter(stage="validate"), limit=1000),
        "number": lambda conn: dead_letters.count(conn, LetterFilter()),
    }
    async with full.transaction() as conn:
        (first,) = await dead_letters.list_letters(conn, LetterFilter(), limit=1)
        place = Place(first.created_at, first.id)
        with caught(full.engine) as statements:
            await queries[name](conn)
        steps = await nodes(conn, statements[0])

    assert [step["Node Type"] for step in steps if step["Node Type"] == "Seq Scan"] == []


async def test_a_bulk_redrive_stops_by_itself_when_what_came_back_fails_again(database):
    """The canary passed by luck; a thousand jobs must not fail again because of it."""
    await fill_letters(database, 60)
    letters = await letters_of(database)
    plan = Plan(by="op", reason="x", rate=10, canary=0, stop_at=0.2, patience=timedelta(minutes=1))
    bulk = BulkRedrive(database=database, clock=SystemClock(), plan=plan, redriven=lambda: None)
    redriving = asyncio.create_task(bulk.run(letters))

    async def fails_again():
        await _fail_all_ready(database)
        return redriving.done()

    await eventually(fails_again)

    assert redriving.result() is Ending.FAILED_AGAIN
    assert await _count(database, "SELECT 1 FROM dead_letter WHERE series = 1 AND state = 'open'") > 0


async def test_a_tool_that_was_killed_goes_on_with_the_letters_that_are_left(database, environment):
    """The rows are all that it remembers: every letter comes back once, and no job is started twice."""
    await fill_letters(database, 60)
    first = await _start_redrive(environment, "--rate", "5")
    await eventually(lambda: _redriven(database, 5))
    first.kill()
    await first.wait()
    between = await _count(database, "SELECT 1 FROM dead_letter WHERE state = 'redriven'")

    second = await _start_redrive(environment, "--rate", "1000")
    await second.communicate()

    assert second.returncode == 0
    assert 0 < between < 60
    assert await _count(database, "SELECT 1 FROM dead_letter WHERE state = 'redriven'") == 60
    assert {run["series"] for run in await rows(database, "SELECT series FROM stage_run")} == {2}
    assert await _count(database, "SELECT 1 FROM outbox_event WHERE kind = 'stage'") == 60


async def test_a_tool_that_is_asked_to_end_says_how_far_it_went(database, environment):
    """Ctrl-C is the operator's brake: it ends in good order and leaves a true account behind."""
    await fill_letters(database, 60)
    process = await _start_redrive(environment, "--rate", "5", "--json")
    await eventually(lambda: _redriven(database, 5))
    process.send_signal(signal.SIGINT)
    told, _ = await process.communicate()

    account = json.loads(told)
    assert (process.returncode, account["ending"]) == (INTERRUPTED, "interrupted")
    assert account["redriven"] == await _count(database, "SELECT 1 FROM dead_letter WHERE state = 'redriven'") < 60
    assert account["left"] == 60 - account["redriven"]


async def test_a_reader_that_has_seen_enough_is_no_error(database, environment):
    """``docstage-dlq export | head`` is how one looks at ten thousand lines."""
    await fill_letters(database, 1000)
    reading, writing = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dlq_tools", "export"),
        cwd=ROOT,
        env=environment,
        stdout=writing,
        stderr=asyncio.subprocess.PIPE,
    )
    os.close(writing)
    os.close(reading)
    _, complaints = await process.communicate()

    assert (process.returncode, complaints) == (0, b"")


async def test_two_bulk_redrives_at_once_start_no_job_twice(database):
    """Two operators are woken by the same alert."""
    await fill_letters(database, 40)
    letters = await letters_of(database)
    plan = Plan(by="op", reason="x", rate=1000, canary=0, stop_at=1, patience=timedelta(minutes=1))
    bulks = [BulkRedrive(database=database, clock=SystemClock(), plan=plan, redriven=lambda: None) for _ in range(2)]

    await asyncio.gather(*(bulk.run(letters) for bulk in bulks))

    assert await _count(database, "SELECT 1 FROM outbox_event WHERE kind = 'stage'") == 40
    assert {run["series"] for run in await rows(database, "SELECT series FROM stage_run")} == {2}


async def _start_redrive(environment, *options):
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "dlq_tools", "redrive", "--all", "--reason", "store is back", "--canary", "0", *options),
        cwd=ROOT,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def _redriven(database, at_least):
    return await _count(database, "SELECT 1 FROM dead_letter WHERE state = 'redriven'") >= at_least


async def _count(database, statement):
    return len(await rows(database, statement))


async def _fail_all_ready(database):
    """Be the worker for whom nothing has become better."""
    for run in await rows(
        database, "SELECT job_id, tenant_id FROM stage_run JOIN job ON id = job_id WHERE status = 'ready'"
    ):
        claimed = await claim(database, AcceptedJob(run["job_id"], run["tenant_id"]), series=2)
        if claimed is not None:
            closes, letter = AttemptOutcome.TRANSIENT, LetterReason.RETRIES_EXHAUSTED
            await write(database, fail(claimed.claim, ErrorCode.STORAGE_UNAVAILABLE, closes=closes, letter=letter))
