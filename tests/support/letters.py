"""Dead letters in numbers, made in one statement."""

from sqlalchemy import text

from schema.db import dead_letters
from schema.db.dead_letters import Letter, LetterFilter
from schema.db.engine import Database

_FILL = """
WITH owner AS (
    INSERT INTO tenant (id, name) VALUES (gen_random_uuid(), 'letters') RETURNING id
), failed AS (
    INSERT INTO job (id, tenant_id, kind, state, current_stage, error, deadline, retention, deadline_at,
                     finished_at, expires_at)
    SELECT gen_random_uuid(), owner.id, 'text', 'failed', 'validate', '{"code": "storage_unavailable"}',
           interval '6 hours', interval '7 days', now() + interval '6 hours', now(), now() + interval '7 days'
    FROM owner, generate_series(1, :letters)
    RETURNING id, tenant_id
), document AS (
    INSERT INTO document (job_id, sha256, size_bytes, media_type, storage_key)
    SELECT id, 'none', 5, 'text/plain', 'jobs/none' FROM failed
), run AS (
    INSERT INTO stage_run (job_id, stage, lane, status, fencing_token) SELECT id, 'validate', 'validate', 'failed', 1
    FROM failed
)
INSERT INTO dead_letter (id, job_id, tenant_id, stage, reason, code, attempts, created_at)
SELECT gen_random_uuid(), id, tenant_id, 'validate', 'retries_exhausted', 'storage_unavailable', 6,
       now() - random() * interval '6 hours'
FROM failed
"""


async def fill_letters(database: Database, letters: int) -> None:
    """Make so many failed jobs, each with an open letter."""
    async with database.transaction() as conn:
        await conn.execute(text(_FILL), {"letters": letters})


async def letters_of(database: Database, limit: int = 100_000) -> list[Letter]:
    """Return the open letters, oldest first."""
    async with database.transaction() as conn:
        return await dead_letters.list_letters(conn, LetterFilter(), limit=limit)
