"""Parameters and members that are not valid: said by their name and what was expected, never by their value."""

from collections.abc import Mapping
from typing import Any

from intake.problems import Problem, ProblemCode
from schema.domain.options import InvalidOptionError

_BOUNDS = ("le", "ge", "lt", "gt", "max_length", "min_length")


def invalid_parameter(name: str, error: Mapping[str, Any]) -> Problem:
    """Turn what pydantic says of a value into a refusal, with the bound that it is beyond."""
    context = error.get("ctx", {})
    limit = next((context[bound] for bound in _BOUNDS if bound in context), None)
    return Problem(ProblemCode.INVALID_PARAMETER, f"{name}: {_expected(error)}.", parameter=name, limit=limit)


def _expected(error: Mapping[str, Any]) -> str:
    """Return pydantic's sentence, which names no values but those that are allowed, or our own."""
    own = error.get("ctx", {}).get("error")
    if isinstance(own, InvalidOptionError):
        return f"expected {own.expected}"
    return str(error["msg"]).removeprefix("Input ").removeprefix("String ").rstrip(".").lower()
