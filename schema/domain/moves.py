"""Moves: what one transaction writes about one job, decided before any row is touched.

Every change of a run after its claim is a ``Move``, made by one of the functions here out of the transition
table, and written by ``schema.db.moves.apply``. A move names the token and status it was decided on; where
the run has gone on since, nothing of it is written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from schema.domain.decisions import Advance, Decision, GiveUp, RetryAfter
from schema.domain.errors import ErrorCode
from schema.domain.outcomes import Completed, Outcome, Permanent, Transient, Unknown
from schema.domain.runs import Claim, RunView
from schema.domain.states import (
    IN_STAGE,
    AttemptOutcome,
    Event,
    JobState,
    Lane,
    RunStatus,
    Stage,
    next_state,
    next_status,
)


class LetterReason(StrEnum):
    """Why a dead letter is one."""

    RETRIES_EXHAUSTED = "retries_exhausted"
    UNKNOWN_EXHAUSTED = "unknown_exhausted"
    WORKER_LOST = "worker_lost"
    DELIVERY_LIMIT = "delivery_limit"
    UNREADABLE = "unreadable"
    UNKNOWN_VERSION = "unknown_version"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One decided move of one run and its job.

    ``closes`` is how the open attempt ends, ``sends`` whether the run is owed a message (after ``retry_in``),
    ``opens`` the following stage's lane, ``error`` what the client is told of a failure.
    """

    event: Event
    job_id: UUID
    stage: Stage
    lane: Lane
    from_status: RunStatus
    from_token: int
    status: RunStatus
    state: JobState
    token: int
    series: int
    attempt: int
    lost: int
    retry_in: timedelta | None = None
    sends: bool = False
    closes: AttemptOutcome | None = None
    code: ErrorCode | None = None
    error: Mapping[str, Any] | None = None
    opens: Lane | None = None
    letter: LetterReason | None = None
    output: Completed | None = None
    by: str | None = None
    note: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


Held = Claim | RunView

_DEFAULT_LANE = {
    Stage.VALIDATE: Lane.VALIDATE,
    Stage.EXTRACT: Lane.EXTRACT_TEXT,
    Stage.NORMALIZE: Lane.NORMALIZE,
    Stage.PERSIST: Lane.PERSIST,
}


def _move(run: Held, event: Event, **changes: Any) -> Move:  # noqa: ANN401 - the fields of Move
    """Start from the run as it is and let the tables say where ``event`` takes it."""
    status = run.status if isinstance(run, RunView) else RunStatus.RUNNING
    state = run.state if isinstance(run, RunView) else IN_STAGE[run.stage]
    values: dict[str, Any] = {
        "event": event,
        "job_id": run.job_id,
        "stage": run.stage,
        "lane": run.lane,
        "from_status": status,
        "from_token": run.token,
        "status": next_status(status, event),
        "state": next_state(state, run.stage, event),
        "token": run.token,
        "series": run.series,
        "attempt": run.attempt,
        "lost": run.lost,
    }
    return Move(**values | changes)


def of_outcome(claim: Claim, outcome: Outcome, decision: Decision) -> Move:
    """Return the move that records ``outcome`` of a claim.

    Raises:
        TypeError: the decision is not about such an outcome.
    """
    match decision:
        case Advance() if isinstance(outcome, Completed):
            return _complete(claim, outcome)
        case RetryAfter(delay=delay):
            return _move(
                claim,
                Event.ERRORED,
                attempt=claim.attempt + 1,
                retry_in=delay,
                sends=True,
                closes=_closing(outcome),
                code=getattr(outcome, "code", None),
                detail=_detail(outcome),
            )
        case GiveUp(code=code, dead_letter=dead_letter):
            letter = _letter(outcome) if dead_letter else None
            return fail(claim, code, closes=_closing(outcome), letter=letter, outcome=outcome)
        case _:
            message = f"{type(outcome).__name__} cannot lead to {type(decision).__name__}"
            raise TypeError(message)


def _complete(claim: Claim, outcome: Completed) -> Move:
    """Finish the stage and open the following one, on the lane the handler chose."""
    following = claim.stage.following()
    opens = (outcome.lane or _DEFAULT_LANE[following]) if following else None
    return _move(claim, Event.COMPLETED, closes=AttemptOutcome.COMPLETED, opens=opens, output=outcome)


def fail(
    run: Held,
    code: ErrorCode,
    *,
    closes: AttemptOutcome,
    letter: LetterReason | None = None,
    outcome: Outcome | None = None,
) -> Move:
    """End the job as failed; the token rises, so that an owner who comes back late writes nothing."""
    error = {"code": code.value, "stage": run.stage.value} | _numbers(outcome)
    return _move(
        run,
        Event.GAVE_UP,
        token=run.token + 1,
        closes=closes,
        code=code,
        error=error,
        letter=letter,
        detail=_detail(outcome),
    )


def cancel(run: Held) -> Move:
    """End the job as cancelled and take the run away from whoever has it."""
    return _move(run, Event.CANCELLED, token=run.token + 1, closes=AttemptOutcome.CANCELLED)


def release(claim: Claim) -> Move:
    """Give a claim back unharmed: neither an attempt nor a lost worker, and a new message."""
    return _move(claim, Event.RELEASED, token=claim.token + 1, sends=True, closes=AttemptOutcome.RELEASED)


def lose(run: RunView, *, lost_claims: int) -> Move:
    """Take a run from an owner that is gone: back to ready, or given up when it cost too many workers."""
    if run.lost + 1 > lost_claims:
        return fail(run, ErrorCode.WORKER_LOST, closes=AttemptOutcome.WORKER_LOST, letter=LetterReason.WORKER_LOST)
    return _move(
        run,
        Event.LEASE_EXPIRED,
        token=run.token + 1,
        lost=run.lost + 1,
        sends=True,
        closes=AttemptOutcome.WORKER_LOST,
    )


def redrive(run: RunView, *, by: str, note: str) -> Move:
    """Open the next series of a failed run: first attempt, no lost workers, the token keeps rising."""
    return _move(
        run,
        Event.REDRIVEN,
        token=run.token + 1,
        series=run.series + 1,
        attempt=1,
        lost=0,
        sends=True,
        by=by,
        note=note,
    )


def _closing(outcome: Outcome) -> AttemptOutcome:
    """Return how an attempt with this outcome is written down."""
    match outcome:
        case Completed():
            return AttemptOutcome.COMPLETED
        case Transient():
            return AttemptOutcome.TRANSIENT
        case Permanent():
            return AttemptOutcome.PERMANENT
        case Unknown():
            return AttemptOutcome.UNKNOWN


def _letter(outcome: Outcome) -> LetterReason:
    """Return why a give-up after retries becomes a dead letter."""
    unknown = isinstance(outcome, Unknown)
    return LetterReason.UNKNOWN_EXHAUSTED if unknown else LetterReason.RETRIES_EXHAUSTED


def _numbers(outcome: Outcome | None) -> dict[str, Any]:
    """Return the limit with its name, the actual value and the pages of a permanent failure, where there are any."""
    if not isinstance(outcome, Permanent):
        return {}
    named = {
        "limit_name": outcome.limit_name,
        "limit": outcome.limit,
        "actual": outcome.actual,
        "pages": list(outcome.pages) or None,
    }
    return {name: value for name, value in named.items() if value is not None}


def _detail(outcome: Outcome | None) -> dict[str, str]:
    """Return what only operators see: the type of an exception that nobody classified, never its text."""
    return {"exception_type": outcome.exception_type} if isinstance(outcome, Unknown) else {}
