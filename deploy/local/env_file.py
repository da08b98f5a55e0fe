"""``.local/docstage.env``: what a person or a test needs to talk to the running system."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from deploy.local.instance import LOCAL, write_private

PATH = LOCAL / "docstage.env"


def write(values: Mapping[str, str], path: Path = PATH) -> None:
    """Write the values as shell assignments, readable by their owner alone."""
    lines = ["# Written by `make run`. Use: set -a; . .local/docstage.env; set +a"]
    lines += [f"{name}={shlex.quote(value)}" for name, value in values.items()]
    write_private(path, "\n".join([*lines, ""]))


def read(path: Path = PATH) -> dict[str, str]:
    """Read the values back; there are none before the first ``make run``."""
    if not path.exists():
        return {}
    assignments = shlex.split(path.read_text(encoding="utf-8"), comments=True)
    return dict(assignment.split("=", 1) for assignment in assignments)
