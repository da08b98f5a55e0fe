"""The database's history: from nothing to now and back, and the same as the code believes."""

import asyncio
from collections.abc import Iterator

import asyncpg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from schema.db.engine import Database, async_url
from schema.db.locks import MIGRATION_LOCK
from schema.db.tables import metadata
from schema.domain.kinds import Kind
from schema.domain.moves import LetterReason
from schema.domain.states import JOB_TRANSITIONS, RUN_TRANSITIONS, AttemptOutcome, JobState, RunStatus, Stage
from schema.migrations.__main__ import config
from tests.support.eventually import eventually
from tests.support.factories import accepted_job, rows
from tests.support.services import Services, fresh_database


@pytest.fixture
def empty_url(services: Services) -> Iterator[str]:
    """A database with nothing in it."""
    with fresh_database(services) as url:
        yield url


async def _tables(url: str) -> set[str]:
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        return {row["tablename"] for row in rows} - {"alembic_version"}
    finally:
        await connection.close()


async def test_whoever_comes_second_waits_for_the_first(empty_url):
    """Two replicas that start at once: longer than any lock on a table may be waited for, and without an error."""
    first = await asyncpg.connect(empty_url)
    await first.fetchval("SELECT pg_advisory_lock($1)", MIGRATION_LOCK)
    second = asyncio.create_task(asyncio.to_thread(command.upgrade, config(empty_url), "head"))
    waiting = """
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event = 'advisory' AND now() - query_start > interval '2500 ms'
    """
    try:
        await eventually(lambda: second.done() or first.fetchval(waiting))
    finally:
        await first.close()
    await second

    assert "job" in await _tables(empty_url)


async def test_upgrade_makes_every_table_and_downgrade_takes_all_back(empty_url):
    """An operator can go forward from empty and back again."""
    await asyncio.to_thread(command.upgrade, config(empty_url), "head")
    assert await _tables(empty_url) == set(metadata.tables)

    await asyncio.to_thread(command.downgrade, config(empty_url), "base")

    assert await _tables(empty_url) == set()


async def test_the_code_knows_the_tables_as_they_are(database_url):
    """A column that only one side knows is found here and not at three in the morning."""
    engine = create_async_engine(async_url(database_url))
    async with engine.connect() as connection:
        differences = await connection.run_sync(
            lambda sync: compare_metadata(MigrationContext.configure(sync), metadata)
        )
    await engine.dispose()

    # Indexes and CHECKs stand in the migrations alone.
    assert [difference for difference in differences if difference[0] != "remove_index"] == []


async def _allowed(database: Database, constraint: str) -> set[str]:
    """Return the words that a CHECK on one column lists."""
    async with database.transaction() as conn:
        text = await conn.exec_driver_sql(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = $1", (constraint,)
        )
        return set(text.scalar_one().split("'")[1::2])


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        ("job_state_check", set(JobState)),
        ("stage_run_status_check", set(RunStatus)),
        ("stage_run_stage_check", set(Stage)),
        ("job_kind_check", set(Kind)),
        ("stage_attempt_outcome_check", set(AttemptOutcome)),
        ("dead_letter_reason_check", set(LetterReason)),
    ],
)
async def test_each_check_lists_just_the_words_of_its_enum(database, constraint, words):
    """A word that the code learns and the database does not would fail in production only."""
    assert await _allowed(database, constraint) == {word.value for word in words}


async def _guard(database: Database, function: str) -> set[str]:
    async with database.transaction() as conn:
        source = await conn.exec_driver_sql("SELECT prosrc FROM pg_proc WHERE proname = $1", (function,))
        return {word for word in source.scalar_one().split("'") if ">" in word and " " not in word and word != ">"}


async def test_the_guards_allow_just_the_moves_of_the_transition_table(database):
    """The table in the code and the triggers in the database say the same."""
    jobs = {f"{old}>{new}" for (old, _, _), new in JOB_TRANSITIONS.items() if old is not new}
    runs = {f"{old}>{new}" for (old, _), new in RUN_TRANSITIONS.items() if old is not new}

    assert await _guard(database, "job_guard") == jobs
    assert await _guard(database, "stage_run_guard") == runs


async def test_the_database_refuses_a_move_that_the_table_does_not_know(database):
    """Even a statement typed by hand cannot bring a completed job back to life."""
    async with database.transaction() as conn:
        await conn.exec_driver_sql("INSERT INTO tenant (id, name) VALUES (gen_random_uuid(), 't')")
        await conn.exec_driver_sql(
            "INSERT INTO job (id, tenant_id, kind, state, deadline, retention, deadline_at, expires_at, finished_at)"
            " SELECT gen_random_uuid(), id, 'text', 'completed', '1h', '1d', now(), now(), now() FROM tenant"
        )

    with pytest.raises(DBAPIError, match="illegal move"):
        async with database.transaction() as conn:
            await conn.exec_driver_sql("UPDATE job SET state = 'validating', finished_at = NULL")


async def test_the_database_refuses_a_token_that_goes_down(database):
    """An owner of long ago would be met by its own number again, and could write."""
    job = await accepted_job(database)
    async with database.transaction() as conn:
        await conn.exec_driver_sql("UPDATE stage_run SET fencing_token = 3")

    with pytest.raises(DBAPIError, match="never goes down"):
        async with database.transaction() as conn:
            await conn.exec_driver_sql("UPDATE stage_run SET fencing_token = 2")

    assert await rows(database, "SELECT fencing_token FROM stage_run WHERE job_id = :id", id=job.id) == [
        {"fencing_token": 3}
    ]
