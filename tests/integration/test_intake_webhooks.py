"""The API's part in webhooks: endpoints, their secrets, their deliveries; and nothing of another tenant's."""

import base64
import secrets
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import httpx
import pytest

from schema.domain.ids import new_id
from schema.domain.notices import DeliveryStatus
from schema.runtime.vault import Vault
from tests.support.api import Api, running_api, submitted
from tests.support.factories import rows
from tests.support.protocol import change
from tests.support.webhooks import message_of

URL = "https://example.com/hooks?from=docstage"
KEY = secrets.token_bytes(32)


@pytest.fixture
async def api(environment: dict[str, str]) -> AsyncIterator[Api]:
    """The application on services of this test's own."""
    key = base64.b64encode(KEY).decode()
    async with running_api(environment, webhook_keys=key, max_webhooks=3) as running:
        yield running


@pytest.fixture
async def client(api: Api) -> AsyncIterator[httpx.AsyncClient]:
    """A tenant's client."""
    async with api.client(await api.tenant()) as made:
        yield made


async def added(client: httpx.AsyncClient, **wish: Any) -> dict[str, Any]:
    """Add an endpoint and return it with its secret."""
    answer = await client.post("/v1/webhooks", json={"url": URL} | wish)
    assert answer.status_code == 201, answer.text
    endpoint: dict[str, Any] = answer.json()
    return endpoint


async def told(client: httpx.AsyncClient, api: Api) -> UUID:
    """End a job, and return its event's id."""
    job = await submitted(client)
    answer = await client.post(f"/v1/jobs/{job['id']}/cancel")
    assert answer.status_code == 200
    (found,) = await rows(
        api.database, "SELECT DISTINCT event_id FROM webhook_delivery WHERE job_id = :id", id=job["id"]
    )
    return UUID(str(found["event_id"]))


async def test_a_secret_is_shown_once_and_kept_sealed(api: Api, client: httpx.AsyncClient):
    """A copy of the database does not let anybody sign in our name."""
    answer = await client.post("/v1/webhooks", json={"url": URL})

    endpoint = answer.json()
    assert answer.headers["location"] == f"http://docstage.test/v1/webhooks/{endpoint['id']}"
    plain = base64.b64decode(endpoint["secret"].removeprefix("whsec_"))
    assert endpoint["secret"].startswith("whsec_")
    assert 24 <= len(plain) <= 64
    (row,) = await rows(api.database, "SELECT * FROM webhook_endpoint")
    sealed = row["secret"]
    assert plain not in bytes(sealed)  # type: ignore[call-overload]
    assert Vault([KEY]).open(sealed, owner=UUID(endpoint["id"]).bytes) == plain  # type: ignore[arg-type]
    shown = await client.get(f"/v1/webhooks/{endpoint['id']}")
    listed = await client.get("/v1/webhooks")
    assert shown.json() == {name: value for name, value in endpoint.items() if name != "secret"}
    assert listed.json() == {"endpoints": [shown.json()]}


async def test_an_endpoint_is_changed_disabled_and_enabled(client: httpx.AsyncClient):
    """What is left out of a change stays as it was."""
    endpoint = await added(client)
    here = f"/v1/webhooks/{endpoint['id']}"

    moved = await client.patch(here, json={"url": "https://example.org/", "events": ["job.failed"]})
    off = await client.patch(here, json={"enabled": False})
    on = await client.patch(here, json={"enabled": True})

    assert (moved.json()["url"], moved.json()["events"]) == ("https://example.org/", ["job.failed"])
    assert (off.json()["enabled"], off.json()["disabled_reason"]) == (False, "owner")
    assert on.json() == moved.json()


async def test_a_removed_endpoint_is_gone_with_its_deliveries(api: Api, client: httpx.AsyncClient):
    """Its owner asked for it; a message that is still owed points to nothing then."""
    endpoint = await added(client)
    await told(client, api)

    answer = await client.delete(f"/v1/webhooks/{endpoint['id']}")

    assert answer.status_code == 204
    assert await rows(api.database, "SELECT 1 FROM webhook_delivery") == []
    assert (await client.get(f"/v1/webhooks/{endpoint['id']}")).status_code == 404
    assert (await client.delete(f"/v1/webhooks/{endpoint['id']}")).status_code == 404


async def test_rotating_gives_a_new_secret_and_keeps_the_old_one_for_a_while(api: Api, client: httpx.AsyncClient):
    """The receiver has that long to learn the new one."""
    endpoint = await added(client)

    answer = await client.post(f"/v1/webhooks/{endpoint['id']}/rotate")

    rotated = answer.json()
    assert rotated["secret"] != endpoint["secret"]
    assert rotated["previous_secret_until"] is not None
    (row,) = await rows(
        api.database,
        "SELECT previous_secret, previous_until > now() + interval '23 hours' AS long FROM webhook_endpoint",
    )
    assert row["long"]
    old = Vault([KEY]).open(row["previous_secret"], owner=UUID(endpoint["id"]).bytes)  # type: ignore[arg-type]
    assert base64.b64encode(old).decode() == endpoint["secret"].removeprefix("whsec_")


async def test_deliveries_are_listed_newest_first_by_pages_and_by_status(api: Api, client: httpx.AsyncClient):
    """An owner looks for what did not arrive."""
    endpoint = await added(client)
    events = [str(await told(client, api)) for _ in range(3)]
    await change(
        api.database,
        "UPDATE webhook_delivery SET status = 'failed', next_attempt_at = NULL, attempt = 1, history = '[{\"at\":"
        ' "2026-01-01T00:00:00Z", "series": 1, "attempt": 1, "status": 500, "code": "http_status", "seconds": 0.1}]\''
        " WHERE event_id = :event",
        event=events[0],
    )
    here = f"/v1/webhooks/{endpoint['id']}/deliveries"

    first = (await client.get(here, params={"page_size": 2})).json()
    second = (await client.get(here, params={"page_size": 2, "page_token": first["next_page_token"]})).json()

    assert [one["event_id"] for one in first["deliveries"] + second["deliveries"]] == events[::-1]
    assert second["next_page_token"] is None
    by_status = {
        status.value: [
            one["event_id"] for one in (await client.get(here, params={"status": status})).json()["deliveries"]
        ]
        for status in DeliveryStatus
    }
    assert by_status == {"pending": events[:0:-1], "failed": events[:1], "delivered": []}
    (attempt,) = second["deliveries"][0]["attempts"]
    assert (attempt["status"], attempt["code"]) == (500, "http_status")


@pytest.mark.parametrize("status", ["failed", "delivered", "pending"])
async def test_a_delivery_is_made_again_whatever_became_of_it(api: Api, client: httpx.AsyncClient, status: str):
    """The same event under the same id, with a whole schedule before it."""
    endpoint = await added(client)
    event = await told(client, api)
    await change(api.database, "DELETE FROM outbox_event")
    await change(
        api.database,
        "UPDATE webhook_delivery SET status = :status, attempt = 7,"
        " next_attempt_at = CASE :status WHEN 'pending' THEN now() + interval '10 hours' END,"
        " delivered_at = CASE :status WHEN 'delivered' THEN now() END",
        status=status,
    )

    answer = await client.post(f"/v1/webhooks/{endpoint['id']}/deliveries/{event}/redeliver")

    assert answer.status_code == 202
    again = answer.json()
    assert (again["status"], again["series"], again["attempt"]) == ("pending", 2, 0)
    (owed,) = await rows(api.database, "SELECT payload FROM outbox_event WHERE available_at <= now()")
    message = message_of(owed["payload"])
    assert (message.event_id, message.series, message.attempt) == (event, 2, 1)


async def test_a_disabled_endpoint_is_told_nothing_again(api: Api, client: httpx.AsyncClient):
    """Whoever wants it has to enable it first."""
    endpoint = await added(client)
    event = await told(client, api)
    await client.patch(f"/v1/webhooks/{endpoint['id']}", json={"enabled": False})

    answer = await client.post(f"/v1/webhooks/{endpoint['id']}/deliveries/{event}/redeliver")

    assert (answer.status_code, answer.json()["code"]) == (409, "webhook_disabled")


async def test_another_tenants_endpoint_is_not_there(api: Api, client: httpx.AsyncClient):
    """P11: no call tells it from one that does not exist, and none changes anything."""
    endpoint = await added(client)
    event = await told(client, api)
    here = f"/v1/webhooks/{endpoint['id']}"
    before = await rows(api.database, "SELECT e.*, d.* FROM webhook_endpoint e, webhook_delivery d")
    calls = [
        ("GET", here, None),
        ("PATCH", here, {"url": "https://example.org"}),
        ("DELETE", here, None),
        ("POST", f"{here}/rotate", None),
        ("GET", f"{here}/deliveries", None),
        ("POST", f"{here}/deliveries/{event}/redeliver", None),
    ]

    async with api.client(await api.tenant("other")) as stranger:
        answers = [await stranger.request(method, path, json=body) for method, path, body in calls]
        listed = await stranger.get("/v1/webhooks")

    assert [answer.status_code for answer in answers] == [404] * len(calls)
    assert listed.json() == {"endpoints": []}
    assert await rows(api.database, "SELECT e.*, d.* FROM webhook_endpoint e, webhook_delivery d") == before


@pytest.mark.parametrize("path", [f"/v1/webhooks/{new_id()}", "/v1/webhooks/none"], ids=["unknown", "no id"])
async def test_what_does_not_exist_is_not_there(client: httpx.AsyncClient, path: str):
    """Ids are opaque."""
    assert (await client.get(path)).status_code == 404
    assert (await client.post(f"{path}/deliveries/none/redeliver")).status_code == 404


@pytest.mark.parametrize(
    ("body", "status", "code", "parameter"),
    [
        ({}, 422, "invalid_parameter", "url"),
        ({"url": 7}, 422, "invalid_parameter", "url"),
        ({"url": "http://example.com"}, 422, "invalid_parameter", "url"),
        ({"url": "https://127.0.0.1/"}, 422, "invalid_parameter", "url"),
        ({"url": "https://user@example.com/"}, 422, "invalid_parameter", "url"),
        ({"url": URL, "events": []}, 422, "invalid_parameter", "events"),
        ({"url": URL, "events": ["job.started"]}, 422, "invalid_parameter", "events"),
        ({"url": URL, "colour": "blue"}, 422, "invalid_parameter", None),
        ([], 400, "malformed_request", None),
    ],
)
async def test_a_wish_that_is_not_valid_is_refused_by_name(
    client: httpx.AsyncClient, body: object, status: int, code: str, parameter: str | None
):
    """Nothing is kept of it."""
    answer = await client.post("/v1/webhooks", json=body)

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json().get("parameter") == parameter
    assert (await client.get("/v1/webhooks")).json() == {"endpoints": []}


@pytest.mark.parametrize("body", [b"{", b"x" * 20_000])
async def test_a_body_that_is_no_json_or_too_long_is_malformed(client: httpx.AsyncClient, body: bytes):
    """It is read no further than the bound."""
    answer = await client.post("/v1/webhooks", content=body)

    assert (answer.status_code, answer.json()["code"]) == (400, "malformed_request")


async def test_a_tenant_has_a_bounded_number_of_endpoints(client: httpx.AsyncClient):
    """Every end of every job is written down once for each."""
    for _ in range(3):
        await added(client)

    answer = await client.post("/v1/webhooks", json={"url": URL})

    assert (answer.status_code, answer.json()["code"], answer.json()["limit"]) == (409, "too_many_webhooks", 3)


async def test_without_a_key_to_seal_with_there_are_no_webhooks(environment: dict[str, str]):
    """No secret is ever kept in the clear for want of one."""
    async with running_api(environment) as api, api.client(await api.tenant()) as client:
        answer = await client.post("/v1/webhooks", json={"url": URL})

    assert (answer.status_code, answer.json()["code"]) == (501, "webhooks_unavailable")


async def test_a_deleted_jobs_notice_keeps_no_tag(api: Api, client: httpx.AsyncClient):
    """What its owner called the job goes with it; which job it was stays."""
    await added(client)
    job = await submitted(client, client_tag="order 7")

    assert (await client.delete(f"/v1/jobs/{job['id']}")).status_code == 204

    (delivery,) = await rows(api.database, "SELECT type, data FROM webhook_delivery")
    assert delivery["type"] == "job.cancelled"
    assert delivery["data"]["client_tag"] is None  # type: ignore[index]
    assert delivery["data"]["id"] == job["id"]  # type: ignore[index]
