"""The main job from end to end: HTTP in, real services and real processes between, results out."""

import asyncio
import uuid

import pytest

from tests.support import documents
from tests.support.eventually import eventually
from tests.support.factories import rows
from tests.support.oracle import verify
from tests.support.system import System

LETTER = "Dear reader,\nthis letter was scanned.\nIt has three lines."


@pytest.fixture(scope="module")
async def running(system: System) -> System:
    """Everything, as ``make run`` starts it but in fewer processes."""
    await system.start_all()
    return system


async def _result(system: System, job_id: str, accept: str = "application/json", **query: str):
    async with system.client() as client:
        answer = await client.get(f"/v1/jobs/{job_id}/result", headers={"Accept": accept}, params=query)
    assert answer.status_code == 200, answer.text
    return answer


@pytest.mark.parametrize(
    ("body", "source", "words"),
    [
        (b"Plain text is the quickest.\n", "text", "Plain text is the quickest."),
        (documents.pdf("A text layer is read, not guessed."), "text_layer", "A text layer is read, not guessed."),
        (documents.scan(LETTER), "ocr", "this letter was scanned"),
        (documents.saved(documents.picture(LETTER), "PNG"), "ocr", "this letter was scanned"),
        (documents.docx(documents.table([documents.paragraph("cell")])), "docx", "cell"),
    ],
    ids=["text", "pdf", "scan", "photo", "docx"],
)
async def test_each_kind_of_document_gives_its_text(running, body, source, words):
    """The five ways in which documents come, each with the words that stand in it."""
    job_id = await running.submit(body)

    job = await running.finished(job_id)

    assert job["status"] == "completed", job
    assert job["progress"] == {"pages_done": 1, "pages_total": 1}
    result = (await _result(running, job_id)).json()
    assert [page["source"] for page in result["pages"]] == [source]
    assert words in (await _result(running, job_id, "text/plain")).text
    await verify(running.database, job_id)


async def test_an_invoice_gives_typed_fields_with_their_evidence(running):
    """Money is a decimal string, and each value says where it was found."""
    page = (
        "Example Ltd\n12 High Street, London\n\nINVOICE\n\nInvoice number: INV-2026-017\nInvoice date: 3 March 2026\n\n"
        "Net total: EUR 100.00\nVAT 20%: EUR 20.00\nTotal: EUR 120.00\n"
    )
    job_id = await running.submit(documents.pdf(page), kind="invoice")
    await running.finished(job_id)

    invoice = (await _result(running, job_id)).json()["invoice"]

    assert invoice["invoice_number"]["value"] == "INV-2026-017"
    assert invoice["total"]["value"] == "120.00"
    assert invoice["total"]["page"] == 1
    assert "120.00" in invoice["total"]["evidence"]
    assert invoice["due_date"] is None


async def test_a_cancelled_job_never_completes(running):
    """P6: after the 200 the job stays cancelled, although its messages are still on their way."""
    job_id = await running.submit(documents.scan(*[LETTER] * 4))

    async with running.client() as client:
        answer = await client.post(f"/v1/jobs/{job_id}/cancel")

    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    await eventually(lambda: _no_claims(running, job_id))
    assert (await running.status(job_id))["status"] == "cancelled"
    await verify(running.database, job_id)


async def _no_claims(system: System, job_id: str) -> bool:
    open_attempts = "SELECT 1 FROM stage_attempt WHERE job_id = :id AND ended_at IS NULL"
    return await rows(system.database, open_attempts, id=job_id) == []


async def test_a_document_that_cannot_be_read_is_a_named_failure_and_no_dead_letter(running):
    """P12: the sender is told what to do; no operator is woken."""
    job_id = await running.submit(documents.pdf("secret", user="open sesame", owner="x"))

    job = await running.finished(job_id)

    assert (job["status"], job["error"]["code"]) == ("failed", "password_required")
    assert (await verify(running.database, job_id)).letters == []


async def test_many_documents_at_once_all_complete_once(running):
    """P3 under a little load: fifty jobs, fifty results."""
    ids = await asyncio.gather(*(running.submit(f"document {n}".encode()) for n in range(50)))

    jobs = await asyncio.gather(*(running.finished(job_id) for job_id in ids))

    assert {job["status"] for job in jobs} == {"completed"}
    for job_id in ids:
        await verify(running.database, job_id)


async def test_nobody_sees_another_tenants_job(running):
    """P11: an id of somebody else's is as unknown as one that never was."""
    job_id = await running.submit(b"mine")

    async with running.client(await running.add_tenant("other")) as client:
        answers = [await client.get(f"/v1/jobs/{one}") for one in (job_id, uuid.uuid4())]

    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].json()["code"] == answers[1].json()["code"] == "not_found"
