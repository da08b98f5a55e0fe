"""The numbers of a soak and what each has to be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.soak.clients import Office, Ticket
from tests.soak.judging import LOST, Judged, ending, expected
from tests.soak.report import Number
from tests.soak.settle import Rest

# Persist has a result and no output.
OUTPUTS_PER_JOB: Final = 3


@dataclass(frozen=True, slots=True)
class Letters:
    """The dead letters once all was quiet: open rows, whom their messages stand for, and how many were redriven."""

    open: Sequence[Mapping[str, Any]]
    shown: Sequence[object]
    judged: Judged
    redriven: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was found at the end; ``rests`` are the two times that all was waited for, before and after the redrive.

    ``counted`` are numbers of rows, ``waiting`` says how many offices did not get their answers.
    """

    office: Office
    jobs: Mapping[str, Mapping[str, Any]]
    letters: Letters
    rests: tuple[Rest, Rest]
    counted: Mapping[str, int]
    waiting: int


def numbers(found: Evidence) -> list[Number]:
    """Compare what was found with what had to be."""
    return [*_documents(found), *_rows(found), *_letters(found), *_left(found)]


def _documents(found: Evidence) -> list[Number]:
    """Documents by their ending, and jobs against documents."""
    tickets, accepted = found.office.tickets, found.office.accepted
    got, wanted = [ending(ticket, found.jobs) for ticket in tickets], [expected(ticket) for ticket in tickets]
    known = {job_id for ticket in accepted for job_id in ticket.jobs}
    repeated = [ticket for ticket in accepted if len(ticket.answers) > 1]
    return [
        Number("jobs, against documents accepted", len(found.jobs), len(accepted)),
        Number("accepted and lost", got.count(LOST), 0),
        Number("jobs that no client was told of", len(found.jobs.keys() - known), 0),
        Number("repeated requests answered with one job", sum(len(each.jobs) == 1 for each in repeated), len(repeated)),
        *(
            Number(name, _begin(got, name), _begin(wanted, name))
            for name in ("completed", "failed", "cancelled", "refused")
        ),
    ]


def _begin(endings: Sequence[str], word: str) -> int:
    return sum(each.startswith(word) for each in endings)


def _rows(found: Evidence) -> list[Number]:
    """Results and outputs, and what must not be there twice."""
    complete = len(completed(found.office, found.jobs))
    return [
        Number("results", found.counted["results"], complete),
        Number("outputs of completed jobs", found.counted["outputs"], OUTPUTS_PER_JOB * complete),
        Number("stages completed twice", found.counted["completed_twice"], 0),
        Number("dead letters twice in a series", found.counted["letters_twice"], 0),
    ]


def _letters(found: Evidence) -> list[Number]:
    """Dead letters that had to be, their messages, and their way back."""
    doomed = [ticket for ticket in found.office.accepted if ticket.paper.doomed and not ticket.cancelled]
    letters = found.letters
    return [
        Number(
            "dead letters, against doomed and given up", len(letters.open), len(doomed) + len(letters.judged.given_up)
        ),
        Number("messages in the dead-letter queue", len(letters.shown), len(letters.open)),
        Number(
            "letters that they stand for",
            len({letter["id"] for letter in letters.open} & set(letters.shown)),
            len(letters.open),
        ),
        Number("letters redriven", letters.redriven, len(letters.open)),
        Number("open letters afterwards", found.rests[-1].look.letters, 0),
        Number("their messages afterwards", found.rests[-1].look.shown, 0),
    ]


def _left(found: Evidence) -> list[Number]:
    """What is still open when patience has ended, at the worse of the two times."""
    looks = [rest.look for rest in found.rests]
    return [
        Number("stuck jobs", max(look.unfinished for look in looks), 0),
        Number("rows left in the outbox", max(look.owed for look in looks), 0),
        Number("messages left in queues", max(look.left for look in looks), 0),
        Number("clients without an answer", found.waiting, 0),
    ]


def completed(office: Office, jobs: Mapping[str, Mapping[str, Any]]) -> list[Ticket]:
    """Return the documents that have a result."""
    return [ticket for ticket in office.accepted if ending(ticket, jobs) == "completed"]
