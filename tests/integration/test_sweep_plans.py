"""What runs every few seconds costs the same however large the tables have grown: it reads narrow indexes only."""

import re
from contextlib import contextmanager
from datetime import timedelta

import pytest
from sqlalchemy import event, text

from schema.db import gauges, outbox, sweeps, webhook_deliveries
from schema.db.engine import Database
from schema.db.sweeps import Patience
from schema.domain.states import RunStatus
from tests.support.services import fresh_database

FILL = (
    "INSERT INTO tenant (id, name) VALUES (gen_random_uuid(), 'all')",
    """
    INSERT INTO job (
        id, tenant_id, kind, state, current_stage, deadline, retention, deadline_at, finished_at, expires_at)
    SELECT gen_random_uuid(), tenant.id, 'text', 'completed', 'persist', '1 hour', '1 day',
           now(), now() - n * interval '1 second', now() + interval '1 day'
    FROM tenant, generate_series(1, 20000) AS n
    """,
    """
    INSERT INTO stage_run (job_id, stage, lane, status, fencing_token)
    SELECT job.id, s, s, 'done', 1 FROM job, unnest(ARRAY['validate', 'normalize', 'persist']) AS s
    """,
    """
    INSERT INTO stage_attempt (job_id, stage, fencing_token, series, attempt, worker_id, ended_at, outcome)
    SELECT job_id, stage, 1, 1, 1, 1, now(), 'completed' FROM stage_run
    """,
    """
    INSERT INTO dead_letter (id, job_id, stage, reason, code, state, closed_at)
    SELECT gen_random_uuid(), id, 'persist', 'worker_lost', 'worker_lost', 'redriven', now() FROM job
    """,
    """
    INSERT INTO webhook_endpoint (id, tenant_id, url, events, secret)
    SELECT gen_random_uuid(), id, 'https://example.com', ARRAY['job.completed'], '' FROM tenant
    """,
    """
    INSERT INTO webhook_delivery (endpoint_id, event_id, job_id, type, data, status, next_attempt_at, delivered_at)
    SELECT webhook_endpoint.id, job.id, job.id, 'job.completed', '{}', 'delivered', NULL, now()
    FROM webhook_endpoint, job
    """,
)

PATIENCE = Patience(overtaken=timedelta(minutes=1), silent=timedelta(minutes=10))

PERIODIC = {
    "expired leases": lambda conn: sweeps.find_expired_leases(conn, limit=200),
    "past deadline": lambda conn: sweeps.find_past_deadline(conn, limit=200),
    "progress": sweeps.measure_progress,
    "forgotten, ready": lambda conn: sweeps.find_forgotten(
        conn, RunStatus.READY, progress={}, patience=PATIENCE, limit=200
    ),
    "forgotten, retrying": lambda conn: sweeps.find_forgotten(
        conn, RunStatus.RETRYING, progress={}, patience=PATIENCE, limit=200
    ),
    "expired jobs": lambda conn: sweeps.find_expired_jobs(conn, limit=200),
    "tombstones": lambda conn: sweeps.drop_tombstones(conn, age=timedelta(days=30), limit=200),
    "letters": lambda conn: sweeps.expire_letters(conn, age=timedelta(days=14), limit=200),
    "silent notices": lambda conn: webhook_deliveries.reissue_silent(
        conn, silent=timedelta(minutes=10), spread=timedelta(seconds=10), limit=200
    ),
    "gauges": gauges.measure,
    "take": lambda conn: outbox.take(conn, limit=256, lock=timedelta(seconds=12)),
}


@pytest.fixture(scope="module")
async def grown(services, template):
    """A database whose jobs are nearly all finished."""
    with fresh_database(services, template=template) as url:
        database = Database.connect(url, application="docstage-test", pool_size=2)
        await _fill(database)
        yield database
        await database.close()


async def _fill(database):
    async with database.transaction() as conn:
        for statement in FILL:
            await conn.execute(text(statement))
    async with database.engine.connect() as raw:
        conn = await raw.execution_options(isolation_level="AUTOCOMMIT")
        await conn.execute(text("VACUUM ANALYZE"))


@contextmanager
def recorded(database):
    """Keep what is sent to the database, as it is sent."""
    statements = []

    def keep(_connection, _cursor, statement, parameters, _context, _many):
        statements.append((statement, parameters))

    event.listen(database.engine.sync_engine, "before_cursor_execute", keep)
    try:
        yield statements
    finally:
        event.remove(database.engine.sync_engine, "before_cursor_execute", keep)


@pytest.mark.parametrize("name", PERIODIC)
async def test_no_periodic_statement_reads_a_whole_table(grown, name):
    """At a million finished jobs a single sequential scan every five seconds is a machine of its own."""
    async with grown.transaction() as conn:
        # As a plain session plans: with the settings of ours no scan would show.
        await conn.execute(text("SET LOCAL enable_seqscan = on"))
        with recorded(grown) as statements:
            await PERIODIC[name](conn)
        plans = [
            (await conn.exec_driver_sql(f"EXPLAIN {statement}", parameters)).scalars().all()
            for statement, parameters in statements
        ]

    # The outbox is small by design and read whole by its gauge.
    scanned = set(re.findall(r"Seq Scan on (\w+)", str(plans))) - {"outbox_event"}
    assert plans
    assert scanned == set()
