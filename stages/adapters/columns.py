"""Puts a text layer that was drawn across its columns, line by line, into the order in which the columns are read."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from stages.adapters.pages import Word
from stages.adapters.rows import Piece, gutter, reading_order

# The white between two columns, and what is a few words of a sentence at most, in heights of a line.
_WIDE_GAP: Final = 0.8
_MIN_SWITCHES: Final = 5
# Running text fills its column; the entries of a table end where they end.
_FULL: Final = 0.7
_FULL_SHARE: Final = 0.5


def in_columns(words: Sequence[Word], lines: Sequence[Sequence[Word]], size: tuple[float, float]) -> tuple[Word, ...]:
    """Return the words with the lines of one column after those of the other; as they are where nothing is mixed.

    Args:
        words: the words in the file's order.
        lines: the same, line by line.
        size: width and height of the page, so that distances across and down compare.
    """
    parts = [part for line in lines for part in _parts(line, size)]
    if len(parts) < len(lines) + _MIN_SWITCHES and not _jumps(parts):
        return tuple(words)
    pieces = [_piece(part, size) for part in parts]
    at = gutter(pieces)
    if at is None or _switches(pieces, at) < _MIN_SWITCHES or not _is_running(pieces, at):
        return tuple(words)
    rows = [row for row in reading_order(pieces) if row]
    return tuple((*word[:6], number) for number, row in enumerate(rows) for index in row for word in parts[index])


def _parts(line: Sequence[Word], size: tuple[float, float]) -> Iterator[list[Word]]:
    """Cut a line at its wide gaps."""
    ordered = sorted(line, key=lambda word: word[1])
    wide = _WIDE_GAP * max(word[4] - word[2] for word in ordered) * size[1]
    part = [ordered[0]]
    for left, right in pairwise(ordered):
        if (right[1] - left[3]) * size[0] > wide:
            yield part
            part = []
        part.append(right)
    yield part


def _jumps(parts: Sequence[Sequence[Word]]) -> bool:
    """Say whether lines go on beside the ones before them again and again."""
    beside = sum(
        abs(first[0][2] - second[0][2]) < (first[0][4] - first[0][2]) / 2 and first[0] is not second[0]
        for first, second in pairwise(parts)
    )
    return beside >= _MIN_SWITCHES


def _piece(part: Sequence[Word], size: tuple[float, float]) -> Piece:
    left, right = part[0][1] * size[0], part[-1][3] * size[0]
    top, bottom = min(word[2] for word in part) * size[1], max(word[4] for word in part) * size[1]
    return Piece(((left, top), (right, top), (right, bottom), (left, bottom)), " ".join(word[0] for word in part))


def _switches(pieces: Sequence[Piece], at: float) -> int:
    """Count how often the file goes back from the right column to the left one."""
    sides = [piece.corners[0][0] >= at for piece in pieces if not piece.corners[0][0] < at < piece.corners[1][0]]
    return sum(before and not after for before, after in pairwise(sides))


def _is_running(pieces: Sequence[Piece], at: float) -> bool:
    """Say whether most lines on both sides are as long as their column is wide."""
    for side in (
        [piece for piece in pieces if piece.corners[1][0] <= at],
        [piece for piece in pieces if piece.corners[0][0] >= at],
    ):
        widths = [piece.corners[1][0] - piece.corners[0][0] for piece in side]
        full = sum(width >= _FULL * max(widths) for width in widths)
        if full < _FULL_SHARE * len(widths):
            return False
    return True
