"""The fields of a section of the result, as its models declare them: what each holds, and whether it is a list."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args, get_origin, get_type_hints

from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Shape:
    """One field: its name, the model of what it holds, and whether it may hold several."""

    name: str
    model: type[BaseModel]
    is_list: bool


def shapes(section: type[BaseModel]) -> Iterator[Shape]:
    """Yield the fields of ``section`` in their order; each is a list of models, or a model or ``None``."""
    hints = get_type_hints(section)
    for name in section.model_fields:
        yield Shape(name, get_args(hints[name])[0], get_origin(hints[name]) is list)
