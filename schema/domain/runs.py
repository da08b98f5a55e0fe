"""A stage run as the database shows it, and what a message that arrives for it means."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from uuid import UUID

from schema.domain.kinds import Kind
from schema.domain.states import JobState, Lane, RunStatus, Stage


@dataclass(frozen=True, slots=True)
class RunView:
    """One run read under its job's lock; every duration is measured by the database's clock.

    ``due_in`` is zero or less when a retry is due, ``time_left`` what remains before the job's deadline.
    """

    job_id: UUID
    tenant_id: UUID
    stage: Stage
    lane: Lane
    status: RunStatus
    series: int
    attempt: int
    lost: int
    token: int
    worker_id: int | None
    lease_expired: bool
    due_in: timedelta
    time_left: timedelta
    state: JobState
    kind: Kind
    deferred_event: UUID | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's right to work on one run, good as long as ``token`` is the run's."""

    job_id: UUID
    tenant_id: UUID
    stage: Stage
    lane: Lane
    series: int
    attempt: int
    lost: int
    token: int
    time_left: timedelta


class Arrival(StrEnum):
    """What a message means in the light of its run."""

    UNKNOWN_JOB = "unknown_job"
    STALE = "stale"
    EARLY = "early"
    RUNNING = "running"
    CLAIMABLE = "claimable"


def classify_arrival(run: RunView | None, *, series: int, attempt: int) -> Arrival:
    """Say what a message for (``series``, ``attempt``) means; the row is the truth, the message a hint.

    A message *ahead* of its row cannot come from the outbox (the row commits first); it is read as the
    hint it is, so the run is treated by its own state.
    """
    if run is None:
        return Arrival.UNKNOWN_JOB
    if run.state.terminal or (series, attempt) < (run.series, run.attempt):
        return Arrival.STALE
    match run.status:
        case RunStatus.RUNNING:
            return Arrival.RUNNING
        case RunStatus.READY:
            return Arrival.CLAIMABLE
        case RunStatus.RETRYING:
            return Arrival.EARLY if run.due_in > timedelta(0) else Arrival.CLAIMABLE
        case _:
            return Arrival.STALE
