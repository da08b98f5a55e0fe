"""Writing moves: everything one decision changes, for many jobs, in one fenced statement."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from schema.db.locks import lock_jobs
from schema.domain.ids import new_id
from schema.domain.moves import Move
from schema.domain.notices import notice_of
from schema.domain.outcomes import Completed
from schema.domain.states import Event, Lane, RunStatus, Stage

EVENT_TYPES: Mapping[Event, str] = {
    Event.COMPLETED: "stage_completed",
    Event.ERRORED: "retrying",
    Event.GAVE_UP: "failed",
    Event.RELEASED: "released",
    Event.LEASE_EXPIRED: "lease_expired",
    Event.CANCELLED: "cancelled",
    Event.REDRIVEN: "redriven",
}


@dataclass(frozen=True, slots=True)
class StoredOutput:
    """Where a stage's output is: inline JSON, or an object in the store; sha256 and size of its JSON."""

    sha256: str
    size_bytes: int
    content: Mapping[str, Any] | None = None
    blob_key: str | None = None


def serialize(output: Mapping[str, Any]) -> bytes:
    """Write an output as compact JSON; NaN and infinities raise, because PostgreSQL refuses them."""
    return json.dumps(output, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def stored_inline(output: Mapping[str, Any]) -> StoredOutput:
    """Describe an output that is kept in its row."""
    body = serialize(output)
    return StoredOutput(hashlib.sha256(body).hexdigest(), len(body), content=output)


# The first part updates the run rows and is the fence: all others join what it moved and do nothing for the
# rest. In one statement, because a round trip costs more than all of these writes together. Endpoints are locked
# against their removal, which would otherwise fail the whole move by their foreign key.
_APPLY = text("""
WITH m AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(CAST(:moves AS jsonb)) AS m(
        number int, job_id uuid, stage text, from_status text, from_token bigint, status text, state text, token bigint,
        series int, attempt int, lost int, retry_seconds float8, finished bool, redriven bool, sent bool,
        closes text, code text, exception_type text, error jsonb, warnings jsonb, event text, data jsonb,
        opens_stage text, opens_lane text, media_type text, pages_total int,
        output jsonb, blob_key text, sha256 text, size_bytes bigint,
        letter_id uuid, reason text, messages jsonb, notice_id uuid, notice_type text, notice jsonb)
), moved AS (
    UPDATE stage_run r SET
        status = m.status, fencing_token = m.token, series = m.series, attempt = m.attempt, lost = m.lost,
        worker_id = NULL, claimed_at = NULL, lease_expires_at = NULL, deferred_event = NULL,
        next_attempt_at = now() + m.retry_seconds * interval '1 second',
        issued_at = CASE WHEN m.sent THEN now() + coalesce(m.retry_seconds, 0) * interval '1 second'
                         ELSE r.issued_at END,
        issues = CASE WHEN m.sent THEN 1 ELSE r.issues END,
        pages_done = CASE WHEN m.status = 'done' THEN coalesce(r.pages_total, r.pages_done) ELSE r.pages_done END
    FROM m
    WHERE r.job_id = m.job_id AND r.stage = m.stage
      AND r.fencing_token = m.from_token AND r.status = m.from_status
    RETURNING m.*
), closed AS (
    UPDATE stage_attempt a
    SET ended_at = now(), outcome = m.closes, code = m.code, exception_type = m.exception_type
    FROM moved m
    WHERE a.job_id = m.job_id AND a.stage = m.stage AND a.fencing_token = m.from_token
      AND a.ended_at IS NULL AND m.closes IS NOT NULL
), stored AS (
    INSERT INTO stage_output (job_id, stage, fencing_token, content, blob_key, sha256, size_bytes)
    SELECT job_id, stage, from_token, output, blob_key, sha256, size_bytes
    FROM moved WHERE sha256 IS NOT NULL AND stage <> 'persist'
), resulted AS (
    INSERT INTO result (job_id, content, blob_key, sha256, size_bytes)
    SELECT job_id, output, blob_key, sha256, size_bytes
    FROM moved WHERE sha256 IS NOT NULL AND stage = 'persist'
), opened AS (
    INSERT INTO stage_run (job_id, stage, lane, pages_total)
    SELECT job_id, opens_stage, opens_lane, pages_total FROM moved WHERE opens_stage IS NOT NULL
), detected AS (
    UPDATE document d SET media_type = m.media_type
    FROM moved m WHERE d.job_id = m.job_id AND m.media_type <> d.media_type
), jobs AS (
    UPDATE job j SET
        state = m.state, current_stage = coalesce(m.opens_stage, m.stage), error = m.error,
        warnings = CASE WHEN m.warnings IS NULL THEN j.warnings ELSE j.warnings || m.warnings END,
        event_sequence = j.event_sequence + 1, updated_at = now(),
        finished_at = CASE WHEN m.finished THEN now() END,
        expires_at = CASE WHEN m.finished OR m.redriven THEN now() + j.retention ELSE j.expires_at END,
        deadline_at = CASE WHEN m.redriven THEN now() + j.deadline ELSE j.deadline_at END
    FROM moved m WHERE j.id = m.job_id
    RETURNING m.*, j.tenant_id, j.traceparent, j.event_sequence, j.kind, j.client_tag
), told AS (
    INSERT INTO job_event (job_id, sequence, type, stage, data)
    SELECT job_id, event_sequence, event, stage, data FROM jobs
), lettered AS (
    INSERT INTO dead_letter (id, job_id, tenant_id, stage, series, reason, code, attempts)
    SELECT letter_id, job_id, tenant_id, stage, series, reason, code, attempt
    FROM jobs WHERE reason IS NOT NULL
), owed AS (
    INSERT INTO outbox_event (event_id, kind, tenant_id, job_id, lane, payload, not_before, traceparent)
    SELECT o.event_id, o.kind, j.tenant_id, j.job_id, o.lane, o.payload,
           now() + o.delay_seconds * interval '1 second', j.traceparent
    FROM jobs j, jsonb_to_recordset(j.messages) AS o(
        event_id uuid, kind text, lane text, payload jsonb, delay_seconds float8)
), noted AS (
    INSERT INTO webhook_delivery (endpoint_id, event_id, job_id, type, data)
    SELECT e.id, j.notice_id, j.job_id, j.notice_type,
           j.notice || jsonb_build_object('kind', j.kind, 'client_tag', j.client_tag)
    FROM jobs j JOIN webhook_endpoint e ON e.tenant_id = j.tenant_id
    WHERE e.disabled_at IS NULL AND j.notice_type = ANY (e.events)
    FOR KEY SHARE OF e
    RETURNING endpoint_id, event_id, series
), noticed AS (
    INSERT INTO outbox_event (event_id, kind, tenant_id, job_id, payload, traceparent)
    SELECT n.event_id, 'notice', j.tenant_id, j.job_id, jsonb_build_object(
               'endpoint_id', n.endpoint_id, 'event_id', n.event_id, 'series', n.series, 'attempt', 1), j.traceparent
    FROM noted n JOIN jobs j ON j.notice_id = n.event_id
)
SELECT number FROM moved
""")

# A statement of its own: a page that was being kept while the move waited for its run is not in the move's snapshot.
_SWEEP_PAGES = text("DELETE FROM page_text WHERE job_id = ANY(CAST(:jobs AS uuid[]))")


async def apply(
    conn: AsyncConnection, moves: Sequence[Move], *, outputs: Sequence[StoredOutput | None] = ()
) -> list[bool]:
    """Write moves whose jobs are locked by this transaction.

    Fenced: a move whose run has another token or status by now writes nothing at all; of several that were
    decided on the same token, one is written.

    Args:
        conn: a transaction that holds the jobs' locks.
        moves: in any order, of any runs.
        outputs: for each move, where a completed stage's output has been stored; inline when absent.

    Returns:
        For each move whether it was written.
    """
    rows = [
        _row(move, stored) | {"number": number} for number, (move, stored) in enumerate(zip_longest(moves, outputs))
    ]
    answer = await conn.execute(_APPLY, {"moves": json.dumps(rows, ensure_ascii=False, allow_nan=False)})
    written = set(answer.scalars())
    over = [move.job_id for number, move in enumerate(moves) if number in written and _needs_no_pages(move)]
    if over:
        await conn.execute(_SWEEP_PAGES, {"jobs": over})
    return [number in written for number in range(len(moves))]


def _needs_no_pages(move: Move) -> bool:
    """Say whether nobody will go on behind the pages that are kept of the move's run."""
    return move.stage is Stage.EXTRACT and move.status in {RunStatus.DONE, RunStatus.CANCELLED}


async def lock_and_apply(
    conn: AsyncConnection, moves: Sequence[Move], *, outputs: Sequence[StoredOutput | None] = ()
) -> list[bool]:
    """Lock the moves' jobs, then write the moves: the whole of an outcome transaction."""
    await lock_jobs(conn, (move.job_id for move in moves))
    return await apply(conn, moves, outputs=outputs)


def _row(move: Move, stored: StoredOutput | None) -> dict[str, Any]:
    """Flatten a move into what the statement reads."""
    return {
        "job_id": str(move.job_id),
        "stage": move.stage.value,
        "from_status": move.from_status.value,
        "from_token": move.from_token,
        "status": move.status.value,
        "state": move.state.value,
        "token": move.token,
        "series": move.series,
        "attempt": move.attempt,
        "lost": move.lost,
        "retry_seconds": move.retry_in.total_seconds() if move.retry_in else None,
        "finished": move.state.terminal,
        "redriven": move.event is Event.REDRIVEN,
        "sent": move.sends,
        "closes": move.closes.value if move.closes else None,
        "code": move.code.value if move.code else None,
        "exception_type": move.detail.get("exception_type"),
        "error": move.error,
        "event": _event_type(move),
        "data": _event_data(move),
        "opens_stage": move.opens.stage.value if move.opens else None,
        "opens_lane": move.opens.value if move.opens else None,
        "reason": move.letter.value if move.letter else None,
        **_output(move.output, stored),
        **_messages(move),
        **_notice(move),
    }


def _output(output: Completed | None, stored: StoredOutput | None) -> dict[str, Any]:
    """Add what a completed stage leaves behind."""
    if output is None:
        return {}
    kept = stored or stored_inline(output.output)
    return {
        "warnings": [warning.as_json() for warning in output.warnings] or None,
        "media_type": output.media_type,
        "pages_total": output.pages_total,
        "output": kept.content,
        "blob_key": kept.blob_key,
        "sha256": kept.sha256,
        "size_bytes": kept.size_bytes,
    }


def _event_type(move: Move) -> str:
    """Name the move for the audit trail; the last stage's completion is the job's."""
    if move.event is Event.COMPLETED and move.opens is None:
        return "completed"
    return EVENT_TYPES[move.event]


def _event_data(move: Move) -> dict[str, Any]:
    """Say what people need of the move: numbers, codes, who and why."""
    data = {
        "series": move.series,
        "attempt": move.attempt,
        "code": move.code.value if move.code else None,
        "retry_in_seconds": round(move.retry_in.total_seconds(), 3) if move.retry_in else None,
        "by": move.by,
        "reason": move.note,
    }
    return {name: value for name, value in data.items() if value is not None}


def _messages(move: Move) -> dict[str, Any]:
    """Say which messages the move owes to the broker."""
    messages, letter_id = [], None
    if move.sends:
        delay = move.retry_in.total_seconds() if move.retry_in else None
        messages.append(stage_message(move.job_id, move.lane, move.series, move.attempt, delay))
    if move.opens:
        messages.append(stage_message(move.job_id, move.opens, 1, 1, None))
    if move.letter:
        letter_id = str(new_id())
        messages.append(_letter_message(move, letter_id))
    return {"messages": messages, "letter_id": letter_id}


def _notice(move: Move) -> dict[str, Any]:
    """Say what the tenant's endpoints are told of a job's end, under one id for all of them."""
    notice = notice_of(move)
    if notice is None:
        return {}
    return {"notice_id": str(new_id()), "notice_type": notice.type.value, "notice": notice.data}


def stage_message(job_id: UUID, lane: Lane, series: int, attempt: int, delay_seconds: float | None) -> dict[str, Any]:
    """Return an outbox row that owes a stage its message."""
    payload = {"job_id": str(job_id), "stage": lane.stage.value, "series": series, "attempt": attempt}
    return {
        "event_id": str(new_id()),
        "kind": "stage",
        "lane": lane.value,
        "payload": payload,
        "delay_seconds": delay_seconds,
    }


def _letter_message(move: Move, letter_id: str) -> dict[str, Any]:
    """Return an outbox row that owes the dead-letter queue its message."""
    payload = {
        "dead_letter_id": letter_id,
        "job_id": str(move.job_id),
        "stage": move.stage.value,
        "series": move.series,
        "code": move.code.value if move.code else None,
    }
    return {"event_id": str(new_id()), "kind": "dead_letter", "payload": payload}


def first_message(job_id: UUID) -> dict[str, Any]:
    """Return the message that a newly accepted job owes its first stage."""
    return stage_message(job_id, Lane(Stage.VALIDATE.value), 1, 1, None)
