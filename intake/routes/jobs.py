"""Submitting, looking at, and listing jobs."""

import math
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import AfterValidator, AwareDatetime

from intake.accept import Submission
from intake.dependencies import Intake, JobId, Tenant, base_url, known_job, traceparent
from intake.form import PARSERS
from intake.idempotency import checked_key
from intake.responses import AttemptList, JobList, JobView, attempt_view, etag, job_view, poll_after
from intake.routes.answers import NO_STORE, PROBLEM, is_seen, json_answer, read_token, token
from intake.uploads import FILE_FIELD, boundary_of
from intake.waiting import settled
from schema.db import job_lists, job_records
from schema.db.job_lists import JobFilter
from schema.domain.kinds import Kind
from schema.domain.options import MAX_CLIENT_TAG, MAX_SENTENCES, OcrMode, parse_client_tag
from schema.domain.states import PublicStatus

MAX_PAGE: Final = 1000
MAX_ATTEMPTS: Final = 10_000
FIRST_MOMENT: Final = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MOMENT: Final = datetime(9000, 1, 1, tzinfo=UTC)

SUBMISSION: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": [FILE_FIELD, "kind"],
                    "properties": {FILE_FIELD: {"type": "string", "format": "binary"}}
                    | {name: {"type": "string"} for name in PARSERS}
                    | {
                        "kind": {"type": "string", "enum": list(Kind)},
                        "languages": {"type": "string", "example": "eng+deu"},
                        "pages": {"type": "string", "example": "1-3,5"},
                        "strict": {"type": "boolean"},
                        "ocr": {"type": "string", "enum": list(OcrMode), "default": OcrMode.AUTO},
                        "sentences": {"type": "integer", "minimum": 1, "maximum": MAX_SENTENCES},
                        "deadline_seconds": {"type": "integer"},
                        "client_tag": {"type": "string", "maxLength": MAX_CLIENT_TAG},
                    },
                }
            }
        },
    }
}

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], responses=PROBLEM)


def within_reach(moment: datetime) -> datetime:
    """Move a time into the centuries that can be counted with; some clients write "never" as the year 1."""
    return max(FIRST_MOMENT, min(moment, LAST_MOMENT))


Moment = Annotated[AwareDatetime, AfterValidator(within_reach)]


@router.post("", status_code=HTTPStatus.ACCEPTED, response_model=JobView, openapi_extra=SUBMISSION)
async def submit(
    *,
    request: Request,
    intake: Intake,
    tenant: Tenant,
    idempotency_key: Annotated[str | None, Header(description="Makes repeating this request safe.")] = None,
) -> Response:
    """Take a document in. Once this is answered, the job survives anything that the installation survives."""
    submission = Submission(
        tenant_id=tenant,
        body=request.stream(),
        boundary=boundary_of(request.headers.get("content-type")),
        length=_length(request),
        idempotency_key=checked_key(idempotency_key),
        traceparent=traceparent(request),
    )
    accepted = await intake.desk.submit(submission)
    view = job_view(accepted.job, base_url(request, intake))
    pause = max(poll_after(accepted.job) or 1, intake.admission.poll_after())
    headers = {"Location": view.links.self, "Retry-After": str(math.ceil(pause))}
    if accepted.replayed:
        headers["Idempotent-Replayed"] = "true"
    return json_answer(view, status=HTTPStatus.ACCEPTED, headers=headers)


@router.get("/{job_id}", response_model=JobView)
async def show(
    *,
    request: Request,
    intake: Intake,
    tenant: Tenant,
    job_id: JobId,
    wait: Annotated[
        float, Query(ge=0, description="Seconds to wait for the job's end, or with If-None-Match for any change.")
    ] = 0,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Say how a job is doing; 200 as long as it is known, whatever became of it."""
    base = base_url(request, intake)
    seen = if_none_match.removeprefix("W/") if if_none_match else None
    job = await settled(intake, tenant, job_id, seconds=wait, seen=seen, base_url=base)
    body = job_view(job, base).model_dump_json().encode()
    tag, pause = etag(body), poll_after(job)
    headers = NO_STORE | {"ETag": tag} | ({} if pause is None else {"Retry-After": str(math.ceil(pause))})
    if is_seen(if_none_match, tag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(body, HTTPStatus.OK, headers, media_type="application/json")


@router.get("", response_model=JobList)
async def index(
    *,
    request: Request,
    intake: Intake,
    tenant: Tenant,
    status: PublicStatus | None = None,
    kind: Kind | None = None,
    client_tag: Annotated[
        str | None, Query(min_length=1, max_length=MAX_CLIENT_TAG), AfterValidator(parse_client_tag)
    ] = None,
    created_after: Moment | None = None,
    created_before: Moment | None = None,
    page_token: str | None = None,
    page_size: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100,
) -> Response:
    """List jobs, newest first. A page may be short and still not be the last: go on while there is a token."""
    wanted = JobFilter(status, kind, client_tag, created_after, created_before)
    before = read_token(page_token) if page_token is not None else None
    async with intake.database.transaction() as conn:
        page = await job_lists.page(conn, tenant_id=tenant, wanted=wanted, before=before, size=page_size)
    base = base_url(request, intake)
    following = token(page.next_before) if page.next_before else None
    return json_answer(JobList(jobs=[job_view(job, base) for job in page.jobs], next_page_token=following))


@router.get("/{job_id}/attempts", response_model=AttemptList)
async def attempts(intake: Intake, tenant: Tenant, job_id: JobId) -> Response:
    """List every claim ever made on a job, and what came of it."""
    job = await known_job(intake, tenant, job_id)
    async with intake.database.transaction() as conn:
        found = await job_records.attempts(conn, job_id=job.id, bound=MAX_ATTEMPTS)
    return json_answer(AttemptList(attempts=[attempt_view(attempt) for attempt in found]))


def _length(request: Request) -> int | None:
    """Return the announced size of the body; the server has refused what is no number."""
    announced = request.headers.get("content-length")
    return int(announced) if announced is not None and announced.isdecimal() else None
