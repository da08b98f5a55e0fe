"""P10: a string that stands in documents and their names turns up nowhere but in results."""

import json
import re
from pathlib import Path

import pytest

from tests.support import documents
from tests.support.eventually import eventually
from tests.support.factories import rows
from tests.support.provider import asking
from tests.support.receiver import Receiver, answer, receiving
from tests.support.spy import spy
from tests.support.system import System
from tests.support.webhooks import HOOKS

CANARY = "xylophone7quartz"
NAME = f"{CANARY}.pdf"
# Where content belongs: small documents, the pages being read, what stages hand on, and the result.
CONTENT_TABLES = {"document", "page_text", "stage_output", "result"}


@pytest.fixture(scope="module")
async def running(system: System) -> System:
    """Everything, and a listener on every exchange."""
    settings = {"DOCSTAGE_LOG_LEVEL": "DEBUG", "DOCSTAGE_RETRY_ATTEMPTS": "2", **HOOKS}
    await system.start_all(**settings)
    await system.start(system.process("deliver", "stages", "deliver", **settings))
    return system


async def test_content_stays_where_it_belongs(running):
    """Messages, webhooks, logs, metrics, status and dead letters of good, bad and given-up documents are clean."""
    async with spy(running.environment["DOCSTAGE_AMQP_URL"]) as messages, receiving() as receiver, receiving() as model:
        model.answering = lambda _: answer(400, body=CANARY.encode(), X_Word=CANARY)
        await _ask_model(running, model)
        receiver.answering = lambda _: answer(200, body=CANARY.encode(), X_Word=CANARY)
        await _add_endpoint(running, receiver)
        good = await running.submit(documents.pdf(f"The word is {CANARY}."), name=NAME, client_tag="tag")
        bad = await running.submit(b"%PDF-1.7 " + CANARY.encode(), name=NAME)
        lost = await running.submit(f"The word is {CANARY}.".encode(), name=NAME, kind="summary")
        jobs = [await running.finished(job_id) for job_id in (good, bad, lost)]
        asked = await running.processes["stages"].metrics()
        given_up = await _give_up(running)
        heard = await eventually(lambda: messages if any(b"dead_letter_id" in body for body, _ in messages) else None)
        await eventually(lambda: len({told.id for told in receiver.requests}) == 4)
        await eventually(lambda: _all_told(running))

    assert [job["status"] for job in jobs] == ["completed", "failed", "failed"]
    assert jobs[2]["error"]["code"] == "model_rejected"
    assert CANARY in repr(model.requests)
    assert CANARY in (await _text(running, good))
    assert len(heard) >= 9
    assert any(b"endpoint_id" in body for body, _ in heard)
    assert CANARY not in repr(heard)
    assert {told.json["type"] for told in receiver.requests} == {"job.completed", "job.failed"}
    assert CANARY not in repr(receiver.requests)
    assert CANARY not in json.dumps([*jobs, given_up])
    assert 'docstage_model_requests_total{outcome="rejected"} 2.0' in asked
    assert CANARY not in asked
    assert CANARY not in running.logs()
    for name in ("intake", "publisher", "broken", "deliver"):
        assert CANARY not in await running.processes[name].metrics()
    assert await _tables_with(running, CANARY) <= CONTENT_TABLES


async def _ask_model(system: System, model: Receiver) -> None:
    """Let a provider that repeats what it is told be asked about summaries."""
    system.processes["stages"].terminate()
    await system.processes["stages"].wait()
    settings = asking(model, MODEL_KINDS="summary", LOG_LEVEL="DEBUG", RETRY_ATTEMPTS="2")
    await system.start(system.stages(**settings))


async def _add_endpoint(system: System, receiver: Receiver) -> None:
    async with system.client() as client:
        added = await client.post("/v1/webhooks", json={"url": receiver.url})
        assert added.status_code == 201, added.text


async def _all_told(system: System) -> bool:
    return await rows(system.database, "SELECT 1 FROM webhook_delivery WHERE status <> 'delivered'") == []


async def _text(system: System, job_id: str) -> str:
    async with system.client() as client:
        return (await client.get(f"/v1/jobs/{job_id}/result", headers={"Accept": "text/plain"})).text


async def _give_up(system: System) -> dict[str, object]:
    """Make a dead letter: a job whose document no parser is given the time to read."""
    system.processes["stages"].terminate()
    await system.processes["stages"].wait()
    job_id = await system.submit(f"Never read: {CANARY}. ".encode() * 1000, name=NAME)
    heir = system.stages("broken", DOCSTAGE_QUICK_LIMIT_SECONDS="0.000001", DOCSTAGE_RETRY_ATTEMPTS="2")
    await system.start(heir)
    job = await system.finished(job_id)
    assert job["error"]["code"] == "parser_timeout"
    return job


async def _tables_with(system: System, word: str) -> set[str]:
    """Return the tables in which any column of any row contains ``word``."""
    names = await rows(system.database, "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'")
    found = set()
    for name in (str(row["name"]) for row in names):
        assert re.fullmatch(r"[a-z_]+", name)
        if await rows(system.database, f"SELECT 1 FROM {name} t WHERE t::text LIKE :word LIMIT 1", word=f"%{word}%"):  # noqa: S608 - checked above
            found.add(name)
    return found


def test_this_file_is_where_the_canary_lives():
    """The word is unusual enough that finding it means something."""
    others = [path for path in Path(__file__).parent.glob("*.py") if path != Path(__file__)]

    assert all(CANARY not in path.read_text() for path in others)
