"""What is waiting where and since when, measured by partial indexes that only hold what is unfinished."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from schema.domain.states import Lane


@dataclass(frozen=True, slots=True)
class Count:
    """How many rows there are of one combination of labels."""

    labels: tuple[str, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class Measures:
    """The state of the whole system at one moment; ages in seconds, 0 where nothing waits."""

    outbox: Sequence[Count]
    outbox_oldest_seconds: float
    jobs: Sequence[Count]
    runs: Sequence[Count]
    oldest_ready_seconds: Sequence[tuple[str, float]]
    letters: Sequence[Count]
    letter_oldest_seconds: float
    webhooks_pending: int
    webhook_overdue_seconds: float


# A row that was put off because it could not be published is as overdue as one that is due. A notice that is to be
# sent again waits in the outbox until then, so it is owed since then.
_OUTBOX = text("""
SELECT kind, count(*) AS rows,
       coalesce(extract(epoch FROM max(
           now() - CASE kind WHEN 'notice' THEN coalesce(not_before, created_at) ELSE created_at END) FILTER (
           WHERE available_at <= now() OR attempts > 0)), 0)::float8 AS oldest
FROM outbox_event GROUP BY kind
""")

_JOBS = text("SELECT state, count(*) AS rows FROM job WHERE finished_at IS NULL GROUP BY state")

# One branch per partial index: a single IN would read the whole table.
_RUNS = text("""
SELECT lane, 'ready' AS status, count(*) AS rows FROM stage_run WHERE status = 'ready' GROUP BY lane
UNION ALL
SELECT lane, 'running', count(*) FROM stage_run WHERE status = 'running' GROUP BY lane
UNION ALL
SELECT lane, 'retrying', count(*) FROM stage_run WHERE status = 'retrying' GROUP BY lane
""")

_OLDEST_READY = text("""
SELECT l.lane, coalesce(extract(epoch FROM now() - first.issued_at), 0)::float8 AS seconds
FROM unnest(CAST(:lanes AS text[])) AS l(lane)
LEFT JOIN LATERAL (
    SELECT issued_at FROM stage_run r WHERE r.status = 'ready' AND r.lane = l.lane ORDER BY issued_at LIMIT 1
) AS first ON true
""")

_LETTERS = text("""
SELECT coalesce(stage, 'none') AS stage, code, count(*) AS rows,
       extract(epoch FROM now() - min(created_at))::float8 AS oldest
FROM dead_letter WHERE state = 'open' GROUP BY 1, 2
""")

_WEBHOOKS = text("""
SELECT count(*) AS pending, coalesce(extract(epoch FROM now() - min(next_attempt_at)), 0)::float8 AS overdue
FROM webhook_delivery WHERE status = 'pending'
""")


async def measure(conn: AsyncConnection) -> Measures:
    """Measure everything once."""
    outbox = (await conn.execute(_OUTBOX)).all()
    jobs = (await conn.execute(_JOBS)).all()
    runs = (await conn.execute(_RUNS)).all()
    ready = (await conn.execute(_OLDEST_READY, {"lanes": [lane.value for lane in Lane]})).all()
    letters = (await conn.execute(_LETTERS)).all()
    webhooks = (await conn.execute(_WEBHOOKS)).one()
    return Measures(
        outbox=[Count((row.kind,), row.rows) for row in outbox],
        outbox_oldest_seconds=max((row.oldest for row in outbox), default=0.0),
        jobs=[Count((row.state,), row.rows) for row in jobs],
        runs=[Count((row.lane, row.status), row.rows) for row in runs],
        oldest_ready_seconds=[(row.lane, max(0.0, row.seconds)) for row in ready],
        letters=[Count((row.stage, row.code), row.rows) for row in letters],
        letter_oldest_seconds=max((row.oldest for row in letters), default=0.0),
        webhooks_pending=webhooks.pending,
        webhook_overdue_seconds=max(0.0, webhooks.overdue),
    )
