"""Waiting until all is said and done; and what can be told of a job that is not."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from schema.db.engine import Database
from schema.wire.queues import DLQ
from tests.soak.facts import found, messages
from tests.soak.fleet import Fleet

# Lost messages are only issued again a minute later, and the dead-letter queue is looked at once a minute.
LONGEST_SECONDS: Final = 600.0
# Longer than the management API is late.
STEADY_SECONDS: Final = 6.0
POLL_SECONDS: Final = 0.5
STUCK_SHOWN: Final = 20

_STATE: Final = """
SELECT (SELECT count(*) FROM job WHERE finished_at IS NULL) AS unfinished,
       (SELECT count(*) FROM outbox_event) AS owed,
       (SELECT count(*) FROM dead_letter WHERE state = 'open') AS letters
"""
_UNFINISHED: Final = "SELECT id FROM job WHERE finished_at IS NULL ORDER BY id LIMIT :n"
_TIMELINE: Final = {
    "runs": "SELECT * FROM stage_run WHERE job_id = :id",
    "attempts": "SELECT * FROM stage_attempt WHERE job_id = :id ORDER BY began_at",
    "events": "SELECT at, type, stage FROM job_event WHERE job_id = :id ORDER BY sequence",
    "owed": "SELECT kind, lane, created_at, available_at, attempts, last_error FROM outbox_event WHERE job_id = :id",
}


@dataclass(frozen=True, slots=True)
class Look:
    """What was still open at one look; ``queues`` are those with messages, ``letters`` the open dead letters."""

    unfinished: int
    owed: int
    letters: int
    queues: Mapping[str, int]
    missing: Sequence[str]

    @property
    def left(self) -> int:
        """Messages that should not be there."""
        return sum(count for name, count in self.queues.items() if name != DLQ)

    @property
    def shown(self) -> int:
        """Messages in the dead-letter queue."""
        return self.queues.get(DLQ, 0)

    @property
    def quiet(self) -> bool:
        """Say whether nothing more is to be waited for."""
        return not (self.unfinished or self.owed or self.left or self.missing) and self.shown == self.letters


@dataclass(frozen=True, slots=True)
class Rest:
    """How it ended: the last look, how long it took, and everything about jobs that are still open."""

    look: Look
    seconds: float
    stuck: Sequence[Mapping[str, Any]] = field(default_factory=list)


async def settle(fleet: Fleet, management_url: str, *, longest: float = LONGEST_SECONDS) -> Rest:
    """Wait until nothing is open, and has been for a while; or until patience ends."""
    database, began = fleet.system.database, time.monotonic()
    quiet_since, seen = float("inf"), None
    while time.monotonic() - began < longest:
        with suppress(httpx.HTTPError):
            seen = await _look(fleet, management_url)
            quiet_since = min(quiet_since, time.monotonic()) if seen.quiet else float("inf")
        if time.monotonic() - quiet_since >= STEADY_SECONDS:
            assert seen is not None
            return Rest(seen, quiet_since - began)
        await asyncio.sleep(POLL_SECONDS)
    assert seen is not None, "the broker's management API does not answer"
    return Rest(seen, time.monotonic() - began, await _stuck(database))


async def _look(fleet: Fleet, management_url: str) -> Look:
    (state,) = await found(fleet.system.database, _STATE)
    depths = await messages(management_url, fleet.system.environment["DOCSTAGE_AMQP_URL"])
    queues = {name: count for name, count in depths.items() if count}
    return Look(state["unfinished"], state["owed"], state["letters"], queues, await fleet.missing())


async def _stuck(database: Database) -> list[Mapping[str, Any]]:
    """Tell all about the first jobs that are still open."""
    told: list[Mapping[str, Any]] = []
    for row in await found(database, _UNFINISHED, n=STUCK_SHOWN):
        parts = {name: await found(database, query, id=row["id"]) for name, query in _TIMELINE.items()}
        told.append({"job": row["id"], **parts})
    return told
