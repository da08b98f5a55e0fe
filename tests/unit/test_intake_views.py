"""What clients are shown, which form they get, and what readiness says."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from intake.broker import phrases
from intake.client.api import refusal, retry_after
from intake.negotiation import preferred
from intake.problems import REFUSALS
from intake.responses import error_view, event_view, job_view, poll_after
from schema.db.job_records import EventRecord, JobRecord
from schema.domain.errors import Category, ErrorCode
from schema.domain.ids import new_id
from schema.domain.kinds import Kind
from schema.domain.states import JobState, Lane, RunStatus, Stage

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
FORMS = ("application/json", "text/plain", "text/csv")


def record(**changes: Any) -> JobRecord:
    """Return a job that has just been accepted."""
    values: dict[str, Any] = {
        "id": new_id(),
        "tenant_id": new_id(),
        "kind": Kind.TEXT,
        "state": JobState.ACCEPTED,
        "stage": Stage.VALIDATE,
        "run_status": RunStatus.READY,
        "series": 1,
        "attempt": 1,
        "next_attempt_at": None,
        "wait_seconds": None,
        "pages_done": 0,
        "pages_total": None,
        "warnings": [],
        "error": None,
        "client_tag": None,
        "created_at": NOON,
        "updated_at": NOON,
        "finished_at": None,
        "deadline_at": NOON + timedelta(hours=6),
        "expires_at": NOON + timedelta(days=7),
        "age_seconds": 0.0,
        "deleted": False,
        "expired": False,
    }
    return JobRecord(**(values | changes))


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (None, "application/json"),
        ("*/*", "application/json"),
        ("text/*", "text/plain"),
        ("text/csv", "text/csv"),
        ("text/csv;q=0.5, text/plain;q=0.8", "text/plain"),
        ("text/html, application/xhtml+xml, */*;q=0.1", "application/json"),
        ("application/json;q=0, */*", "text/plain"),
        ("TEXT/CSV ; Q=1.0", "text/csv"),
        ("text/csv;q=nonsense, */*;q=0.1", "application/json"),
        ("image/png", None),
        ("*/*;q=0", None),
    ],
)
def test_a_client_gets_the_form_it_wants_most(accept: str | None, form: str | None):
    """Browsers, curl and spreadsheets all say it differently."""
    assert preferred(accept, FORMS) == form


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({}, 1.0),
        ({"age_seconds": 50.0}, 10.0),
        ({"age_seconds": 5000.0}, 30.0),
        ({"run_status": RunStatus.RETRYING, "wait_seconds": 12.5}, 12.5),
        ({"run_status": RunStatus.RETRYING, "wait_seconds": -3.0}, 1.0),
        ({"state": JobState.COMPLETED, "finished_at": NOON}, None),
    ],
)
def test_the_time_of_the_next_look_follows_the_job(changes: dict[str, Any], seconds: float | None):
    """A constant is too long for a letter and too short for an archive."""
    assert poll_after(record(**changes)) == seconds


def test_a_job_says_until_when_it_is_kept_once_that_is_known():
    """The days are counted from the end; an earlier date would be a promise to delete it unfinished."""
    assert job_view(record(), "http://x").expires_at is None
    done = record(state=JobState.COMPLETED, finished_at=NOON)
    assert job_view(done, "http://x").expires_at == NOON + timedelta(days=7)


def test_links_lead_to_the_jobs_own_calls():
    """A client follows links and builds no paths."""
    job = record()

    links = job_view(job, "https://docs.example").links

    assert links.result == f"https://docs.example/v1/jobs/{job.id}/result"


def test_an_error_of_another_release_is_shown_as_an_internal_one():
    """During an upgrade a code may be newer than this process; clients still get one that is documented."""
    shown = error_view({"code": "melted", "stage": "extract"}, Stage.VALIDATE)

    assert (shown.code, shown.category, shown.stage) == ("internal_error", Category.INTERNAL, Stage.EXTRACT)


@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_error_can_be_shown(code: ErrorCode):
    """Whatever fails, the client is told something it can act on."""
    assert error_view({"code": code.value}, Stage.EXTRACT).detail.endswith(".")


def test_an_event_shows_nothing_that_was_not_meant_for_its_owner():
    """A field that some later move adds stays inside until somebody decides otherwise."""
    data = {"code": "worker_lost", "by": "alice", "reason": "because", "host": "10.0.0.7", "series": 2}

    shown = event_view(EventRecord(7, NOON, "redriven", "extract", data)).model_dump(exclude_none=True)

    assert shown == {
        "sequence": 7,
        "at": NOON,
        "type": "redriven",
        "stage": "extract",
        "series": 2,
        "code": "worker_lost",
    }


@pytest.mark.parametrize(
    ("consumers", "missing"),
    [
        (dict.fromkeys(Lane, 1), []),
        (dict.fromkeys(Lane), ["queues"]),
        (dict.fromkeys(Lane, 1) | {Lane.EXTRACT_OCR: 0}, ["no consumer on extract.ocr"]),
        (dict.fromkeys(Lane, 1) | {Lane.EXTRACT_OCR: 0, Lane.EXTRACT_TEXT: None}, ["no consumer on extract"]),
        (dict.fromkeys(Lane, 1) | {Lane.PERSIST: 0}, ["no consumer on persist"]),
    ],
)
def test_readiness_names_the_stage_that_nobody_works_on(consumers: dict[Lane, int | None], missing: list[str]):
    """'Nobody runs OCR' found out from a queue graph takes an afternoon."""
    assert phrases(consumers) == missing


def test_the_client_reads_what_stands_between_it_and_the_service():
    """A proxy answers in HTML, and with dates instead of seconds."""
    date = {"date": "Thu, 01 Jan 2026 12:00:00 GMT"}
    proxy = httpx.Response(503, text="<html>", headers=date | {"retry-after": "Thu, 01 Jan 2026 12:00:09 GMT"})
    own = httpx.Response(
        429, json={"code": "too_many_jobs", "title": "Too many.", "detail": "3 of 3."}, headers={"retry-after": "4"}
    )

    assert (refusal(proxy).code, retry_after(proxy)) == ("http_503", 9.0)
    assert (str(refusal(own)), retry_after(own)) == ("Too many. 3 of 3. (too_many_jobs)", 4.0)


def test_the_api_page_lists_every_problem_with_its_status():
    """Integrators write their error handling from that table."""
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    listed = {
        code: status
        for statuses, codes in re.findall(r"^\| ([\d, ]+) \| (.+) \|$", page, re.MULTILINE)
        for code, status in zip(re.findall(r"`(\w+)`", codes), _spread(statuses, codes), strict=True)
    }

    assert listed == {code.value: refusal.status.value for code, refusal in REFUSALS.items()}


def _spread(statuses: str, codes: str) -> list[int]:
    """Give each code of a row its status: one for all, or one each."""
    numbers = [int(number) for number in statuses.split(", ")]
    return numbers if len(numbers) > 1 else numbers * codes.count("`,") + numbers
