"""Puts pieces of text that were found all over a picture into reading order, line by line."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

Point = tuple[float, float]

_SAME_LINE: Final = 0.5
_PARAGRAPH_GAP: Final = 0.9
_MIN_COLUMN_LINES: Final = 5
_MIN_COLUMN_WIDTH: Final = 0.25
# Where the gutter may be: about the middle of two columns, and behind the first of three.
_SHARES: Final = (0.5, 0.48, 0.52, 0.45, 0.55, 0.42, 0.58, 0.33, 0.35, 0.31)
# A piece that is shorter than this many times its height says little about the page's slant.
_TELLING_LENGTH: Final = 5


@dataclass(frozen=True, slots=True)
class Piece:
    """Some words on one line: its corners (clockwise from the top left, in pixels) and its text."""

    corners: tuple[Point, Point, Point, Point]
    text: str

    @property
    def height(self) -> float:
        """How high the piece is along its own edge."""
        return math.dist(self.corners[0], self.corners[3]) or 1.0


@dataclass(frozen=True, slots=True)
class _Placed:
    """A piece with its edges after the page's slant was taken out."""

    index: int
    left: float
    top: float
    right: float
    bottom: float

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


def reading_order(pieces: Sequence[Piece]) -> list[list[int]]:
    """Return the pieces' places in ``pieces``, line by line; an empty line stands between paragraphs."""
    if not pieces:
        return []
    placed = _straightened(pieces)
    lines: list[list[int]] = []
    for column in _columns(placed):
        rows = _rows(column)
        for above, row in pairwise([None, *rows]):
            if row is None:
                continue
            if lines and (above is None or _is_gap(above, row)):
                lines.append([])
            lines.append([piece.index for piece in row])
    return lines


def gutter(pieces: Sequence[Piece]) -> float | None:
    """Return the x of the white between two columns of running text that stand upright; ``None`` without columns."""
    return _gutter([_Placed(0, *piece.corners[0], *piece.corners[2]) for piece in pieces]) if pieces else None


def slant(pieces: Sequence[Piece]) -> float:
    """Return by which angle the lines rise or fall, in radians, as most long pieces have it."""
    angles = [
        math.atan2(piece.corners[1][1] - piece.corners[0][1], piece.corners[1][0] - piece.corners[0][0])
        for piece in pieces
        if math.dist(piece.corners[0], piece.corners[1]) > piece.height * _TELLING_LENGTH
    ]
    return median(angles) if angles else 0.0


def _straightened(pieces: Sequence[Piece]) -> list[_Placed]:
    """Turn all pieces by the page's slant."""
    angle = -slant(pieces)
    sine, cosine = math.sin(angle), math.cos(angle)
    placed = []
    for index, piece in enumerate(pieces):
        xs = [x * cosine - y * sine for x, y in piece.corners]
        ys = [x * sine + y * cosine for x, y in piece.corners]
        placed.append(_Placed(index, min(xs), (ys[0] + ys[1]) / 2, max(xs), (ys[2] + ys[3]) / 2))
    return placed


def _rows(pieces: Sequence[_Placed]) -> list[list[_Placed]]:
    """Put pieces at the same height into one row, from left to right."""
    rows: list[list[_Placed]] = []
    for piece in sorted(pieces, key=lambda each: each.middle):
        row = next((row for row in reversed(rows[-3:]) if _fits(row, piece)), None)
        if row is None:
            rows.append([piece])
        else:
            row.append(piece)
    rows.sort(key=lambda row: min(each.middle for each in row))
    return [sorted(row, key=lambda each: each.left) for row in rows]


def _fits(row: Sequence[_Placed], piece: _Placed) -> bool:
    """Say whether the piece stands beside its nearest neighbour in the row, and over none of them."""
    near = min(row, key=lambda each: max(each.left - piece.right, piece.left - each.right))
    shared = min(near.bottom, piece.bottom) - max(near.top, piece.top)
    lower = min(near.bottom - near.top, piece.bottom - piece.top)
    return shared > lower * _SAME_LINE and all(
        min(each.right, piece.right) - max(each.left, piece.left) < (piece.bottom - piece.top) for each in row
    )


def _columns(pieces: Sequence[_Placed]) -> Iterator[list[_Placed]]:
    """Part text that is set in columns; what spans them, and everything else, stays together in its place."""
    at = _gutter(pieces)
    if at is None:
        yield list(pieces)
        return
    spanning = sorted((each for each in pieces if each.left < at < each.right), key=lambda each: each.top)
    rest = [each for each in pieces if not each.left < at < each.right]
    for low, high in pairwise([-math.inf, *(each.middle for each in spanning), math.inf]):
        inside = [each for each in rest if low <= each.middle < high]
        heading = [each for each in spanning if each.middle == low]
        if heading:
            yield heading
        for side in (
            [each for each in inside if each.right <= at],
            [each for each in inside if each.left >= at],
        ):
            if side:
                yield from _columns(side)


def _gutter(pieces: Sequence[_Placed]) -> float | None:
    """Return the x of the white between two columns of running text; ``None`` when there is none.

    Labels with amounts beside them are no columns: there most pieces on one side are short.
    """
    left, right = min(each.left for each in pieces), max(each.right for each in pieces)
    width = right - left
    broad = [each for each in pieces if each.right - each.left >= width * _MIN_COLUMN_WIDTH]
    for share in _SHARES:
        at = left + width * share
        sides = ([each for each in broad if each.right <= at], [each for each in broad if each.left >= at])
        crossing = sum(each.left < at < each.right for each in pieces)
        if min(map(len, sides)) >= _MIN_COLUMN_LINES and crossing * 4 <= min(map(len, sides)):
            all_sides = ([each for each in pieces if each.right <= at], [each for each in pieces if each.left >= at])
            if all(len(some) * 2 >= len(every) for some, every in zip(sides, all_sides, strict=True)):
                return at
    return None


def _is_gap(above: Sequence[_Placed], below: Sequence[_Placed]) -> bool:
    """Say whether there is about an empty line between two rows."""
    height = median(each.bottom - each.top for each in above)
    return min(each.top for each in below) - max(each.bottom for each in above) > height * _PARAGRAPH_GAP
