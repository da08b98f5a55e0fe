"""Extract's checkpoints: each finished page is kept, fenced, and renews the lease.

A database that does not answer is waited for: pages that are read must not be read again because it was restarted.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from schema.db import checkpoints
from schema.db.engine import Database
from schema.domain.runs import Claim
from schema.runtime import failpoints
from schema.runtime.failpoints import Point
from schema.wire.pages import ExtractedPage
from stages.patience import until_answered


class FencedError(Exception):
    """The run is no longer this worker's; nothing of what follows may be written."""


class RunCheckpoint:
    """The checkpoint of one claim, as ``stages.work.Checkpoint`` wants it."""

    def __init__(self, database: Database, claim: Claim, *, lease: timedelta) -> None:
        """Start with nothing done."""
        self._database = database
        self._claim = claim
        self._lease = lease
        self._done = 0

    async def pages_total(self, total: int) -> None:
        """Tell how many pages there are to do."""
        await until_answered(self._advance, None, total=total)

    async def done(self) -> list[ExtractedPage]:
        """Return the pages that an earlier claim of this run finished."""
        kept = await until_answered(self._kept)
        self._done = len(kept)
        return [ExtractedPage.model_validate(page) for page in kept]

    async def page(self, page: ExtractedPage) -> None:
        """Keep one finished page.

        Raises:
            FencedError: when the run is no longer this worker's.
        """
        self._done += 1
        await until_answered(self._advance, page, total=None)
        failpoints.hit(Point.PAGE_KEPT)

    async def _kept(self) -> Sequence[Mapping[str, Any]]:
        async with self._database.transaction() as conn:
            return await checkpoints.pages(conn, self._claim)

    async def _advance(self, page: ExtractedPage | None, *, total: int | None) -> None:
        """Renew the claim first, because that is the fence, then keep the page."""
        async with self._database.transaction() as conn:
            current = await checkpoints.advance(
                conn, self._claim, pages_done=self._done, pages_total=total, lease=self._lease
            )
            if not current:
                raise FencedError
            if page is not None:
                await checkpoints.keep_page(conn, self._claim, page=page.number, content=page.model_dump_json())
