"""The command line client against a real intake process."""

import asyncio
import json
from pathlib import Path
from uuid import UUID

import pytest

from schema.db import moves as written
from schema.db import stage_runs
from schema.domain import moves
from schema.domain.decisions import Advance
from schema.domain.outcomes import Completed
from schema.domain.states import Stage
from schema.wire.messages import StageMessage
from tests.support.api import PDF
from tests.support.command import docstage
from tests.support.eventually import eventually
from tests.support.factories import LEASE, rows
from tests.support.system import System

RESULT = {
    "version": 1,
    "kind": "invoice",
    "language": "de",
    "engine": "test",
    "pages": [{"number": 1, "source": "ocr", "confidence": 0.9, "text": "Gesamtbetrag 529,87"}],
    "warnings": [{"code": "low_confidence", "pages": [1]}],
    "invoice": {"total": {"value": "529.87", "confidence": 0.98, "page": 1, "box": None, "evidence": "529,87"}},
    "contract": None,
    "summary": None,
}


@pytest.fixture
async def reach(own_system: System) -> dict[str, str]:
    """What a user sets to reach a running intake process."""
    await own_system.start(own_system.process("intake", "intake"))
    return {"DOCSTAGE_URL": own_system.processes["intake"].url, "DOCSTAGE_API_KEY": own_system.key}


async def work(system: System, count: int) -> None:
    """Do what all four stages would, for so many jobs."""
    done: set[object] = set()

    async def one() -> bool:
        for job in await rows(system.database, "SELECT id FROM job WHERE state = 'accepted'"):
            await _complete(system, UUID(str(job["id"])))
            done.add(job["id"])
        return len(done) == count

    await eventually(one)


async def _complete(system: System, job_id: UUID) -> None:
    for stage in Stage:
        async with system.database.transaction() as conn:
            message = StageMessage(job_id, stage, 1, 1)
            (claimed,) = await stage_runs.claim(conn, [message], worker_id=1, lease=LEASE)
            assert claimed is not None
        output = RESULT | {"job_id": str(job_id)} if stage is Stage.PERSIST else {}
        async with system.database.transaction() as conn:
            move = moves.of_outcome(claimed.claim, Completed(output, pages_total=1), Advance())
            await written.lock_and_apply(conn, [move])


async def test_a_file_becomes_its_fields(own_system: System, reach: dict[str, str], tmp_path: Path):
    """The first thing anybody tries: one command from the file to what is in it."""
    (tmp_path / "bill.pdf").write_bytes(PDF)
    (tmp_path / "other.pdf").write_bytes(PDF)
    files = [str(tmp_path / "bill.pdf"), str(tmp_path / "other.pdf")]
    output = str(tmp_path / "results")

    ran, _ = await asyncio.gather(
        docstage(reach, "submit", *files, "--kind", "invoice", "--wait", "--output", output), work(own_system, 2)
    )

    assert ran.returncode == 0, ran.stderr
    assert "bill.pdf" in ran.stdout
    assert "529.87" in ran.stdout
    assert "98%" in ran.stdout
    assert "low_confidence" in ran.stdout
    kept = json.loads((tmp_path / "results" / "bill.pdf.json").read_text())
    assert kept["invoice"]["total"]["value"] == "529.87"
    job = (await rows(own_system.database, "SELECT id FROM job LIMIT 1"))[0]["id"]
    csv = await docstage(reach, "result", str(job), "--format", "csv")
    assert "529.87" in csv.stdout
    shown = await docstage(reach, "status", str(job), "--json")
    assert json.loads(shown.stdout)["status"] == "completed"


async def test_one_bad_file_fails_the_command_and_not_the_others(
    own_system: System, reach: dict[str, str], tmp_path: Path
):
    """A script must notice, and the good files must not be sent again."""
    (tmp_path / "good.pdf").write_bytes(PDF)
    (tmp_path / "bad.pdf").write_bytes(b"\x7fELF" + bytes(5000))
    files = [str(tmp_path / name) for name in ("good.pdf", "bad.pdf", "missing.pdf")]

    ran = await docstage(reach, "submit", *files, "--kind", "text", "--json")

    assert ran.returncode == 1
    good, bad, missing = json.loads(ran.stdout)
    assert good["job"]["status"] == "accepted"
    assert "unsupported_type" in bad["error"]
    assert "cannot be read" in missing["error"]
    assert len(await rows(own_system.database, "SELECT id FROM job")) == 1


async def test_a_submission_outlives_a_restart_of_the_service(
    own_system: System, reach: dict[str, str], tmp_path: Path
):
    """W2 as a user sees it: the command just takes a little longer, and there is one job."""
    (tmp_path / "letter.pdf").write_bytes(PDF)
    process = own_system.processes["intake"]
    process.kill()

    submitting = asyncio.create_task(
        docstage(reach, "submit", str(tmp_path / "letter.pdf"), "--kind", "text", "--json")
    )
    process.start()
    ran = await submitting

    assert ran.returncode == 0, ran.stdout
    assert len(await rows(own_system.database, "SELECT id FROM job")) == 1


async def test_cancel_and_refusals_are_told_in_words(own_system: System, reach: dict[str, str]):
    """People read sentences, scripts the exit status."""
    job_id = await own_system.submit(PDF)

    cancelled = await docstage(reach, "cancel", job_id)
    result = await docstage(reach, "result", job_id)
    stranger = await docstage({**reach, "DOCSTAGE_API_KEY": "ds_wrong"}, "status", job_id)

    assert (cancelled.returncode, "cancelled" in cancelled.stdout) == (0, True)
    assert (result.returncode, result.stdout) == (1, "")
    assert "job_cancelled" in result.stderr
    assert stranger.returncode == 1
    assert "unauthorized" in stranger.stderr


async def test_keys_are_made_shown_and_revoked(reach: dict[str, str], environment: dict[str, str]):
    """The key alone on stdout, so that a script can take it; never again after that."""
    made = await docstage(environment, "keys", "create", "--tenant", "acme", "--name", "laptop")
    key = made.stdout.strip()
    listed = await docstage(environment, "keys", "list")
    with_key = {**reach, "DOCSTAGE_API_KEY": key}
    works = await docstage(with_key, "status", "0190f3a2-0000-7000-8000-000000000000")
    key_id = next(line.split()[0] for line in listed.stdout.splitlines() if "laptop" in line)
    revoked = await docstage(environment, "keys", "revoke", key_id)
    again = await docstage(environment, "keys", "revoke", key_id)

    assert made.returncode == 0, made.stderr
    assert key.startswith("ds_")
    assert len(made.stdout.splitlines()) == 1
    assert "acme" in listed.stdout
    assert key not in listed.stdout
    assert "not_found" in works.stderr
    assert (revoked.returncode, again.returncode) == (0, 1)
    unset = await docstage({"DOCSTAGE_DATABASE_URL": "postgresql://x@127.0.0.1:9/x"}, "keys", "list")
    assert (unset.returncode, unset.stderr) == (1, "docstage: The database does not answer. (no_database)\n")
