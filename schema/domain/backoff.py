"""How long a retry waits."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

Uniform = Callable[[float, float], float]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """One stage's patience.

    ``attempts`` bounds one series for circumstances, ``unknown_attempts`` for exceptions that nobody
    classified, ``lost_claims`` the workers that a series may cost.
    """

    base: timedelta = timedelta(seconds=1)
    cap: timedelta = timedelta(minutes=5)
    attempts: int = 6
    unknown_attempts: int = 3
    lost_claims: int = 3


def retry_delay(policy: RetryPolicy, attempt: int, uniform: Uniform) -> timedelta:
    """Draw the delay after failed ``attempt`` (from 1): between half and all of an exponential bound.

    Half the bound is always kept, so that a retry gives the dependency time; the other half is jitter, so
    that failures of one instant do not come back as one.
    """
    # The exponent is bounded because 2**1024 does not fit a float; the cap has long decided by then.
    bound = min(policy.cap.total_seconds(), policy.base.total_seconds() * 2 ** min(attempt, 64))
    return timedelta(seconds=uniform(bound / 2, bound))


def turn_delay(deferrals: int, uniform: Uniform) -> timedelta:
    """Draw how long a notice waits whose endpoint is busy: up to 2 s, doubling to 2 min.

    An endpoint that is slow has many of them; none may come round so often that they cost more than what they wait for.
    """
    bound = min(120, 2 ** min(deferrals + 1, 7))
    return timedelta(seconds=uniform(bound / 2, bound))


def deferral_delay(deferrals: int) -> timedelta:
    """Return how long a delivery waits for a live owner: 1 s, doubling to 15 s."""
    return timedelta(seconds=min(15, 2 ** min(deferrals, 4)))
