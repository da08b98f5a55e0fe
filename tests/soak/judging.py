"""What became of each document, against what had to."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.soak.clients import Ticket

LOST: Final = "lost"
# With these a job may be given up although its document is good; an operator brings it back.
EXPLAINED: Final = {"retries_exhausted", "worker_lost", "delivery_limit"}


@dataclass(frozen=True, slots=True)
class Judged:
    """All documents by sort and ending, and every one that ended otherwise than it had to.

    ``given_up`` are good documents whose job became a dead letter for a reason that faults explain.
    """

    endings: Mapping[str, int]
    wrong: Sequence[str]
    given_up: Sequence[str] = field(default_factory=list)


def expected(ticket: Ticket) -> str:
    """Say how a document must end."""
    if ticket.paper.refusal:
        return f"refused {ticket.paper.refusal}"
    if ticket.cancelled:
        return "cancelled"
    return f"failed {ticket.paper.failure}" if ticket.paper.failure else "completed"


def ending(ticket: Ticket, jobs: Mapping[str, Mapping[str, Any]]) -> str:
    """Say how a document ended."""
    if ticket.refusal:
        return f"refused {ticket.refusal}"
    job = jobs.get(ticket.answers[0]) if ticket.answers else None
    if job is None:
        return LOST
    return f"failed {job['error']['code']}" if job["state"] == "failed" else str(job["state"])


def judge(
    tickets: Sequence[Ticket], jobs: Mapping[str, Mapping[str, Any]], letters: Mapping[str, Mapping[str, Any]]
) -> Judged:
    """Compare; ``jobs`` are rows by id, ``letters`` the open dead letters by their job's id.

    A job with an open letter has not ended yet for an operator, so its document is as good as doomed.
    """
    endings: Counter[str] = Counter()
    wrong, given_up = [], []
    for ticket in tickets:
        got, wanted = ending(ticket, jobs), expected(ticket)
        endings[f"{ticket.paper.name}: {got}"] += 1
        letter = letters.get(ticket.answers[0]) if ticket.answers else None
        if len(ticket.jobs) > 1:
            wrong.append(f"{ticket.key}: one request made {len(ticket.jobs)} jobs")
        elif letter is not None and explains(letter, got):
            given_up += [] if ticket.paper.doomed else [f"{ticket.paper.name} {letter['reason']} {letter['code']}"]
        elif got != wanted:
            wrong.append(f"{ticket.paper.name} {ticket.answers[:1]}: {got}, not {wanted}")
    return Judged(dict(sorted(endings.items())), wrong, given_up)


def explains(letter: Mapping[str, Any], got: str) -> bool:
    """Say whether a letter is of a kind that faults cause, and says the same as its job."""
    return letter["reason"] in EXPLAINED and got == f"failed {letter['code']}"
