"""A job's history, as a list or as it happens (server-sent events)."""

import re
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Header, Request, Response
from starlette.responses import StreamingResponse

from intake.dependencies import Intake, JobId, Tenant, known_job
from intake.negotiation import preferred
from intake.problems import Problem, ProblemCode
from intake.responses import EventList, Progress, event_view
from intake.routes.answers import PROBLEM, json_answer
from intake.services import Services
from schema.db import job_records
from schema.db.job_records import EventRecord, JobRecord, Mark

STREAM: Final = "text/event-stream"
LIST: Final = "application/json"
BATCH: Final = 500
HEARTBEAT_SECONDS: Final = 15.0
RECONNECT_MILLISECONDS: Final = 2000
# As many digits as PostgreSQL's largest number has at least: more would be refused, by Python or by it.
_SEQUENCE: Final = re.compile(r"[0-9]{1,18}")
HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

router = APIRouter(prefix="/v1/jobs", tags=["events"], responses=PROBLEM)


@router.get(
    "/{job_id}/events",
    response_model=EventList,
    responses={
        HTTPStatus.OK.value: {"description": "Events from the one asked for.", "content": {STREAM: {}}},
        HTTPStatus.NO_CONTENT.value: {"description": "Nothing will follow: do not connect again."},
    },
)
async def events(
    *,
    request: Request,
    intake: Intake,
    tenant: Tenant,
    job_id: JobId,
    last_event_id: Annotated[str | None, Header(description="The last event seen; what follows it is sent.")] = None,
) -> Response:
    """Tell what has happened to a job and, as a stream, what happens; it ends after the final event.

    ``progress`` events have no id: they are not history and are not sent again.
    """
    form = preferred(request.headers.get("accept"), (STREAM, LIST))
    if form is None:
        raise Problem(ProblemCode.NOT_ACCEPTABLE, f"There are {STREAM} and {LIST}.")
    after = _sequence(last_event_id)
    job = await known_job(intake, tenant, job_id)
    mark, first = await _look(intake, job, after)
    if form == LIST:
        return json_answer(EventList(events=[event_view(event) for event in first]))
    if mark.finished and not first:
        return Response(status_code=HTTPStatus.NO_CONTENT)
    return StreamingResponse(_stream(intake, job, after), headers=HEADERS, media_type=STREAM)


async def _look(intake: Services, job: JobRecord, after: int) -> tuple[Mark, list[EventRecord]]:
    """Read what a job is like, then what it has been through: a finished job's events are then all there."""
    async with intake.database.transaction() as conn:
        mark = (await job_records.marks(conn, [job.id]))[job.id]
        return mark, await job_records.events(conn, job_id=job.id, after=after, bound=BATCH)


async def _stream(intake: Services, job: JobRecord, after: int) -> AsyncIterator[bytes]:
    """Yield what follows ``after`` until the job is finished, or this process is."""
    yield f"retry: {RECONNECT_MILLISECONDS}\n\n".encode()
    pages: Progress | None = None
    with intake.watcher.watch(job.id) as watch:
        while True:
            mark, found = await _look(intake, job, after)
            for event in found:
                yield _event(event)
                after = event.sequence
            now = Progress(pages_done=mark.pages_done, pages_total=mark.pages_total)
            if now != pages and now.pages_total is not None:
                pages = now
                yield f"event: progress\ndata: {now.model_dump_json()}\n\n".encode()
            if len(found) == BATCH:
                continue
            if mark.finished or intake.watcher.stopping:
                return
            if not await watch.changed(HEARTBEAT_SECONDS):
                yield b": still here\n\n"


def _event(event: EventRecord) -> bytes:
    """Write one event in the stream's own form."""
    data = event_view(event).model_dump_json(exclude_none=True)
    return f"id: {event.sequence}\nevent: {event.type}\ndata: {data}\n\n".encode()


def _sequence(last_event_id: str | None) -> int:
    """Read the header; what is no id of ours begins from the start."""
    if last_event_id is None or not _SEQUENCE.fullmatch(last_event_id):
        return 0
    return int(last_event_id)
