"""``.local/docstage.env``: what a person or a test needs to talk to the running system."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from deploy.local.instance import LOCAL, write_private

_MAIN_INSTANCES = ("run", "docker")


def path(instance: str) -> Path:
    """Return where the values of an instance are: those of ``make run`` where everybody looks for them."""
    return LOCAL / "docstage.env" if instance in _MAIN_INSTANCES else LOCAL / instance / "docstage.env"


def write(instance: str, values: Mapping[str, str]) -> None:
    """Write the values as shell assignments, readable by their owner alone."""
    lines = [f"# Use: set -a; . {path(instance).relative_to(LOCAL.parent)}; set +a"]
    lines += [f"{name}={shlex.quote(value)}" for name, value in values.items()]
    write_private(path(instance), "\n".join([*lines, ""]))


def read(instance: str) -> dict[str, str]:
    """Read the values back; there are none before the first ``make run``."""
    if not path(instance).exists():
        return {}
    assignments = shlex.split(path(instance).read_text(encoding="utf-8"), comments=True)
    return dict(assignment.split("=", 1) for assignment in assignments)
