"""Boxes of pages that were turned for reading, brought back to the page as it is shown."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

Box = Sequence[float]

# From the picture as it was turned clockwise by so many degrees, to the picture as it came.
_BACK: Final[Mapping[int, Callable[[float, float, float, float], list[float]]]] = {
    90: lambda x0, y0, x1, y1: [y0, 1.0 - x1, y1, 1.0 - x0],
    180: lambda x0, y0, x1, y1: [1.0 - x1, 1.0 - y1, 1.0 - x0, 1.0 - y0],
    270: lambda x0, y0, x1, y1: [1.0 - y1, x0, 1.0 - y0, x1],
}


def turn_back(result: Mapping[str, Any], pages: Sequence[Mapping[str, Any]]) -> None:
    """Change the boxes in ``result`` that lie on turned pages.

    Rows and columns exist only on the page turned upright, so all rules work there; but who is shown where a
    value stands looks at the page as it came.

    Shape: wherever an object has ``page`` and ``box``, the box belongs to that page.
    """
    rotations = {page["number"]: page["rotation"] for page in pages if page.get("rotation") in _BACK}
    for found in _boxed(result) if rotations else ():
        back = _BACK.get(rotations.get(found["page"], 0))
        if back is not None:
            found["box"] = [round(edge, 5) for edge in back(*found["box"])]


def _boxed(value: object) -> Iterator[dict[str, Any]]:
    """Yield all objects in ``value`` that have a box."""
    if isinstance(value, Mapping):
        if isinstance(value, dict) and value.get("box") is not None and "page" in value:
            yield value
        for inner in value.values():
            yield from _boxed(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _boxed(inner)
