"""Jobs as clients make and unmake them: accepting one whole, and taking everything but its tombstone away."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from schema.db.idempotency import Reservation
from schema.db.job_records import JobRecord
from schema.db.moves import first_message
from schema.domain.kinds import Kind
from schema.domain.states import JobState, RunStatus, Stage


@dataclass(frozen=True, slots=True)
class NewDocument:
    """Bytes that are stored already; ``content`` repeats those of a small document for the workers' sake."""

    storage_key: str
    size_bytes: int
    sha256: str
    declared_type: str | None
    media_type: str
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class NewJob:
    """What a client asked for, checked."""

    id: UUID
    tenant_id: UUID
    kind: Kind
    options: Mapping[str, Any]
    client_tag: str | None
    traceparent: str | None
    deadline: timedelta
    retention: timedelta
    document: NewDocument


# The reservation is the fence: where it has been taken over, no job comes to be and nothing else does.
_ACCEPT = text("""
WITH held AS (
    UPDATE idempotency_key SET job_id = :id, fingerprint = :fingerprint
    WHERE tenant_id = :tenant_id AND key = :key AND token = :token AND job_id IS NULL
    RETURNING job_id
), accepted AS (
    INSERT INTO job (id, tenant_id, kind, options, client_tag, traceparent, deadline, retention,
                     deadline_at, expires_at, event_sequence)
    SELECT :id, :tenant_id, :kind, CAST(:options AS jsonb), :client_tag, :traceparent,
           CAST(:deadline AS interval), CAST(:retention AS interval),
           now() + CAST(:deadline AS interval), now() + CAST(:retention AS interval), 1
    WHERE CAST(:key AS text) IS NULL OR EXISTS (SELECT FROM held)
    RETURNING id, tenant_id, traceparent, created_at, updated_at, deadline_at, expires_at
), stored AS (
    INSERT INTO document (job_id, sha256, size_bytes, declared_type, media_type, storage_key, content)
    SELECT id, :sha256, :size_bytes, :declared_type, :media_type, :storage_key, CAST(:content AS bytea) FROM accepted
), opened AS (
    INSERT INTO stage_run (job_id, stage, lane) SELECT id, 'validate', 'validate' FROM accepted
), told AS (
    INSERT INTO job_event (job_id, sequence, type) SELECT id, 1, 'accepted' FROM accepted
), owed AS (
    INSERT INTO outbox_event (event_id, kind, tenant_id, job_id, lane, payload, traceparent)
    SELECT CAST(:event_id AS uuid), :message_kind, tenant_id, id, :lane, CAST(:payload AS jsonb), traceparent
    FROM accepted
)
SELECT created_at, updated_at, deadline_at, expires_at FROM accepted
""")

# The codes of an error stay, its numbers go; the row itself outlives every message that may still come for it.
_BURY = text("""
WITH buried AS (
    UPDATE job SET
        deleted_at = now(), updated_at = now(), event_sequence = event_sequence + 1,
        client_tag = NULL, options = '{}', warnings = '[]',
        error = error - 'limit' - 'actual' - 'pages'
    WHERE id = ANY(CAST(:ids AS uuid[])) AND finished_at IS NOT NULL AND deleted_at IS NULL
    RETURNING id, event_sequence
), told AS (
    INSERT INTO job_event (job_id, sequence, type) SELECT id, event_sequence, 'deleted' FROM buried
), documents AS (
    DELETE FROM document WHERE job_id IN (SELECT id FROM buried)
), outputs AS (
    DELETE FROM stage_output WHERE job_id IN (SELECT id FROM buried)
), pages AS (
    DELETE FROM page_text WHERE job_id IN (SELECT id FROM buried)
), results AS (
    DELETE FROM result WHERE job_id IN (SELECT id FROM buried)
), notices AS (
    UPDATE webhook_delivery SET data = data || '{"client_tag": null}' WHERE job_id IN (SELECT id FROM buried)
)
SELECT id FROM buried
""")


async def accept(
    conn: AsyncConnection, job: NewJob, *, reservation: Reservation | None, fingerprint: str | None
) -> JobRecord | None:
    """Write everything that makes a job one: its rows, its first run, the message owed, its key's answer.

    States: none -> accepted.

    Returns:
        ``None`` when the reservation is no longer this request's; then nothing is written.
    """
    message = first_message(job.id)
    document = job.document
    values = {
        "id": job.id,
        "tenant_id": job.tenant_id,
        "kind": job.kind.value,
        "options": json.dumps(job.options),
        "client_tag": job.client_tag,
        "traceparent": job.traceparent,
        "deadline": job.deadline,
        "retention": job.retention,
        "sha256": document.sha256,
        "size_bytes": document.size_bytes,
        "declared_type": document.declared_type,
        "media_type": document.media_type,
        "storage_key": document.storage_key,
        "content": document.content,
        "key": reservation.key if reservation else None,
        "token": reservation.token if reservation else None,
        "fingerprint": fingerprint,
        "event_id": message["event_id"],
        "message_kind": message["kind"],
        "lane": message["lane"],
        "payload": json.dumps(message["payload"]),
    }
    row = (await conn.execute(_ACCEPT, values)).one_or_none()
    return _record(job, row) if row else None


async def bury(conn: AsyncConnection, job_ids: Sequence[UUID]) -> list[UUID]:
    """Take a finished job's content out of the database and leave a tombstone; lock the jobs before.

    What is in the object store goes by prefix, after the commit.

    Returns:
        The jobs that were buried now: finished ones that were not before.
    """
    rows = await conn.execute(_BURY, {"ids": list(job_ids)})
    return list(rows.scalars())


def _record(job: NewJob, row: Row[Any]) -> JobRecord:
    """Describe a job that is being accepted, as a read of it would, without the round trip."""
    return JobRecord(
        id=job.id,
        tenant_id=job.tenant_id,
        kind=job.kind,
        state=JobState.ACCEPTED,
        stage=Stage.VALIDATE,
        run_status=RunStatus.READY,
        series=1,
        attempt=1,
        next_attempt_at=None,
        wait_seconds=None,
        pages_done=0,
        pages_total=None,
        warnings=(),
        error=None,
        client_tag=job.client_tag,
        created_at=row.created_at,
        updated_at=row.updated_at,
        finished_at=None,
        deadline_at=row.deadline_at,
        expires_at=row.expires_at,
        age_seconds=0.0,
        deleted=False,
        expired=False,
    )
