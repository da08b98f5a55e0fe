"""What routes ask of a request: who it is, which job it means, how to answer."""

import re
from typing import Annotated, Final
from uuid import UUID

from fastapi import Depends, Path, Request

from intake.problems import Problem, ProblemCode
from intake.services import Services
from schema.db import job_records
from schema.db.job_records import JobRecord

CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="docstage"'}

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


async def services(request: Request) -> Services:
    """Return this process's parts."""
    found: Services = request.app.state.services
    return found


Intake = Annotated[Services, Depends(services)]


async def tenant(request: Request, intake: Intake) -> UUID:
    """Return whose API key the request carries.

    Raises:
        Problem: ``unauthorized``.
    """
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    tenant_id = await intake.keys.tenant(key.strip()) if scheme.lower() == "bearer" else None
    if tenant_id is None:
        raise Problem(ProblemCode.UNAUTHORIZED, headers=CHALLENGE)
    request.state.tenant_id = tenant_id
    return tenant_id


Tenant = Annotated[UUID, Depends(tenant)]


async def job_id(request: Request, job_id: Annotated[str, Path(description="A job's id, as it was given.")]) -> UUID:
    """Return which job the path means; ids are opaque, so one of another form is just not there.

    Raises:
        Problem: ``not_found``.
    """
    try:
        found = UUID(job_id)
    except ValueError:
        raise Problem(ProblemCode.NOT_FOUND) from None
    request.state.job_id = found
    return found


JobId = Annotated[UUID, Depends(job_id)]


async def known_job(intake: Services, tenant_id: UUID, job: UUID) -> JobRecord:
    """Read one of the tenant's jobs.

    Raises:
        Problem: ``not_found``, also for another tenant's job; ``deleted`` or ``expired`` for a tombstone.
    """
    async with intake.database.transaction() as conn:
        found = await job_records.find(conn, job_id=job, tenant_id=tenant_id)
    return still_there(found)


def still_there(job: JobRecord | None) -> JobRecord:
    """Return the job unless there is nothing, or only a tombstone."""
    if job is None:
        raise Problem(ProblemCode.NOT_FOUND)
    if job.deleted:
        raise Problem(ProblemCode.EXPIRED if job.expired else ProblemCode.DELETED)
    return job


def base_url(request: Request, intake: Services) -> str:
    """Return what absolute links begin with."""
    return (intake.settings.public_url or str(request.base_url)).rstrip("/")


def traceparent(request: Request) -> str | None:
    """Return the caller's trace, when it has a valid one."""
    given = request.headers.get("traceparent", "")
    return given if _TRACEPARENT.fullmatch(given) else None
