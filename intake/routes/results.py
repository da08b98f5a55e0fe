"""The result of a job, in the form that the client asks for."""

import asyncio
import json
import math
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Header, Query, Request, Response

from intake.dependencies import Intake, JobId, Tenant, known_job
from intake.negotiation import preferred
from intake.problems import Problem, ProblemCode
from intake.responses import error_view, poll_after
from intake.routes.answers import NO_STORE, PROBLEM, is_seen
from intake.services import Services
from schema.db import job_records
from schema.db.job_records import JobRecord, ResultRecord
from schema.domain.errors import PermanentError
from schema.domain.states import JobState
from schema.wire import renderings

Content = Mapping[str, Any]
Warnings = Sequence[Mapping[str, Any]]

# Above this a result is rendered in a thread, so that one long document does not hold up every other request.
INLINE_BYTES: Final = 64 * 1024

FORMS: Final[Mapping[str, Callable[[Content, bool], str]]] = {
    "application/json": lambda content, text: json.dumps(
        renderings.as_json(content, include_text=text), ensure_ascii=False, separators=(",", ":")
    ),
    "text/plain": lambda content, _: renderings.as_text(content),
    "text/markdown": lambda content, _: renderings.as_markdown(content),
    "text/csv": lambda content, _: renderings.as_csv(content),
}

router = APIRouter(prefix="/v1/jobs", tags=["results"], responses=PROBLEM)


@router.get(
    "/{job_id}/result",
    response_class=Response,
    responses={HTTPStatus.OK.value: {"description": "The result.", "content": {form: {} for form in FORMS}}},
)
async def result(
    *,
    request: Request,
    intake: Intake,
    tenant: Tenant,
    job_id: JobId,
    include: Annotated[Literal["text"] | None, Query(description="`text` adds the text of every page.")] = None,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Return the result of a completed job, as often as asked until it expires."""
    form = preferred(request.headers.get("accept"), tuple(FORMS))
    if form is None:
        raise Problem(ProblemCode.NOT_ACCEPTABLE, f"There are {', '.join(FORMS)}.")
    job = await known_job(intake, tenant, job_id)
    found = await _found(intake, job)
    # A result never changes, so what it is made of says all about it.
    tag = f'"{found.sha256[:32]}-{form.partition("/")[2]}{"-text" if include else ""}"'
    headers = NO_STORE | {"ETag": tag, "Vary": "Accept"}
    if is_seen(if_none_match, tag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    body = await _rendered(intake, found, job.warnings, form, include_text=include is not None)
    media_type = form if form == "application/json" else f"{form}; charset=utf-8"
    return Response(body, HTTPStatus.OK, headers, media_type=media_type)


async def _found(intake: Services, job: JobRecord) -> ResultRecord:
    """Read where the result is.

    Raises:
        Problem: ``not_ready``, ``job_failed``, ``job_cancelled`` or ``expired``.
    """
    if job.state is JobState.FAILED:
        error = error_view(job.error or {}, job.stage).model_dump(mode="json", exclude_none=True)
        raise Problem(ProblemCode.JOB_FAILED, error=error)
    if job.state is JobState.CANCELLED:
        raise Problem(ProblemCode.JOB_CANCELLED)
    if job.state is not JobState.COMPLETED:
        raise Problem(ProblemCode.NOT_READY, retry_after=math.ceil(poll_after(job) or 1))
    async with intake.database.transaction() as conn:
        found = await job_records.result(conn, job_id=job.id)
    if found is None or job.expired:
        raise Problem(ProblemCode.EXPIRED)
    return found


async def _rendered(
    intake: Services, found: ResultRecord, warnings: Warnings, form: str, *, include_text: bool
) -> bytes:
    """Read the result's content and write it in the chosen form, with what all stages warned of."""
    stored: bytes | None = None
    if found.blob_key is not None:
        try:
            stored = await intake.blobs.get(found.blob_key)
        except PermanentError:
            raise Problem(ProblemCode.EXPIRED) from None

    def render() -> bytes:
        content = json.loads(stored) if stored is not None else found.content or {}
        return FORMS[form](_warned(content, warnings), include_text).encode()

    return render() if found.size_bytes <= INLINE_BYTES else await asyncio.to_thread(render)


def _warned(content: Content, warnings: Warnings) -> Content:
    """Add the job's warnings to the result's own: a page that extract could not read is missing without a word else."""
    own = [each for each in content["warnings"] if each not in warnings]
    return {**content, "warnings": [*warnings, *own]}
