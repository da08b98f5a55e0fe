"""The state machine: one table says what may move where, and nothing else does."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Stage(StrEnum):
    """The four stages, in the order in which a job goes through them."""

    VALIDATE = "validate"
    EXTRACT = "extract"
    NORMALIZE = "normalize"
    PERSIST = "persist"

    def following(self) -> "Stage | None":
        """Return the stage after this one; ``None`` after the last."""
        order = list(Stage)
        index = order.index(self) + 1
        return order[index] if index < len(order) else None


class Lane(StrEnum):
    """A queue a stage is fed by; extract has two, so that scans never block documents with a text layer."""

    VALIDATE = "validate"
    EXTRACT_TEXT = "extract.text"
    EXTRACT_OCR = "extract.ocr"
    NORMALIZE = "normalize"
    PERSIST = "persist"

    @property
    def stage(self) -> Stage:
        """The stage that this lane feeds."""
        return Stage(self.value.partition(".")[0])


class JobState(StrEnum):
    """Where a job is."""

    ACCEPTED = "accepted"
    VALIDATING = "validating"
    EXTRACTING = "extracting"
    NORMALIZING = "normalizing"
    PERSISTING = "persisting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        """Whether nothing more happens by itself."""
        return self in TERMINAL


class RunStatus(StrEnum):
    """Where one stage of a job is."""

    READY = "ready"
    RUNNING = "running"
    RETRYING = "retrying"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class AttemptOutcome(StrEnum):
    """How a claim ended."""

    COMPLETED = "completed"
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    UNKNOWN = "unknown"
    CANCELLED = "cancelled"
    WORKER_LOST = "worker_lost"
    RELEASED = "released"
    DEADLINE = "deadline"


class Event(StrEnum):
    """What can happen to a stage run, and through it to its job."""

    CLAIMED = "claimed"
    TAKEN_OVER = "taken_over"
    COMPLETED = "completed"
    ERRORED = "errored"
    GAVE_UP = "gave_up"
    RELEASED = "released"
    LEASE_EXPIRED = "lease_expired"
    CANCELLED = "cancelled"
    REDRIVEN = "redriven"


TERMINAL: Final = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED})

IN_STAGE: Final[Mapping[Stage, JobState]] = {
    Stage.VALIDATE: JobState.VALIDATING,
    Stage.EXTRACT: JobState.EXTRACTING,
    Stage.NORMALIZE: JobState.NORMALIZING,
    Stage.PERSIST: JobState.PERSISTING,
}

RUN_TRANSITIONS: Final[Mapping[tuple[RunStatus, Event], RunStatus]] = {
    (RunStatus.READY, Event.CLAIMED): RunStatus.RUNNING,
    (RunStatus.RETRYING, Event.CLAIMED): RunStatus.RUNNING,
    (RunStatus.RUNNING, Event.TAKEN_OVER): RunStatus.RUNNING,
    (RunStatus.RUNNING, Event.COMPLETED): RunStatus.DONE,
    (RunStatus.RUNNING, Event.ERRORED): RunStatus.RETRYING,
    (RunStatus.RUNNING, Event.RELEASED): RunStatus.READY,
    (RunStatus.RUNNING, Event.LEASE_EXPIRED): RunStatus.READY,
    **{
        (status, event): target
        for status in (RunStatus.READY, RunStatus.RUNNING, RunStatus.RETRYING)
        for event, target in (
            (Event.GAVE_UP, RunStatus.FAILED),
            (Event.CANCELLED, RunStatus.CANCELLED),
        )
    },
    (RunStatus.FAILED, Event.REDRIVEN): RunStatus.READY,
}


def _job_transitions() -> dict[tuple[JobState, Stage, Event], JobState]:
    """Spell out the job's moves from the order of the stages."""
    table: dict[tuple[JobState, Stage, Event], JobState] = {}
    for stage, inside in IN_STAGE.items():
        befores = (JobState.ACCEPTED, inside) if stage is Stage.VALIDATE else (inside,)
        following = stage.following()
        for before in befores:
            table[before, stage, Event.CLAIMED] = inside
            table[before, stage, Event.GAVE_UP] = JobState.FAILED
            table[before, stage, Event.CANCELLED] = JobState.CANCELLED
        for event in (Event.TAKEN_OVER, Event.ERRORED, Event.RELEASED, Event.LEASE_EXPIRED):
            table[inside, stage, event] = inside
        table[inside, stage, Event.COMPLETED] = IN_STAGE[following] if following else JobState.COMPLETED
        table[JobState.FAILED, stage, Event.REDRIVEN] = inside
    return table


JOB_TRANSITIONS: Final[Mapping[tuple[JobState, Stage, Event], JobState]] = _job_transitions()


class IllegalMoveError(Exception):
    """A move that the table does not know; always a defect, never a race."""


def next_status(status: RunStatus, event: Event) -> RunStatus:
    """Say where ``event`` takes a stage run.

    Raises:
        IllegalMoveError: when the table has no such move.
    """
    try:
        return RUN_TRANSITIONS[status, event]
    except KeyError:
        msg = f"{status} + {event}"
        raise IllegalMoveError(msg) from None


def next_state(state: JobState, stage: Stage, event: Event) -> JobState:
    """Say where ``event`` in ``stage`` takes a job.

    Raises:
        IllegalMoveError: when the table has no such move.
    """
    try:
        return JOB_TRANSITIONS[state, stage, event]
    except KeyError:
        msg = f"{state} + {stage} {event}"
        raise IllegalMoveError(msg) from None


class PublicStatus(StrEnum):
    """The smaller word list that clients see."""

    ACCEPTED = "accepted"
    RUNNING = "running"
    RETRYING = "retrying"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


def public_status(state: JobState, run: RunStatus) -> PublicStatus:
    """Fold a job's state and its current run's status into the word that clients see."""
    if state.terminal or state is JobState.ACCEPTED:
        return PublicStatus(state.value)
    return PublicStatus.RETRYING if run is RunStatus.RETRYING else PublicStatus.RUNNING
