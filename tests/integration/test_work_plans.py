"""What every delivery costs does not grow with the tables, nor with what the planner happens to know of them."""

from datetime import timedelta

import pytest
from sqlalchemy import text

from schema.db import deferrals, moves, outbox, stage_runs
from schema.db.deferrals import Deferral
from schema.db.engine import Database
from schema.domain.decisions import Advance
from schema.domain.moves import of_outcome
from schema.domain.outcomes import Completed
from schema.domain.states import Stage
from tests.support import plans
from tests.support.factories import LEASE, accepted_job
from tests.support.services import fresh_database

JOBS = (
    "INSERT INTO tenant (id, name) VALUES (gen_random_uuid(), 'all')",
    """
    INSERT INTO job (id, tenant_id, kind, deadline, retention, deadline_at, expires_at)
    SELECT gen_random_uuid(), tenant.id, 'text', '1 hour', '1 day', now() + interval '1 hour', now() + interval '1 day'
    FROM tenant, generate_series(1, 3000) AS n
    """,
    "INSERT INTO stage_run (job_id, stage, lane) SELECT id, 'validate', 'validate' FROM job",
    """
    INSERT INTO document (job_id, sha256, size_bytes, media_type, storage_key)
    SELECT id, 'none', 5, 'text/plain', 'none' FROM job
    """,
    """
    INSERT INTO stage_attempt (job_id, stage, fencing_token, series, attempt, worker_id)
    SELECT job_id, stage, 1, 1, 1, 1 FROM stage_run
    """,
    """
    INSERT INTO stage_output (job_id, stage, fencing_token, content, sha256, size_bytes)
    SELECT job_id, stage, 1, '{}', 'none', 2 FROM stage_run
    """,
    "INSERT INTO page_text (job_id, page, fencing_token, content) SELECT id, 1, 1, '{}' FROM job",
)
SCANS = {"Index Scan", "Index Only Scan", "Bitmap Index Scan"}
# Small whatever happens: what is being worked on just now, and what a tenant has set up.
SMALL = {"stage_run_running", "webhook_endpoint_by_tenant"}


@pytest.fixture(scope="module", params=["never analyzed", "analyzed"])
async def grown(request, services, template):
    """Some thousand jobs at work, which the planner has looked at or not."""
    with fresh_database(services, template=template) as url:
        database = Database.connect(url, application="docstage-test", pool_size=2)
        async with database.transaction() as conn:
            for statement in JOBS:
                await conn.execute(text(statement))
        if request.param == "analyzed":
            async with database.engine.connect() as raw:
                await (await raw.execution_options(isolation_level="AUTOCOMMIT")).execute(text("ANALYZE"))
        yield database
        await database.close()


async def _work(database):
    """Do with one job what a worker does with a delivery."""
    job = await accepted_job(database)
    with plans.caught(database.engine) as statements:
        async with database.transaction() as conn:
            (claimed,) = await stage_runs.claim(conn, [job.message()], worker_id=1, lease=LEASE)
            found = await stage_runs.read(conn, [(job.id, Stage.VALIDATE)])
            await stage_runs.renew(conn, [claimed.claim], lease=LEASE)
            await stage_runs.held(conn, [claimed.claim])
            run = found[job.id, Stage.VALIDATE]
            await deferrals.defer(conn, [Deferral(run, job.id, timedelta(seconds=1), 1)])
            await stage_runs.take_over(conn, [run], worker_id=2, lease=LEASE)
        claim = claimed.claim
        async with database.transaction() as conn:
            done = of_outcome(claim, Completed({"kind": "text"}, (), media_type="text/plain", pages_total=1), Advance())
            await moves.lock_and_apply(conn, [done])
            await outbox.delete_published(conn, [1, 2])
    return statements


async def test_no_statement_of_a_delivery_reads_more_than_its_own_rows(grown):
    """A plan that was made for empty tables and kept would read all of the grown ones for every job."""
    statements = await _work(grown)

    async with grown.transaction() as conn:
        steps = [step for one in statements for step in await plans.nodes(conn, one)]
    wide = [
        (step["Node Type"], step.get("Relation Name"), step.get("Index Name"))
        for step in steps
        if step["Node Type"] == "Seq Scan" or _unbound(step)
    ]

    assert steps
    assert wide == []


def _unbound(step):
    """Tell a step that reads all of an index."""
    return step["Node Type"] in SCANS and "Index Cond" not in step and step["Index Name"] not in SMALL
