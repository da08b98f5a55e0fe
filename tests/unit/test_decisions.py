"""What follows from an outcome, as a table."""

import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.domain.backoff import RetryPolicy, deferral_delay, retry_delay
from schema.domain.decisions import Advance, GiveUp, RetryAfter, decide
from schema.domain.errors import ErrorCode, PermanentError, TransientError
from schema.domain.ids import new_id
from schema.domain.moves import of_outcome
from schema.domain.outcomes import Completed, Permanent, Transient, Unknown, classify
from schema.domain.runs import Claim
from schema.domain.states import Lane, Stage

POLICY = RetryPolicy(base=timedelta(seconds=1), cap=timedelta(seconds=60), attempts=6, unknown_attempts=3)
HOUR = timedelta(hours=1)
STORAGE = Transient(ErrorCode.STORAGE_UNAVAILABLE)


def _decide(outcome, *, attempt=1, time_left=HOUR):
    return decide(outcome, attempt=attempt, policy=POLICY, time_left=time_left, uniform=lambda _, high: high)


@pytest.mark.parametrize(
    ("outcome", "attempt", "expected"),
    [
        (Completed({}), 1, Advance()),
        (Permanent(ErrorCode.CORRUPT_DOCUMENT), 1, GiveUp(ErrorCode.CORRUPT_DOCUMENT, dead_letter=False)),
        (STORAGE, 1, RetryAfter(timedelta(seconds=2))),
        (STORAGE, 5, RetryAfter(timedelta(seconds=32))),
        (STORAGE, 6, GiveUp(ErrorCode.STORAGE_UNAVAILABLE, dead_letter=True)),
        (Unknown("KeyError"), 2, RetryAfter(timedelta(seconds=4))),
        (Unknown("KeyError"), 3, GiveUp(ErrorCode.INTERNAL_ERROR, dead_letter=True)),
    ],
)
def test_each_outcome_has_its_consequence(outcome, attempt, expected):
    """Retries are bounded, and by less for what nobody understands."""
    assert _decide(outcome, attempt=attempt) == expected


def test_a_dependencys_wish_is_kept_and_spread():
    """All whom a dependency turns away at one instant are told the same time; they must not come back as one."""
    wish = Transient(ErrorCode.STORAGE_UNAVAILABLE, retry_after_seconds=20)

    delays = {
        decide(wish, attempt=1, policy=POLICY, time_left=HOUR, uniform=random.Random(seed).uniform).delay
        for seed in range(200)
    }

    assert min(delays) >= timedelta(seconds=20)
    assert max(delays) - min(delays) > timedelta(seconds=8)
    assert max(delays) <= timedelta(seconds=30)


def test_a_failure_cannot_advance():
    """A decision about another outcome is a defect, and must not end in any move at all."""
    claim = Claim(
        job_id=new_id(),
        tenant_id=new_id(),
        stage=Stage.VALIDATE,
        lane=Lane.VALIDATE,
        series=1,
        attempt=1,
        lost=0,
        token=1,
        time_left=HOUR,
    )

    with pytest.raises(TypeError, match="Transient cannot lead to Advance"):
        of_outcome(claim, STORAGE, Advance())


def test_a_retry_that_would_come_after_the_deadline_is_not_scheduled():
    """The job fails now and not after a wait that can no longer help; no operator is bothered."""
    decision = _decide(STORAGE, time_left=timedelta(seconds=2))

    assert decision == GiveUp(ErrorCode.DEADLINE_EXCEEDED, dead_letter=False)


def test_a_dependency_may_ask_for_more_time_but_not_for_more_than_the_cap():
    """A Retry-After is honoured, and cannot park a job for a day."""
    assert _decide(Transient(ErrorCode.STORAGE_UNAVAILABLE, 30)) == RetryAfter(timedelta(seconds=45))
    assert _decide(Transient(ErrorCode.STORAGE_UNAVAILABLE, 86400)) == RetryAfter(POLICY.cap)


@given(attempt=st.integers(1, 10_000), seed=st.integers())
def test_a_delay_keeps_half_its_bound_and_never_exceeds_the_cap(attempt, seed):
    """Jitter spreads retries over half the window; the other half is peace for the dependency."""
    bound = min(60.0, 2.0 ** min(attempt, 64))

    delay = retry_delay(POLICY, attempt, random.Random(seed).uniform).total_seconds()

    assert bound / 2 - 1e-6 <= delay <= bound + 1e-6


def test_a_thousand_failures_of_one_instant_are_spread_over_the_window():
    """The busiest tenth of the window holds little more than its share."""
    draws = random.Random(7)
    delays = [retry_delay(POLICY, 3, draws.uniform).total_seconds() for _ in range(1000)]

    busiest = max(sum(4 + tenth * 0.4 <= delay < 4.4 + tenth * 0.4 for delay in delays) for tenth in range(10))

    assert busiest <= 200


def test_deferrals_double_from_one_second_to_fifteen():
    """A live owner is asked again less and less often."""
    assert [deferral_delay(n).total_seconds() for n in range(6)] == [1, 2, 4, 8, 15, 15]


def test_only_owned_errors_keep_their_meaning():
    """Everything else is unknown, and leaves its type's name alone."""
    assert classify(PermanentError(ErrorCode.TOO_MANY_PAGES, limit=10, actual=11)) == Permanent(
        ErrorCode.TOO_MANY_PAGES, limit=10, actual=11
    )
    assert classify(TransientError(ErrorCode.STORAGE_UNAVAILABLE)) == STORAGE
    assert classify(ValueError("a secret from the document")) == Unknown("ValueError")
