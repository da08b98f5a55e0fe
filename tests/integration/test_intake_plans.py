"""Every statement that a request runs stays on a narrow index, however many jobs there have been."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from schema.db import backlog, dead_letters, idempotency, job_lists, job_records, jobs, tenants
from schema.db.dead_letters import LetterState
from schema.db.engine import Database
from schema.db.job_lists import JobFilter
from schema.domain.ids import new_id
from schema.domain.states import PublicStatus
from tests.support import plans
from tests.support.factories import rows

# 20 tenants, 20,000 jobs: one in a hundred unfinished, one failed.
FILL = """
INSERT INTO tenant (id, name) SELECT gen_random_uuid(), 't' || n FROM generate_series(1, 20) n;
INSERT INTO api_key (id, tenant_id, name, key_hash)
SELECT gen_random_uuid(), id, 'k', sha256(id::text::bytea) FROM tenant;
INSERT INTO job (id, tenant_id, kind, deadline, retention, deadline_at, expires_at, client_tag, event_sequence,
                 created_at, state, finished_at, error)
SELECT gen_random_uuid(), t.id, 'text', '1 h', '1 d', now(), now(), 't' || n, 2, now() - n * interval '1 s',
       CASE WHEN n % 100 = 0 THEN 'accepted' WHEN n % 100 = 1 THEN 'failed' ELSE 'completed' END,
       CASE WHEN n % 100 <> 0 THEN now() - n * interval '1 s' END,
       CASE WHEN n % 100 = 1 THEN '{"code": "worker_lost"}'::jsonb END
FROM generate_series(1, 20000) n
JOIN (SELECT id, row_number() OVER () AS r FROM tenant) t ON t.r = 1 + (n / 7) % 20;
INSERT INTO stage_run (job_id, stage, lane, status) SELECT id, 'validate', 'validate', 'done' FROM job;
INSERT INTO document (job_id, sha256, size_bytes, media_type, storage_key)
SELECT id, 'x', 1, 'text/plain', 'x' FROM job;
INSERT INTO result (job_id, content, sha256, size_bytes) SELECT id, '{}', 'x', 2 FROM job;
INSERT INTO stage_output (job_id, stage, fencing_token, content, sha256, size_bytes)
SELECT id, 'validate', 1, '{}', 'x', 2 FROM job;
INSERT INTO page_text (job_id, page, fencing_token, content) SELECT id, 1, 1, '{}' FROM job;
INSERT INTO job_event (job_id, sequence, type) SELECT id, n, 'x' FROM job, generate_series(1, 2) n;
INSERT INTO stage_attempt (job_id, stage, fencing_token, series, attempt, worker_id)
SELECT id, 'validate', 1, 1, 1, 1 FROM job;
INSERT INTO dead_letter (id, job_id, reason, code, state, closed_at)
SELECT gen_random_uuid(), id, 'worker_lost', 'worker_lost',
       CASE WHEN error IS NULL THEN 'redriven' ELSE 'open' END, CASE WHEN error IS NULL THEN now() END
FROM job;
INSERT INTO webhook_endpoint (id, tenant_id, url, events, secret)
SELECT gen_random_uuid(), id, 'https://example.com', ARRAY['job.completed'], '' FROM tenant;
INSERT INTO webhook_delivery (endpoint_id, event_id, job_id, type, data, status, next_attempt_at, delivered_at)
SELECT e.id, job.id, job.id, 'job.completed', '{}', 'delivered', NULL, now()
FROM job JOIN webhook_endpoint e USING (tenant_id);
INSERT INTO idempotency_key (tenant_id, key, lease_expires_at, expires_at)
SELECT id, 'k' || n, now(), now() FROM tenant, generate_series(1, 500) n;
"""
Run = Callable[[AsyncConnection, UUID, UUID], Awaitable[object]]

CASES: dict[str, Run] = {
    "find a job": lambda conn, tenant, job: job_records.find(conn, job_id=job, tenant_id=tenant),
    "watch jobs": lambda conn, _, job: job_records.marks(conn, [job, new_id()]),
    "read events": lambda conn, _, job: job_records.events(conn, job_id=job, after=0, bound=10),
    "read attempts": lambda conn, _, job: job_records.attempts(conn, job_id=job, bound=10),
    "read a result": lambda conn, _, job: job_records.result(conn, job_id=job),
    "measure the backlog": lambda conn, _, __: backlog.read(conn, bound=50_000),
    "know a key": lambda conn, _, __: tenants.tenant_of_key(conn, key_hash=b"x"),
    "reserve a key": lambda conn, tenant, _: idempotency.reserve(
        conn, tenant_id=tenant, key="k", lease=timedelta(1), keep=timedelta(1)
    ),
    "bury a job": lambda conn, _, job: jobs.bury(conn, [job]),
    "close letters": lambda conn, _, job: dead_letters.close(
        conn, job_ids=[job], state=LetterState.DISCARDED, by="x", note="x"
    ),
    "list": lambda conn, tenant, job: job_lists.page(conn, tenant_id=tenant, wanted=JobFilter(), before=job, size=50),
    "list by tag": lambda conn, tenant, _: job_lists.page(
        conn, tenant_id=tenant, wanted=JobFilter(client_tag="t7"), before=None, size=50
    ),
    **{
        f"list {status}": lambda conn, tenant, _, status=status: job_lists.page(
            conn, tenant_id=tenant, wanted=JobFilter(status=status), before=None, size=50
        )
        for status in PublicStatus
    },
}


@pytest.fixture
async def full(database: Database) -> Database:
    """A database with many finished jobs, few unfinished ones, and no tenant that has most of them."""
    async with database.engine.connect() as connection:
        raw = (await connection.get_raw_connection()).driver_connection
        assert raw is not None
        await raw.execute(FILL)
        await raw.execute("VACUUM ANALYZE")
    return database


async def test_no_request_scans_a_table(full: Database):
    """At ten million jobs a single sequential scan in a request is an outage; api_key and tenant stay small."""
    (one,) = await rows(full, "SELECT tenant_id, id FROM job WHERE error IS NOT NULL LIMIT 1")
    tenant_id, job_id = one["tenant_id"], one["id"]
    assert isinstance(tenant_id, UUID)
    assert isinstance(job_id, UUID)
    scanned: dict[str, set[str]] = {}
    for name, run in CASES.items():
        async with full.engine.connect() as conn:
            # As a plain session plans: with the settings of ours no scan would show.
            await conn.exec_driver_sql("SET enable_seqscan = on")
            with plans.caught(full.engine) as statements:
                await run(conn, tenant_id, job_id)
            for statement in statements:
                steps = await plans.nodes(conn, statement)
                tables = {str(step["Relation Name"]) for step in steps if step["Node Type"] == "Seq Scan"}
                scanned.setdefault(name, set()).update(tables - {"tenant", "api_key"})
            await conn.rollback()

    assert {name: tables for name, tables in scanned.items() if tables} == {}
    assert set(scanned) == set(CASES)


async def test_a_filter_that_nothing_matches_costs_one_bounded_scan_per_page(full: Database):
    """A rare status among millions must not hold a connection for minutes; the client walks on page by page."""
    (owner,) = await rows(full, "SELECT id FROM tenant LIMIT 1")
    assert isinstance(owner["id"], UUID)
    wanted = JobFilter(status=PublicStatus.CANCELLED)
    async with full.transaction() as conn:
        page = await job_lists.page(conn, tenant_id=owner["id"], wanted=wanted, before=None, size=10)

    assert (page.jobs, page.next_before) == ([], None)


async def test_a_scan_that_ends_at_its_bound_says_where_to_go_on(full: Database, monkeypatch: pytest.MonkeyPatch):
    """A short page with a token is not the end; leaving the token out would hide every older match."""
    monkeypatch.setattr(job_lists, "SCAN_ROWS", 40)
    (owner,) = await rows(full, "SELECT id FROM tenant LIMIT 1")
    assert isinstance(owner["id"], UUID)
    every = await rows(
        full, "SELECT id FROM job WHERE tenant_id = :t AND state = 'completed' ORDER BY id DESC", t=owner["id"]
    )
    seen: list[UUID] = []
    pages, before = 0, None
    while pages == 0 or before is not None:
        async with full.transaction() as conn:
            page = await job_lists.page(
                conn,
                tenant_id=owner["id"],
                wanted=JobFilter(status=PublicStatus.COMPLETED),
                before=before,
                size=100,
            )
        seen += [job.id for job in page.jobs]
        pages, before = pages + 1, page.next_before

    assert seen == [job["id"] for job in every]
    assert pages > len(seen) // 40
