"""What the broker gives up: once per series it is issued again, then the job fails where an operator sees it."""

import json

from sqlalchemy import text

from publisher.sessions import hold_session
from publisher.undeliverable import UndeliverableReader
from schema.domain.ids import new_id
from schema.wire.messages import STAGE_TYPE, encode
from schema.wire.queues import UNDELIVERABLE
from tests.support.broker import broker_settings, running, topology_session
from tests.support.eventually import eventually
from tests.support.factories import accepted_job, claim, rows


async def _give_up(session, body):
    """Put a message where the broker puts those that it gives up."""
    await session.publish(UNDELIVERABLE, "", body, message_id=str(new_id()), message_type=STAGE_TYPE, headers={})


async def _read(database, amqp_url, *bodies):
    """Let the reader see some messages; return when all are recorded and acknowledged."""
    recorded = []
    reader = UndeliverableReader(database=database, recorded=lambda: recorded.append(True))
    async with topology_session(amqp_url) as session:
        for body in bodies:
            await _give_up(session, body)
        async with running(hold_session(broker_settings(amqp_url), "test", reader.work)):
            await eventually(lambda: len(recorded) == len(bodies))

        async def nothing_came_back():
            depth = await session.inspect(UNDELIVERABLE)
            return (depth.messages, depth.consumers) == (0, 0)

        await eventually(nothing_came_back)


async def _outbox(database):
    return await rows(database, "SELECT * FROM outbox_event ORDER BY id")


async def test_an_open_run_is_issued_again_once_and_then_becomes_a_dead_letter(database, amqp_url):
    """A channel that closes 21 times took 50 innocent messages with it: they deserve a second chance, not a third."""
    job = await accepted_job(database)

    await _read(database, amqp_url, encode(job.message()))
    (owed,) = await _outbox(database)
    assert (owed["kind"], owed["payload"]["attempt"]) == ("stage", 1)

    await _read(database, amqp_url, encode(job.message()))
    (letter,) = await rows(database, "SELECT * FROM dead_letter")
    (after,) = await rows(database, "SELECT state, error FROM job")
    assert (letter["reason"], letter["job_id"]) == ("delivery_limit", job.id)
    assert (after["state"], after["error"]["code"]) == ("failed", "delivery_limit")


async def test_a_run_that_is_being_worked_on_is_left_to_its_owner(database, amqp_url):
    """The owner ends it, or its lease does."""
    job = await accepted_job(database)
    await claim(database, job)

    await _read(database, amqp_url, encode(job.message()))

    assert await _outbox(database) == []


async def test_messages_of_finished_and_unknown_jobs_are_dropped(database, amqp_url):
    """They have nothing left to say."""
    job, gone = await accepted_job(database), await accepted_job(database)
    async with database.transaction() as conn:
        await conn.execute(text("DELETE FROM job WHERE id = :id"), {"id": gone.id})
        await conn.execute(text("UPDATE stage_run SET attempt = 2"))

    await _read(database, amqp_url, encode(job.message()), encode(gone.message()))

    assert await _outbox(database) == []
    assert await rows(database, "SELECT * FROM dead_letter") == []


async def test_an_unreadable_one_becomes_a_dead_letter_by_its_hash(database, amqp_url):
    """Whatever it says is kept out of every table."""
    job = await accepted_job(database)
    told = json.dumps({"v": 1, "job_id": str(job.id), "stage": "none"}).encode()

    await _read(database, amqp_url, b"secret", b"secret", told)

    letters = await rows(database, "SELECT * FROM dead_letter ORDER BY body_bytes")
    assert [(one["reason"], one["seen"], one["job_id"]) for one in letters] == [
        ("unreadable", 2, None),
        ("unreadable", 1, job.id),
    ]
    assert "secret" not in repr(letters)
    assert [row["kind"] for row in await _outbox(database)] == ["dead_letter", "dead_letter"]
