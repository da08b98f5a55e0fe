"""What clients are shown: the shapes of every answer, and nothing in them that is content.

No file name, storage key, operator's name or exception can get out here, because no field is there for it.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from schema.db.job_records import AttemptRecord, EventRecord, JobRecord
from schema.domain.errors import MEANINGS, Category, ErrorCode
from schema.domain.kinds import Kind
from schema.domain.options import OcrMode
from schema.domain.states import PublicStatus, RunStatus, Stage, public_status

LONGEST_POLL_SECONDS: Final = 30.0
POLLS_PER_AGE: Final = 5


class View(BaseModel):
    """A shape that is part of the API."""

    model_config = ConfigDict(frozen=True)


class Progress(View):
    """Pages done of those that were asked for; ``pages_total`` is null until the document has been looked at."""

    pages_done: int
    pages_total: int | None


class WarningView(View):
    """Something to know about a job that goes on all the same."""

    code: str
    pages: list[int] = []


class ErrorView(View):
    """Why a job failed: a stable code, whose turn it is, and a sentence for people."""

    code: str
    category: Category
    detail: str
    stage: Stage
    retryable: bool
    limit_name: str | None = None
    limit: int | None = None
    actual: int | None = None
    pages: list[int] | None = None


class Links(View):
    """Where to go from here."""

    self: str
    result: str
    events: str
    attempts: str
    cancel: str


class JobView(View):
    """A job."""

    id: UUID
    kind: Kind
    status: PublicStatus
    stage: Stage
    series: int
    attempt: int
    next_attempt_at: datetime | None
    progress: Progress
    warnings: list[WarningView]
    error: ErrorView | None
    client_tag: str | None
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    deadline_at: datetime
    expires_at: datetime | None
    links: Links


class JobList(View):
    """A page of jobs, newest first; it may be short and still have a ``next_page_token``."""

    jobs: list[JobView]
    next_page_token: str | None


class AttemptView(View):
    """One claim and what came of it."""

    stage: Stage
    series: int
    attempt: int
    began_at: datetime
    ended_at: datetime | None
    outcome: str | None
    code: str | None


class AttemptList(View):
    """Every claim ever made, oldest first."""

    attempts: list[AttemptView]


class EventView(View):
    """One line of a job's history."""

    sequence: int
    at: datetime
    type: str
    stage: Stage | None = None
    series: int | None = None
    attempt: int | None = None
    code: str | None = None
    retry_in_seconds: float | None = None


class EventList(View):
    """A job's history from the event that was asked for."""

    events: list[EventView]


class LimitsView(View):
    """What this installation takes, keeps and allows."""

    max_upload_bytes: int
    media_types: list[str]
    kinds: list[Kind]
    languages: list[str] | None
    ocr: list[OcrMode]
    document: dict[str, int]
    parser: dict[str, int | float]
    default_deadline_seconds: int
    max_deadline_seconds: int
    retention_seconds: int
    idempotency_key_seconds: int
    max_wait_seconds: int
    max_unfinished_jobs: int
    unfinished_jobs: int


# Events hold more than their owner is meant to see: who redrove, and why.
SHOWN_OF_EVENTS: Final = frozenset({"series", "attempt", "code", "retry_in_seconds"})


def job_view(job: JobRecord, base_url: str) -> JobView:
    """Show a job."""
    here = f"{base_url}/v1/jobs/{job.id}"
    retrying = job.run_status is RunStatus.RETRYING
    return JobView(
        id=job.id,
        kind=job.kind,
        status=public_status(job.state, job.run_status),
        stage=job.stage,
        series=job.series,
        attempt=job.attempt,
        next_attempt_at=job.next_attempt_at if retrying else None,
        progress=Progress(pages_done=job.pages_done, pages_total=job.pages_total),
        warnings=[WarningView(**warning) for warning in job.warnings],
        error=error_view(job.error, job.stage) if job.error is not None else None,
        client_tag=job.client_tag,
        created_at=job.created_at,
        updated_at=job.updated_at,
        finished_at=job.finished_at,
        deadline_at=job.deadline_at,
        # How long a job is kept is counted from its end.
        expires_at=job.expires_at if job.finished_at else None,
        links=Links(
            self=here,
            result=f"{here}/result",
            events=f"{here}/events",
            attempts=f"{here}/attempts",
            cancel=f"{here}/cancel",
        ),
    )


def error_view(error: Mapping[str, Any], stage: Stage) -> ErrorView:
    """Show a stored error; a code of another release is shown as an internal one."""
    known = error.get("code") in set(ErrorCode)
    code = ErrorCode(error["code"]) if known else ErrorCode.INTERNAL_ERROR
    meaning = MEANINGS[code]
    return ErrorView(
        code=code.value,
        category=meaning.category,
        detail=meaning.sentence,
        stage=Stage(error.get("stage", stage)),
        retryable=meaning.retryable,
        limit_name=error.get("limit_name"),
        limit=error.get("limit"),
        actual=error.get("actual"),
        pages=error.get("pages"),
    )


def attempt_view(attempt: AttemptRecord) -> AttemptView:
    """Show a claim."""
    return AttemptView(
        stage=Stage(attempt.stage),
        series=attempt.series,
        attempt=attempt.attempt,
        began_at=attempt.began_at,
        ended_at=attempt.ended_at,
        outcome=attempt.outcome,
        code=attempt.code,
    )


def event_view(event: EventRecord) -> EventView:
    """Show an event, without what is only the operator's."""
    shown = {name: value for name, value in event.data.items() if name in SHOWN_OF_EVENTS}
    stage = Stage(event.stage) if event.stage else None
    return EventView(sequence=event.sequence, at=event.at, type=event.type, stage=stage, **shown)


def poll_after(job: JobRecord) -> float | None:
    """Return in how many seconds an unfinished job is worth another look; ``None`` when it is finished.

    The pause grows with the job's age, so that however long it takes, polling costs a handful of requests.
    """
    if job.finished_at is not None:
        return None
    if job.run_status is RunStatus.RETRYING and job.wait_seconds is not None:
        return max(1.0, min(LONGEST_POLL_SECONDS, job.wait_seconds))
    return max(1.0, min(LONGEST_POLL_SECONDS, job.age_seconds / POLLS_PER_AGE))


def etag(body: bytes) -> str:
    """Return a validator that changes exactly when the body does."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'
