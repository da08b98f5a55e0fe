"""Every window in which a process can die, times everything that it can die over: what is left is always the truth.

The rest of the system lives through the module; a cell starts anew only what it kills. Where a worker dies, another
that consumes the same queues is there to take over.
"""

import json
import re
from datetime import timedelta

import httpx
import pytest
from sqlalchemy import text

from schema.domain.decisions import RetryAfter
from schema.domain.errors import ErrorCode
from schema.domain.moves import LetterReason, fail, of_outcome
from schema.domain.outcomes import Transient
from schema.domain.states import AttemptOutcome
from schema.wire.messages import STAGE_TYPE
from schema.wire.queues import UNDELIVERABLE, topology
from tests.support import documents
from tests.support.broker import topology_session
from tests.support.crashes import GIVEN_UP, INTAKE_POINTS, REDRIVE_PASSES, RELAY_POINTS, RELAY_ROWS, worker_cells
from tests.support.eventually import eventually
from tests.support.factories import rows
from tests.support.nursery import Nursery
from tests.support.oracle import STAGES
from tests.support.rig import Rig, rigged

TEXT = b"Docstage never loses a job.\nIt never leaves one stuck, cell %d.\n"
# Enough pages for some to be kept on the way.
PAGES = [f"This is page {page}." for page in range(1, 65)]
TRIES = range(8)
# What a worker that lives through it says.
SAYS = {"cut": "database_unavailable", "raise": "invalid_output"}


@pytest.fixture(scope="module")
async def living(system):
    """All processes, forked from one that has imported everything."""
    with Nursery() as nursery:
        system.nursery = nursery
        async with rigged(system) as made:
            yield made
        for process in system.processes.values():
            process.close()


@pytest.fixture
async def rig(living: Rig) -> Rig:
    """The system, whole again after the cell before."""
    await living.whole()
    await living.forget_letters()
    return living


@pytest.mark.parametrize(
    ("cell", "stage"), [pytest.param(cell, stage, id=f"{cell.name}-{stage}") for cell, stage in worker_cells()]
)
async def test_a_worker_that_dies_costs_nothing(rig, cell, stage):
    """P2 to P5: one result, one output per stage, one letter per series, nothing left, and the truth in the history."""
    doomed = await rig.doomed(stage, cell.armed, **cell.settings)

    def struck():
        return rig.is_dead("doomed") if cell.action == "kill" else SAYS[cell.action] in doomed.log.read_text()

    job_id = await rig.strike(doomed, (_body(cell, number) for number in TRIES), struck)

    doomed.close()
    verdict = await rig.verdict(job_id)
    told = [attempt for attempt in verdict.attempts if attempt["stage"] == stage]
    assert tuple(attempt["outcome"] for attempt in told) == cell.attempts
    others = {attempt["outcome"] for attempt in verdict.attempts if attempt["stage"] != stage}
    assert others <= {"completed"}
    dead = cell.attempts[-1] != "completed"
    assert verdict.job["state"] == ("failed" if dead else "completed")
    assert [letter["reason"] for letter in verdict.letters] == (["unknown_exhausted"] if dead else [])
    assert [attempt["attempt"] for attempt in told] == (
        [1, 2] if cell.attempts[0] == "unknown" and not dead else [1] * len(told)
    )
    await eventually(rig.letters_agree)


async def test_an_acknowledgement_follows_its_commit(rig):
    """P4: killed after the commit and before the ack, the delivery comes again, finds the work done and is acked."""
    doomed = await rig.doomed("validate", "outcome_committed=kill")
    before = await _stale(rig)

    job_id = await rig.strike(doomed, (TEXT % number for number in TRIES), lambda: rig.is_dead("doomed"))

    async def counted():
        return await _stale(rig) == before + 1

    await eventually(counted)
    assert (await rig.verdict(job_id)).job["state"] == "completed"


@pytest.mark.parametrize("point", INTAKE_POINTS)
async def test_an_intake_that_dies_answers_the_repeated_request_with_one_job(rig, point):
    """P1: the client that got no answer asks again with its key, and there is one job whatever came of the first."""
    body, key = TEXT % 1, f"key-{point}"
    doomed = rig.system.process(
        "intake", "intake", DOCSTAGE_FAILPOINTS=f"{point}=kill", DOCSTAGE_RESERVATION_SECONDS="2"
    )
    await rig.system.start(doomed)
    before = await _jobs(rig)
    with pytest.raises(httpx.HTTPError):
        await rig.post(body, key)
    assert await doomed.wait() == -9

    await rig.whole()

    async def accepted():
        answer = await rig.post(body, key)
        assert answer.status_code == 202, answer.text
        return answer

    job_id = (await eventually(accepted)).json()["id"]
    assert await _jobs(rig) == before + 1
    assert (await rig.verdict(job_id)).job["state"] == "completed"


@pytest.mark.parametrize("owed", RELAY_ROWS)
@pytest.mark.parametrize("point", RELAY_POINTS)
async def test_a_relay_that_dies_owes_nothing_and_sends_nothing_that_counts_twice(rig, point, owed):
    """What it had taken comes back when its lock runs out; what it had sent already changes nothing when sent again."""
    await rig.stop_publisher()
    job_id = await rig.submit(TEXT % 2)
    expected = {"first": ["completed"], "retry": ["transient", "completed"], "letter": ["transient"]}[owed]
    if owed != "first":
        await rig.write(_move(await rig.claim(job_id), owed))

    # Behind the job's first message, which by then means nothing any more.
    await rig.kill_publisher(f"{point}=kill@{1 if owed == 'first' else 2}")

    verdict = await rig.verdict(job_id)
    assert [one["outcome"] for one in verdict.attempts if one["stage"] == "validate"] == expected
    assert len(verdict.attempts) == (1 if owed == "letter" else len(expected) + len(STAGES) - 1)
    assert len(verdict.letters) == (1 if owed == "letter" else 0)
    await eventually(rig.letters_agree)


@pytest.mark.parametrize("passes", REDRIVE_PASSES)
async def test_a_redrive_whose_tool_dies_is_taken_up_by_the_next(rig, passes):
    """What was redriven before the kill runs, what was not waits, and the same command ends it: each job once."""
    await rig.stop_publisher()
    ids = [await rig.submit(TEXT % number) for number in range(6)]
    for job_id in ids:
        await rig.write(_move(await rig.claim(job_id), "letter"))
    await rig.whole()
    await eventually(rig.settled)
    command = ("dlq_tools", "redrive", "--stage", "validate", "--code", "storage_unavailable", "--reason", "it is back")
    slowly = ("--rate", "2", "--canary", "0")
    doomed = rig.system.process("tool", *command, *slowly, DOCSTAGE_FAILPOINTS=f"redrive_committed=kill@{passes}")
    doomed.start()
    assert await doomed.wait() == -9
    (done,) = await rows(rig.system.database, _REDRIVEN)

    again = rig.system.process("tool", *command, *slowly)
    again.start()
    assert await again.wait() == 0, again.log.read_text()

    assert done["n"] == passes
    for job_id in ids:
        verdict = await rig.verdict(job_id)
        assert verdict.job["state"] == "completed"
        assert [(one["series"], one["outcome"]) for one in verdict.attempts if one["stage"] == "validate"] == [
            (1, "transient"),
            (2, "completed"),
        ]
        assert [letter["state"] for letter in verdict.letters] == ["redriven"]
    await eventually(rig.letters_agree)


@pytest.mark.parametrize("ends", GIVEN_UP)
async def test_a_publisher_that_dies_over_a_given_up_message_has_settled_it_once(rig, ends):
    """The broker's copy comes again: the job has its one second chance, and is not failed for the publisher's death."""
    await rig.stop_publisher()
    job_id = await rig.submit(TEXT % 3)
    message = {"v": 1, "job_id": job_id, "stage": "validate", "series": 1, "attempt": 1}
    async with rig.system.database.transaction() as conn:
        await conn.execute(text("DELETE FROM outbox_event"))
        if ends == "given_up":
            await conn.execute(text("UPDATE stage_run SET reissued_series = series WHERE job_id = :id"), {"id": job_id})
    async with topology_session(rig.system.environment["DOCSTAGE_AMQP_URL"]) as session:
        await session.publish(
            UNDELIVERABLE, "", json.dumps(message).encode(), message_id=job_id, message_type=STAGE_TYPE, headers={}
        )

    await rig.kill_publisher("give_up_committed=kill")

    verdict = await rig.verdict(job_id)
    assert verdict.job["state"] == ("completed" if ends == "reissued" else "failed")
    assert [letter["reason"] for letter in verdict.letters] == ([] if ends == "reissued" else ["delivery_limit"])
    await eventually(rig.letters_agree)


async def test_one_refused_output_fails_its_job_alone(rig):
    """PostgreSQL refuses one of many outcomes that come in one batch: its neighbours lose not even an attempt."""
    await rig.stop_publisher()
    ids = [await rig.submit(TEXT % number) for number in range(8)]
    async with rig.system.database.transaction() as conn:
        for statement in _refusing(ids[3]):
            await conn.execute(text(statement))
    try:
        await rig.whole()
        verdicts = [await rig.verdict(job_id) for job_id in ids]
    finally:
        async with rig.system.database.transaction() as conn:
            await conn.execute(text("DROP FUNCTION refuse CASCADE"))

    outcomes = [[one["outcome"] for one in verdict.attempts if one["stage"] == "validate"] for verdict in verdicts]
    refused = outcomes.pop(3)
    assert set(refused) == {"unknown"}
    assert outcomes == [["completed"]] * 7
    assert [letter["code"] for letter in verdicts[3].letters] == ["invalid_output"]


def _refusing(job_id: str) -> tuple[str, str]:
    """Write a trigger that refuses one job's output, and takes its time so that outcomes gather in batches."""
    body = f"PERFORM pg_sleep(0.1); IF NEW.job_id = '{job_id}' THEN RAISE EXCEPTION 'refused'; END IF; RETURN NEW;"
    return (
        f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$",
        "CREATE TRIGGER refuse BEFORE INSERT ON stage_output FOR EACH ROW EXECUTE FUNCTION refuse()",
    )


async def test_nothing_is_held_by_those_who_lived_through_it_all(rig):
    """A delivery that is never acknowledged shows in no count of what waits; it comes back when its holder goes."""
    await eventually(rig.settled)
    for name in ("survivor", "publisher"):
        rig.system.processes[name].kill()

    async def back():
        looks = [await rig.broker.inspect(queue.name) for queue in topology().queues]
        return all(look is not None and look.consumers == 0 for look in looks)

    await eventually(back)
    assert await rig.settled()


_REDRIVEN = "SELECT count(*) AS n FROM dead_letter WHERE state = 'redriven'"


async def _stale(rig) -> float:
    """Return how many deliveries to validate the survivor has found to be done already."""
    told = await rig.system.processes["survivor"].metrics()
    found = re.search(r'^docstage_deliveries_total{outcome="stale",stage="validate"} (.+)$', told, re.MULTILINE)
    return float(found[1]) if found else 0.0


async def _jobs(rig) -> int:
    (found,) = await rows(rig.system.database, "SELECT count(*) AS n FROM job")
    return found["n"]


def _body(cell, number: int) -> bytes:
    return documents.pdf(*PAGES) if cell.pages else TEXT % number


def _move(claim, owed):
    """End a first attempt by a transient failure: with another to come, or with a dead letter."""
    code = ErrorCode.STORAGE_UNAVAILABLE
    if owed == "retry":
        return of_outcome(claim, Transient(code), RetryAfter(timedelta(seconds=0.5)))
    return fail(claim, code, closes=AttemptOutcome.TRANSIENT, letter=LetterReason.RETRIES_EXHAUSTED)
