"""Webhooks from a client's side: endpoints, deliveries, and whether a message is the service's."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from intake.client.api import ApiClient, Json

TOLERANCE_SECONDS: Final = 300
PAGE: Final = 100
_COLOURS: Final = {"delivered": "green", "pending": "yellow", "failed": "red"}


async def add(client: ApiClient, url: str, events: Sequence[str]) -> Json:
    """Add an endpoint; the answer has its secret."""
    body = {"url": url} | ({"events": list(events)} if events else {})
    return await client.request("POST", "/v1/webhooks", body=body, repeat=False)


async def list_all(client: ApiClient) -> list[Json]:
    """Return all endpoints."""
    endpoints: list[Json] = (await client.request("GET", "/v1/webhooks"))["endpoints"]
    return endpoints


async def enable(client: ApiClient, endpoint_id: str, *, enabled: bool) -> Json:
    """Enable or disable an endpoint."""
    return await client.request("PATCH", f"/v1/webhooks/{endpoint_id}", body={"enabled": enabled})


async def remove(client: ApiClient, endpoint_id: str) -> None:
    """Remove an endpoint."""
    await client.request("DELETE", f"/v1/webhooks/{endpoint_id}", repeat=False)


async def rotate(client: ApiClient, endpoint_id: str) -> Json:
    """Give an endpoint a new secret; the answer has it."""
    return await client.request("POST", f"/v1/webhooks/{endpoint_id}/rotate", repeat=False)


async def deliveries(client: ApiClient, endpoint_id: str, *, status: str | None, limit: int) -> list[Json]:
    """Return an endpoint's newest deliveries."""
    found: list[Json] = []
    token: str | None = None
    while True:
        params = {"status": status, "page_token": token, "page_size": str(min(PAGE, limit - len(found)))}
        given = {name: value for name, value in params.items() if value is not None}
        page = await client.request("GET", f"/v1/webhooks/{endpoint_id}/deliveries", params=given)
        found += page["deliveries"]
        token = page["next_page_token"]
        if token is None or len(found) >= limit:
            return found


async def redeliver(client: ApiClient, endpoint_id: str, event_id: str) -> Json:
    """Have an endpoint told of an event again."""
    path = f"/v1/webhooks/{endpoint_id}/deliveries/{event_id}/redeliver"
    return await client.request("POST", path, repeat=False)


@dataclass(frozen=True, slots=True)
class Message:
    """What a receiver got: the three headers, and the body byte by byte."""

    id: str
    timestamp: str
    signature: str
    body: bytes


def why_not(message: Message, secret: str, *, now: float | None) -> str | None:
    """Say why a message is not to be believed; ``None`` when it is. Without ``now`` its age does not matter."""
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        timestamp = int(message.timestamp)
    except (ValueError, binascii.Error):
        return "the secret or the timestamp is none"
    if now is not None and abs(now - timestamp) > TOLERANCE_SECONDS:
        return f"it is not from within {TOLERANCE_SECONDS} seconds of now"
    signed = f"{message.id}.{message.timestamp}.".encode() + message.body
    expected = b"v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256))
    given = message.signature.encode().split(b" ")
    return None if any(hmac.compare_digest(expected, one) for one in given) else "no signature is by this secret"


def _table(*names: str) -> Table:
    """Return a table in which nothing is cut off: whoever reads an id wants to use it."""
    table = Table(box=None, pad_edge=False)
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def print_endpoints(console: Console, endpoints: Sequence[Json]) -> None:
    """Print endpoints, one a line."""
    table = _table("id", "url", "events", "state")
    for one in endpoints:
        state = "[green]enabled" if one["enabled"] else f"[red]disabled ({one['disabled_reason']})"
        table.add_row(one["id"], escape(one["url"]), " ".join(one["events"]), state)
    console.print(table)


def print_secret(console: Console, endpoint: Json) -> None:
    """Print an endpoint with its secret, this once."""
    table = Table.grid(padding=(0, 2))
    for name in ("id", "url", "secret", "previous_secret_until"):
        if endpoint[name] is not None:
            table.add_row(f"[dim]{name}[/dim]", escape(endpoint[name]))
    console.print(table)


def print_deliveries(console: Console, found: Sequence[Json]) -> None:
    """Print deliveries, newest first, with what came of the last attempt."""
    table = _table("event", "job", "type", "status", "attempts", "last answer", "next attempt")
    for one in found:
        last: Mapping[str, Any] = one["attempts"][-1] if one["attempts"] else {}
        answered = str(last.get("status") or last.get("code") or "")
        status = f"[{_COLOURS[one['status']]}]{one['status']}"
        table.add_row(
            one["event_id"],
            one["job_id"],
            one["type"],
            status,
            str(len(one["attempts"])),
            answered,
            one["next_attempt_at"] or "",
        )
    console.print(table)
