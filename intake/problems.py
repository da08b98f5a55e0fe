"""Refusals: every error answer is one of these, as RFC 9457 problem details with a stable code."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final

from starlette.responses import JSONResponse

from schema.domain.kinds import ACCEPTED

MEDIA_TYPE: Final = "application/problem+json"


class ProblemCode(StrEnum):
    """Stable codes of refused requests; they are part of the API and never change meaning."""

    MALFORMED_REQUEST = "malformed_request"
    UNKNOWN_FIELD = "unknown_field"
    INVALID_IDEMPOTENCY_KEY = "invalid_idempotency_key"
    INVALID_PAGE_TOKEN = "invalid_page_token"  # noqa: S105 - a code, not a token
    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    NOT_ACCEPTABLE = "not_acceptable"
    UPLOAD_STALLED = "upload_stalled"
    NOT_READY = "not_ready"
    JOB_FAILED = "job_failed"
    JOB_CANCELLED = "job_cancelled"
    ALREADY_FINISHED = "already_finished"
    NOT_RETRYABLE = "not_retryable"
    IDEMPOTENCY_IN_FLIGHT = "idempotency_in_flight"
    DELETED = "deleted"
    EXPIRED = "expired"
    DOCUMENT_TOO_LARGE = "document_too_large"
    NOT_MULTIPART = "not_multipart"
    UNSUPPORTED_TYPE = "unsupported_type"
    INVALID_PARAMETER = "invalid_parameter"
    EMPTY_DOCUMENT = "empty_document"
    LANGUAGE_UNAVAILABLE = "language_unavailable"
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused"
    TOO_MANY_WEBHOOKS = "too_many_webhooks"
    WEBHOOK_DISABLED = "webhook_disabled"
    WEBHOOKS_UNAVAILABLE = "webhooks_unavailable"
    TOO_MANY_JOBS = "too_many_jobs"
    OVERLOADED = "overloaded"
    DEPENDENCY_UNAVAILABLE = "dependency_unavailable"
    INTERNAL_ERROR = "internal_error"


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a code means in HTTP: its status and its title, one plain sentence."""

    status: HTTPStatus
    title: str


REFUSALS: Final[Mapping[ProblemCode, Refusal]] = {
    ProblemCode.MALFORMED_REQUEST: Refusal(HTTPStatus.BAD_REQUEST, "The request cannot be read."),
    ProblemCode.UNKNOWN_FIELD: Refusal(HTTPStatus.BAD_REQUEST, "The form has a field that does not exist."),
    ProblemCode.INVALID_IDEMPOTENCY_KEY: Refusal(
        HTTPStatus.BAD_REQUEST, "An Idempotency-Key is 1 to 255 printable ASCII characters."
    ),
    ProblemCode.INVALID_PAGE_TOKEN: Refusal(HTTPStatus.BAD_REQUEST, "The page token was not made by this API."),
    ProblemCode.UNAUTHORIZED: Refusal(HTTPStatus.UNAUTHORIZED, "A valid API key is needed."),
    ProblemCode.NOT_FOUND: Refusal(HTTPStatus.NOT_FOUND, "There is no such thing."),
    ProblemCode.METHOD_NOT_ALLOWED: Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "This path does not take that method."),
    ProblemCode.NOT_ACCEPTABLE: Refusal(HTTPStatus.NOT_ACCEPTABLE, "The answer has no form that is accepted."),
    ProblemCode.UPLOAD_STALLED: Refusal(HTTPStatus.REQUEST_TIMEOUT, "The upload brought no more bytes."),
    ProblemCode.NOT_READY: Refusal(HTTPStatus.CONFLICT, "The job is not finished."),
    ProblemCode.JOB_FAILED: Refusal(HTTPStatus.CONFLICT, "The job failed and has no result."),
    ProblemCode.JOB_CANCELLED: Refusal(HTTPStatus.CONFLICT, "The job was cancelled and has no result."),
    ProblemCode.ALREADY_FINISHED: Refusal(HTTPStatus.CONFLICT, "The job had finished before."),
    ProblemCode.NOT_RETRYABLE: Refusal(
        HTTPStatus.CONFLICT, "Only a failed job whose error is retryable can be retried."
    ),
    ProblemCode.IDEMPOTENCY_IN_FLIGHT: Refusal(
        HTTPStatus.CONFLICT, "Another request with this Idempotency-Key is being worked on."
    ),
    ProblemCode.TOO_MANY_WEBHOOKS: Refusal(HTTPStatus.CONFLICT, "You have as many webhook endpoints as you may."),
    ProblemCode.WEBHOOK_DISABLED: Refusal(HTTPStatus.CONFLICT, "The webhook endpoint is disabled."),
    ProblemCode.DELETED: Refusal(HTTPStatus.GONE, "The job was deleted."),
    ProblemCode.EXPIRED: Refusal(HTTPStatus.GONE, "The job is older than jobs are kept."),
    ProblemCode.DOCUMENT_TOO_LARGE: Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The file is too large."),
    ProblemCode.NOT_MULTIPART: Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "A job is submitted as multipart/form-data."),
    ProblemCode.UNSUPPORTED_TYPE: Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"The file is not {ACCEPTED}."),
    ProblemCode.INVALID_PARAMETER: Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "A parameter does not have a valid value."),
    ProblemCode.EMPTY_DOCUMENT: Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "The file is empty."),
    ProblemCode.LANGUAGE_UNAVAILABLE: Refusal(
        HTTPStatus.UNPROCESSABLE_ENTITY, "A language is not installed for text recognition."
    ),
    ProblemCode.IDEMPOTENCY_KEY_REUSED: Refusal(
        HTTPStatus.UNPROCESSABLE_ENTITY, "The Idempotency-Key belongs to a request with another file or other options."
    ),
    ProblemCode.TOO_MANY_JOBS: Refusal(HTTPStatus.TOO_MANY_REQUESTS, "You have as many unfinished jobs as you may."),
    ProblemCode.OVERLOADED: Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "More is waiting than can be taken on."),
    ProblemCode.DEPENDENCY_UNAVAILABLE: Refusal(
        HTTPStatus.SERVICE_UNAVAILABLE, "Something that the service depends on does not answer."
    ),
    ProblemCode.INTERNAL_ERROR: Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "Something unexpected went wrong."),
    ProblemCode.WEBHOOKS_UNAVAILABLE: Refusal(HTTPStatus.NOT_IMPLEMENTED, "This installation sends no webhooks."),
}


class Problem(Exception):  # noqa: N818 - RFC 9457's word
    """A refusal on its way to the client.

    Args:
        code: the stable code.
        detail: what is special about this case, from our own words and numbers alone.
        retry_after: seconds after which trying again makes sense; rounded up.
        headers: further headers of the answer.
        members: further members of the problem, such as ``limit`` and ``actual``.
    """

    def __init__(
        self,
        code: ProblemCode,
        detail: str | None = None,
        *,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
        **members: Any,  # noqa: ANN401 - JSON
    ) -> None:
        """Keep what the answer will say."""
        super().__init__(code.value)
        self.code = code
        self.detail = detail
        self.headers = dict(headers or {})
        if retry_after is not None:
            self.headers["Retry-After"] = str(max(1, math.ceil(retry_after)))
        self.members = members

    @property
    def status(self) -> HTTPStatus:
        """The answer's status."""
        return REFUSALS[self.code].status


def answer(problem: Problem, request_id: str) -> JSONResponse:
    """Write a problem as an answer."""
    refusal = REFUSALS[problem.code]
    body = {
        "type": f"/docs#{problem.code}",
        "title": refusal.title,
        "status": refusal.status.value,
        "code": problem.code.value,
        "request_id": request_id,
    }
    if problem.detail is not None:
        body["detail"] = problem.detail
    extra = {name: value for name, value in problem.members.items() if value is not None}
    return JSONResponse(body | extra, refusal.status.value, problem.headers, media_type=MEDIA_TYPE)
