"""Pages as rows of cells: what stands beside what, whatever order the words came in.

A cell is a run of words without a wide gap; a row is the cells at one height. Pages without words (plain
text, DOCX) give rows too, with tabs and runs of blanks as gaps, and without boxes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, islice, pairwise
from operator import itemgetter
from statistics import median
from typing import Any, Final

from stages.fields.cleaning import clean_text, clean_word

Box = tuple[float, float, float, float]

MAX_ROWS: Final = 6_000
MAX_LINES: Final = 40_000
MAX_TOKENS: Final = 60
MAX_TOKEN: Final = 80
MAX_PAGE_CHARACTERS: Final = 500_000
# What recognition itself doubts this much is a speck or a guess; no field may come of it.
LEGIBLE: Final = 0.3
CONFIDENCE: Final = 5
WIDE_GAP_IN_CHARACTERS: Final = 2.4
# A blank is half a character wide, in typewriter faces a whole one; the names of narrow columns stand closer than
# their entries.
HEADER_GAP_IN_CHARACTERS: Final = 1.3
_TEXT_GAP: Final = re.compile(r"\t+| {2,}|\s\|\s")


@dataclass(frozen=True, slots=True)
class Token:
    """One word and its box; without a box where the page has none."""

    text: str
    box: Box | None = None


@dataclass(eq=False)
class Cell:
    """Words that stand together: a label, a value, a column's entry, a line of running text."""

    page: int
    tokens: tuple[Token, ...]
    row: "Row" = field(init=False, repr=False)

    @cached_property
    def text(self) -> str:
        """The words joined by one space."""
        return " ".join(token.text for token in self.tokens)

    @cached_property
    def box(self) -> Box | None:
        """The union of the words' boxes."""
        return union(token.box for token in self.tokens)

    def box_of(self, start: int, end: int) -> Box | None:
        """Return the union of the boxes of the words that cover ``text[start:end]``."""
        boxes, position = [], 0
        for token in self.tokens:
            if position < end and position + len(token.text) > start:
                boxes.append(token.box)
            position += len(token.text) + 1
        return union(boxes)


@dataclass(eq=False)
class Row:
    """The cells at one height of a page, from left to right."""

    page: int
    index: int
    cells: tuple[Cell, ...]

    def __post_init__(self) -> None:
        """Let every cell know its row."""
        for cell in self.cells:
            cell.row = self

    @cached_property
    def text(self) -> str:
        """The cells joined by a tab."""
        return "\t".join(cell.text for cell in self.cells)

    @cached_property
    def box(self) -> Box | None:
        """The union of the cells' boxes."""
        return union(cell.box for cell in self.cells)


def union(boxes: Iterable[Box | None]) -> Box | None:
    """Return the smallest box around all ``boxes``; ``None`` when there is none."""
    known = [box for box in boxes if box is not None]
    if not known:
        return None
    x0, y0, x1, y1 = zip(*known, strict=True)
    return (min(x0), min(y0), max(x1), max(y1))


def rows_of_pages(pages: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return the rows of all pages, top to bottom, cells of one height together.

    Shape: a page is the JSON of ``schema.wire.pages.ExtractedPage``; ``Row.index`` counts through the document.
    """
    cells = ((page["number"], list(map(_clipped, row))) for page in pages for row in _rows(page))
    return [Row(number, index, tuple(row)) for index, (number, row) in enumerate(islice(cells, MAX_ROWS))]


def lines_of_pages(pages: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return the lines of all pages in their reading order, column after column.

    Shape: as ``rows_of_pages``; an empty line of a page without words leaves a gap in the indexes.
    """
    lines: list[Row] = []
    index = 0
    for page in pages:
        for cells in _lines_of_page(page):
            if cells and len(lines) < MAX_LINES:
                lines.append(Row(page["number"], index, tuple(cells)))
            index += 1
    return lines


def is_too_long(page: Mapping[str, Any]) -> bool:
    """Say whether a page without words has more text than is looked at."""
    return not page.get("words") and len(page["text"]) > MAX_PAGE_CHARACTERS


def text_cut(pages: Iterable[int]) -> dict[str, Any]:
    """Return the warning that not all of a document was looked at, with the pages that this is about."""
    return {"code": "text_cut", "pages": list(pages)}


def header_cells(row: Row) -> list[Cell]:
    """Return the cells of a table's header, cut at smaller gaps than other rows are."""
    cells = [part for cell in row.cells for part in _split(cell.page, cell.tokens, HEADER_GAP_IN_CHARACTERS)]
    for cell in cells:
        cell.row = row
    return cells


def overlap(first: Box | None, second: Box | None, *, axis: int) -> float:
    """Return how much of the narrower box lies within the other along ``axis`` (0 across, 1 down); 0 to 1."""
    if first is None or second is None:
        return 0.0
    shared = min(first[axis + 2], second[axis + 2]) - max(first[axis], second[axis])
    narrower = min(first[axis + 2] - first[axis], second[axis + 2] - second[axis])
    return max(0.0, shared) / narrower if narrower > 0 else 0.0


def _rows(page: Mapping[str, Any]) -> Iterator[list[Cell]]:
    words = page.get("words")
    if words:
        legible = [word for word in words if word[CONFIDENCE] >= LEGIBLE]
        yield from _merge([cell for line in _lines(legible) for cell in _split(page["number"], line)])
    else:
        yield from (cells for cells in _lines_of_page(page) if cells)


def _clipped(cell: Cell) -> Cell:
    """Return the beginning of a cell: labels and values are short, and each rule's cost depends on it."""
    if len(cell.tokens) <= MAX_TOKENS and all(len(token.text) <= MAX_TOKEN for token in cell.tokens):
        return cell
    return Cell(cell.page, tuple(Token(token.text[:MAX_TOKEN], token.box) for token in cell.tokens[:MAX_TOKENS]))


def _lines_of_page(page: Mapping[str, Any]) -> Iterator[list[Cell]]:
    """Yield the page's lines in reading order; an empty line is an empty list."""
    number, words = page["number"], page.get("words")
    if words:
        yield from (list(_split(number, line)) for line in _lines(words))
        return
    for line in clean_text(page["text"][:MAX_PAGE_CHARACTERS]).split("\n"):
        parts = (part.split() for part in _TEXT_GAP.split(line))
        yield [Cell(number, tuple(map(Token, part))) for part in parts if part]


def _lines(words: Sequence[Sequence[Any]]) -> Iterator[list[Token]]:
    """Return the words of each line from left to right."""
    for _, line in groupby(words, key=itemgetter(6)):
        tokens = [
            Token(text, (x0, y0, x1, y1)) for word, x0, y0, x1, y1, *_ in line if (text := clean_word(word).strip())
        ]
        yield sorted(tokens, key=_left)


def _split(number: int, line: Sequence[Token], gap: float = WIDE_GAP_IN_CHARACTERS) -> Iterator[Cell]:
    """Cut a line at its gaps wider than ``gap``, which is measured in the line's own characters."""
    if not line:
        return
    wide = gap * median(_character_width(token) for token in line)
    start = 0
    for index, (left, right) in enumerate(pairwise(line), start=1):
        if _left(right) - _right(left) > wide:
            yield Cell(number, tuple(line[start:index]))
            start = index
    yield Cell(number, tuple(line[start:]))


def _merge(cells: list[Cell]) -> Iterator[list[Cell]]:
    """Bring cells of one height together, although they belong to different blocks of the page."""
    row: list[Cell] = []
    reach: Box | None = None
    for cell in sorted(cells, key=_middle):
        if row and not _beside(cell, row, reach):
            yield sorted(row, key=lambda each: _left(each.tokens[0]))
            row, reach = [], None
        row.append(cell)
        reach = union((reach, cell.box)) if reach is None else reach
    if row:
        yield sorted(row, key=lambda each: _left(each.tokens[0]))


def _beside(cell: Cell, row: list[Cell], reach: Box | None) -> bool:
    """Say whether ``cell`` stands at the row's height and over none of its cells."""
    same_height = overlap(cell.box, row[-1].box, axis=1) > 0.5 and overlap(cell.box, reach, axis=1) > 0.3  # noqa: PLR2004 - half a line
    return same_height and all(overlap(cell.box, other.box, axis=0) < 0.3 for other in row)  # noqa: PLR2004 - a third


def _middle(cell: Cell) -> float:
    return (cell.box[1] + cell.box[3]) / 2 if cell.box else 0.0


def _left(token: Token) -> float:
    return token.box[0] if token.box else 0.0


def _right(token: Token) -> float:
    return token.box[2] if token.box else 0.0


def _character_width(token: Token) -> float:
    return (_right(token) - _left(token)) / max(1, len(token.text))
