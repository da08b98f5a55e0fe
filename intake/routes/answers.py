"""How it is answered: one body, with its validator and the place of the next page."""

import base64
from http import HTTPStatus
from typing import Any, Final
from uuid import UUID

from fastapi import Response
from pydantic import BaseModel

from intake.problems import MEDIA_TYPE, Problem, ProblemCode

NO_STORE: Final = {"Cache-Control": "private, no-cache"}
PROBLEM: Final[dict[int | str, dict[str, Any]]] = {
    "default": {
        "description": "A problem (RFC 9457) with a stable `code`.",
        "content": {
            MEDIA_TYPE: {
                "schema": {
                    "type": "object",
                    "required": ["type", "title", "status", "code", "request_id"],
                    "properties": {
                        "type": {"type": "string"},
                        "title": {"type": "string"},
                        "status": {"type": "integer"},
                        "detail": {"type": "string"},
                        "code": {"type": "string"},
                        "request_id": {"type": "string"},
                        "limit": {"type": "integer"},
                        "actual": {"type": "integer"},
                    },
                }
            }
        },
    }
}


def json_answer(view: BaseModel, *, status: int = HTTPStatus.OK, headers: dict[str, str] | None = None) -> Response:
    """Write a view as the answer."""
    body = view.model_dump_json().encode()
    return Response(body, status, NO_STORE | (headers or {}), media_type="application/json")


def is_seen(if_none_match: str | None, tag: str) -> bool:
    """Say whether the client has what ``tag`` stands for; weak validators count, as they may for a GET."""
    if if_none_match is None:
        return False
    given = {part.strip().removeprefix("W/") for part in if_none_match.split(",")}
    return tag in given or "*" in given


def token(before: UUID) -> str:
    """Write where the next page begins."""
    return base64.urlsafe_b64encode(before.bytes).rstrip(b"=").decode()


def read_token(given: str) -> UUID:
    """Read where a page begins.

    Raises:
        Problem: ``invalid_page_token``.
    """
    try:
        return UUID(bytes=base64.b64decode(given + "==", altchars=b"-_", validate=True))
    except ValueError:
        raise Problem(ProblemCode.INVALID_PAGE_TOKEN) from None
