"""Pages that extract keeps: fenced, and not lost to a database that was away for a moment."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from schema.db.engine import Database
from schema.domain import moves
from schema.domain.decisions import Advance
from schema.domain.outcomes import Completed
from schema.domain.runs import Claim
from schema.domain.states import Lane, Stage
from schema.wire.pages import ExtractedPage
from schema.wire.results import PageSource
from stages.checkpoints import FencedError, RunCheckpoint
from tests.support.factories import LEASE, accepted_job, claim, rows, write

VALIDATED = Completed({}, lane=Lane.EXTRACT_OCR, pages_total=2)


class Absent:
    """A database that does not answer the first times it is asked."""

    def __init__(self, database: Database, *, times: int) -> None:
        """Be away ``times`` times."""
        self._database = database
        self._times = times

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """Refuse the connection, or begin as the real one does."""
        self._times -= 1
        if self._times >= 0:
            raise ConnectionRefusedError
        async with self._database.transaction() as conn:
            yield conn


@pytest.fixture
async def extracting(database: Database) -> Claim:
    """A claim of a job's extract run."""
    job = await accepted_job(database)
    first = await claim(database, job)
    await write(database, moves.of_outcome(first.claim, VALIDATED, Advance()))
    return (await claim(database, job, stage=Stage.EXTRACT)).claim


def page(number: int) -> ExtractedPage:
    """Return a recognized page."""
    return ExtractedPage(number=number, source=PageSource.OCR, text="words")


async def test_kept_pages_are_there_for_the_next_claim(database: Database, extracting: Claim) -> None:
    """A crash costs the page under way and none before it."""
    await RunCheckpoint(database, extracting, lease=LEASE).page(page(1))

    kept = await RunCheckpoint(database, extracting, lease=LEASE).done()

    assert [one.number for one in kept] == [1]


async def test_a_page_is_kept_once_the_database_is_back(database: Database, extracting: Claim) -> None:
    """A restart of PostgreSQL in the middle of a long scan uses up none of its attempts."""
    checkpoint = RunCheckpoint(Absent(database, times=2), extracting, lease=LEASE)

    await checkpoint.page(page(1))

    kept = await rows(database, "SELECT page FROM page_text WHERE job_id = :id", id=extracting.job_id)
    assert kept == [{"page": 1}]


async def test_a_page_of_a_claim_that_was_lost_is_not_kept(database: Database, extracting: Claim) -> None:
    """Whoever owns the run now reads the page itself."""
    await write(database, moves.release(extracting))

    with pytest.raises(FencedError):
        await RunCheckpoint(database, extracting, lease=LEASE).page(page(1))

    assert await rows(database, "SELECT page FROM page_text WHERE job_id = :id", id=extracting.job_id) == []
