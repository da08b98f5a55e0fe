"""Turns what a child said, or how it died, into the parent's own errors."""

import math
import re
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from schema.domain.errors import ErrorCode, PermanentError, StageError, TransientError
from schema.domain.limits import LimitName
from stages.sandbox.process import Death, Excess

_TYPE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_JSON_OBJECT: Final = TypeAdapter(dict[str, Any])
# What can stand for NUL, or for a number that is not finite; only JSON with one of these is searched for them.
_SUSPECT: Final = re.compile(rb"\\u0000|NaN|Infinity|[eE]\+?\d{3}")


class ProtocolViolationError(Exception):
    """The child sent something that is not of the protocol; it may no longer be its own master."""


class ChildExceptionError(Exception):
    """An exception that the child did not own; the subclass raised bears its type's name and nothing else."""


class _Failure(BaseModel):
    """A ``FAILURE`` frame: an owned error by its code, or a foreign exception by its type's name."""

    model_config = ConfigDict(extra="forbid", strict=True)

    code: str | None = None
    permanent: bool = False
    limit: int | None = None
    actual: int | None = None
    pages: list[int] = []
    limit_name: LimitName | None = None
    type: str = "Exception"


def decode(payload: bytes) -> dict[str, Any]:
    """Read a frame's JSON object.

    Raises:
        ProtocolViolationError: when it is none, or has text or numbers that PostgreSQL could not store.
    """
    try:
        value = _JSON_OBJECT.validate_json(payload)
    except ValidationError:
        raise ProtocolViolationError from None
    if _SUSPECT.search(payload) and not _storable(value):
        raise ProtocolViolationError
    return value


def failure(payload: bytes) -> Exception:
    """Return the error that a ``FAILURE`` frame stands for.

    Raises:
        ProtocolViolationError: when it stands for none.
    """
    try:
        told = _Failure.model_validate_json(payload)
        if told.code is None:
            return _foreign(told.type)
        code = ErrorCode(told.code)
    except (ValidationError, ValueError):
        raise ProtocolViolationError from None
    if not told.permanent:
        return TransientError(code)
    return PermanentError(
        code, limit=told.limit, actual=told.actual, pages=tuple(told.pages), limit_name=told.limit_name
    )


def verdict(death: Death, *, excess: Excess | None, memory_bytes: int) -> tuple[str, StageError]:
    """Say why a child died that did not end by its own answer, as a reason to count and an error to raise."""
    if excess is not None:
        reason = "memory" if excess.code is ErrorCode.MEMORY_LIMIT else "scratch"
        return reason, PermanentError(
            excess.code, limit=excess.limit, actual=excess.actual, limit_name=excess.limit_name
        )
    if death.out_of_memory(memory_bytes):
        return "memory", out_of_memory(memory_bytes, death.peak_rss_bytes)
    if death.out_of_cpu:
        return "timeout", TransientError(ErrorCode.PARSER_TIMEOUT)
    return "crash", TransientError(ErrorCode.PARSER_CRASHED)


def out_of_memory(limit: int, actual: int) -> PermanentError:
    """Return the error of a child that asked for more than it may have when it had ``actual`` bytes."""
    return PermanentError(ErrorCode.MEMORY_LIMIT, limit=limit, actual=actual or None, limit_name=LimitName.MEMORY_BYTES)


def _foreign(name: str) -> ChildExceptionError:
    """Return an exception whose type bears ``name``, as far as that can be a type's name."""
    kind = type(name if _TYPE_NAME.fullmatch(name) else "Exception", (ChildExceptionError,), {})
    error: ChildExceptionError = kind()
    return error


def _storable(value: object) -> bool:
    """Look at every string and number of a JSON value."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str() as text if "\0" in text:
                return False
            case float() as number if not math.isfinite(number):
                return False
            case dict() as items:
                waiting.extend(items.keys())
                waiting.extend(items.values())
            case list() as items:
                waiting.extend(items)
    return True
