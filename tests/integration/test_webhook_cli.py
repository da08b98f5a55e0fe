"""``docstage webhooks`` against a real intake process."""

import asyncio
import base64
import contextlib
import io
import json
import secrets
import time
from pathlib import Path
from typing import Any

import pytest

from intake import cli
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


async def run(reach: dict[str, str], *arguments: str) -> tuple[int, str]:
    """Run a command inside this process, because starting one costs seconds; return its status and what it printed."""
    options = ["--url", reach["DOCSTAGE_URL"], "--api-key", reach["DOCSTAGE_API_KEY"]]
    printed = io.StringIO()

    def command() -> int:
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            pytest.raises(SystemExit) as ended,
        ):
            cli.main(["webhooks", *arguments, *options])
        return int(ended.value.code or 0)

    return await asyncio.to_thread(command), printed.getvalue()


async def asked(reach: dict[str, str], *arguments: str) -> Any:
    """Run a command for its JSON."""
    status, printed = await run(reach, *arguments, "--json")
    assert status == 0, printed
    return json.loads(printed)


async def test_an_endpoint_lives_from_add_to_remove(own_system: System, reach: dict[str, str]):
    """Everything that an owner does, without a line of code."""
    made = await docstage(reach, "webhooks", "add", URL, "--event", "job.cancelled")
    (endpoint,) = await asked(reach, "list")
    job_id = await own_system.submit(PDF)
    async with own_system.client() as client:
        assert (await client.post(f"/v1/jobs/{job_id}/cancel")).status_code == 200
    (delivery,) = await asked(reach, "deliveries", endpoint["id"], "--status", "pending")
    again = await asked(reach, "redeliver", endpoint["id"], delivery["event_id"])
    rotated = await asked(reach, "rotate", endpoint["id"])
    off = await asked(reach, "disable", endpoint["id"])
    on = await asked(reach, "enable", endpoint["id"])
    shown = await run(reach, "deliveries", endpoint["id"])
    listed = await run(reach, "list")
    gone = await run(reach, "remove", endpoint["id"])
    after = await run(reach, "remove", endpoint["id"])

    assert made.returncode == 0, made.stderr
    assert "whsec_" in made.stdout
    assert (endpoint["url"], endpoint["events"]) == (URL, ["job.cancelled"])
    assert (delivery["job_id"], delivery["type"]) == (job_id, "job.cancelled")
    assert (again["event_id"], again["series"]) == (delivery["event_id"], 2)
    assert rotated["secret"] not in made.stdout
    assert (off["enabled"], on["enabled"]) == (False, True)
    assert (shown[0], listed[0], gone) == (0, 0, (0, ""))
    assert after[0] == 1
    assert "not_found" in after[1]
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
def test_a_message_is_told_genuine_or_why_not(
    *,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    change: dict[str, str],
    status: int,
    word: str,
):
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

    monkeypatch.setenv("DOCSTAGE_WEBHOOK_SECRET", shown_secret(secret))
    with pytest.raises(SystemExit) as ended:
        cli.main(["webhooks", "verify", str(tmp_path / "body"), *flat])

    printed = capsys.readouterr().out
    assert (ended.value.code, word in printed) == (status, True), printed
