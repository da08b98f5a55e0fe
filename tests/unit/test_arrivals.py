"""What a message means, as a table over everything a run can be."""

from datetime import timedelta

import pytest

from schema.domain.ids import new_id
from schema.domain.kinds import Kind
from schema.domain.runs import Arrival, RunView, classify_arrival
from schema.domain.states import JobState, Lane, RunStatus, Stage


def _run(status=RunStatus.READY, *, state=JobState.EXTRACTING, series=2, attempt=3, due_in=0.0):
    return RunView(
        job_id=new_id(),
        tenant_id=new_id(),
        stage=Stage.EXTRACT,
        lane=Lane.EXTRACT_TEXT,
        status=status,
        series=series,
        attempt=attempt,
        lost=0,
        token=7,
        worker_id=1 if status is RunStatus.RUNNING else None,
        lease_expired=False,
        due_in=timedelta(seconds=due_in),
        time_left=timedelta(hours=1),
        state=state,
        kind=Kind.TEXT,
    )


@pytest.mark.parametrize(
    ("run", "message", "meaning"),
    [
        (None, (1, 1), Arrival.UNKNOWN_JOB),
        (_run(), (2, 3), Arrival.CLAIMABLE),
        (_run(), (2, 2), Arrival.STALE),
        (_run(), (1, 9), Arrival.STALE),
        (_run(RunStatus.RUNNING), (2, 3), Arrival.RUNNING),
        (_run(RunStatus.RUNNING), (2, 2), Arrival.STALE),
        (_run(RunStatus.RETRYING, due_in=1), (2, 3), Arrival.EARLY),
        (_run(RunStatus.RETRYING, due_in=0), (2, 3), Arrival.CLAIMABLE),
        (_run(RunStatus.DONE), (2, 3), Arrival.STALE),
        (_run(RunStatus.FAILED, state=JobState.FAILED), (2, 3), Arrival.STALE),
        (_run(RunStatus.CANCELLED, state=JobState.CANCELLED), (2, 3), Arrival.STALE),
        # Ahead of its row: the row decides, because a message is a hint and never the truth.
        (_run(), (3, 1), Arrival.CLAIMABLE),
        (_run(RunStatus.RUNNING), (2, 4), Arrival.RUNNING),
    ],
)
def test_the_row_decides_what_a_message_means(run, message, meaning):
    """Duplicates, stragglers and early birds are told apart by the database's row alone."""
    series, attempt = message

    assert classify_arrival(run, series=series, attempt=attempt) is meaning
