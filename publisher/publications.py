"""What an outbox row looks like on the wire, and where it goes."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from schema.db.outbox import OutboxRow
from schema.domain.ids import new_id
from schema.domain.states import Stage
from schema.wire.messages import (
    HEADER_DEFERRALS,
    HEADER_EVENT_ID,
    HEADER_TRACEPARENT,
    LETTER_TYPE,
    NOTICE_TYPE,
    STAGE_TYPE,
    NoticeMessage,
    StageMessage,
    encode,
    encode_letter,
    encode_notice,
)
from schema.wire.queues import DLX, NOTICES_KEY, WORK, Route, route


class NoRouteError(Exception):
    """A row of a kind that this release does not publish."""


@dataclass(frozen=True, slots=True)
class Publication:
    """One message, ready to be sent; ``message_id`` is its own, the event's id is among the headers."""

    route: Route
    message_type: str
    body: bytes
    headers: dict[str, Any]
    message_id: str


def publication(row: OutboxRow) -> Publication:
    """Write a row as a message.

    Raises:
        NoRouteError: it is of an unknown kind.
    """
    if row.kind == "stage" and row.lane is not None:
        return _publication(row, route(row.lane, row.delay), STAGE_TYPE, _stage_body(row))
    if row.kind == "dead_letter":
        return _publication(row, Route(DLX, ""), LETTER_TYPE, _letter_body(row))
    if row.kind == "notice":
        return _publication(row, Route(WORK, NOTICES_KEY), NOTICE_TYPE, _notice_body(row))
    raise NoRouteError(row.kind)


def _publication(row: OutboxRow, where: Route, message_type: str, body: bytes) -> Publication:
    headers: dict[str, Any] = {HEADER_EVENT_ID: str(row.event_id), HEADER_DEFERRALS: row.deferrals}
    if row.traceparent is not None:
        headers[HEADER_TRACEPARENT] = row.traceparent
    return Publication(where, message_type, body, headers, str(new_id()))


def _stage_body(row: OutboxRow) -> bytes:
    payload = row.payload
    return encode(
        StageMessage(
            job_id=UUID(payload["job_id"]),
            stage=Stage(payload["stage"]),
            series=payload["series"],
            attempt=payload["attempt"],
            not_before=row.not_before,
        )
    )


def _letter_body(row: OutboxRow) -> bytes:
    payload = row.payload
    return encode_letter(
        letter_id=UUID(payload["dead_letter_id"]),
        job_id=UUID(payload["job_id"]) if payload["job_id"] else None,
        stage=payload["stage"],
        series=payload["series"],
        code=payload["code"],
    )


def _notice_body(row: OutboxRow) -> bytes:
    payload = row.payload
    return encode_notice(
        NoticeMessage(
            endpoint_id=UUID(payload["endpoint_id"]),
            event_id=UUID(payload["event_id"]),
            series=payload["series"],
            attempt=payload["attempt"],
        )
    )
