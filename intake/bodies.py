"""JSON bodies: read up to a bound, and refused by the name of what is wrong in them."""

from typing import Final, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, ValidationError

from intake.parameters import invalid_parameter
from intake.problems import Problem, ProblemCode

MAX_BODY_BYTES: Final = 16 << 10


class Wish(BaseModel):
    """A shape that a client sends; a member that is not known is refused, not overlooked."""

    model_config = ConfigDict(frozen=True, extra="forbid")


W = TypeVar("W", bound=Wish)


async def read_wish(request: Request, shape: type[W]) -> W:
    """Read a body as JSON of a shape; none at all is an empty object.

    Raises:
        Problem: ``malformed_request`` or ``invalid_parameter``.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise Problem(ProblemCode.MALFORMED_REQUEST, "The body is too long.", limit=MAX_BODY_BYTES)
    try:
        return shape.model_validate_json(bytes(body) or b"{}")
    except ValidationError as error:
        raise _problem(error) from None


def _problem(error: ValidationError) -> Problem:
    """Name the first member that is wrong, never its value."""
    first = error.errors(include_input=False, include_url=False)[0]
    if not first["loc"]:
        return Problem(ProblemCode.MALFORMED_REQUEST, "The body is no JSON object of the expected shape.")
    if first["type"] == "extra_forbidden":
        return Problem(ProblemCode.INVALID_PARAMETER, "The body has a member that does not exist.")
    return invalid_parameter(str(first["loc"][0]), first)
