"""A system whose extract stage each test starts, breaks and ends by itself."""

from collections.abc import AsyncIterator

import pytest

from tests.support.system import System


@pytest.fixture(scope="module")
async def everything_else(system: System) -> System:
    """All but extract, which lives through all of a module."""
    await system.start(
        system.process("intake", "intake"),
        system.process("publisher", "publisher"),
        system.stages("rest", "validate", "normalize", "persist"),
    )
    return system


@pytest.fixture
async def front(everything_else: System) -> AsyncIterator[System]:
    """The same, and nobody left on extract afterwards."""
    kept = set(everything_else.processes)
    yield everything_else
    for name in everything_else.processes.keys() - kept:
        everything_else.processes.pop(name).close()
