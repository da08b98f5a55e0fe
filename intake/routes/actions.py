"""Cancelling, retrying and deleting a job."""

import math
from http import HTTPStatus

from fastapi import APIRouter, Request, Response

from intake import commands
from intake.dependencies import Intake, JobId, Tenant, base_url
from intake.responses import JobView, job_view, poll_after
from intake.routes.answers import PROBLEM, json_answer

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], responses=PROBLEM)


@router.post("/{job_id}/cancel", response_model=JobView)
async def cancel(request: Request, intake: Intake, tenant: Tenant, job_id: JobId) -> Response:
    """Stop a job. Once this is answered nothing can complete it any more."""
    job = await commands.cancel(intake, tenant, job_id)
    return json_answer(job_view(job, base_url(request, intake)))


@router.post("/{job_id}/retry", status_code=HTTPStatus.ACCEPTED, response_model=JobView)
async def retry(request: Request, intake: Intake, tenant: Tenant, job_id: JobId) -> Response:
    """Try a failed job again, from the stage that failed and with the same id."""
    job = await commands.retry(intake, tenant, job_id)
    view = job_view(job, base_url(request, intake))
    headers = {"Location": view.links.self, "Retry-After": str(math.ceil(poll_after(job) or 1))}
    return json_answer(view, status=HTTPStatus.ACCEPTED, headers=headers)


@router.delete("/{job_id}", status_code=HTTPStatus.NO_CONTENT)
async def delete(intake: Intake, tenant: Tenant, job_id: JobId) -> Response:
    """Delete a job with its document, its text and its result; only the fact that it existed stays."""
    await commands.delete(intake, tenant, job_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)
