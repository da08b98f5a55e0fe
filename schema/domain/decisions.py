"""What follows from an outcome: retry, give up, go on. Pure, so that every case is a table row in a test."""

from dataclasses import dataclass
from datetime import timedelta

from schema.domain.backoff import RetryPolicy, Uniform, retry_delay
from schema.domain.errors import ErrorCode
from schema.domain.outcomes import Completed, Outcome, Permanent, Transient


@dataclass(frozen=True, slots=True)
class Advance:
    """The stage is done; the job goes on or is finished."""


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """Another attempt of the same series follows after ``delay``."""

    delay: timedelta


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The job fails with ``code``; ``dead_letter`` when an operator could still bring it back."""

    code: ErrorCode
    dead_letter: bool


Decision = Advance | RetryAfter | GiveUp


def decide(outcome: Outcome, *, attempt: int, policy: RetryPolicy, time_left: timedelta, uniform: Uniform) -> Decision:
    """Say what follows from ``outcome`` of the ``attempt``-th try, ``time_left`` before the deadline."""
    match outcome:
        case Completed():
            return Advance()
        case Permanent(code=code):
            return GiveUp(code, dead_letter=False)
    budget = policy.attempts if isinstance(outcome, Transient) else policy.unknown_attempts
    if attempt >= budget:
        return GiveUp(outcome.code, dead_letter=True)
    delay = retry_delay(policy, attempt, uniform)
    if isinstance(outcome, Transient) and outcome.retry_after_seconds is not None:
        delay = max(delay, _wished(outcome.retry_after_seconds, policy, uniform))
    if delay >= time_left:
        return GiveUp(ErrorCode.DEADLINE_EXCEEDED, dead_letter=False)
    return RetryAfter(delay)


def _wished(seconds: float, policy: RetryPolicy, uniform: Uniform) -> timedelta:
    """Draw from a dependency's wish to half as much again, within the cap.

    It tells all whom it turns away at one instant the same time, and they must not come back as one.
    """
    wish = min(seconds, policy.cap.total_seconds() * 2 / 3)
    return timedelta(seconds=uniform(wish, wish * 3 / 2))
