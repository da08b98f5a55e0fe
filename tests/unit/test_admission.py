"""Places for uploads: bounded over all, and no tenant has them all."""

from contextlib import AsyncExitStack
from uuid import UUID

import pytest

from intake import admission
from intake.admission import Admission
from intake.problems import Problem, ProblemCode
from schema.db.engine import Database
from schema.runtime.clock import SystemClock

ONE, OTHER, THIRD = UUID(int=1), UUID(int=2), UUID(int=3)


@pytest.fixture
def places(monkeypatch):
    """Three places, two of them for one tenant, and nobody waits for one."""
    monkeypatch.setattr(admission, "SLOT_WAIT_SECONDS", 0.0)
    database = Database.connect("postgresql://127.0.0.1:9/none", application="test", pool_size=1)
    return Admission(database, SystemClock(), max_backlog=1, max_tenant_jobs=1, slots=3, tenant_slots=2)


async def test_the_uploads_of_one_tenant_leave_room_for_others(places):
    """A client that sends a byte now and then would otherwise keep every place."""
    async with AsyncExitStack() as held:
        for _ in range(2):
            await held.enter_async_context(places.slot(ONE))
        with pytest.raises(Problem) as refused:
            await held.enter_async_context(places.slot(ONE))
        await held.enter_async_context(places.slot(OTHER))

    assert refused.value.code is ProblemCode.OVERLOADED


async def test_a_place_that_was_waited_for_in_vain_is_free_for_the_next(places):
    """Whoever gives up gives up the tenant's place too."""
    async with places.slot(ONE), places.slot(ONE), places.slot(OTHER):
        with pytest.raises(Problem):
            async with places.slot(THIRD):
                pass

    async with places.slot(THIRD), places.slot(THIRD), places.slot(ONE):
        pass
