"""What must be true of every job at every instant between two transactions, as questions to the database.

The oracle asks about jobs that are finished; these hold for all of them, whatever is going on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Row, text

from schema.db.engine import Database
from schema.domain.backoff import RetryPolicy
from schema.domain.states import Stage

# Each finds the jobs of which its sentence is not true. ``:jobs`` are the jobs in question, ``c`` their rows.
_BROKEN: Final[Mapping[str, str]] = {
    "an unfinished job has one open run, the one it is at, and a finished job none": """
        SELECT c.id FROM c LEFT JOIN stage_run r ON r.job_id = c.id AND r.status IN ('ready', 'running', 'retrying')
        GROUP BY c.id, c.finished_at, c.current_stage
        HAVING count(r.stage) <> CASE WHEN c.finished_at IS NULL THEN 1 ELSE 0 END
            OR bool_or(r.stage <> c.current_stage)
    """,
    "a run and its job tell the same": """
        SELECT c.id FROM c JOIN stage_run r ON r.job_id = c.id AND r.stage = c.current_stage
        WHERE (c.state = 'completed') <> (r.status = 'done') OR (c.state = 'failed') <> (r.status = 'failed')
           OR (c.state = 'cancelled') <> (r.status = 'cancelled')
           OR (c.finished_at IS NULL AND c.state <> 'accepted' AND c.state <> CASE c.current_stage
                WHEN 'validate' THEN 'validating' WHEN 'extract' THEN 'extracting'
                WHEN 'normalize' THEN 'normalizing' ELSE 'persisting' END)
    """,
    "the open attempts are those of the running runs": """
        SELECT coalesce(c.id, a.job_id) AS id FROM c JOIN stage_run r ON r.job_id = c.id
        FULL JOIN (SELECT a.* FROM stage_attempt a JOIN c ON c.id = a.job_id WHERE a.ended_at IS NULL) AS a
          ON a.job_id = r.job_id AND a.stage = r.stage AND a.fencing_token = r.fencing_token
         AND a.worker_id = r.worker_id AND a.series = r.series AND a.attempt = r.attempt
        WHERE (coalesce(r.status, '') = 'running') <> (a.job_id IS NOT NULL)
    """,
    "no claim has a token above its run's": """
        SELECT c.id FROM c JOIN stage_run r ON r.job_id = c.id JOIN stage_attempt a USING (job_id, stage)
        WHERE a.fencing_token > r.fencing_token
    """,
    "a stage is completed at most once, and only by the claim that says so": """
        SELECT c.id FROM c JOIN stage_run r ON r.job_id = c.id
        LEFT JOIN stage_attempt a ON a.job_id = r.job_id AND a.stage = r.stage AND a.outcome = 'completed'
        GROUP BY c.id, r.stage, r.status, r.fencing_token
        HAVING count(a.stage) <> CASE WHEN r.status = 'done' THEN 1 ELSE 0 END
            OR max(a.fencing_token) <> r.fencing_token
    """,
    "each stage that is done has its output, of the claim that completed it, and no other stage has one": """
        SELECT c.id FROM c JOIN stage_run r ON r.job_id = c.id
        LEFT JOIN stage_output o ON o.job_id = r.job_id AND o.stage = r.stage
        WHERE c.deleted_at IS NULL
          AND ((r.status = 'done' AND r.stage <> 'persist') <> (o.job_id IS NOT NULL)
               OR o.fencing_token <> r.fencing_token)
    """,
    "a completed job has its result, and no other job has one": """
        SELECT c.id FROM c LEFT JOIN result r ON r.job_id = c.id
        WHERE (c.state = 'completed' AND c.deleted_at IS NULL) <> (r.job_id IS NOT NULL)
    """,
    "the audit trail has no gap and ends at the job's counter": """
        SELECT c.id FROM c LEFT JOIN job_event e ON e.job_id = c.id
        GROUP BY c.id, c.event_sequence
        HAVING count(e.sequence) <> c.event_sequence OR coalesce(max(e.sequence), 0) <> c.event_sequence
    """,
    "a letter is open only while its job is failed in that very series": """
        SELECT c.id FROM c JOIN dead_letter l ON l.job_id = c.id
        JOIN stage_run r ON r.job_id = l.job_id AND r.stage = l.stage
        WHERE l.series > r.series OR (l.state = 'open' AND (c.state <> 'failed' OR l.series <> r.series))
    """,
    "what was given up by its workers or its retries has a letter of its series": """
        SELECT c.id FROM c JOIN stage_run r ON r.job_id = c.id AND r.stage = c.current_stage
        LEFT JOIN dead_letter l ON l.job_id = r.job_id AND l.stage = r.stage AND l.series = r.series
        WHERE c.state = 'failed'
          AND (c.error ->> 'code' IN ('worker_lost', 'storage_unavailable', 'internal_error', 'delivery_limit',
                'parser_crashed', 'parser_timeout', 'stage_timeout', 'scratch_full', 'invalid_output'))
              <> (l.id IS NOT NULL)
    """,
    "a series costs no more attempts and no more workers than its bounds": """
        SELECT c.id FROM c JOIN stage_run r ON r.job_id = c.id
        LEFT JOIN stage_attempt a ON a.job_id = r.job_id AND a.stage = r.stage
        GROUP BY c.id, r.stage, r.attempt, r.lost, a.series
        HAVING r.attempt > :attempts OR r.lost > :lost OR max(a.attempt) > :attempts
            OR count(*) FILTER (WHERE a.outcome = 'worker_lost') > :lost + 1
            OR count(*) FILTER (WHERE a.outcome IN ('transient', 'unknown')) > :attempts
    """,
    "pages are kept only while somebody may still need them": """
        SELECT c.id FROM c JOIN page_text p ON p.job_id = c.id
        LEFT JOIN stage_run r ON r.job_id = c.id AND r.stage = 'extract'
        WHERE r.status IS NULL OR r.status IN ('done', 'cancelled')
    """,
    "nothing of a deleted job is left but its tombstone": """
        SELECT c.id FROM c LEFT JOIN document d ON d.job_id = c.id
        WHERE (c.deleted_at IS NULL) <> (d.job_id IS NOT NULL)
           OR (c.deleted_at IS NOT NULL AND EXISTS (SELECT FROM stage_output o WHERE o.job_id = c.id))
    """,
}

_ALL_BROKEN: Final = text(
    "WITH c AS MATERIALIZED (SELECT * FROM job WHERE id = ANY(CAST(:jobs AS uuid[]))) "  # noqa: S608 - as above
    + " UNION ALL ".join(
        f"SELECT {number} AS number, id FROM ({query}) AS q"  # noqa: S608 - the constants above
        for number, query in enumerate(_BROKEN.values())
    )
)

_RUNS: Final = text("""
SELECT r.job_id, r.stage, r.status, r.series, r.attempt, r.fencing_token, j.state, j.finished_at IS NULL AS open
FROM stage_run r JOIN job j ON j.id = r.job_id AND j.id = ANY(CAST(:jobs AS uuid[]))
""")

_OWED: Final = text("SELECT payload FROM outbox_event WHERE kind = 'stage' AND job_id = ANY(CAST(:jobs AS uuid[]))")


@dataclass(frozen=True, slots=True)
class RunSeen:
    """What one look at a run and its job's state showed."""

    status: str
    series: int
    attempt: int
    token: int
    state: str
    open: bool


Seen = Mapping[tuple[UUID, Stage], RunSeen]
Awaited = tuple[UUID, Stage, int, int]


@dataclass(frozen=True, slots=True)
class Inspection:
    """What one look at some jobs showed: sentences that are not true, every run, and the messages in the outbox."""

    broken: Sequence[str]
    runs: Seen
    owed: frozenset[Awaited]


async def inspect(database: Database, jobs: Sequence[UUID], policy: RetryPolicy) -> Inspection:
    """Look at ``jobs`` in one transaction."""
    values = {"jobs": list(jobs), "attempts": policy.attempts, "lost": policy.lost_claims}
    sentences = list(_BROKEN)
    async with database.transaction() as conn:
        found = [f"{row.id}: {sentences[row.number]}" for row in await conn.execute(_ALL_BROKEN, values)]
        runs = {(row.job_id, Stage(row.stage)): _seen(row) for row in await conn.execute(_RUNS, values)}
        owed = frozenset(awaited(row.payload) for row in await conn.execute(_OWED, values))
    return Inspection(found, runs, owed)


def awaited(payload: Mapping[str, Any]) -> Awaited:
    """Name the attempt that a message is for."""
    return UUID(payload["job_id"]), Stage(payload["stage"]), payload["series"], payload["attempt"]


def _seen(row: Row[Any]) -> RunSeen:
    return RunSeen(row.status, row.series, row.attempt, row.fencing_token, row.state, row.open)


def impossible(before: Seen, after: Seen) -> list[str]:
    """Return what no sequence of moves can have made of ``before``: tokens that fell, finished jobs that changed."""
    found = []
    for key, was in before.items():
        now = after.get(key)
        if now is None:
            found.append(f"{key}: a run is gone")
            continue
        if now.token < was.token or (now.series, now.attempt) < (was.series, was.attempt):
            found.append(f"{key}: {was} became {now}")
        if (now.token, now.series) == (was.token, was.series) and was.status in {"done", "failed", "cancelled"}:
            found += [f"{key}: {was} became {now} at the same token"] if now.status != was.status else []
        redriven = was.state == "failed" and now.series > was.series
        stays = was.open or was.state in {now.state, "failed"}
        if not stays or (was.status == "failed" and now.status != "failed" and not redriven):
            found.append(f"{key}: finished as {was}, now {now}")
    return found
