"""The command line: what may be asked, read into values."""

import argparse
import getpass
import re
import socket
from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from schema.db.dead_letters import LetterFilter, LetterState
from schema.domain.errors import ErrorCode
from schema.domain.moves import LetterReason
from schema.domain.states import Stage
from schema.runtime.examples import examples_of

EXAMPLES: Final = """examples:
  docstage-dlq list
  docstage-dlq list --stage extract --code storage_unavailable --older-than 1h
  docstage-dlq show 0190f3a2-…
  docstage-dlq redrive --stage extract --code storage_unavailable --dry-run --reason 'store is back'
  docstage-dlq redrive --stage extract --code storage_unavailable --rate 5 --canary 3 --reason 'store is back'
  docstage-dlq discard --id 0190f3a2-… --reason 'sent again by the customer'
  docstage-dlq export --state any > letters.jsonl
  docstage-dlq stats
  docstage-dlq reconcile
  docstage-dlq topology
"""

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; ``handler`` names the command."""
    parser = argparse.ArgumentParser(
        prog="docstage-dlq",
        description="List, redrive and discard dead letters. The database and broker come from DOCSTAGE_… variables.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, explanation, adds in _COMMANDS:
        command = commands.add_parser(
            name,
            help=explanation,
            description=explanation,
            epilog=examples_of(f"docstage-dlq {name}", EXAMPLES),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_argument("--json", action="store_true", help="print JSON instead of tables")
        for add in adds:
            add(command)
    arguments = parser.parse_args(argv)
    if arguments.command in {"redrive", "discard"} and not (arguments.all or _names_something(arguments)):
        parser.error("name letters by a filter, or say --all")
    return arguments


def letter_filter(arguments: argparse.Namespace) -> LetterFilter:
    """Return the letters that the filter options mean."""
    state = getattr(arguments, "state", LetterState.OPEN.value)
    return LetterFilter(
        state=None if state == "any" else LetterState(state),
        stage=arguments.stage,
        code=arguments.code,
        reason=arguments.reason_class,
        tenant_id=arguments.tenant,
        job_id=arguments.job,
        ids=arguments.id or None,
        older_than=arguments.older_than,
    )


def duration(value: str) -> timedelta:
    """Read ``90s``, ``15m``, ``2h`` or ``7d``."""
    match = re.fullmatch(r"(\d+)([smhd])", value)
    if match is None:
        message = f"{value!r} is not like 90s, 15m, 2h or 7d"
        raise argparse.ArgumentTypeError(message)
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def share(value: str) -> float:
    """Read a share from 0 to 1."""
    number = float(value)
    if not 0 <= number <= 1:
        message = f"{value!r} is not between 0 and 1"
        raise argparse.ArgumentTypeError(message)
    return number


def positive(value: str) -> float:
    """Read a number above 0."""
    number = float(value)
    if not 0 < number < float("inf"):
        message = f"{value!r} is not above 0"
        raise argparse.ArgumentTypeError(message)
    return number


def count(value: str) -> int:
    """Read a whole number from 0; a negative one would slice off the wrong end of a list of letters."""
    number = int(value)
    if number < 0:
        message = f"{value!r} is below 0"
        raise argparse.ArgumentTypeError(message)
    return number


def words(value: str) -> str:
    """Read something that a person wrote; spaces alone are no reason and nobody's name."""
    if not value.strip():
        message = "nothing is said"
        raise argparse.ArgumentTypeError(message)
    return value.strip()


def _names_something(arguments: argparse.Namespace) -> bool:
    names = ("stage", "code", "reason_class", "tenant", "job", "id", "older_than")
    return any(getattr(arguments, name) for name in names)


def _filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--stage", choices=[stage.value for stage in Stage])
    parser.add_argument("--code", choices=[code.value for code in ErrorCode], metavar="CODE")
    parser.add_argument("--reason-class", choices=[reason.value for reason in LetterReason], metavar="CLASS")
    parser.add_argument("--tenant", type=UUID, metavar="ID")
    parser.add_argument("--job", type=UUID, metavar="ID")
    parser.add_argument("--id", type=UUID, action="append", metavar="ID", help="a letter; may be given several times")
    parser.add_argument("--older-than", type=duration, metavar="AGE", help="such as 15m, 2h or 7d")


def _page(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=count, default=100, metavar="N", help="letters at most (%(default)s)")


def _limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit", type=count, metavar="N", help="letters at most, the oldest (default: all that match)"
    )


def _state(parser: argparse.ArgumentParser) -> None:
    states = [*(state.value for state in LetterState), "any"]
    parser.add_argument("--state", choices=states, default=LetterState.OPEN.value, help="default: %(default)s")


def _letters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--letters", action="store_true", help="show every letter instead of groups")


def _one(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", type=UUID, help="the letter's id, or that of its job")


def _action(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", type=words, required=True, help="why; kept in the letter's history")
    parser.add_argument("--by", type=words, default=_operator(), help="who (default: %(default)s)")
    parser.add_argument("--all", action="store_true", help="all open letters")
    parser.add_argument("--dry-run", action="store_true", help="say what would happen and change nothing")


def _pace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rate", type=positive, default=10.0, help="letters per second (default: %(default)s)")
    parser.add_argument("--canary", type=count, default=5, metavar="N", help="first only N; 0 for none (%(default)s)")
    parser.add_argument("--patience", type=duration, default=timedelta(minutes=15), help="wait for the canary (15m)")
    parser.add_argument(
        "--wait", type=duration, default=timedelta(0), metavar="TIME", help="wait for all outcomes at the end (no)"
    )
    parser.add_argument(
        "--stop-at", type=share, default=0.2, metavar="SHARE", help="stop when more fail again (default: %(default)s)"
    )


def _operator() -> str:
    return f"{getpass.getuser()}@{socket.gethostname()}"


_COMMANDS = (
    ("list", "Count open letters by stage and code, or show each.", (_filters, _state, _page, _letters)),
    ("show", "Show one letter with its job's attempts and events; never content.", (_one,)),
    ("redrive", "Bring letters back: the job goes on at the stage that failed.", (_filters, _limit, _action, _pace)),
    ("discard", "Close letters for good; their jobs stay failed.", (_filters, _limit, _action)),
    ("export", "Write letters as JSON lines.", (_filters, _limit, _state)),
    ("stats", "Count letters by state, stage and code.", ()),
    ("reconcile", "Make the dead-letter queue say what the rows say.", ()),
    ("topology", "Declare exchanges, queues and bindings.", ()),
)
