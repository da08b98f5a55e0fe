"""Jobs as their owners see and steer them, over the real database and object store."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from intake.problems import ProblemCode
from schema.db import moves as written
from schema.db import stage_runs
from schema.domain import moves
from schema.domain.decisions import Advance, GiveUp, RetryAfter
from schema.domain.errors import ErrorCode
from schema.domain.ids import new_id
from schema.domain.limits import LimitName
from schema.domain.outcomes import Completed, Permanent, Transient, Warning_
from schema.domain.runs import Claim
from schema.domain.states import Stage
from schema.runtime.blobs import document_key, output_key
from schema.wire.messages import StageMessage
from tests.support.api import Api, form, running_api, submitted
from tests.support.factories import LEASE, rows

RESULT: dict[str, Any] = {
    "version": 1,
    "kind": "text",
    "language": "en",
    "engine": "test",
    "pages": [{"number": 1, "source": "text_layer", "confidence": None, "text": "Grüße"}],
    "warnings": [],
    "invoice": None,
    "contract": None,
    "summary": None,
}


@pytest.fixture
async def api(environment: dict[str, str]) -> AsyncIterator[Api]:
    """The application on services of this test's own."""
    async with running_api(environment) as running:
        yield running


@pytest.fixture
async def client(api: Api) -> AsyncIterator[httpx.AsyncClient]:
    """A tenant's client."""
    async with api.client(await api.tenant()) as made:
        yield made


async def claimed(api: Api, job_id: str, stage: Stage = Stage.VALIDATE, *, series: int = 1, attempt: int = 1) -> Claim:
    """Claim a stage as a worker does."""
    message = StageMessage(UUID(job_id), stage, series, attempt)
    async with api.database.transaction() as conn:
        (found,) = await stage_runs.claim(conn, [message], worker_id=1, lease=LEASE)
    assert found is not None
    return found.claim


async def recorded(api: Api, *decided: moves.Move) -> bool:
    """Write moves as a worker does."""
    async with api.database.transaction() as conn:
        return all(await written.lock_and_apply(conn, decided))


async def failed(api: Api, client: httpx.AsyncClient, code: ErrorCode = ErrorCode.STORAGE_UNAVAILABLE) -> str:
    """Make a job that failed in its first stage, with a dead letter when circumstances were the reason."""
    job_id: str = (await submitted(client))["id"]
    claim = await claimed(api, job_id)
    transient = code is ErrorCode.STORAGE_UNAVAILABLE
    outcome = Transient(code) if transient else Permanent(code, limit=10, actual=12)
    assert await recorded(api, moves.of_outcome(claim, outcome, GiveUp(code, dead_letter=transient)))
    return job_id


async def completed(api: Api, client: httpx.AsyncClient, *, blob: bool = False, **fields: str) -> str:
    """Make a job that went through every stage."""
    job_id: str = (await submitted(client, **fields))["id"]
    for stage in Stage:
        claim = await claimed(api, job_id, stage)
        output = RESULT | {"job_id": job_id} if stage is Stage.PERSIST else {"of": stage.value}
        outcome = Completed(output, pages_total=3 if stage is Stage.VALIDATE else None)
        move = moves.of_outcome(claim, outcome, Advance())
        stored: list[written.StoredOutput] = []
        if blob and stage is Stage.PERSIST:
            key, body = output_key(claim.job_id, stage.value, claim.token), written.serialize(output)
            await api.services.blobs.put(key, body)
            stored = [written.StoredOutput("0" * 64, len(body), blob_key=key)]
        async with api.database.transaction() as conn:
            assert await written.lock_and_apply(conn, [move], outputs=stored) == [True]
    return job_id


async def test_a_job_tells_its_stage_attempt_and_progress(api: Api, client: httpx.AsyncClient):
    """A client must see that something happens, and what."""
    job_id = (await submitted(client))["id"]
    claim = await claimed(api, job_id)
    warned = Completed({}, warnings=(Warning_("rotated", (2,)),), pages_total=5, lane=None)
    await recorded(api, moves.of_outcome(claim, warned, Advance()))
    claim = await claimed(api, job_id, Stage.EXTRACT)
    await rows(api.database, "UPDATE stage_run SET pages_done = 2 WHERE stage = 'extract' RETURNING 1")

    job = (await client.get(f"/v1/jobs/{job_id}")).json()

    assert (job["status"], job["stage"], job["series"], job["attempt"]) == ("running", "extract", 1, 1)
    assert job["progress"] == {"pages_done": 2, "pages_total": 5}
    assert job["warnings"] == [{"code": "rotated", "pages": [2]}]
    assert job["next_attempt_at"] is None
    await recorded(
        api, moves.of_outcome(claim, Transient(ErrorCode.STORAGE_UNAVAILABLE), RetryAfter(timedelta(seconds=20)))
    )
    answer = await client.get(f"/v1/jobs/{job_id}")
    job = answer.json()
    assert (job["status"], job["attempt"]) == ("retrying", 2)
    assert job["next_attempt_at"] is not None
    assert 15 <= int(answer.headers["retry-after"]) <= 20


async def test_a_failure_says_why_whose_turn_it_is_and_the_numbers(api: Api, client: httpx.AsyncClient):
    """'Failed' alone makes a support request of every bad document."""
    job_id = await failed(api, client, ErrorCode.TOO_MANY_PAGES)

    answer = await client.get(f"/v1/jobs/{job_id}")

    assert "retry-after" not in answer.headers
    error = answer.json()["error"]
    assert (error["code"], error["category"], error["stage"]) == ("too_many_pages", "limit", "validate")
    assert (error["limit"], error["actual"], error["retryable"]) == (10, 12, False)
    assert error["detail"].endswith(".")


async def test_an_unchanged_job_is_304(api: Api, client: httpx.AsyncClient):
    """Polling must cost next to nothing while nothing happens."""
    job_id = (await submitted(client))["id"]
    first = await client.get(f"/v1/jobs/{job_id}")

    same = await client.get(f"/v1/jobs/{job_id}", headers={"If-None-Match": first.headers["etag"]})
    await claimed(api, job_id)
    changed = await client.get(f"/v1/jobs/{job_id}", headers={"If-None-Match": first.headers["etag"]})

    assert (same.status_code, same.content) == (304, b"")
    assert same.headers["etag"] == first.headers["etag"]
    assert changed.status_code == 200
    assert changed.headers["etag"] != first.headers["etag"]


async def test_waiting_ends_with_the_job(client: httpx.AsyncClient):
    """One request instead of fifty, and the answer the moment there is one."""
    job_id = (await submitted(client))["id"]
    waiting = asyncio.create_task(client.get(f"/v1/jobs/{job_id}", params={"wait": 30}))
    await asyncio.sleep(0)
    await client.post(f"/v1/jobs/{job_id}/cancel")

    answer = await asyncio.wait_for(waiting, 10)

    assert answer.json()["status"] == "cancelled"


async def test_waiting_with_an_etag_ends_with_any_change(api: Api, client: httpx.AsyncClient):
    """A progress display waits for the next step, not for the end."""
    job_id = (await submitted(client))["id"]
    seen = (await client.get(f"/v1/jobs/{job_id}")).headers["etag"]
    headers = {"If-None-Match": seen}
    waiting = asyncio.create_task(client.get(f"/v1/jobs/{job_id}", params={"wait": 30}, headers=headers))
    await asyncio.sleep(0)
    await claimed(api, job_id)

    answer = await asyncio.wait_for(waiting, 10)

    assert (answer.status_code, answer.json()["status"]) == (200, "running")


async def test_waiting_ends_in_time_with_the_job_as_it_is(client: httpx.AsyncClient):
    """A client that asked for a moment gets its answer after that moment."""
    job_id = (await submitted(client))["id"]

    answer = await client.get(f"/v1/jobs/{job_id}", params={"wait": 0.3})

    assert (answer.status_code, answer.json()["status"]) == (200, "accepted")


async def test_the_list_pages_through_everything_once(client: httpx.AsyncClient):
    """Whoever walks the pages sees each job once, newest first."""
    made = [(await submitted(client))["id"] for _ in range(5)]

    found: list[str] = []
    token: str | None = ""
    while token is not None:
        page = (await client.get("/v1/jobs", params={"page_size": 2} | ({"page_token": token} if token else {}))).json()
        found += [job["id"] for job in page["jobs"]]
        token = page["next_page_token"]

    assert found == made[::-1]


async def test_filters_find_what_they_name(api: Api, client: httpx.AsyncClient):
    """An integrator asks for his own tag, an operator for what failed."""
    running = (await submitted(client, client_tag="a", kind="invoice"))["id"]
    await claimed(api, running)
    gone_wrong = await failed(api, client)
    cancelled = (await submitted(client))["id"]
    await client.post(f"/v1/jobs/{cancelled}/cancel")
    done = await completed(api, client)
    retrying = (await submitted(client))["id"]
    claim = await claimed(api, retrying)
    await recorded(api, moves.of_outcome(claim, Transient(ErrorCode.SCRATCH_FULL), RetryAfter(timedelta(seconds=60))))
    created = (await client.get(f"/v1/jobs/{cancelled}")).json()["created_at"]

    async def listed(**filters: str) -> list[str]:
        answer = await client.get("/v1/jobs", params=filters)
        assert answer.status_code == 200, answer.text
        return [job["id"] for job in answer.json()["jobs"]]

    assert await listed(status="running") == [running]
    assert await listed(status="failed") == [gone_wrong]
    assert await listed(status="cancelled") == [cancelled]
    assert await listed(status="completed") == [done]
    assert await listed(status="retrying") == [retrying]
    assert await listed(status="accepted") == []
    assert await listed(client_tag="a") == [running]
    assert await listed(kind="invoice", status="running") == [running]
    assert await listed(created_after=created) == [retrying, done, cancelled]
    assert await listed(created_before=created) == [gone_wrong, running]


@pytest.mark.parametrize(
    ("params", "status", "code"),
    [
        ({"page_token": "!"}, 400, "invalid_page_token"),
        ({"page_token": "AAAA"}, 400, "invalid_page_token"),
        ({"status": "lost"}, 422, "invalid_parameter"),
        ({"created_after": "2026-01-01T00:00:00"}, 422, "invalid_parameter"),
        ({"page_size": "0"}, 422, "invalid_parameter"),
        ({"client_tag": "a\0b"}, 422, "invalid_parameter"),
    ],
)
async def test_a_bad_filter_is_refused_by_name(
    client: httpx.AsyncClient, params: dict[str, str], status: int, code: str
):
    """A misspelt filter that is ignored would list everything as if it matched."""
    answer = await client.get("/v1/jobs", params=params)

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert next(iter(params.values())) not in answer.json().get("detail", "")


@pytest.mark.parametrize(
    ("params", "detail", "limit"),
    [
        ({"page_size": "1001"}, "page_size: should be less than or equal to 1000.", 1000),
        ({"page_size": "many"}, "page_size: should be a valid integer, unable to parse string as an integer.", None),
        ({"kind": "poem"}, "kind: should be 'text', 'summary', 'invoice' or 'contract'.", None),
        ({"client_tag": "a\x01"}, "client_tag: expected 1 to 64 printable characters.", None),
        ({"client_tag": "a" * 65}, "client_tag: should have at most 64 characters.", 64),
        ({"created_after": "2026-01-01T00:00:00"}, "created_after: should have timezone info.", None),
    ],
)
async def test_a_bad_filter_is_told_what_was_expected(
    client: httpx.AsyncClient, params: dict[str, str], detail: str, limit: int | None
):
    """A person reads this, who does not know the words of our libraries."""
    answer = await client.get("/v1/jobs", params=params)

    assert (answer.json()["detail"], answer.json().get("limit")) == (detail, limit)


@pytest.mark.parametrize(
    "moment", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00"]
)
async def test_a_time_out_of_reach_is_as_far_as_one_can_look(client: httpx.AsyncClient, moment: str):
    """Go's zero time is the year 1; to a client that leaves its filter empty that is no error."""
    job_id = (await submitted(client))["id"]

    after = await client.get("/v1/jobs", params={"created_after": moment})
    before = await client.get("/v1/jobs", params={"created_before": moment})

    found = [[job["id"] for job in answer.json()["jobs"]] for answer in (after, before)]
    assert found == ([[job_id], []] if moment.startswith("0") else [[], [job_id]])


async def test_another_tenants_job_is_not_there(api: Api, client: httpx.AsyncClient):
    """P11: an id that leaked opens nothing, and does not even show that it exists."""
    job_id = await completed(api, client)
    async with api.client(await api.tenant("other")) as other:
        calls = [
            ("GET", ""),
            ("GET", "/result"),
            ("GET", "/events"),
            ("GET", "/attempts"),
            ("POST", "/cancel"),
            ("POST", "/retry"),
            ("DELETE", ""),
        ]
        for method, path in calls:
            answer = await other.request(method, f"/v1/jobs/{job_id}{path}")
            unknown = await other.request(method, f"/v1/jobs/{new_id()}{path}")
            assert answer.status_code == unknown.status_code == 404
            assert answer.json() | {"request_id": ""} == unknown.json() | {"request_id": ""}
        assert (await other.get("/v1/jobs")).json()["jobs"] == []
    assert (await client.get(f"/v1/jobs/{job_id}")).json()["status"] == "completed"


@pytest.mark.parametrize("authorization", [None, "Bearer", "Bearer ds_nonsense", "Basic ZHM6ZHM=", "Bearer \xff"])
async def test_without_a_valid_key_there_is_nothing(api: Api, authorization: str | None):
    """Every call of v1 is somebody's."""
    headers = {"Authorization": authorization.encode("latin-1")} if authorization else {}
    async with api.client() as nobody:
        for method, path in (
            ("GET", "/v1/jobs"),
            ("POST", "/v1/jobs"),
            ("GET", f"/v1/jobs/{new_id()}"),
            ("GET", "/v1/limits"),
        ):
            answer = await nobody.request(method, path, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
            assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_a_cancelled_job_cannot_complete_any_more(api: Api, client: httpx.AsyncClient):
    """P6: whoever was told 'cancelled' never gets a result."""
    job_id = (await submitted(client))["id"]
    claim = await claimed(api, job_id)

    answer = await client.post(f"/v1/jobs/{job_id}/cancel")
    late = await recorded(api, moves.of_outcome(claim, Completed({}), Advance()))
    again = await client.post(f"/v1/jobs/{job_id}/cancel")

    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    assert late is False
    assert (again.status_code, again.json()["id"]) == (200, job_id)
    assert (await client.get(f"/v1/jobs/{job_id}")).json()["status"] == "cancelled"
    (attempt,) = (await client.get(f"/v1/jobs/{job_id}/attempts")).json()["attempts"]
    assert (attempt["stage"], attempt["outcome"]) == ("validate", "cancelled")


async def test_a_finished_job_cannot_be_cancelled(api: Api, client: httpx.AsyncClient):
    """P6, the other half: whoever has a result never hears 'cancelled'."""
    for job_id in (await completed(api, client), await failed(api, client)):
        answer = await client.post(f"/v1/jobs/{job_id}/cancel")

        assert (answer.status_code, answer.json()["code"]) == (409, "already_finished")


async def test_a_retry_opens_the_next_series_and_closes_the_dead_letter(api: Api, client: httpx.AsyncClient):
    """P8: the way back is one transaction; the same id, the stage that failed, a message for it."""
    job_id = await failed(api, client)

    answer = await client.post(f"/v1/jobs/{job_id}/retry")

    job = answer.json()
    assert answer.status_code == 202
    assert (job["id"], job["status"], job["series"], job["attempt"]) == (job_id, "running", 2, 1)
    assert (job["error"], job["finished_at"]) == (None, None)
    (letter,) = await rows(api.database, "SELECT state FROM dead_letter")
    assert letter["state"] == "redriven"
    owed = await rows(api.database, "SELECT payload FROM outbox_event WHERE kind = 'stage' ORDER BY id DESC LIMIT 1")
    assert owed[0]["payload"] == {"job_id": job_id, "stage": "validate", "series": 2, "attempt": 1}
    assert (await client.post(f"/v1/jobs/{job_id}/retry")).json()["code"] == "not_retryable"


async def test_a_bad_document_is_not_worth_a_retry(api: Api, client: httpx.AsyncClient):
    """The same bytes fail the same way; saying so is better than failing again."""
    for job_id in (await failed(api, client, ErrorCode.TOO_MANY_PAGES), await completed(api, client)):
        answer = await client.post(f"/v1/jobs/{job_id}/retry")

        assert (answer.status_code, answer.json()["code"]) == (409, "not_retryable")


async def test_deleting_takes_the_content_and_leaves_a_tombstone(api: Api, client: httpx.AsyncClient):
    """'Is my file still there?' has one answer: no, and this is when it went."""
    job_id = await completed(api, client, client_tag="secret")

    answer = await client.delete(f"/v1/jobs/{job_id}")

    assert (answer.status_code, answer.content) == (204, b"")
    assert await api.services.blobs.list("jobs/") == []
    for table in ("document", "stage_output", "page_text", "result"):
        assert await rows(api.database, f"SELECT 1 FROM {table}") == []  # noqa: S608 - ours
    (job,) = await rows(api.database, "SELECT * FROM job")
    assert job["deleted_at"] is not None
    assert job["client_tag"] is None
    assert "secret" not in json.dumps(job["options"])
    for method, path in (("GET", ""), ("GET", "/result"), ("GET", "/events"), ("POST", "/cancel"), ("POST", "/retry")):
        gone = await client.request(method, f"/v1/jobs/{job_id}{path}")
        assert (gone.status_code, gone.json()["code"]) == (410, "deleted")
    assert (await client.delete(f"/v1/jobs/{job_id}")).status_code == 204
    assert (await client.get("/v1/jobs")).json()["jobs"] == []


async def test_deleting_a_running_job_takes_it_from_its_worker_first(api: Api, client: httpx.AsyncClient):
    """A worker that is at it must not write the text back after the client was told it is gone."""
    job_id = (await submitted(client))["id"]
    claim = await claimed(api, job_id)

    assert (await client.delete(f"/v1/jobs/{job_id}")).status_code == 204

    assert await recorded(api, moves.of_outcome(claim, Completed({"text": "late"}), Advance())) is False
    assert await rows(api.database, "SELECT 1 FROM stage_output") == []
    assert not await api.services.blobs.exists(document_key(UUID(job_id)))


async def test_deleting_a_failed_job_closes_its_dead_letter(api: Api, client: httpx.AsyncClient):
    """An operator must not be asked to bring back what its owner has deleted."""
    job_id = await failed(api, client)

    assert (await client.delete(f"/v1/jobs/{job_id}")).status_code == 204

    (letter,) = await rows(api.database, "SELECT state FROM dead_letter")
    assert letter["state"] == "discarded"


@pytest.mark.parametrize("blob", [False, True])
async def test_a_result_comes_in_the_form_that_is_asked_for(api: Api, client: httpx.AsyncClient, blob: bool):  # noqa: FBT001
    """People want text, programs JSON, spreadsheets CSV; where it is stored does not matter."""
    job_id = await completed(api, client, blob=blob)

    async def got(accept: str) -> httpx.Response:
        return await client.get(f"/v1/jobs/{job_id}/result", headers={"Accept": accept})

    plain = await got("application/json")
    assert plain.json()["job_id"] == job_id
    assert plain.json()["text"] == "Grüße"
    assert (await got("*/*")).headers["content-type"] == "application/json"
    text = await got("text/plain")
    assert (text.text, text.headers["content-type"]) == ("Grüße", "text/plain; charset=utf-8")
    assert (await got("text/markdown;q=0.9, text/csv;q=0.1")).headers["content-type"].startswith("text/markdown")
    assert (await got("text/csv")).headers["content-type"].startswith("text/csv")
    refused = await got("image/png")
    assert (refused.status_code, refused.json()["code"]) == (406, "not_acceptable")
    etag = plain.headers["etag"]
    assert etag != text.headers["etag"]
    same = await client.get(f"/v1/jobs/{job_id}/result", headers={"If-None-Match": etag})
    assert same.status_code == 304


async def test_a_result_says_what_every_stage_warned_of(api: Api, client: httpx.AsyncClient):
    """Else a page that could not be read is missing from the result, and nothing in it says so."""
    job_id = await completed(api, client)
    await rows(
        api.database,
        """UPDATE job SET warnings = '[{"code": "page_failed", "pages": [2]}]' WHERE id = :id RETURNING 1""",
        id=UUID(job_id),
    )

    result = (await client.get(f"/v1/jobs/{job_id}/result")).json()

    assert result["warnings"] == [{"code": "page_failed", "pages": [2]}]


async def test_a_result_that_is_not_there_says_why(api: Api, client: httpx.AsyncClient):
    """'Not found' would send people looking for a wrong id."""
    waiting = (await submitted(client))["id"]
    stopped = (await submitted(client))["id"]
    await client.post(f"/v1/jobs/{stopped}/cancel")
    broken = await failed(api, client, ErrorCode.TOO_MANY_PAGES)
    old = await completed(api, client)
    await rows(api.database, "UPDATE job SET expires_at = now() WHERE id = :id RETURNING 1", id=UUID(old))

    async def refused(job_id: str) -> tuple[int, str]:
        answer = await client.get(f"/v1/jobs/{job_id}/result")
        return answer.status_code, answer.json()["code"]

    assert await refused(waiting) == (409, "not_ready")
    assert await refused(stopped) == (409, "job_cancelled")
    assert await refused(broken) == (409, "job_failed")
    assert await refused(old) == (410, "expired")
    assert "retry-after" in (await client.get(f"/v1/jobs/{waiting}/result")).headers
    assert (await client.get(f"/v1/jobs/{broken}/result")).json()["error"]["code"] == "too_many_pages"


async def test_attempts_list_every_claim(api: Api, client: httpx.AsyncClient):
    """When a job took long, this says where the time went."""
    job_id = await failed(api, client)
    await client.post(f"/v1/jobs/{job_id}/retry")
    await claimed(api, job_id, series=2)

    attempts = (await client.get(f"/v1/jobs/{job_id}/attempts")).json()["attempts"]

    assert [(a["stage"], a["series"], a["attempt"], a["outcome"], a["code"]) for a in attempts] == [
        ("validate", 1, 1, "transient", "storage_unavailable"),
        ("validate", 2, 1, None, None),
    ]
    assert set(attempts[0]) == {"stage", "series", "attempt", "began_at", "ended_at", "outcome", "code"}


async def test_events_are_listed_without_what_is_the_operators(api: Api, client: httpx.AsyncClient):
    """The history is the client's; who redrove it and why is not."""
    job_id = await failed(api, client)
    async with api.database.transaction() as conn:
        run = (await stage_runs.read_current(conn, [UUID(job_id)]))[UUID(job_id)]
    await recorded(api, moves.redrive(run, by="alice", note="disk was full"))

    answer = await client.get(f"/v1/jobs/{job_id}/events", headers={"Accept": "application/json"})

    events = answer.json()["events"]
    assert [(event["sequence"], event["type"]) for event in events] == [
        (1, "accepted"),
        (2, "started"),
        (3, "failed"),
        (4, "redriven"),
    ]
    assert events[2]["code"] == "storage_unavailable"
    assert "alice" not in answer.text
    assert "disk" not in answer.text
    later = await client.get(f"/v1/jobs/{job_id}/events", headers={"Accept": "application/json", "Last-Event-ID": "3"})
    assert [event["sequence"] for event in later.json()["events"]] == [4]


async def test_the_stream_of_a_finished_job_replays_and_ends(api: Api, client: httpx.AsyncClient):
    """A page opened late still shows everything, and stops asking."""
    job_id = await completed(api, client)

    stream = await client.get(f"/v1/jobs/{job_id}/events", headers={"Accept": "text/event-stream"})
    rest = await client.get(f"/v1/jobs/{job_id}/events", headers={"Last-Event-ID": "5"})
    over = await client.get(f"/v1/jobs/{job_id}/events", headers={"Last-Event-ID": "6"})

    assert stream.headers["content-type"].startswith("text/event-stream")
    assert [line for line in stream.text.splitlines() if line.startswith("id: ")] == [f"id: {n}" for n in range(1, 7)]
    assert 'event: progress\ndata: {"pages_done":3,"pages_total":3}' in stream.text
    assert rest.text.count("id: ") == 1
    assert "event: completed" in rest.text
    assert over.status_code == 204


@pytest.mark.parametrize("last", ["-1", "1.5", "x", "9" * 19, "9" * 5000])
async def test_an_event_id_that_is_none_of_ours_begins_from_the_start(client: httpx.AsyncClient, last: str):
    """Browsers send back whatever they were given by whoever answered at this address before."""
    job_id = (await submitted(client))["id"]

    answer = await client.get(
        f"/v1/jobs/{job_id}/events", headers={"Accept": "application/json", "Last-Event-ID": last}
    )

    assert [event["type"] for event in answer.json()["events"]] == ["accepted"]


async def test_limits_tell_what_is_accepted_kept_and_left(api: Api, client: httpx.AsyncClient):
    """A client can check a file before it sends it."""
    await submitted(client)
    api.services.admission._fresh_until = 0.0  # noqa: SLF001 - as if a second had passed

    limits = (await client.get("/v1/limits")).json()

    assert limits["max_upload_bytes"] == 100 << 20
    assert "application/pdf" in limits["media_types"]
    assert limits["retention_seconds"] == 7 * 86400
    assert (limits["unfinished_jobs"], limits["max_unfinished_jobs"]) == (1, 20_000)
    assert {name.value for name in LimitName} <= limits["document"].keys() | limits["parser"].keys()
    assert limits["document"]["max_pages"] == 1000


async def test_every_refusal_is_a_problem_with_the_requests_id(client: httpx.AsyncClient):
    """One shape for all errors, also for paths and methods that do not exist."""
    unknown = await client.get("/v1/nothing", headers={"X-Request-Id": "mine-1"})
    method = await client.put("/v1/jobs")
    no_id = await client.get("/v1/jobs/not-an-id")
    hostile = await client.get("/v1/nothing", headers={"X-Request-Id": 'x"\t<script>'})

    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    assert unknown.json()["request_id"] == unknown.headers["x-request-id"] == "mine-1"
    assert (method.status_code, method.json()["code"]) == (405, "method_not_allowed")
    assert "POST" in method.headers["allow"]
    assert (no_id.status_code, no_id.json()["code"]) == (404, "not_found")
    assert "script" not in hostile.headers["x-request-id"]
    for answer in (unknown, method, no_id):
        assert answer.headers["content-type"] == "application/problem+json"
        assert {"type", "title", "status", "code", "request_id"} <= set(answer.json())


async def test_an_unexpected_error_is_a_500_that_says_nothing(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    """P10: an exception's text may quote a document; neither the client nor the log gets it."""

    async def fail(*_: object, **__: object) -> None:
        msg = "the secret text of page 3"
        raise LookupError(msg)

    monkeypatch.setattr("schema.db.job_records.find", fail)

    answer = await client.get(f"/v1/jobs/{new_id()}")

    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    captured = capfd.readouterr()
    assert "secret" not in answer.text + captured.out + captured.err


async def test_the_callers_trace_is_kept_with_the_job(api: Api, client: httpx.AsyncClient):
    """One trace from the client's own system to the webhook."""
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await client.post("/v1/jobs", **form(), headers={"traceparent": trace})
    await client.post("/v1/jobs", **form(), headers={"traceparent": "nonsense"})

    found = await rows(api.database, "SELECT traceparent FROM job ORDER BY id")

    assert [job["traceparent"] for job in found] == [trace, None]


async def test_metrics_are_labelled_by_template_never_by_id(client: httpx.AsyncClient):
    """An id as a label would make a time series of every job."""
    job_id = (await submitted(client))["id"]
    await client.get(f"/v1/jobs/{job_id}")

    text = (await client.get("/metrics")).text

    assert 'docstage_http_requests_total{method="GET",route="/v1/jobs/{job_id}",status="200"}' in text
    assert 'docstage_jobs_accepted_total{kind="text"}' in text
    assert job_id not in text


async def test_readiness_names_what_is_missing(client: httpx.AsyncClient):
    """P1 needs database and store alone; that nobody would work on a job is told, and no reason to refuse it."""
    answer = await client.get("/readyz")

    assert answer.status_code == 200
    assert answer.text == "degraded: queues\nready\n"
    assert (await client.get("/livez")).text == "alive\n"


async def test_without_a_store_no_job_can_be_taken(environment: dict[str, str]):
    """A load balancer must send uploads elsewhere."""
    down = environment | {"DOCSTAGE_S3_ENDPOINT": "http://127.0.0.1:9", "DOCSTAGE_AMQP_URL": "amqp://127.0.0.1:9/"}
    async with running_api(down) as api, api.client() as nobody:
        answer = await nobody.get("/readyz")

    assert answer.status_code == 503
    assert answer.text == "missing: object store\ndegraded: broker\nnot ready\n"


async def test_without_a_database_everything_is_503(environment: dict[str, str]):
    """W16: 'come back' is an answer, a stack trace is none."""
    down = environment | {"DOCSTAGE_DATABASE_URL": "postgresql://nobody:none@127.0.0.1:9/none"}
    async with running_api(down) as api, api.client("ds_anything") as client:
        listed = await client.get("/v1/jobs")
        sent = await client.post("/v1/jobs", **form())
        ready = await client.get("/readyz")

    for answer in (listed, sent):
        assert (answer.status_code, answer.json()["code"]) == (503, "dependency_unavailable")
        assert int(answer.headers["retry-after"]) >= 1
    assert ready.status_code == 503
    assert "missing: database" in ready.text


async def test_a_revoked_key_ends_within_seconds(api: Api):
    """A leaked key must not live on in a cache."""
    async with api.client(await api.tenant()) as client:
        assert (await client.get("/v1/jobs")).status_code == 200
        await rows(api.database, "UPDATE api_key SET revoked_at = now() RETURNING 1")
        keys = api.services.keys
        keys._known = type(keys._known)((k, (t, 0.0)) for k, (t, _) in keys._known.items())  # noqa: SLF001 - 5 s later

        assert (await client.get("/v1/jobs")).status_code == 401


async def test_the_docs_page_has_every_call_and_every_problem(client: httpx.AsyncClient):
    """A problem's ``type`` is a link to its line on that page, which must be there, also without the internet."""
    page = (await client.get("/docs")).text
    described = (await client.get("/openapi.json")).json()

    for path, methods in described["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>" in page
    for code in ProblemCode:
        assert f'id="{code}"' in page
    assert "<script" not in page
    assert "https://" not in page
