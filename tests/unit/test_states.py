"""The transition table as data."""

import pytest

from schema.domain.errors import MEANINGS, ErrorCode
from schema.domain.states import (
    IN_STAGE,
    JOB_TRANSITIONS,
    RUN_TRANSITIONS,
    TERMINAL,
    Event,
    IllegalMoveError,
    JobState,
    Lane,
    PublicStatus,
    RunStatus,
    Stage,
    next_state,
    next_status,
    public_status,
)


def test_terminal_jobs_change_only_by_redrive():
    """A completed or cancelled job never changes; a failed one only through an audited redrive."""
    out_of_terminal = {(old, event) for (old, _, event), new in JOB_TRANSITIONS.items() if old in TERMINAL}

    assert out_of_terminal == {(JobState.FAILED, Event.REDRIVEN)}


def test_every_open_state_can_be_cancelled_and_given_up():
    """There is no state from which a person or a deadline cannot end a job."""
    for event in (Event.CANCELLED, Event.GAVE_UP):
        assert {old for (old, _, e) in JOB_TRANSITIONS if e is event} == set(JobState) - TERMINAL


def test_every_state_is_reached_and_every_open_one_left():
    """No dead ends and no orphans in the table."""
    reached = set(JOB_TRANSITIONS.values()) | {JobState.ACCEPTED}
    left = {old for old, _, _ in JOB_TRANSITIONS}

    assert reached == set(JobState)
    assert left == set(JobState) - {JobState.COMPLETED, JobState.CANCELLED}


def test_a_done_run_never_moves_again():
    """One output per stage: a finished stage is not run again by anything."""
    assert {status for status, _ in RUN_TRANSITIONS} == set(RunStatus) - {RunStatus.DONE, RunStatus.CANCELLED}


def test_stages_follow_each_other_through_the_job_states():
    """Completing each stage walks the job from validating to completed."""
    state, walked = JobState.ACCEPTED, []
    for stage in Stage:
        state = next_state(state, stage, Event.CLAIMED)
        state = next_state(state, stage, Event.COMPLETED)
        walked.append(state)

    assert walked == [JobState.EXTRACTING, JobState.NORMALIZING, JobState.PERSISTING, JobState.COMPLETED]


@pytest.mark.parametrize("stage", list(Stage))
def test_an_event_of_another_stage_is_illegal(stage):
    """A late outcome of an earlier stage cannot move the job."""
    others = [IN_STAGE[other] for other in Stage if other is not stage]

    for state in others:
        with pytest.raises(IllegalMoveError):
            next_state(state, stage, Event.COMPLETED)


def test_an_unknown_move_of_a_run_is_illegal():
    """Only what stands in the table may happen."""
    with pytest.raises(IllegalMoveError):
        next_status(RunStatus.DONE, Event.CLAIMED)


def test_each_lane_feeds_its_stage():
    """A lane's name begins with its stage's, which the database checks too."""
    assert {lane.stage for lane in Lane} == set(Stage)
    assert Lane.EXTRACT_OCR.stage is Stage.EXTRACT


@pytest.mark.parametrize(
    ("state", "run", "shown"),
    [
        (JobState.ACCEPTED, RunStatus.READY, PublicStatus.ACCEPTED),
        (JobState.EXTRACTING, RunStatus.READY, PublicStatus.RUNNING),
        (JobState.EXTRACTING, RunStatus.RUNNING, PublicStatus.RUNNING),
        (JobState.EXTRACTING, RunStatus.RETRYING, PublicStatus.RETRYING),
        (JobState.FAILED, RunStatus.FAILED, PublicStatus.FAILED),
    ],
)
def test_clients_see_the_smaller_word_list(state, run, shown):
    """Five inner states are one outer word."""
    assert public_status(state, run) is shown


def test_every_code_has_a_sentence():
    """Nobody is told a code alone."""
    assert set(MEANINGS) == set(ErrorCode)
