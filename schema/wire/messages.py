"""Messages: ids and routing, nothing else. What they say is checked against the database on receipt."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from schema.domain.errors import ErrorCode
from schema.domain.states import Stage

STAGE_TYPE: Final = "docstage.stage.v1"
LETTER_TYPE: Final = "docstage.dead_letter.v1"
NOTICE_TYPE: Final = "docstage.notice.v1"
VERSION: Final = 1
MAX_BODY_BYTES: Final = 4096

HEADER_EVENT_ID: Final = "docstage-event-id"
HEADER_DEFERRALS: Final = "docstage-deferrals"
HEADER_TRACEPARENT: Final = "traceparent"


class UnreadableMessageError(Exception):
    """A body that is no message of this release; ``job_id`` where it could still be told."""

    def __init__(self, code: ErrorCode, job_id: UUID | None = None) -> None:
        """Keep the code and the job, never the body."""
        super().__init__(code.value)
        self.code = code
        self.job_id = job_id


@dataclass(frozen=True, slots=True)
class StageMessage:
    """There may be work on a stage of a job, not before ``not_before`` (aware UTC)."""

    job_id: UUID
    stage: Stage
    series: int
    attempt: int
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class NoticeMessage:
    """An endpoint may have to be told of an event: attempt ``attempt`` of ``series``."""

    endpoint_id: UUID
    event_id: UUID
    series: int
    attempt: int


def _compact(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def rfc3339(moment: datetime) -> str:
    """Write an aware time as RFC 3339 in UTC, with microseconds only where there are any."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def encode(message: StageMessage) -> bytes:
    """Write a stage message as compact JSON.

    Shape: ``{"v":1,"job_id":…,"stage":…,"series":…,"attempt":…,"not_before":…}``, the last one only when set.
    """
    content: dict[str, Any] = {
        "v": VERSION,
        "job_id": str(message.job_id),
        "stage": message.stage.value,
        "series": message.series,
        "attempt": message.attempt,
    }
    if message.not_before is not None:
        content["not_before"] = rfc3339(message.not_before)
    return _compact(content)


def encode_letter(*, letter_id: UUID, job_id: UUID | None, stage: str | None, series: int, code: str) -> bytes:
    """Write the message that stands in the dead-letter queue for one dead letter: ids and the code."""
    return _compact(
        {
            "v": VERSION,
            "dead_letter_id": str(letter_id),
            "job_id": str(job_id) if job_id else None,
            "stage": stage,
            "series": series,
            "code": code,
        }
    )


def decode_letter(body: bytes) -> UUID | None:
    """Read which dead letter a message stands for; ``None`` when it is no such message."""
    try:
        return _uuid(_object(body).get("dead_letter_id"))
    except UnreadableMessageError:
        return None


def encode_notice(message: NoticeMessage) -> bytes:
    """Write a notice's message as compact JSON.

    Shape: ``{"v":1,"endpoint_id":…,"event_id":…,"series":…,"attempt":…}``.
    """
    return _compact(
        {
            "v": VERSION,
            "endpoint_id": str(message.endpoint_id),
            "event_id": str(message.event_id),
            "series": message.series,
            "attempt": message.attempt,
        }
    )


def decode_notice(body: bytes) -> NoticeMessage:
    """Read a notice's message; unknown extra keys are allowed.

    Raises:
        UnreadableMessageError: ``unreadable_message`` or ``unknown_message_version``.
    """
    content = _object(body)
    if content["v"] != VERSION:
        raise UnreadableMessageError(ErrorCode.UNKNOWN_MESSAGE_VERSION)
    try:
        return NoticeMessage(
            endpoint_id=UUID(content["endpoint_id"]),
            event_id=UUID(content["event_id"]),
            series=_count(content["series"]),
            attempt=_count(content["attempt"]),
        )
    except (KeyError, ValueError, TypeError, AttributeError):
        raise UnreadableMessageError(ErrorCode.UNREADABLE_MESSAGE) from None


def decode(body: bytes) -> StageMessage:
    """Read a stage message; unknown extra keys are allowed, so that a newer release may add some.

    Raises:
        UnreadableMessageError: ``unreadable_message`` or ``unknown_message_version``.
    """
    content = _object(body)
    job_id = _uuid(content.get("job_id"))
    if "v" in content and content["v"] != VERSION:
        raise UnreadableMessageError(ErrorCode.UNKNOWN_MESSAGE_VERSION, job_id)
    try:
        return StageMessage(
            job_id=UUID(content["job_id"]),
            stage=Stage(content["stage"]),
            series=_count(content["series"]),
            attempt=_count(content["attempt"]),
            not_before=_moment(content.get("not_before")),
        )
    except (KeyError, ValueError, TypeError, AttributeError):
        raise UnreadableMessageError(ErrorCode.UNREADABLE_MESSAGE, job_id) from None


def _object(body: bytes) -> dict[str, Any]:
    """Read a bounded JSON object."""
    if len(body) > MAX_BODY_BYTES:
        raise UnreadableMessageError(ErrorCode.UNREADABLE_MESSAGE)
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise UnreadableMessageError(ErrorCode.UNREADABLE_MESSAGE) from None
    if not isinstance(content, dict) or "v" not in content:
        raise UnreadableMessageError(ErrorCode.UNREADABLE_MESSAGE)
    return content


def _uuid(value: object) -> UUID | None:
    try:
        return UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _count(value: object) -> int:
    """Read a count from 1; JSON's ``true`` and ``1.0`` are none."""
    if type(value) is not int or not 1 <= value < 1 << 31:
        raise ValueError
    return value


def _moment(value: str | None) -> datetime | None:
    if value is None:
        return None
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError
    return moment
