"""Pages kept while extraction is under way; keeping one is a heartbeat too, and fenced like every write."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from schema.domain.runs import Claim

_ADVANCE = text("""
UPDATE stage_run SET
    pages_done = greatest(pages_done, :pages_done), pages_total = coalesce(:pages_total, pages_total),
    lease_expires_at = now() + :lease
WHERE job_id = :job_id AND stage = :stage AND fencing_token = :token AND status = 'running'
""")
_KEEP = text("""
INSERT INTO page_text (job_id, page, fencing_token, content)
VALUES (:job_id, :page, :token, CAST(:content AS jsonb))
ON CONFLICT (job_id, page) DO NOTHING
""")
_DONE = text("SELECT content FROM page_text WHERE job_id = :job_id ORDER BY page")


async def advance(
    conn: AsyncConnection, claim: Claim, *, pages_done: int, pages_total: int | None, lease: timedelta
) -> bool:
    """Write down progress and extend the lease; ``False`` when the claim is no longer current."""
    answer = await conn.execute(
        _ADVANCE,
        {
            "job_id": claim.job_id,
            "stage": claim.stage.value,
            "token": claim.token,
            "pages_done": pages_done,
            "pages_total": pages_total,
            "lease": lease,
        },
    )
    return answer.rowcount == 1


async def keep_page(conn: AsyncConnection, claim: Claim, *, page: int, content: str) -> None:
    """Keep one page's JSON, after ``advance`` in the same transaction has found the claim current."""
    await conn.execute(_KEEP, {"job_id": claim.job_id, "page": page, "token": claim.token, "content": content})


async def pages(conn: AsyncConnection, claim: Claim) -> list[Mapping[str, Any]]:
    """Return the pages that are kept, in order."""
    return list((await conn.execute(_DONE, {"job_id": claim.job_id})).scalars())
