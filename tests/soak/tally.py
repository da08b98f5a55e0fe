"""Counting what is in the rows, and asking the oracle about every job."""

import asyncio
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final
from uuid import UUID

import httpx

from schema.db.engine import Database
from schema.domain.backoff import RetryPolicy
from schema.wire.messages import decode_letter
from schema.wire.queues import DLQ
from tests.soak.clients import Ticket
from tests.soak.facts import found, patiently
from tests.support.invariants import inspect
from tests.support.oracle import verify

AT_ONCE: Final = 4
PAGE: Final = 500
_JOBS: Final = "SELECT id, state, error FROM job"
_LETTERS: Final = "SELECT id, job_id, stage, series, reason, code, state FROM dead_letter WHERE state = 'open'"
_NUMBERS: Final = """
SELECT (SELECT count(*) FROM result) AS results,
       (SELECT count(*) FROM stage_output o JOIN job j ON j.id = o.job_id AND j.state = 'completed') AS outputs,
       (SELECT count(*) FROM (SELECT FROM stage_attempt WHERE outcome = 'completed'
                              GROUP BY job_id, stage HAVING count(*) > 1) AS twice) AS completed_twice,
       (SELECT count(*) FROM (SELECT FROM dead_letter GROUP BY job_id, stage, series
                              HAVING count(*) > 1) AS twice) AS letters_twice
"""
_ATTEMPTS: Final = """
SELECT outcome || coalesce(' ' || code, '') || coalesce(' ' || exception_type, '') AS name, count(*) AS n
FROM stage_attempt GROUP BY 1 ORDER BY 2 DESC, 1
"""


async def jobs_of(database: Database) -> Mapping[str, Mapping[str, Any]]:
    """Return all jobs by their id."""
    return {str(row["id"]): row for row in await found(database, _JOBS)}


async def open_letters(database: Database) -> Sequence[Mapping[str, Any]]:
    """Return the open dead letters."""
    return await found(database, _LETTERS)


async def row_counts(database: Database) -> Mapping[str, int]:
    """Count results, outputs, and what must not be there twice."""
    (counted,) = await found(database, _NUMBERS)
    return counted


async def attempts(database: Database) -> Mapping[str, int]:
    """Count all claims by how they ended."""
    return {row["name"]: row["n"] for row in await found(database, _ATTEMPTS)}


async def objections(database: Database, ids: Sequence[str], policy: RetryPolicy) -> list[str]:
    """Ask the oracle and the invariants about every job; return what they object to."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def ask(job_id: str) -> str:
        async with gate:
            try:
                await patiently(database, lambda: verify(database, job_id))
            except AssertionError as error:
                return f"{job_id}: {str(error)[:300] or 'the oracle objects'}"
            return ""

    told = await asyncio.gather(*(ask(job_id) for job_id in ids))
    for start in range(0, len(ids), PAGE):
        some = [UUID(job_id) for job_id in ids[start : start + PAGE]]
        told += (await patiently(database, lambda some=some: inspect(database, some, policy))).broken
    return [line for line in told if line]


async def letters_shown(management_url: str, amqp_url: str) -> list[UUID | None]:
    """Return which letters the messages in the dead-letter queue stand for; they stay there."""
    vhost = amqp_url.rpartition("/")[2]
    request = {"count": 10_000, "ackmode": "ack_requeue_true", "encoding": "auto"}
    async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
        answer = await client.post(f"{management_url}/api/queues/{vhost}/{DLQ}/get", json=request)
    answer.raise_for_status()
    return [decode_letter(message["payload"].encode()) for message in answer.json()]


async def wrong_results(http: httpx.AsyncClient, tickets: Sequence[Ticket]) -> list[str]:
    """Fetch the results of completed jobs; return those that are not of the document that was submitted."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def ask(ticket: Ticket) -> str:
        async with gate:
            answer = await http.get(f"/v1/jobs/{ticket.answers[0]}/result", headers={"Accept": "text/plain"})
        fits = answer.status_code == HTTPStatus.OK and (ticket.word in answer.text or not ticket.paper.told)
        return "" if fits else f"{ticket.paper.name} {ticket.answers[0]}: {answer.status_code}"

    return [line for line in await asyncio.gather(*map(ask, tickets)) if line]
