"""What every request has around it: an id, one log line, metrics, and an answer whatever happens inside."""

import re
import time
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from intake.problems import Problem, ProblemCode, answer
from schema.db.engine import is_unavailable
from schema.domain.errors import TransientError
from schema.runtime import metrics
from schema.runtime.logs import get_logger

CLIENT_CLOSED: Final = 499
DEPENDENCY_RETRY_SECONDS: Final = 5
PROBES: Final = frozenset({"/livez", "/readyz", "/metrics"})

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

log = get_logger()


@dataclass(slots=True)
class _Answer:
    """What has gone out so far."""

    send: Send
    request_id: str
    status: int = 0

    async def __call__(self, message: Message) -> None:
        """Add the request's id to the answer's head and remember its status."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message)["X-Request-Id"] = self.request_id
        await self.send(message)


class Envelope:
    """The outermost layer; below it nothing needs to answer for what it did not expect."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap the application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(Headers(scope=scope).get("x-request-id"))
        scope.setdefault("state", {})["request_id"] = request_id
        began, outgoing = time.perf_counter(), _Answer(send, request_id)
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, outgoing)
            except ClientDisconnect:
                outgoing.status = outgoing.status or CLIENT_CLOSED
            except Exception as error:
                if outgoing.status:
                    raise
                await answer(problem_of(error), request_id)(scope, receive, outgoing)
            finally:
                _report(scope, outgoing.status or CLIENT_CLOSED, time.perf_counter() - began)


def problem_of(error: Exception) -> Problem:
    """Say what a request is answered that failed for a reason of ours; the error's text goes nowhere."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, TransientError) or is_unavailable(error):
        log.warning("dependency_failed", exception_type=type(error).__name__)
        return Problem(ProblemCode.DEPENDENCY_UNAVAILABLE, retry_after=DEPENDENCY_RETRY_SECONDS)
    log.error("request_failed", exception_type=type(error).__name__)
    return Problem(ProblemCode.INTERNAL_ERROR)


def _request_id(given: str | None) -> str:
    """Take the client's id when it is harmless, else make one."""
    return given if given and _REQUEST_ID.fullmatch(given) else uuid4().hex


def _report(scope: Scope, status: int, seconds: float) -> None:
    """Count the request and write its line; the route is the template, since a path has ids in it."""
    route = getattr(scope.get("route"), "path", "unmatched")
    metrics.REQUESTS.labels(route, scope["method"], str(status)).inc()
    metrics.REQUEST_SECONDS.labels(route).observe(seconds)
    write = log.debug if route in PROBES else log.info
    write(
        "request_answered",
        method=scope["method"],
        route=route,
        status=status,
        seconds=round(seconds, 4),
        **{name: str(value) for name, value in scope["state"].items() if name in {"tenant_id", "job_id"}},
    )
