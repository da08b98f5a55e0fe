"""The application: routes, refusals, and what is around them."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse

from intake import docs_page
from intake.envelope import Envelope
from intake.parameters import invalid_parameter
from intake.problems import Problem, ProblemCode, answer
from intake.routes import actions, events, health, jobs, limits, results, webhooks
from intake.services import Services

_BY_STATUS: Final[Mapping[int, ProblemCode]] = {
    HTTPStatus.NOT_FOUND: ProblemCode.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED: ProblemCode.METHOD_NOT_ALLOWED,
}


def create_app(services: Services) -> FastAPI:
    """Build the application around running services."""
    app = FastAPI(
        title="Docstage",
        summary="Documents in, job ids out; and what became of them.",
        version="1",
        docs_url=None,
        redoc_url=None,
        # FastAPI's own telemetry would put the texts of exceptions into traces.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.services = services
    for part in (jobs, actions, results, events, webhooks, limits, health):
        app.include_router(part.router)
    description = docs_page.page(app.openapi())

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(description, headers=docs_page.HEADERS)

    app.add_middleware(Envelope)
    app.add_exception_handler(Problem, _refuse)
    app.add_exception_handler(RequestValidationError, _refuse_parameter)
    app.add_exception_handler(HTTPException, _refuse_route)
    return app


async def _refuse(request: Request, error: Exception) -> Response:
    """Answer a refusal."""
    if not isinstance(error, Problem):
        raise error
    return answer(error, request.state.request_id)


async def _refuse_parameter(request: Request, error: Exception) -> Response:
    """Answer a parameter that is not valid, by its name and never by its value."""
    if not isinstance(error, RequestValidationError):
        raise error
    first = error.errors()[0]
    return answer(invalid_parameter(str(first["loc"][-1]), first), request.state.request_id)


async def _refuse_route(request: Request, error: Exception) -> Response:
    """Answer a path or method that does not exist."""
    if not isinstance(error, HTTPException):
        raise error
    code = _BY_STATUS.get(error.status_code, ProblemCode.MALFORMED_REQUEST)
    return answer(Problem(code, headers=error.headers), request.state.request_id)
