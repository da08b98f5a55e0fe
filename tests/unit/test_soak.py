"""The soak's own rules: what it does to whom, and how it judges what became of a document."""

import pytest

from tests.soak.clients import Ticket
from tests.soak.judging import ending, expected, judge
from tests.soak.papers import DOOMED, PAPERS
from tests.soak.schedule import AT_ONCE, DEEDS, WORKERS, Fault, plan

SEEDS = range(12)
LONG = 1200.0
PAPER = {paper.name: paper for paper in PAPERS}


def _at_once(faults: list[Fault], at: float) -> list[Fault]:
    return [fault for fault in faults if fault.at <= at < fault.over_at]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_seed_makes_the_same_schedule(seed):
    """A soak that went wrong is done again with its seed."""
    assert plan(seed, LONG) == plan(seed, LONG)
    assert plan(seed, LONG) != plan(seed + 1, LONG)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_schedule_never_harms_more_than_can_be_survived(seed):
    """What it proves would be nothing if nobody was left to work."""
    faults = plan(seed, LONG)

    for fault in faults:
        now = _at_once(faults, fault.at)
        assert len(now) <= AT_ONCE
        assert len({each.victim for each in now}) == len(now)
        assert sum(each.kind == "service" for each in now) <= 1
        assert {each.victim.partition(":")[0] for each in now if each.kind != "service"} & set(WORKERS) < set(WORKERS)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_fault_ends_before_the_soak_does(seed):
    """The counting begins with everything whole."""
    assert all(fault.at + fault.seconds < LONG for fault in plan(seed, LONG))


def test_a_long_schedule_does_everything_to_everybody():
    """No deed and no victim is forgotten by chance."""
    done = {(fault.kind, fault.victim, fault.deed) for fault in plan(1, 600)}

    wanted = {(kind, victim, deed) for kind, (victims, deeds) in DEEDS.items() for victim in victims for deed in deeds}
    assert done == wanted


def _ticket(paper: str, *answers: str, **told: object) -> Ticket:
    return Ticket("key", PAPER[paper], "word", b"", list(answers), **told)


def _job(state: str, code: str | None = None) -> dict[str, object]:
    return {"state": state, "error": {"code": code} if code else None}


@pytest.mark.parametrize(
    ("ticket", "job"),
    [
        (_ticket("text", "a"), _job("completed")),
        (_ticket("text", "a", cancelled=True), _job("cancelled")),
        (_ticket("text", "a", cancelled=False), _job("completed")),
        (_ticket("locked pdf", "a"), _job("failed", "password_required")),
        (_ticket("doomed", "a"), _job("completed")),
        (_ticket("nothing", refusal="empty_document"), None),
    ],
)
def test_what_ended_as_it_had_to_is_right(ticket, job):
    """The ordinary cases."""
    jobs = {"a": job} if job else {}

    assert ending(ticket, jobs) == expected(ticket)
    assert judge([ticket], jobs, {}).wrong == []


@pytest.mark.parametrize(
    ("ticket", "job"),
    [
        (_ticket("text", "a"), _job("failed", "storage_unavailable")),
        (_ticket("text", "a"), _job("extracting")),
        (_ticket("text", "a"), None),
        (_ticket("text"), None),
        (_ticket("text", "a", "b"), _job("completed")),
        (_ticket("text", "a", cancelled=True), _job("completed")),
        (_ticket("text", "a", cancelled=False), _job("cancelled")),
        (_ticket("locked pdf", "a"), _job("completed")),
        (_ticket("locked pdf", "a"), _job("failed", "corrupt_document")),
        (_ticket("nothing", "a"), _job("completed")),
    ],
)
def test_what_ended_otherwise_is_wrong(ticket, job):
    """A judge that lets anything pass would make every soak a success."""
    assert len(judge([ticket], {"a": job} if job else {}, {}).wrong) == 1


@pytest.mark.parametrize(
    ("reason", "code", "given_up"),
    [("worker_lost", "worker_lost", 1), ("unknown_exhausted", "internal_error", 0), ("worker_lost", "other", 0)],
)
def test_a_good_document_may_only_fail_by_a_letter_that_faults_explain(reason, code, given_up):
    """It is counted apart, and redriven."""
    letters = {"a": {"reason": reason, "code": code}}
    judged = judge([_ticket("text", "a")], {"a": _job("failed", "internal_error" if given_up == 0 else code)}, letters)

    assert len(judged.given_up) == given_up
    assert len(judged.wrong) == 1 - given_up


def test_a_doomed_document_with_its_letter_is_neither_wrong_nor_given_up():
    """It was meant to be."""
    letters = {"a": {"reason": "retries_exhausted", "code": "storage_unavailable"}}

    judged = judge([_ticket(DOOMED.name, "a")], {"a": _job("failed", "storage_unavailable")}, letters)

    assert (judged.wrong, judged.given_up) == ([], [])
