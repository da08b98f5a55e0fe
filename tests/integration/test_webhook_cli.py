"""``docstage webhooks`` against a real intake process."""

import base64
import json
import secrets
import time
from pathlib import Path
from typing import Any

import pytest

from schema.domain.ids import new_id
from schema.wire.webhooks import new_secret, shown_secret, signed_headers
from tests.support.api import PDF
from tests.support.command import docstage
from tests.support.factories import rows
from tests.support.system import System

URL = "https://example.com/hooks"
KEY = base64.b64encode(secrets.token_bytes(32)).decode()


@pytest.fixture
async def reach(own_system: System) -> dict[str, str]:
    """What a user sets to reach a running intake process."""
    await own_system.start(own_system.process("intake", "intake", DOCSTAGE_WEBHOOK_KEYS=KEY))
    return {"DOCSTAGE_URL": own_system.processes["intake"].url, "DOCSTAGE_API_KEY": own_system.key}


async def asked(reach: dict[str, str], *arguments: str) -> Any:
    """Run a command for its JSON."""
    ran = await docstage(reach, "webhooks", *arguments, "--json")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout) if ran.stdout else None


async def test_an_endpoint_lives_from_add_to_remove(own_system: System, reach: dict[str, str]):
    """Everything that an owner does, without a line of code."""
    made = await docstage(reach, "webhooks", "add", URL, "--event", "job.cancelled")
    (endpoint,) = await asked(reach, "list")
    job_id = await own_system.submit(PDF)
    await docstage(reach, "cancel", job_id)
    (delivery,) = await asked(reach, "deliveries", endpoint["id"], "--status", "pending")
    again = await asked(reach, "redeliver", endpoint["id"], delivery["event_id"])
    rotated = await asked(reach, "rotate", endpoint["id"])
    off = await asked(reach, "disable", endpoint["id"])
    on = await asked(reach, "enable", endpoint["id"])
    shown = await docstage(reach, "webhooks", "deliveries", endpoint["id"])
    gone = await docstage(reach, "webhooks", "remove", endpoint["id"])
    after = await docstage(reach, "webhooks", "remove", endpoint["id"])

    assert made.returncode == 0, made.stderr
    assert "whsec_" in made.stdout
    assert (endpoint["url"], endpoint["events"]) == (URL, ["job.cancelled"])
    assert (delivery["job_id"], delivery["type"]) == (job_id, "job.cancelled")
    assert (again["event_id"], again["series"]) == (delivery["event_id"], 2)
    assert rotated["secret"] not in made.stdout
    assert (off["enabled"], on["enabled"]) == (False, True)
    assert delivery["event_id"] in shown.stdout
    assert (gone.returncode, after.returncode) == (0, 1)
    assert "not_found" in after.stderr
    assert await rows(own_system.database, "SELECT 1 FROM webhook_endpoint") == []


@pytest.mark.parametrize(
    ("change", "status", "word"),
    [
        ({}, 0, "genuine"),
        ({"--id": "another"}, 1, "no signature"),
        ({"--timestamp": str(int(time.time()) - 4000)}, 1, "seconds"),
        ({"--timestamp": "soon"}, 1, "none"),
    ],
)
async def test_a_message_is_told_genuine_or_why_not(tmp_path: Path, change: dict[str, str], status: int, word: str):
    """Whoever writes a receiver can look at one message by hand; the secret is not on the command line."""
    secret, body = new_secret(), b'{"type":"job.completed"}'
    headers = signed_headers(event_id=new_id(), timestamp=int(time.time()), body=body, keys=[secret])
    (tmp_path / "body").write_bytes(body)
    options = {
        "--id": headers["webhook-id"],
        "--timestamp": headers["webhook-timestamp"],
        "--signature": headers["webhook-signature"],
    } | change
    flat = [part for pair in options.items() for part in pair]

    ran = await docstage(
        {"DOCSTAGE_WEBHOOK_SECRET": shown_secret(secret)}, "webhooks", "verify", str(tmp_path / "body"), *flat
    )

    assert (ran.returncode, word in ran.stdout) == (status, True), ran.stdout + ran.stderr
