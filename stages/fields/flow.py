"""A document as running text, in its reading order and without what every page repeats, mapped back to pages.

Shape: lines are joined by a newline, paragraphs by two; a word that was split at a line's end is joined.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from stages.fields.layout import Box, Row, is_too_long, lines_of_pages, text_cut, union

Json = dict[str, Any]

MAX_CHARACTERS: Final = 400_000
EDGE_LINES: Final = 3
MAX_PAGE_NUMBER: Final = 30
MAX_PATTERN: Final = 200
MIN_REPEATS: Final = 2
FEW_PAGES: Final = 3
PARAGRAPH_GAP: Final = 0.9
LINE_MARK: Final = "\n"
PARAGRAPH_MARK: Final = "\n\n"
_DIGITS: Final = re.compile(r"\d+")
_PAGE_NUMBER: Final = re.compile(
    r"\W*(?:page|seite|p\.)?\W*(?:\d{1,4}|[ivxlc]{1,6})\W*(?:(?:of|von|sur|de|/)\W*\d{1,4})?\W*", re.IGNORECASE
)
_SPLIT_WORD: Final = re.compile(r"[^\W\d_]{2}[-\u00ad\u2010]$")


@dataclass(frozen=True, slots=True)
class Piece:
    """One line of the text: where it begins, how much of the row is in it, and whether a paragraph begins."""

    start: int
    text: str
    row: Row
    opens_paragraph: bool


class Flow:
    """Running text with a way back to page and box.

    ``tabbed`` is the same with a tab, in the place of a blank, for every wide gap in a line.
    """

    def __init__(self, pages: Sequence[Mapping[str, Any]]) -> None:
        """Join the lines of all pages."""
        self.pieces: list[Piece] = []
        parts: list[str] = []
        position = 0
        for row, opens_paragraph in _body_lines(pages):
            text = row.text
            if self.pieces:
                mark = self._mark(opens_paragraph=opens_paragraph)
                if not mark:
                    parts[-1] = parts[-1][:-1]
                    position -= 1
                parts.append(mark)
                position += len(mark)
            parts.append(text)
            self.pieces.append(Piece(position, text.replace("\t", " "), row, opens_paragraph))
            position += len(text)
            if position >= MAX_CHARACTERS:
                break
        is_full = position >= MAX_CHARACTERS
        self._cut_pages = [
            page["number"]
            for page in pages
            if is_too_long(page) or (is_full and page["number"] >= self.pieces[-1].row.page)
        ]
        self.tabbed = "".join(parts)
        self.text = self.tabbed.replace("\t", " ")

    def cuts(self) -> list[Json]:
        """Return a warning when the document is longer than what is read of it."""
        return [text_cut(self._cut_pages)] if self._cut_pages else []

    @cached_property
    def _starts(self) -> list[int]:
        return [piece.start for piece in self.pieces]

    def paragraphs(self) -> Iterator[tuple[int, int]]:
        """Yield where each paragraph begins and ends."""
        opening = end = 0
        for piece in self.pieces:
            if piece.opens_paragraph and end > opening:
                yield opening, end
                opening = piece.start
            end = piece.start + len(piece.text)
        if end > opening:
            yield opening, end

    def page_of(self, position: int) -> int | None:
        """Return the page on which the character at ``position`` stands."""
        return self._piece(position).row.page if self.pieces else None

    def box_of(self, start: int, end: int) -> Box | None:
        """Return the union of the boxes of the words in the span, as far as they are on its first page."""
        page = self.page_of(start)
        boxes: list[Box | None] = []
        for piece in self.pieces[max(0, bisect_right(self._starts, start) - 1) :]:
            if piece.start >= end or piece.row.page != page:
                break
            boxes.append(_box_in_row(piece.row, start - piece.start, end - piece.start))
        return union(boxes)

    def _piece(self, position: int) -> Piece:
        return self.pieces[max(0, bisect_right(self._starts, position) - 1)]

    def _mark(self, *, opens_paragraph: bool) -> str:
        """Return what stands between the last line and the next."""
        if opens_paragraph:
            return PARAGRAPH_MARK
        return "" if _SPLIT_WORD.search(self.pieces[-1].text) else LINE_MARK


def _box_in_row(row: Row, start: int, end: int) -> Box | None:
    boxes, position = [], 0
    for cell in row.cells:
        if position < end and position + len(cell.text) > start:
            boxes.append(cell.box_of(start - position, end - position))
        position += len(cell.text) + 1
    return union(boxes)


def _body_lines(pages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Row, bool]]:
    """Yield the lines that are no header, footer or page number, and whether each opens a paragraph."""
    by_page = [(page["source"], lines_of_pages([page])) for page in pages]
    repeated = _repeated([lines for _, lines in by_page])
    for source, lines in by_page:
        previous: Row | None = None
        for index, line in enumerate(lines):
            at_edge = index < EDGE_LINES or index >= len(lines) - EDGE_LINES
            if at_edge and (_pattern(line) in repeated or _is_page_number(line)):
                continue
            yield line, source == "docx" or previous is None or _is_apart(previous, line)
            previous = line


def _repeated(pages: Sequence[Sequence[Row]]) -> set[str]:
    """Return what stands at the top or bottom of several pages, but for its digits."""
    counts: Counter[str] = Counter()
    for lines in pages:
        counts.update({_pattern(line) for line in (*lines[:EDGE_LINES], *lines[-EDGE_LINES:])})
    needed = MIN_REPEATS if len(pages) <= FEW_PAGES else max(FEW_PAGES, len(pages) // 3)
    return {pattern for pattern, count in counts.items() if count >= needed}


def _is_page_number(line: Row) -> bool:
    return len(line.text) <= MAX_PAGE_NUMBER and _PAGE_NUMBER.fullmatch(line.text) is not None


def _pattern(line: Row) -> str:
    return _DIGITS.sub("#", line.text[:MAX_PATTERN].casefold())


def _is_apart(above: Row, below: Row) -> bool:
    """Say whether a paragraph begins at ``below``: after a gap, in another column, or in another size."""
    if above.box is None or below.box is None:
        return below.index - above.index > 1
    height = above.box[3] - above.box[1]
    gap = below.box[1] - above.box[3]
    return gap > PARAGRAPH_GAP * height or gap < -height
