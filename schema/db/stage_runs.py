"""Claims: who works on a run, for how long, and how others find out that he is gone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from schema.db.locks import lock_jobs
from schema.domain.kinds import Kind
from schema.domain.runs import Claim, RunView
from schema.domain.states import JobState, Lane, RunStatus, Stage
from schema.wire.messages import StageMessage

_NO_DELAY = timedelta(0)


@dataclass(frozen=True, slots=True)
class ClaimedDocument:
    """The document's row."""

    storage_key: str
    size_bytes: int
    sha256: str
    declared_type: str | None
    media_type: str
    content: bytes | None


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim with what its handler needs: the job's wishes, the document, the previous stage's output.

    ``document`` is ``None`` where its row is gone: the run is claimed all the same, so that somebody can end it.
    """

    claim: Claim
    kind: str
    options: Mapping[str, Any]
    document: ClaimedDocument | None
    input_content: Mapping[str, Any] | None
    input_blob_key: str | None
    input_sha256: str | None
    traceparent: str | None
    waited: timedelta


# Both forms end in the same rows. ``claims`` is what differs: which run may be had, and what it costs.
_CLAIM_TEMPLATE = """
WITH claimed AS (
    UPDATE stage_run r SET
        status = 'running', fencing_token = r.fencing_token + 1, lost = r.lost + {lost},
        worker_id = :worker_id, claimed_at = now(), lease_expires_at = now() + :lease,
        next_attempt_at = NULL, deferred_event = NULL
    FROM unnest(CAST(:jobs AS uuid[]), CAST(:stages AS text[]), CAST(:first AS bigint[]),
                CAST(:second AS bigint[])) AS m(job_id, stage, first, second)
    WHERE r.job_id = m.job_id AND r.stage = m.stage AND {guard}
    RETURNING r.*
), closed AS (
    UPDATE stage_attempt a SET ended_at = now(), outcome = 'worker_lost', code = 'worker_lost'
    FROM claimed c
    WHERE a.job_id = c.job_id AND a.stage = c.stage AND a.fencing_token = c.fencing_token - 1
      AND a.ended_at IS NULL
), opened AS (
    INSERT INTO stage_attempt (job_id, stage, fencing_token, series, attempt, worker_id)
    SELECT job_id, stage, fencing_token, series, attempt, worker_id FROM claimed
), begun AS (
    UPDATE job j SET
        state = CASE WHEN j.state = 'accepted' THEN 'validating' ELSE j.state END,
        event_sequence = j.event_sequence + 1, updated_at = now()
    FROM claimed c
    WHERE j.id = c.job_id AND ({lost} = 1 OR (c.stage = 'validate' AND j.state = 'accepted'))
    RETURNING j.id, j.event_sequence, c.stage, c.series, c.attempt
), told AS (
    INSERT INTO job_event (job_id, sequence, type, stage, data)
    SELECT id, event_sequence, '{event}', stage, jsonb_build_object('series', series, 'attempt', attempt)
    FROM begun
)
SELECT c.job_id, c.stage, c.lane, c.series, c.attempt, c.lost, c.fencing_token,
       j.tenant_id, j.kind, j.options, j.traceparent, j.deadline_at - now() AS time_left,
       now() - c.issued_at AS waited,
       d.sha256, d.size_bytes, d.declared_type, d.media_type, d.storage_key, d.content,
       o.content AS input_content, o.blob_key AS input_blob_key, o.sha256 AS input_sha256
FROM claimed c
JOIN job j ON j.id = c.job_id
LEFT JOIN document d ON d.job_id = c.job_id
LEFT JOIN stage_output o ON o.job_id = c.job_id AND o.stage = CASE c.stage
    WHEN 'extract' THEN 'validate' WHEN 'normalize' THEN 'extract' WHEN 'persist' THEN 'normalize' END
"""

_CLAIM = text(
    _CLAIM_TEMPLATE.format(
        lost=0,
        event="started",
        guard="r.series = m.first AND r.attempt = m.second"
        " AND (r.status = 'ready' OR (r.status = 'retrying' AND r.next_attempt_at <= now()))",
    )
)
_TAKE_OVER = text(
    _CLAIM_TEMPLATE.format(lost=1, event="taken_over", guard="r.status = 'running' AND r.fencing_token = m.first")
)

_READ = text("""
SELECT r.job_id, j.tenant_id, r.stage, r.lane, r.status, r.series, r.attempt, r.lost, r.fencing_token,
       r.worker_id, coalesce(r.lease_expires_at <= now(), false) AS lease_expired,
       r.next_attempt_at - now() AS due_in, j.deadline_at - now() AS time_left, j.state, j.kind, r.deferred_event
FROM stage_run r JOIN job j ON j.id = r.job_id
WHERE (r.job_id, r.stage) IN (
    SELECT * FROM unnest(CAST(:jobs AS uuid[]), CAST(:stages AS text[])))
""")

# Locked, because a page that is being kept just now holds the run and not the job: what is decided here must see it.
_CURRENT = text("""
SELECT r.job_id, j.tenant_id, r.stage, r.lane, r.status, r.series, r.attempt, r.lost, r.fencing_token,
       r.worker_id, coalesce(r.lease_expires_at <= now(), false) AS lease_expired,
       r.next_attempt_at - now() AS due_in, j.deadline_at - now() AS time_left, j.state, j.kind, r.deferred_event
FROM job j JOIN stage_run r ON r.job_id = j.id AND r.stage = j.current_stage
WHERE j.id = ANY(CAST(:jobs AS uuid[]))
FOR NO KEY UPDATE OF r
""")

# Rows that a move holds are left out: renewing them could only make it wait, or deadlock with a batch.
_RENEW = text("""
UPDATE stage_run r SET lease_expires_at = now() + :lease
FROM (
    SELECT s.job_id, s.stage FROM stage_run s
    JOIN unnest(CAST(:jobs AS uuid[]), CAST(:stages AS text[]), CAST(:tokens AS bigint[]))
        AS m(job_id, stage, token) ON s.job_id = m.job_id AND s.stage = m.stage
    WHERE s.fencing_token = m.token AND s.status = 'running'
    ORDER BY s.job_id, s.stage FOR NO KEY UPDATE OF s SKIP LOCKED
) AS held
WHERE r.job_id = held.job_id AND r.stage = held.stage
""")

_HELD = text("""
SELECT r.job_id, r.stage, r.fencing_token FROM stage_run r
JOIN unnest(CAST(:jobs AS uuid[]), CAST(:stages AS text[]), CAST(:tokens AS bigint[]))
    AS m(job_id, stage, token) ON r.job_id = m.job_id AND r.stage = m.stage
WHERE r.fencing_token = m.token AND r.status = 'running'
""")

_CLOSED_BY = text("""
SELECT outcome FROM stage_attempt
WHERE job_id = :job_id AND stage = :stage AND fencing_token = :token AND ended_at IS NOT NULL
""")


async def claim(
    conn: AsyncConnection, messages: Sequence[StageMessage], *, worker_id: int, lease: timedelta
) -> list[Claimed | None]:
    """Claim the runs that messages point to, where they are ready or due.

    States: ready | retrying -> running.

    Returns:
        For each message its claim; ``None`` is no answer: read the run and classify it.
    """
    await lock_jobs(conn, (message.job_id for message in messages))
    return await _take(
        conn,
        _CLAIM,
        [(message.job_id, message.stage.value, message.series, message.attempt) for message in messages],
        worker_id=worker_id,
        lease=lease,
    )


async def take_over(
    conn: AsyncConnection, runs: Sequence[RunView], *, worker_id: int, lease: timedelta
) -> list[Claimed | None]:
    """Take running runs whose owner is gone, if they are still as they were read.

    States: running -> running, with a new token; the attempt's number stays, its old row is closed.

    Returns:
        As ``claim``.
    """
    await lock_jobs(conn, (run.job_id for run in runs))
    return await _take(
        conn,
        _TAKE_OVER,
        [(run.job_id, run.stage.value, run.token, 0) for run in runs],
        worker_id=worker_id,
        lease=lease,
    )


async def _take(
    conn: AsyncConnection,
    statement: TextClause,
    wanted: Sequence[tuple[UUID, str, int, int]],
    *,
    worker_id: int,
    lease: timedelta,
) -> list[Claimed | None]:
    """Run one of the two claim statements; of two equal wishes in a batch only the first gets the claim."""
    jobs, stages, first, second = zip(*wanted, strict=True)
    rows = await conn.execute(
        statement,
        {
            "jobs": jobs,
            "stages": stages,
            "first": first,
            "second": second,
            "worker_id": worker_id,
            "lease": lease,
        },
    )
    found = {(row.job_id, row.stage): _claimed(row) for row in rows}
    return [found.pop((job_id, stage), None) for job_id, stage, _, _ in wanted]


def _claimed(row: Row[Any]) -> Claimed:
    return Claimed(
        claim=Claim(
            job_id=row.job_id,
            tenant_id=row.tenant_id,
            stage=Stage(row.stage),
            lane=Lane(row.lane),
            series=row.series,
            attempt=row.attempt,
            lost=row.lost,
            token=row.fencing_token,
            time_left=row.time_left,
        ),
        kind=row.kind,
        options=row.options,
        document=_document(row),
        input_content=row.input_content,
        input_blob_key=row.input_blob_key,
        input_sha256=row.input_sha256,
        traceparent=row.traceparent,
        waited=row.waited,
    )


def _document(row: Row[Any]) -> ClaimedDocument | None:
    if row.storage_key is None:
        return None
    return ClaimedDocument(row.storage_key, row.size_bytes, row.sha256, row.declared_type, row.media_type, row.content)


async def read(conn: AsyncConnection, wanted: Sequence[tuple[UUID, Stage]]) -> dict[tuple[UUID, Stage], RunView]:
    """Read runs as they are; ones that do not exist are absent."""
    jobs, stages = zip(*((job_id, stage.value) for job_id, stage in wanted), strict=True)
    rows = await conn.execute(_READ, {"jobs": jobs, "stages": stages})
    return {(view.job_id, view.stage): view for view in map(_view, rows)}


async def read_current(conn: AsyncConnection, jobs: Sequence[UUID]) -> dict[UUID, RunView]:
    """Read and lock the run that each job is at; lock the jobs before, so that it stays that."""
    rows = await conn.execute(_CURRENT, {"jobs": list(jobs)})
    return {view.job_id: view for view in map(_view, rows)}


def _view(row: Row[Any]) -> RunView:
    return RunView(
        job_id=row.job_id,
        tenant_id=row.tenant_id,
        stage=Stage(row.stage),
        lane=Lane(row.lane),
        status=RunStatus(row.status),
        series=row.series,
        attempt=row.attempt,
        lost=row.lost,
        token=row.fencing_token,
        worker_id=row.worker_id,
        lease_expired=row.lease_expired,
        due_in=row.due_in or _NO_DELAY,
        time_left=row.time_left,
        state=JobState(row.state),
        kind=Kind(row.kind),
        deferred_event=row.deferred_event,
    )


def _columns(claims: Sequence[Claim]) -> dict[str, list[Any]]:
    return {
        "jobs": [claim.job_id for claim in claims],
        "stages": [claim.stage.value for claim in claims],
        "tokens": [claim.token for claim in claims],
    }


async def renew(conn: AsyncConnection, claims: Sequence[Claim], *, lease: timedelta) -> None:
    """Extend the leases of claims that are still current; a row being moved just now is passed over."""
    await conn.execute(_RENEW, _columns(claims) | {"lease": lease})


async def held(conn: AsyncConnection, claims: Sequence[Claim]) -> set[tuple[UUID, Stage, int]]:
    """Return which claims are still current, as (job, stage, token)."""
    rows = await conn.execute(_HELD, _columns(claims))
    return {(row.job_id, Stage(row.stage), row.fencing_token) for row in rows}


async def closed_as(conn: AsyncConnection, claim: Claim) -> str | None:
    """Return how the claim's attempt was closed; ``None`` while it is open.

    A commit whose answer was lost shows here: the outcome stands although the caller never heard so.
    """
    row = await conn.execute(_CLOSED_BY, {"job_id": claim.job_id, "stage": claim.stage.value, "token": claim.token})
    return row.scalar_one_or_none()
