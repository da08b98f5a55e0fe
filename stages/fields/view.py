"""A document as the field rules see it: rows, what stands beside or below a label, and a found value's proof."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from stages.fields.dates import is_month_first
from stages.fields.layout import Box, Cell, Row, header_cells, overlap, rows_of_pages, union
from stages.fields.money import decimal_separator
from stages.fields.regions import names_united_states

Json = dict[str, Any]

MAX_EVIDENCE: Final = 200
MAX_VALUE: Final = 500
ROWS_BELOW: Final = 3
LINES_BELOW: Final = 4.0
_NOISE: Final = re.compile(r"[\W_]*\w?[\W_]*")


@dataclass(frozen=True, slots=True)
class Spot:
    """A span of a cell's text."""

    cell: Cell
    start: int
    end: int

    @property
    def text(self) -> str:
        """The span's text."""
        return self.cell.text[self.start : self.end]

    @property
    def box(self) -> Box | None:
        """The union of the boxes of the span's words."""
        return self.cell.box_of(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a label's value may stand: a cell, from which character on, and whether below the label."""

    cell: Cell
    offset: int = 0
    is_below: bool = False

    @property
    def text(self) -> str:
        """What stands at the place."""
        return self.cell.text[self.offset :]

    def spot(self, start: int, end: int) -> Spot:
        """Return a span of the place's text as a span of the cell."""
        return Spot(self.cell, self.offset + start, self.offset + end)


class View:
    """The document's rows and what its own numbers and dates say about how it writes them."""

    def __init__(self, pages: Sequence[Mapping[str, Any]], language: str | None) -> None:
        """Lay the pages out."""
        self.rows: list[Row] = rows_of_pages(pages)
        self.language = language
        self._recognized = {page["number"] for page in pages if page.get("source") == "ocr"}
        self._confidence = {page["number"]: page.get("confidence") for page in pages}

    @cached_property
    def cells(self) -> list[Cell]:
        """All cells in reading order."""
        return [cell for row in self.rows for cell in row.cells]

    @property
    def numbers(self) -> Iterable[int]:
        """The numbers of its pages."""
        return self._confidence

    @property
    def has_recognized(self) -> bool:
        """Whether any page was read from a picture."""
        return bool(self._recognized)

    def is_recognized(self, page: int) -> bool:
        """Say whether the page was read from a picture."""
        return page in self._recognized

    @cached_property
    def separator(self) -> str | None:
        """The document's decimal separator, where it is known."""
        return decimal_separator(cell.text for cell in self.cells)

    @cached_property
    def is_american(self) -> bool:
        """Whether an address in the United States is in it."""
        return any(names_united_states(cell.text) for cell in self.cells)

    @cached_property
    def month_first(self) -> bool:
        """Whether its dates have the month before the day."""
        default = self.language in {"en", None} and self.is_american
        return is_month_first((cell.text for cell in self.cells), default=default)

    def labels(self, pattern: re.Pattern[str]) -> Iterator[Spot]:
        """Yield where ``pattern`` is found, once a cell, in reading order."""
        for cell in self.cells:
            match = pattern.search(cell.text)
            if match:
                yield Spot(cell, match.start(), match.end())

    def places(self, label: Spot) -> Iterator[Place]:
        """Yield where the value of ``label`` may stand: behind it, in the cell to its right, below it."""
        yield Place(label.cell, label.end)
        right = next((cell for cell in self.right_of(label.cell) if not _NOISE.fullmatch(cell.text)), None)
        if right is not None:
            yield Place(right)
        yield from (Place(cell, is_below=True) for cell in self.below(label))

    def header_cells(self, row: Row) -> Sequence[Cell]:
        """Return the cells of a table's header; where recognition has guessed the gaps, the row's own."""
        return row.cells if self.is_recognized(row.page) else header_cells(row)

    def right_of(self, cell: Cell) -> Sequence[Cell]:
        """Return the cells to the right of ``cell``."""
        cells = cell.row.cells
        return cells[cells.index(cell) + 1 :]

    def below(self, label: Spot) -> Iterator[Cell]:
        """Yield the cells that stand under ``label`` within a few lines, nearest first."""
        row = label.cell.row
        index = row.cells.index(label.cell)
        for lower in self.rows[row.index + 1 : row.index + 1 + ROWS_BELOW]:
            if lower.page != row.page:
                return
            if lower.box is None:
                yield from lower.cells[index : index + 1]
                return
            if label.box is None or lower.box[1] - label.box[3] > LINES_BELOW * (label.box[3] - label.box[1]):
                return
            yield from (cell for cell in lower.cells if overlap(cell.box, label.box, axis=0) > 0)

    def field(self, value: str, confidence: float, *spots: Spot) -> Json:
        """Return ``value`` with its proof; what a doubtful page says is as doubtful as the page.

        Of several spots, whose sum the value is, the box covers those on the first one's page.
        """
        page = spots[0].cell.page
        page_confidence = self._confidence.get(page)
        box = union(spot.box for spot in spots if spot.cell.page == page)
        return {
            "value": value[:MAX_VALUE],
            "confidence": round(confidence * (1.0 if page_confidence is None else page_confidence), 3),
            "page": page,
            "box": None if box is None else [min(1.0, max(0.0, edge)) for edge in box],
            "evidence": " + ".join(spot.cell.row.text.replace("\t", " ") for spot in spots)[:MAX_EVIDENCE],
        }
