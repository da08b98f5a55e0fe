"""The oracle: what must be true of a job once it is finished, whatever was killed on the way."""

from dataclasses import dataclass
from typing import Any

from schema.db.engine import Database
from tests.support.factories import rows

STAGES = ("validate", "extract", "normalize", "persist")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A finished job's rows, for what a single test asks beyond the rules for all."""

    job: dict[str, Any]
    runs: dict[str, dict[str, Any]]
    attempts: list[dict[str, Any]]
    letters: list[dict[str, Any]]


async def verify(database: Database, job_id: str) -> Verdict:
    """Check P2 to P4 on one finished job: one result, one output per stage, every claim closed, nothing owed."""
    (job,) = await rows(database, "SELECT * FROM job WHERE id = :id", id=job_id)
    runs = await rows(database, "SELECT * FROM stage_run WHERE job_id = :id", id=job_id)
    attempts = await rows(
        database, "SELECT * FROM stage_attempt WHERE job_id = :id ORDER BY began_at, fencing_token", id=job_id
    )
    letters = await rows(database, "SELECT * FROM dead_letter WHERE job_id = :id", id=job_id)
    events = await rows(database, "SELECT * FROM job_event WHERE job_id = :id ORDER BY sequence", id=job_id)
    owed = await rows(database, "SELECT * FROM outbox_event WHERE job_id = :id AND kind = 'stage'", id=job_id)
    results = await rows(database, "SELECT 1 FROM result WHERE job_id = :id", id=job_id)

    assert job["finished_at"] is not None, job["state"]
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    assert all(attempt["ended_at"] is not None for attempt in attempts), attempts
    assert len(results) == (1 if job["state"] == "completed" else 0)
    assert len({(letter["stage"], letter["series"]) for letter in letters}) == len(letters)
    for run in runs:
        _check_run(run, [attempt for attempt in attempts if attempt["stage"] == run["stage"]])
    if job["state"] == "completed":
        assert {run["stage"]: run["status"] for run in runs} == dict.fromkeys(STAGES, "done")
    # A message may still be owed for a moment, but only one that will be found stale.
    assert len(owed) <= len(attempts)
    return Verdict(job, {run["stage"]: run for run in runs}, attempts, letters)


def _check_run(run: dict[str, Any], attempts: list[dict[str, Any]]) -> None:
    """A run is over, was completed at most once, and no claim of it is missing from the history."""
    assert run["status"] in {"done", "failed", "cancelled"}, run
    completed = [attempt for attempt in attempts if attempt["outcome"] == "completed"]
    assert len(completed) == (1 if run["status"] == "done" else 0), attempts
    tokens = [attempt["fencing_token"] for attempt in attempts]
    assert len(set(tokens)) == len(tokens)
    assert max(tokens, default=0) <= run["fencing_token"]
