"""Everybody who changes jobs locks them first, in one order: no deadlock, and nothing lost, however they meet.

``DOCSTAGE_CONCURRENCY_SECONDS`` lengthens the melee.
"""

from collections.abc import AsyncIterator

import pytest

from schema.db.engine import Database
from tests.support.effort import CONCURRENCY_SECONDS
from tests.support.factories import rows
from tests.support.invariants import inspect
from tests.support.melee import Melee
from tests.support.protocol import POLICY

OPERATIONS = 4000
HANDS = 8


@pytest.fixture
async def onlooker(database_url: str) -> AsyncIterator[Database]:
    """A pool apart from that of the melee, whose backends have told all they know once it is closed."""
    database = Database.connect(database_url, application="docstage-onlooker", pool_size=1)
    yield database
    await database.close()


async def _told_and_true(melee: Melee, onlooker: Database) -> tuple[dict, dict]:
    """Return how claims were closed as those were told who closed them, and as the database has it."""
    attempts = await rows(onlooker, "SELECT job_id, stage, fencing_token, outcome FROM stage_attempt")
    true = {(row["job_id"], row["stage"], row["fencing_token"]): row["outcome"] for row in attempts}
    jobs = {job_id for job_id, _, _ in true}
    told = {
        (job_id, stage.value, token): outcome
        for (job_id, stage, token), outcome in melee.closed.items()
        if job_id in jobs
    }
    return told, true


@pytest.mark.timeout(180 + CONCURRENCY_SECONDS)
async def test_all_rules_at_once_on_the_same_jobs_never_deadlock_and_lose_nothing(
    database: Database, onlooker: Database
) -> None:
    """A deadlock would void a whole batch of other people's outcomes; a lost update would void one silently."""
    melee = Melee(database, crowd=12, largest=6)

    await melee.run(hands=HANDS, operations=OPERATIONS, seconds=CONCURRENCY_SECONDS)
    await database.close()

    (server,) = await rows(onlooker, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    assert server["deadlocks"] == 0
    left = await rows(onlooker, "SELECT id FROM job")
    assert (await inspect(onlooker, [row["id"] for row in left], POLICY)).broken == []
    told, true = await _told_and_true(melee, onlooker)
    assert {key: true.get(key) for key in told} == told
    assert all(melee.done[name] for name in ("claim", "record", "take_over", "redrive", "owner", "sweep", "keep_page"))
