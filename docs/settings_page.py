# ruff: noqa: INP001 - a folder of pages, not a package
"""``make docs``: writes docs/settings.md from the settings classes, so that the page cannot lag behind the code."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from schema.runtime import settings
from schema.runtime.settings import (
    ClientSettings,
    DeliverSettings,
    IntakeSettings,
    PublisherSettings,
    Settings,
    StagesSettings,
    ToolSettings,
)

PAGE: Final = Path(__file__).with_name("settings.md")
PREFIX: Final = str(Settings.model_config["env_prefix"]).upper()
SIGNS: Final = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
READERS: Final = {
    IntakeSettings: "python -m intake",
    PublisherSettings: "python -m publisher",
    StagesSettings: "python -m stages",
    DeliverSettings: "python -m stages deliver",
    ToolSettings: "docstage-dlq",
    ClientSettings: "docstage",
}
INTRODUCTION: Final = f"""# Settings

Every process reads its settings once, at start, from the environment; the names begin with `{PREFIX}`. A process that
finds a value missing or out of bounds does not start, and says which. Names end in their unit. Secrets are shown as
such: they are never logged.

This page is made from `schema/runtime/settings.py` by `make docs`; do not edit it.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join([INTRODUCTION, *(_section(group) for group in groups())])


def groups() -> list[type[Settings]]:
    """Return the classes that have settings of their own, in the order of the source, shared ones first."""
    found = [
        one
        for one in vars(settings).values()
        if inspect.isclass(one) and issubclass(one, Settings) and any(_own_fields(one))
    ]
    return sorted(found, key=lambda group: not group.__subclasses__())


def _section(group: type[Settings]) -> str:
    """Return one class as a heading and a table."""
    readers = ", ".join(f"`{name}`" for reader, name in READERS.items() if issubclass(reader, group))
    lines = [f"## {_title(group)}", "", f"Read by {readers}.", ""]
    lines += ["| Variable | Default | Bounds | Meaning |", "|---|---|---|---|"]
    lines += [_row(name, field) for name, field in _own_fields(group)]
    return "\n".join([*lines, ""])


def _own_fields(group: type[Settings]) -> Iterator[tuple[str, FieldInfo]]:
    """Yield the settings that a class adds to those it inherits."""
    inherited = {name for base in group.__mro__[1:] for name in getattr(base, "model_fields", {})}
    return ((name, field) for name, field in group.model_fields.items() if name not in inherited)


def _title(group: type[Settings]) -> str:
    return (inspect.getdoc(group) or "").partition("\n")[0].rstrip(".")


def _row(name: str, field: FieldInfo) -> str:
    meaning = f"{field.description} Secret." if field.annotation is SecretStr else field.description
    return f"| `{PREFIX}{name.upper()}` | {_default(field)} | {_bounds(field)} | {meaning} |"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    return f"`{field.default}`" if str(field.default) else "empty"


def _bounds(field: FieldInfo) -> str:
    """Return the limits that are checked at start."""
    found = ((sign, getattr(limit, name, None)) for limit in field.metadata for name, sign in SIGNS.items())
    return ", ".join(f"{sign} {bound}" for sign, bound in found if bound is not None)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
