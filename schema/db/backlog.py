"""How much is waiting and how fast it goes: what admission is decided by."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection


@dataclass(frozen=True, slots=True)
class Backlog:
    """Unfinished jobs by tenant, and how many finish per second of late.

    ``by_tenant`` stops counting at the bound it was asked for; above that everybody is refused anyway.
    """

    by_tenant: Mapping[UUID, int]
    rate: float

    @property
    def total(self) -> int:
        """All unfinished jobs."""
        return sum(self.by_tenant.values())


# Both read the narrow end of a partial index and no more of it than the bounds say.
_COUNT = text("""
SELECT tenant_id, count(*) AS jobs
FROM (SELECT tenant_id FROM job WHERE finished_at IS NULL LIMIT :bound) AS unfinished
GROUP BY tenant_id
""")

_RATE = text("""
SELECT count(*) / greatest(extract(epoch FROM now() - min(finished_at)), 1)::float8 AS rate
FROM (
    SELECT finished_at FROM job
    WHERE finished_at IS NOT NULL AND finished_at > now() - interval '60 seconds'
    ORDER BY finished_at DESC LIMIT 1000
) AS recent
""")


async def read(conn: AsyncConnection, *, bound: int) -> Backlog:
    """Measure the backlog, counting up to ``bound`` jobs, and the rate of the last 1,000 jobs or 60 seconds."""
    counted = await conn.execute(_COUNT, {"bound": bound})
    by_tenant = {row.tenant_id: row.jobs for row in counted}
    rate = (await conn.execute(_RATE)).scalar_one()
    return Backlog(by_tenant, rate or 0.0)
