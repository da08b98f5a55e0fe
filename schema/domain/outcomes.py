"""What a handler's run came to: the one owned type that crosses from stages to the database."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from schema.domain.errors import ErrorCode, PermanentError, TransientError
from schema.domain.limits import LimitName
from schema.domain.states import Lane


@dataclass(frozen=True, slots=True)
class Warning_:  # noqa: N801 - ``Warning`` is a builtin
    """Something the client should know although the job goes on: a stable code and the pages concerned."""

    code: str
    pages: tuple[int, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return ``{"code": …, "pages": […]}``."""
        return {"code": self.code, "pages": list(self.pages)}


@dataclass(frozen=True, slots=True)
class Completed:
    """The stage's work is done.

    Shape: ``output`` is JSON; ``media_type`` and ``pages_total`` are told by validate; ``lane`` is where the
    following stage should be done, when there is a choice.
    """

    output: Mapping[str, Any]
    warnings: tuple[Warning_, ...] = ()
    lane: Lane | None = None
    media_type: str | None = None
    pages_total: int | None = None


@dataclass(frozen=True, slots=True)
class Transient:
    """Circumstances stood in the way; worth another attempt."""

    code: ErrorCode
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Permanent:
    """The document stands in the way; no other attempt helps."""

    code: ErrorCode
    limit: int | None = None
    actual: int | None = None
    pages: tuple[int, ...] = field(default=())
    limit_name: LimitName | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """An exception that nobody classified; only its type's name is kept."""

    exception_type: str
    code: ErrorCode = ErrorCode.INTERNAL_ERROR


Failure = Transient | Permanent | Unknown
Outcome = Completed | Failure


def classify(error: BaseException) -> Failure:
    """Turn what a handler raised into the owned type; whatever is not owned is ``Unknown``."""
    if isinstance(error, PermanentError):
        return Permanent(
            error.code, limit=error.limit, actual=error.actual, pages=error.pages, limit_name=error.limit_name
        )
    if isinstance(error, TransientError):
        return Transient(error.code, retry_after_seconds=error.retry_after_seconds)
    return Unknown(type(error).__name__)
