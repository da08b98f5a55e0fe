"""What counts as a database that does not answer now: the same work is tried again, instead of being refused."""

import asyncio

import pytest
from sqlalchemy import text

from schema.db.engine import Database, is_unavailable

TABLE = "CREATE TABLE probe (id int PRIMARY KEY CHECK (id > 0))"
ROWS = "INSERT INTO probe VALUES (1), (2)"


@pytest.fixture
async def probed(database: Database) -> Database:
    """A database with two rows to fight over."""
    async with database.transaction() as conn:
        await conn.execute(text(TABLE))
        await conn.execute(text(ROWS))
    return database


async def run(database: Database, *statements: str) -> None:
    """Run statements in one transaction."""
    async with database.transaction() as conn:
        for statement in statements:
            await conn.execute(text(statement))


async def test_a_lock_that_is_not_had_in_time_means_try_again(probed: Database) -> None:
    """Else a stage that is done would be recorded as one whose output PostgreSQL refused."""
    async with probed.transaction() as holder:
        await holder.execute(text("SELECT FROM probe WHERE id = 1 FOR UPDATE"))
        with pytest.raises(Exception) as caught:  # noqa: PT011 - its classification is what is tested
            await run(probed, "SET LOCAL lock_timeout = 50", "SELECT FROM probe WHERE id = 1 FOR UPDATE")

    assert is_unavailable(caught.value)


async def test_a_standby_that_is_asked_to_write_means_try_again(probed: Database) -> None:
    """In the moments of a failover the address may lead to a server that only reads."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - its classification is what is tested
        await run(probed, "SET TRANSACTION READ ONLY", "UPDATE probe SET id = id")

    assert is_unavailable(caught.value)


async def test_a_statement_that_takes_too_long_means_try_again(probed: Database) -> None:
    """A slow moment of the database is no property of what was asked."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - its classification is what is tested
        await run(probed, "SET LOCAL statement_timeout = 50", "SELECT pg_sleep(5)")

    assert is_unavailable(caught.value)


async def test_a_deadlock_means_try_again(probed: Database) -> None:
    """The lock order is meant to prevent them; where it fails, the one that loses is not at fault."""
    both = asyncio.Barrier(2)

    async def cross(first: int, second: int) -> None:
        async with probed.transaction() as conn:
            await conn.execute(text(f"SELECT FROM probe WHERE id = {first} FOR UPDATE"))
            await both.wait()
            await conn.execute(text(f"SELECT FROM probe WHERE id = {second} FOR UPDATE"))

    ends = await asyncio.gather(cross(1, 2), cross(2, 1), return_exceptions=True)

    assert [is_unavailable(end) for end in ends if isinstance(end, Exception)] == [True]


async def test_a_server_without_a_connection_to_spare_means_try_again(probed: Database, database_url: str) -> None:
    """Intake answers 503 then, and a worker keeps its outcome until it can be written."""
    name = database_url.rpartition("/")[2]
    await run(probed, f'ALTER DATABASE "{name}" CONNECTION LIMIT 0')
    second = Database.connect(await _as_ordinary_role(probed, database_url), application="probe", pool_size=1)

    with pytest.raises(Exception) as caught:  # noqa: PT011 - its classification is what is tested
        await run(second, "SELECT 1")
    await second.close()
    await run(probed, f"DROP ROLE {name}_role")

    assert is_unavailable(caught.value)


async def test_a_row_that_breaks_a_rule_is_refused(probed: Database) -> None:
    """Trying the same again would never end."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - its classification is what is tested
        await run(probed, "INSERT INTO probe VALUES (-1)")

    assert not is_unavailable(caught.value)


async def _as_ordinary_role(database: Database, url: str) -> str:
    """Return the URL for a role that connection limits apply to, unlike the superuser's."""
    name = url.rpartition("/")[2]
    await run(database, f"CREATE ROLE {name}_role LOGIN PASSWORD 'probe'")
    place = url.rpartition("@")[2]
    return f"postgresql://{name}_role:probe@{place}"
