"""The operator's tool on real letters: nothing moves without a reason, and what comes back is watched."""

import asyncio
import json
from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import text

from dlq_tools.arguments import parse
from dlq_tools.cli import NOTHING, OK, STOPPED, UNAVAILABLE, run
from dlq_tools.redrive import BulkRedrive, Ending, Plan
from publisher.relay import Relay
from schema.db import dead_letters
from schema.db.dead_letters import LetterFilter, LetterState
from schema.db.redrives import RedriveAnswer, redrive
from schema.domain.decisions import Advance
from schema.domain.errors import ErrorCode
from schema.domain.moves import LetterReason, fail, of_outcome
from schema.domain.outcomes import Completed
from schema.domain.states import AttemptOutcome, Stage
from schema.runtime.clock import SystemClock
from schema.runtime.settings import ToolSettings
from schema.wire.queues import DLQ
from tests.support.broker import publisher_settings, running, topology_session
from tests.support.eventually import eventually
from tests.support.factories import accepted_job, claim, rows, write
from tests.support.letters import fill_letters

BY = "op@host"
LONG = timedelta(minutes=1)


@pytest.fixture
def tool(environment, capsys):
    """Run one command line; returns its status and what it printed."""
    settings = ToolSettings(**{name.removeprefix("DOCSTAGE_").lower(): value for name, value in environment.items()})

    async def command(*argv):
        status = await run(parse(argv), settings)
        return status, capsys.readouterr().out

    return command


async def _dead(database, *, code=ErrorCode.STORAGE_UNAVAILABLE):
    """Make a job that failed as a dead letter."""
    job = await accepted_job(database)
    claimed = await claim(database, job)
    closes, letter = AttemptOutcome.TRANSIENT, LetterReason.RETRIES_EXHAUSTED
    await write(database, fail(claimed.claim, code, closes=closes, letter=letter))
    return job


async def _letters(database, wanted=None):
    async with database.transaction() as conn:
        return await dead_letters.list_letters(conn, wanted or LetterFilter(state=None), limit=100)


async def _complete(database, job):
    """Do what can be done of a redriven job: all stages, when it is open."""
    for stage in Stage:
        claimed = await claim(database, job, stage=stage, series=2 if stage is Stage.VALIDATE else 1)
        if claimed is not None:
            await write(database, of_outcome(claimed.claim, Completed({}), Advance()))


async def _fail_again(database, job, letter):
    claimed = await claim(database, job, series=2)
    if claimed is not None:
        again = fail(claimed.claim, ErrorCode.STORAGE_UNAVAILABLE, closes=AttemptOutcome.TRANSIENT, letter=letter)
        await write(database, again)


async def test_a_redrive_opens_the_next_series_under_the_same_id_and_says_who_and_why(database):
    """The client's job id stays good; the history tells the next operator what was done."""
    job = await _dead(database)
    (letter,) = await _letters(database)

    async with database.transaction() as conn:
        answers = await redrive(conn, [letter.id], by=BY, note="store is back")

    assert answers == {letter.id: RedriveAnswer.REDRIVEN}
    (run_,) = await rows(database, "SELECT status, series, attempt, lost FROM stage_run")
    assert run_ == {"status": "ready", "series": 2, "attempt": 1, "lost": 0}
    (owed,) = await rows(database, "SELECT payload FROM outbox_event WHERE kind = 'stage'")
    assert (owed["payload"]["job_id"], owed["payload"]["series"]) == (str(job.id), 2)
    (after,) = await _letters(database)
    assert after.state == "redriven"
    assert [(entry["by"], entry["action"], entry["note"]) for entry in after.history] == [
        (BY, "redriven", "store is back")
    ]


async def test_of_two_redrives_at_once_one_wins(database):
    """Two operators, or an operator and the owner, must not start a job twice."""
    await _dead(database)
    (letter,) = await _letters(database)

    async def once():
        async with database.transaction() as conn:
            return (await redrive(conn, [letter.id], by=BY, note="x"))[letter.id]

    assert sorted(await asyncio.gather(once(), once())) == [RedriveAnswer.CLOSED, RedriveAnswer.REDRIVEN]


async def test_a_letter_whose_document_is_gone_stays_as_it_is(database):
    """There is nothing to go on with."""
    await _dead(database)
    (letter,) = await _letters(database)
    async with database.transaction() as conn:
        await conn.execute(text("DELETE FROM document"))
        answers = await redrive(conn, [letter.id], by=BY, note="x")

    assert answers == {letter.id: RedriveAnswer.GONE}
    assert (await _letters(database))[0].state == "open"


async def test_an_unreadable_body_met_again_after_its_letter_was_closed_opens_it_again(database):
    """Somebody said it was dealt with; it was not, and the alarm has to ring again."""

    async def meet():
        async with database.transaction() as conn:
            await dead_letters.record_unreadable(
                conn, code=ErrorCode.UNREADABLE_MESSAGE, body=b"?", job_id=None, queue="q"
            )

    await meet()
    await meet()
    (letter,) = await _letters(database)
    async with database.transaction() as conn:
        await dead_letters.close(conn, ids=[letter.id], state=LetterState.DISCARDED, by=BY, note="a test")
    await meet()

    (again,) = await _letters(database)
    assert (again.id, again.state, again.seen) == (letter.id, "open", 3)
    assert [entry["action"] for entry in again.history] == ["discarded", "reopened"]
    assert len(await rows(database, "SELECT id FROM outbox_event WHERE kind = 'dead_letter'")) == 2


async def test_redriving_an_unreadable_message_of_a_living_job_gives_the_job_its_message_back(database):
    """The job never failed; it only lost a message, which is made anew from its row."""
    job = await accepted_job(database)
    async with database.transaction() as conn:
        await dead_letters.record_unreadable(
            conn, code=ErrorCode.UNREADABLE_MESSAGE, body=b"?", job_id=job.id, queue="q"
        )
    (letter,) = await _letters(database)

    async with database.transaction() as conn:
        answers = await redrive(conn, [letter.id], by=BY, note="x")

    assert answers == {letter.id: RedriveAnswer.REDRIVEN}
    (owed,) = await rows(database, "SELECT payload FROM outbox_event WHERE kind = 'stage'")
    assert (owed["payload"]["job_id"], owed["payload"]["series"]) == (str(job.id), 1)


async def test_the_tool_asks_for_a_reason_and_for_letters(tool):
    """Without a person's reason nothing moves, and a forgotten filter is not everything."""
    for argv in (
        ("redrive", "--stage", "extract"),
        ("discard", "--all"),
        ("redrive", "--reason", "x"),
        ("redrive", "--all", "--reason", " "),
        ("discard", "--all", "--reason", "x", "--by", ""),
        ("redrive", "--all", "--reason", "x", "--canary", "-1"),
        ("redrive", "--all", "--reason", "x", "--limit", "-1"),
    ):
        with pytest.raises(SystemExit):
            await tool(*argv)


async def test_a_database_that_is_down_is_told_in_one_line(environment, capsys):
    """An operator in the middle of an outage needs a sentence, not a traceback with an address in it."""
    settings = ToolSettings(database_url="postgresql://u:p@127.0.0.1:9/d", amqp_url=environment["DOCSTAGE_AMQP_URL"])

    status = await run(parse(["list"]), settings)

    assert (status, capsys.readouterr().out) == (UNAVAILABLE, "the database does not answer\n")


async def test_list_groups_letters_and_filters_them(database, tool):
    """An operator sees at once what there is most of."""
    for code in (ErrorCode.STORAGE_UNAVAILABLE, ErrorCode.STORAGE_UNAVAILABLE, ErrorCode.PARSER_CRASHED):
        await _dead(database, code=code)

    _, groups = await tool("list", "--json")
    _, crashed = await tool("list", "--code", "parser_crashed", "--json")
    _, old = await tool("list", "--older-than", "1h", "--json")

    assert [(group["code"], group["letters"]) for group in json.loads(groups)] == [
        ("storage_unavailable", 2),
        ("parser_crashed", 1),
    ]
    assert [letter["code"] for letter in json.loads(crashed)] == ["parser_crashed"]
    assert json.loads(old) == []


async def test_show_tells_the_attempts_and_events_of_a_letter_or_a_job(database, tool):
    """What happened is one command away, whichever of the two ids is at hand."""
    job = await _dead(database)
    (letter,) = await _letters(database)
    async with database.transaction() as conn:
        await conn.execute(text("UPDATE stage_attempt SET exception_type = 'ValueError'"))

    status, shown = await tool("show", str(letter.id), "--json")

    told = json.loads(shown)
    assert status == OK
    assert [(attempt["outcome"], attempt["exception_type"]) for attempt in told["attempts"]] == [
        ("transient", "ValueError")
    ]
    assert [event["type"] for event in told["events"]] == ["started", "failed"]
    assert await tool("show", str(job.id), "--json") == (OK, shown)


async def test_a_list_that_was_cut_says_so_and_an_empty_one_too(database, tool):
    """A number at the end of a page is easily taken for the number of letters."""
    assert (await tool("list"))[1] == "no open letters\n"
    assert (await tool("list", "--letters"))[1] == "no letter matches\n"
    await fill_letters(database, 101)

    _, cut = await tool("list", "--letters")
    _, whole = await tool("list", "--letters", "--limit", "101")

    assert cut.endswith("the oldest 100 of 101 letters; --limit shows more\n")
    assert "--limit" not in whole


async def test_a_filter_means_every_letter_that_matches(database, tool):
    """Whoever says --all is not told that a part of it was all."""
    await fill_letters(database, 1001)

    _, told = await tool("redrive", "--all", "--reason", "x", "--dry-run")
    _, lines = await tool("export")
    await tool("discard", "--all", "--reason", "x")

    assert told.endswith("1001 letters; nothing was changed\n")
    assert len(lines.splitlines()) == 1001
    assert await _letters(database, LetterFilter()) == []


async def test_an_interrupted_redrive_accounts_for_what_it_did(database):
    """An operator who sees something odd stops at once, and has to know how far it went."""
    await fill_letters(database, 5)
    plan = Plan(by=BY, reason="x", rate=2, canary=0, stop_at=0.2, patience=LONG)
    bulk = BulkRedrive(
        database=database,
        clock=SystemClock(),
        plan=plan,
        redriven=lambda: None,
        told=lambda _: bulk.interrupt(),
    )

    assert await bulk.run(await _letters(database)) is Ending.INTERRUPTED
    assert 0 < bulk.progress.redriven < 5
    assert len(await _letters(database, LetterFilter(state=LetterState.REDRIVEN))) == bulk.progress.redriven


async def test_a_dry_run_changes_nothing_and_no_match_is_told_by_the_status(database, tool):
    """Looking first is free."""
    await _dead(database)

    status, _ = await tool("redrive", "--all", "--reason", "x", "--dry-run")
    nothing, _ = await tool("redrive", "--code", "worker_lost", "--reason", "x")

    assert (status, nothing) == (OK, NOTHING)
    assert [letter.state for letter in await _letters(database)] == ["open"]


async def test_a_canary_that_fails_again_stops_the_rest(database):
    """Ten thousand letters must not come back while the reason is still there."""
    jobs = [await _dead(database) for _ in range(6)]
    plan = Plan(by=BY, reason="x", rate=100, canary=2, stop_at=0.2, patience=LONG)
    bulk = BulkRedrive(database=database, clock=SystemClock(), plan=plan, redriven=lambda: None)
    running_bulk = asyncio.create_task(bulk.run(await _letters(database)))

    async def fails_again():
        for job in jobs:
            await _fail_again(database, job, LetterReason.RETRIES_EXHAUSTED)
        return running_bulk.done()

    await eventually(fails_again)

    assert running_bulk.result() is Ending.FAILED_AGAIN
    first_series = [letter.state for letter in await _letters(database) if letter.series == 1]
    assert sorted(first_series) == ["open"] * 4 + ["redriven"] * 2


async def test_a_canary_that_passes_lets_the_rest_follow(database):
    """And what was redriven is not redriven twice."""
    jobs = [await _dead(database) for _ in range(6)]
    plan = Plan(by=BY, reason="x", rate=100, canary=2, stop_at=0.2, patience=LONG)
    bulk = BulkRedrive(database=database, clock=SystemClock(), plan=plan, redriven=lambda: None)
    running_bulk = asyncio.create_task(bulk.run(await _letters(database)))

    async def passes():
        for job in jobs:
            await _complete(database, job)
        return running_bulk.done()

    await eventually(passes)

    assert running_bulk.result() is Ending.DONE
    assert [letter.state for letter in await _letters(database)] == ["redriven"] * 6


@pytest.mark.parametrize("passes", [True, False])
async def test_a_redrive_that_was_asked_to_wait_ends_when_the_last_outcome_is_known(database, passes):
    """The last second's worth decides too."""
    jobs = [await _dead(database) for _ in range(3)]
    plan = Plan(by=BY, reason="x", rate=100, canary=0, stop_at=0.2, patience=LONG, wait=LONG)
    bulk = BulkRedrive(database=database, clock=SystemClock(), plan=plan, redriven=lambda: None)
    running_bulk = asyncio.create_task(bulk.run(await _letters(database)))

    async def all_end():
        for job in jobs:
            if passes:
                await _complete(database, job)
            else:
                await _fail_again(database, job, LetterReason.RETRIES_EXHAUSTED)
        return running_bulk.done()

    await eventually(all_end)

    assert running_bulk.result() is (Ending.DONE if passes else Ending.FAILED_AGAIN)
    assert (bulk.progress.passed, bulk.progress.failed) == ((3, 0) if passes else (0, 3))


async def test_a_job_that_fails_again_one_stage_later_has_not_passed(database):
    """What broke it at validate may break it at extract; a canary that looked at its stage alone would let all go."""
    jobs = [await _dead(database) for _ in range(4)]
    plan = Plan(by=BY, reason="x", rate=100, canary=1, stop_at=0.2, patience=LONG)
    bulk = BulkRedrive(database=database, clock=SystemClock(), plan=plan, redriven=lambda: None)
    running_bulk = asyncio.create_task(bulk.run(await _letters(database)))

    async def stumbles():
        for job in jobs:
            if (claimed := await claim(database, job, series=2)) is not None:
                await write(database, of_outcome(claimed.claim, Completed({}), Advance()))
            if (claimed := await claim(database, job, stage=Stage.EXTRACT)) is not None:
                closes, letter = AttemptOutcome.TRANSIENT, LetterReason.RETRIES_EXHAUSTED
                await write(database, fail(claimed.claim, ErrorCode.STORAGE_UNAVAILABLE, closes=closes, letter=letter))
        return running_bulk.done()

    await eventually(stumbles)

    assert running_bulk.result() is Ending.FAILED_AGAIN
    assert (bulk.progress.redriven, bulk.progress.failed) == (1, 1)


async def test_a_redrive_whose_wait_is_over_says_that_it_does_not_know(database):
    """Without a worker nothing is decided, and waiting for ever would hide that."""
    await _dead(database)
    plan = Plan(by=BY, reason="x", rate=100, canary=0, stop_at=0.2, patience=LONG, wait=timedelta(microseconds=1))
    bulk = BulkRedrive(database=database, clock=SystemClock(), plan=plan, redriven=lambda: None)

    assert await bulk.run(await _letters(database)) is Ending.UNDECIDED
    assert len(bulk.progress.watched) == 1


async def test_a_redrive_says_what_was_done_and_waits_for_nobody_unasked(database, tool, amqp_url):
    """Nobody works here: what came back is under way, what could not is told with its reason."""
    gone, *_ = [await _dead(database) for _ in range(3)]
    async with database.transaction() as conn:
        await conn.execute(text("DELETE FROM document WHERE job_id = :id"), {"id": gone.id})

    async with topology_session(amqp_url):
        status, told = await tool("redrive", "--all", "--reason", "x", "--canary", "0")

    assert status == OK
    assert told.splitlines() == [
        "2 of 3 letters brought back",
        "1 not brought back: the document was deleted",
        "so far 0 passed, 0 failed again, 2 are under way",
        "Done.",
    ]


async def test_reconcile_drops_messages_of_closed_letters_and_issues_missing_ones(
    database, environment, amqp_url, tool
):
    """The queue is the alarm: it has to show what is open, no more and no less."""
    for _ in range(3):
        await _dead(database)
    relay = Relay(
        settings=publisher_settings(environment, relay_poll_seconds=0.05), database=database, clock=SystemClock()
    )

    async def depth(session):
        return (await session.inspect(DLQ)).messages

    async def shows(session, wanted):
        return await depth(session) == wanted

    async with topology_session(amqp_url) as session, running(relay.run()):
        await eventually(partial(shows, session, 3))
        closed, missing, _ = await _letters(database)

        await tool("discard", "--id", str(closed.id), "--reason", "known")
        await eventually(partial(shows, session, 2))

        async with database.transaction() as conn:
            await conn.execute(text("UPDATE dead_letter SET created_at = now() - interval '1 hour'"))
            await conn.execute(
                text("UPDATE dead_letter SET state = 'expired', closed_at = now() WHERE id = :id"), {"id": missing.id}
            )
        await tool("reconcile")
        await eventually(partial(shows, session, 1))
        async with database.transaction() as conn:
            await conn.execute(
                text("UPDATE dead_letter SET state = 'open', closed_at = NULL WHERE id = :id"), {"id": missing.id}
            )
        _, told = await tool("reconcile", "--json")
        await eventually(partial(shows, session, 2))

    assert json.loads(told)["issued"] == 1


async def test_a_stopped_redrive_says_so_by_its_status(database, tool, amqp_url):
    """Whatever runs the tool has to know that it did not finish."""
    jobs = [await _dead(database) for _ in range(3)]
    command = asyncio.create_task(tool("redrive", "--all", "--reason", "x", "--canary", "1", "--json"))

    async def fails_again():
        for job in jobs:
            await _fail_again(database, job, None)
        return command.done()

    async with topology_session(amqp_url):
        await eventually(fails_again)

    status, told = command.result()
    assert status == STOPPED
    assert json.loads(told)["ending"] == "failed_again"


async def test_export_and_stats_tell_every_letter(database, tool):
    """For whoever wants to look with other tools."""
    for _ in range(2):
        await _dead(database)

    _, lines = await tool("export", "--state", "any")
    _, stats = await tool("stats", "--json")

    assert len([json.loads(line) for line in lines.splitlines()]) == 2
    assert json.loads(stats)["states"] == {"open": 2}
