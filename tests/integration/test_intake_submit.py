"""Submitting a document: what a 202 promises, what is refused and when, and how a repeat is answered."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from schema.db import idempotency
from schema.domain.errors import ErrorCode, TransientError
from schema.runtime.blobs import Blobs, document_key
from tests.support.api import PDF, Api, form, running_api, submitted
from tests.support.eventually import eventually
from tests.support.factories import rows

BOUNDARY = "xyzzy"
MULTIPART = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


@pytest.fixture
async def api(environment: dict[str, str]) -> AsyncIterator[Api]:
    """The application on services of this test's own."""
    async with running_api(environment, max_upload_bytes=1 << 20, languages="eng+deu") as running:
        yield running


@pytest.fixture
async def client(api: Api) -> AsyncIterator[httpx.AsyncClient]:
    """A tenant's client."""
    async with api.client(await api.tenant()) as made:
        yield made


def part(name: str, content: bytes, *, filename: str | None = None) -> bytes:
    """Write one part of a form by hand."""
    named = f'; filename="{filename}"' if filename else ""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'
    return head.encode() + content + b"\r\n"


END = f"--{BOUNDARY}--\r\n".encode()


async def objects(api: Api) -> list[str]:
    """Return the keys of everything stored."""
    return [entry.key for entry in await api.services.blobs.list("")]


async def test_202_means_object_job_run_and_message_are_there(api: Api, client: httpx.AsyncClient):
    """P1: whoever gets a 202 may delete his own copy."""
    answer = await client.post("/v1/jobs", **form(client_tag="order 7", pages="1-2", strict="true"))

    assert answer.status_code == 202
    job = answer.json()
    assert answer.headers["location"] == f"http://docstage.test/v1/jobs/{job['id']}"
    assert int(answer.headers["retry-after"]) >= 1
    assert job["status"] == "accepted"
    assert job["stage"] == "validate"
    assert job["client_tag"] == "order 7"
    assert await api.services.blobs.get(document_key(UUID(job["id"]))) == PDF
    (stored,) = await rows(api.database, "SELECT * FROM document")
    assert stored["sha256"] == hashlib.sha256(PDF).hexdigest()
    assert (stored["media_type"], stored["declared_type"]) == ("application/pdf", "application/pdf")
    (run,) = await rows(api.database, "SELECT * FROM stage_run")
    assert (run["stage"], run["status"]) == ("validate", "ready")
    (owed,) = await rows(api.database, "SELECT * FROM outbox_event")
    assert owed["payload"] == {"job_id": job["id"], "stage": "validate", "series": 1, "attempt": 1}
    assert (owed["kind"], owed["lane"]) == ("stage", "validate")
    (event,) = await rows(api.database, "SELECT * FROM job_event")
    assert (event["sequence"], event["type"]) == (1, "accepted")


async def test_nothing_of_the_file_is_shown_or_kept_but_its_bytes(api: Api, client: httpx.AsyncClient):
    """P10: a file's name says as much as its content, and the storage key is nobody's business."""
    answer = await client.post("/v1/jobs", **form(name="severance-letter-smith.pdf"))

    assert "severance" not in answer.text
    assert "/document" not in answer.text
    for table in ("job", "document", "stage_run", "outbox_event", "job_event"):
        found = await rows(api.database, f"SELECT row_to_json(t)::text AS line FROM {table} t")  # noqa: S608 - ours
        assert all("severance" not in str(row["line"]) for row in found)


async def test_fields_may_come_before_and_after_the_file(api: Api, client: httpx.AsyncClient):
    """Browsers, curl and libraries order a form as they like."""
    body = part("kind", b"invoice") + part("file", PDF, filename="a") + part("languages", b"eng+deu") + END

    answer = await client.post("/v1/jobs", content=body, headers=MULTIPART)

    assert answer.status_code == 202, answer.text
    (job,) = await rows(api.database, "SELECT kind, options FROM job")
    assert job["kind"] == "invoice"
    assert job["options"]["languages"] == ["eng", "deu"]


async def test_a_declared_type_that_is_none_counts_as_not_declared(api: Api, client: httpx.AsyncClient):
    """The type is only a hint: one that no database takes must not turn a good document away."""
    answer = await client.post("/v1/jobs", **form(declared="application/\0pdf"))

    assert answer.status_code == 202
    (stored,) = await rows(api.database, "SELECT declared_type FROM document")
    assert stored["declared_type"] is None


async def test_the_relay_is_woken_after_the_commit(api: Api, client: httpx.AsyncClient):
    """A job must not wait for the relay's next poll."""
    heard = asyncio.Event()
    async with api.database.engine.connect() as connection:
        raw = (await connection.get_raw_connection()).driver_connection
        await raw.add_listener("docstage_outbox", lambda *_: heard.set())
        await submitted(client)
        await asyncio.wait_for(heard.wait(), 5)
        await raw.reset()


REFUSED: list[tuple[str, bytes, int, str]] = [
    ("no file", part("kind", b"text") + END, 400, "malformed_request"),
    ("no kind", part("file", PDF, filename="a") + END, 422, "invalid_parameter"),
    ("two files", part("kind", b"text") + part("file", PDF) + part("file", PDF) + END, 400, "malformed_request"),
    ("a field twice", part("kind", b"text") + part("kind", b"text") + END, 400, "malformed_request"),
    ("an unknown field", part("colour", b"blue") + END, 400, "unknown_field"),
    ("an unknown kind", part("kind", b"poem") + END, 422, "invalid_parameter"),
    ("pages that run backwards", part("pages", b"9-3") + END, 422, "invalid_parameter"),
    ("a deadline of no number", part("deadline_seconds", b"soon") + END, 422, "invalid_parameter"),
    ("a deadline too long", part("deadline_seconds", b"999999999") + END, 422, "invalid_parameter"),
    ("a language that is not there", part("languages", b"fra") + END, 422, "language_unavailable"),
    ("a field too long", part("client_tag", b"x" * 5000) + END, 400, "malformed_request"),
    ("an empty file", part("kind", b"text") + part("file", b"", filename="a") + END, 422, "empty_document"),
    ("an executable", part("file", b"\x7fELF" + bytes(5000), filename="a.pdf") + END, 415, "unsupported_type"),
    ("a form cut off", part("kind", b"text") + part("file", PDF, filename="a"), 400, "malformed_request"),
    ("no form at all", b"hello", 400, "malformed_request"),
]


@pytest.mark.parametrize(("body", "status", "code"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
async def test_a_bad_submission_is_refused_by_name_and_leaves_nothing(
    api: Api, client: httpx.AsyncClient, body: bytes, status: int, code: str
):
    """A refusal tells the client what to change, and costs nothing afterwards."""
    answer = await client.post("/v1/jobs", content=body, headers=MULTIPART)

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert await objects(api) == []
    assert await rows(api.database, "SELECT id FROM job") == []


async def test_a_body_that_is_no_form_is_refused(client: httpx.AsyncClient):
    """JSON or raw bytes are a misunderstanding, not a document."""
    answer = await client.post("/v1/jobs", json={"file": "x"})

    assert (answer.status_code, answer.json()["code"]) == (415, "not_multipart")


async def test_a_file_above_the_limit_is_refused_by_its_announced_size(client: httpx.AsyncClient):
    """Nobody should have to send a gigabyte to hear that it is too much."""
    sent = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal sent
        sent += 1
        yield b"x"

    answer = await client.post("/v1/jobs", content=body(), headers={**MULTIPART, "Content-Length": str(1 << 30)})

    assert (answer.status_code, answer.json()["code"]) == (413, "document_too_large")
    assert answer.json()["limit"] == 1 << 20
    assert sent == 0


async def test_a_file_above_the_limit_is_refused_by_the_bytes_read(api: Api, client: httpx.AsyncClient):
    """An announced size may be missing or a lie; what counts is what comes."""
    read = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal read
        yield (
            part("kind", b"text")
            + f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"\r\n\r\n'.encode()
            + PDF
        )
        while True:
            read += 1
            yield bytes(65536)

    answer = await client.post("/v1/jobs", content=body(), headers=MULTIPART)

    assert (answer.status_code, answer.json()["code"]) == (413, "document_too_large")
    assert read <= (1 << 20) // 65536 + 2
    assert await objects(api) == []


async def test_an_upload_that_goes_silent_is_ended(environment: dict[str, str]):
    """A thousand clients that send nothing must not hold a thousand places."""
    async with running_api(environment, upload_silence_seconds=0.2) as api, api.client(await api.tenant()) as client:

        async def body() -> AsyncIterator[bytes]:
            yield part("kind", b"text")
            await asyncio.Event().wait()

        answer = await client.post("/v1/jobs", content=body(), headers=MULTIPART)

    assert (answer.status_code, answer.json()["code"]) == (408, "upload_stalled")


async def test_a_full_backlog_refuses_everybody_before_the_body_is_read(environment: dict[str, str]):
    """P9: overload is told at once, and when to come back is computed."""
    async with running_api(environment, max_backlog=2) as api, api.client(await api.tenant()) as client:
        await submitted(client)
        await submitted(client)
        untouched = Untouched()

        answer = await client.post("/v1/jobs", content=untouched, headers=MULTIPART)

    assert (answer.status_code, answer.json()["code"]) == (503, "overloaded")
    assert (answer.json()["limit"], answer.json()["actual"]) == (2, 2)
    assert int(answer.headers["retry-after"]) >= 1
    assert not untouched.read


async def test_a_full_quota_refuses_one_tenant_and_not_the_other(environment: dict[str, str]):
    """One tenant's burst is its own problem."""
    async with running_api(environment, max_tenant_jobs=1) as api:
        async with api.client(await api.tenant("busy")) as busy:
            await submitted(busy)
            answer = await busy.post("/v1/jobs", **form())
        async with api.client(await api.tenant("quiet")) as quiet:
            await submitted(quiet)

    assert (answer.status_code, answer.json()["code"]) == (429, "too_many_jobs")
    assert int(answer.headers["retry-after"]) >= 1


async def test_the_time_to_come_back_follows_the_rate_at_which_jobs_finish(environment: dict[str, str]):
    """A constant would call everybody back at once, and too early."""
    async with running_api(environment, max_backlog=300) as api, api.client(await api.tenant()) as client:
        await submitted(client)
        # 120 jobs in the last minute are 2 per second; of 500 unfinished ones 201 have to go first.
        await rows(
            api.database,
            "INSERT INTO job (id, tenant_id, kind, deadline, retention, deadline_at, expires_at, state, finished_at)"
            " SELECT gen_random_uuid(), (SELECT id FROM tenant), 'text', '1 h', '1 d', now(), now(),"
            " CASE WHEN n > 499 THEN 'completed' ELSE 'accepted' END,"
            " CASE WHEN n > 499 THEN now() - (n - 499) * interval '0.49 s' END"
            " FROM generate_series(1, 619) AS n RETURNING id",
        )
        api.services.admission._fresh_until = 0.0  # noqa: SLF001 - as if a second had passed

        answer = await client.post("/v1/jobs", **form())

    assert answer.status_code == 503
    assert 1 <= int(answer.headers["retry-after"]) <= 10


class Untouched(httpx.AsyncByteStream):
    """A body that knows whether anybody asked for it."""

    read = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield something, and remember."""
        self.read = True
        yield b"x"


async def test_a_store_that_is_down_is_503_and_leaves_nothing(
    api: Api, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    """W17: the client hears that it should come back, not that all is well."""

    async def down(*_: object) -> None:
        raise TransientError(ErrorCode.STORAGE_UNAVAILABLE)

    monkeypatch.setattr(Blobs, "put_stream", down)

    answer = await client.post("/v1/jobs", **form())

    assert (answer.status_code, answer.json()["code"]) == (503, "dependency_unavailable")
    assert "retry-after" in answer.headers
    assert await rows(api.database, "SELECT id FROM job") == []


@pytest.fixture
def broken_accept(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A database that fails in the middle of the one transaction."""

    async def fail(*_: object, **__: object) -> bool:
        raise ConnectionResetError

    monkeypatch.setattr("schema.db.jobs.accept", fail)
    return iter(())


@pytest.mark.usefixtures("broken_accept")
async def test_a_failed_transaction_is_503_and_takes_the_object_back(api: Api, client: httpx.AsyncClient):
    """A document without a job is litter, and a 500 would tell the client not to come back."""
    answer = await client.post("/v1/jobs", **form(), headers={"Idempotency-Key": "k"})

    assert (answer.status_code, answer.json()["code"]) == (503, "dependency_unavailable")
    assert await objects(api) == []


async def test_the_same_key_and_request_give_the_same_job(api: Api, client: httpx.AsyncClient):
    """P3 at the door: a client that lost the answer repeats the request without fear."""
    first = await client.post("/v1/jobs", **form(), headers={"Idempotency-Key": "order-7"})
    again = await client.post("/v1/jobs", **form(), headers={"Idempotency-Key": '"order-7"'})

    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json() == first.json()
    assert again.headers["location"] == first.headers["location"]
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    assert len(await rows(api.database, "SELECT id FROM job")) == 1
    assert len(await objects(api)) == 1


@pytest.mark.parametrize("change", [{"body": PDF + b"!"}, {"kind": "invoice"}, {"client_tag": "other"}, {"pages": "1"}])
async def test_the_same_key_with_another_request_is_refused(client: httpx.AsyncClient, change: dict[str, Any]):
    """A key that is used twice by mistake must not hide the second document."""
    await client.post("/v1/jobs", **form(), headers={"Idempotency-Key": "order-7"})

    answer = await client.post("/v1/jobs", **form(**change), headers={"Idempotency-Key": "order-7"})

    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")


async def test_a_key_belongs_to_its_tenant(api: Api, client: httpx.AsyncClient):
    """Two customers both count their orders from 1."""
    mine = await client.post("/v1/jobs", **form(), headers={"Idempotency-Key": "1"})
    async with api.client(await api.tenant("other")) as other:
        theirs = await other.post("/v1/jobs", **form(), headers={"Idempotency-Key": "1"})

    assert mine.json()["id"] != theirs.json()["id"]


async def test_a_second_request_during_the_first_is_told_to_wait(client: httpx.AsyncClient):
    """It must be answered at once, not hang behind an upload of minutes."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield part("kind", b"text") + part("file", PDF, filename="a")
        begun.set()
        await go_on.wait()
        yield END

    headers = {**MULTIPART, "Idempotency-Key": "slow"}
    first = asyncio.create_task(client.post("/v1/jobs", content=slow(), headers=headers))
    await begun.wait()
    second = await client.post("/v1/jobs", **form(), headers={"Idempotency-Key": "slow"})
    go_on.set()

    assert (second.status_code, second.json()["code"]) == (409, "idempotency_in_flight")
    assert int(second.headers["retry-after"]) >= 1
    assert (await first).status_code == 202


async def test_a_failed_upload_gives_its_key_back(client: httpx.AsyncClient):
    """The corrected request must not wait for a lease to run out."""
    headers = {"Idempotency-Key": "k"}
    refused = await client.post("/v1/jobs", **form(body=b""), headers=headers)

    answer = await client.post("/v1/jobs", **form(), headers=headers)

    assert refused.status_code == 422
    assert answer.status_code == 202


async def test_a_reservation_whose_holder_died_is_taken_over_and_fences_it(api: Api, client: httpx.AsyncClient):
    """W1: the client's repeat makes the job; the first upload, should it still come through, makes no second one."""
    tenant_id = (await rows(api.database, "SELECT id FROM tenant"))[0]["id"]
    assert isinstance(tenant_id, UUID)
    async with api.database.transaction() as conn:
        dead = await idempotency.reserve(
            conn, tenant_id=tenant_id, key="k", lease=timedelta(0), keep=timedelta(hours=1)
        )
    assert isinstance(dead, idempotency.Reservation)

    answer = await client.post("/v1/jobs", **form(), headers={"Idempotency-Key": "k"})

    assert answer.status_code == 202
    async with api.database.transaction() as conn:
        assert await idempotency.renew(conn, dead, lease=timedelta(hours=1)) is False


async def test_a_long_upload_keeps_its_reservation(environment: dict[str, str]):
    """A slow line must not lose its key to its own repeat."""
    async with running_api(environment, reservation_seconds=1.5) as api, api.client(await api.tenant()) as client:
        go_on = asyncio.Event()

        async def slow() -> AsyncIterator[bytes]:
            yield part("kind", b"text") + part("file", PDF, filename="a")
            await go_on.wait()
            yield END

        headers = {**MULTIPART, "Idempotency-Key": "k"}
        first = asyncio.create_task(client.post("/v1/jobs", content=slow(), headers=headers))

        async def renewed() -> bool:
            found = await rows(
                api.database, "SELECT lease_expires_at - created_at > interval '2.4 s' AS later FROM idempotency_key"
            )
            return bool(found and found[0]["later"])

        await eventually(renewed)
        second = await client.post("/v1/jobs", **form(), headers={"Idempotency-Key": "k"})
        go_on.set()

        assert second.json()["code"] == "idempotency_in_flight"
        assert (await first).status_code == 202


async def test_a_repeat_is_answered_even_under_overload(environment: dict[str, str]):
    """It adds no work, and its client has no other way to hear of the job it made."""
    async with running_api(environment, max_backlog=1) as api, api.client(await api.tenant()) as client:
        first = await client.post("/v1/jobs", **form(), headers={"Idempotency-Key": "k"})
        again = await client.post("/v1/jobs", **form(), headers={"Idempotency-Key": "k"})
        other = await client.post("/v1/jobs", **form(), headers={"Idempotency-Key": "other"})

    assert again.json()["id"] == first.json()["id"]
    assert other.status_code == 503


@pytest.mark.parametrize("key", ["", " ", "x" * 256, "schlüssel".encode().decode("latin-1")])
async def test_a_key_of_another_form_is_refused(client: httpx.AsyncClient, key: str):
    """A key that is cut or changed on the way would join requests that have nothing in common."""
    headers = [(b"Idempotency-Key", key.encode("latin-1"))]
    answer = await client.post("/v1/jobs", **form(), headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_idempotency_key")
