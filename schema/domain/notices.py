"""Notices: what a tenant's endpoints are told of a job's end, and how long one keeps trying to tell them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final

from schema.domain.backoff import Uniform
from schema.domain.moves import Move
from schema.domain.states import JobState

# What the receiver may wish at most; the schedule's own pauses are no longer.
LONGEST_WISH: Final = timedelta(days=1)
SPREAD: Final = 0.2


class NoticeType(StrEnum):
    """The events that an endpoint can be told; part of the API."""

    COMPLETED = "job.completed"
    FAILED = "job.failed"
    CANCELLED = "job.cancelled"


class DeliveryStatus(StrEnum):
    """Where one telling is."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class DeliveryCode(StrEnum):
    """How one attempt to tell ended, when not well; part of the API."""

    HTTP_STATUS = "http_status"
    REDIRECT = "redirect"
    GONE = "gone"
    TIMEOUT = "timeout"
    CONNECTION_FAILED = "connection_failed"
    TLS_FAILED = "tls_failed"
    NAME_NOT_RESOLVED = "name_not_resolved"
    ADDRESS_REFUSED = "address_refused"
    ENDPOINT_DISABLED = "endpoint_disabled"
    SECRET_UNREADABLE = "secret_unreadable"  # noqa: S105 - a code, not a secret
    INTERNAL_ERROR = "internal_error"


@dataclass(frozen=True, slots=True)
class Notice:
    """What is told of a job's end, as far as its move knows it."""

    type: NoticeType
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one POST: the receiver's status, or the code of why there is none; its wish, when it had one."""

    status: int | None = None
    code: DeliveryCode | None = None
    retry_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows from an answer: delivered, failed for good, or another attempt after ``retry_in``."""

    status: DeliveryStatus
    code: DeliveryCode | None = None
    retry_in: timedelta | None = None


_TYPES: Final = {
    JobState.COMPLETED: NoticeType.COMPLETED,
    JobState.FAILED: NoticeType.FAILED,
    JobState.CANCELLED: NoticeType.CANCELLED,
}
# Nothing changes by itself for these, so trying again is left to the owner.
_FINAL: Final = frozenset({DeliveryCode.GONE, DeliveryCode.ENDPOINT_DISABLED})


def notice_of(move: Move) -> Notice | None:
    """Return what ``move`` gives reason to tell; ``None`` when the job goes on."""
    told = _TYPES.get(move.state)
    if told is None:
        return None
    error = {"code": move.code.value, "stage": move.stage.value} if move.error and move.code else None
    return Notice(told, {"id": str(move.job_id), "status": move.state.value, "error": error})


def code_of(status: int) -> DeliveryCode | None:
    """Say what is wrong with an answer's status; ``None`` for any 2xx, the only good ones.

    Source: Standard Webhooks 1.0.0, "Deliverability and reliability": a redirect is a failure, 410 ends it.
    """
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return None
    if status == HTTPStatus.GONE:
        return DeliveryCode.GONE
    redirected = HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST
    return DeliveryCode.REDIRECT if redirected else DeliveryCode.HTTP_STATUS


def judge(answer: Answer, *, attempt: int, schedule: Sequence[timedelta], uniform: Uniform) -> Verdict:
    """Decide what follows from ``attempt`` (from 1); ``schedule`` holds the pauses between attempts.

    A pause is spread by a fifth to either side, so that what failed together does not come back together, and
    never shorter than the receiver wished.
    """
    code = answer.code or (code_of(answer.status) if answer.status is not None else None)
    if code is None:
        return Verdict(DeliveryStatus.DELIVERED)
    if code in _FINAL or attempt > len(schedule):
        return Verdict(DeliveryStatus.FAILED, code)
    pause = schedule[attempt - 1] * uniform(1 - SPREAD, 1 + SPREAD)
    wish = min(answer.retry_after or timedelta(0), LONGEST_WISH)
    return Verdict(DeliveryStatus.PENDING, code, max(pause, wish))
