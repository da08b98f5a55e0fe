"""The lines of an invoice: rows under a header that names a description, an amount and a price or a quantity.

Which number is which is decided by arithmetic where it can be (quantity times price makes the amount), and
by the column that a number stands in where it cannot.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import permutations
from typing import Final

from stages.fields.amounts import MEDIUM, NET_OR_TOTAL, label_of
from stages.fields.layout import Cell, Row
from stages.fields.lexicon import pattern, words
from stages.fields.money import Number, decimal_string, numbers
from stages.fields.view import Json, View

MAX_LINES: Final = 500
MAX_DESCRIPTION: Final = 300
MAX_NUMBERS: Final = 8
HEADER_ROWS: Final = 3
IDLE_ROWS: Final = 12
FAR: Final = 0.06
ASIDE: Final = "aside"
CENT: Final = Decimal("0.011")

_COLUMNS: Final[Mapping[str, re.Pattern[str]]] = {
    "description": pattern(
        words(r"description | particulars | beschreibung | bezeichnung | d[ée]signation | libell[ée] | omschrijving")
        + r"\b"
        r"|\b" + words(r"descripci[óo]n | concepto | descrizione | descri[çc][ãa]o") + r"(?!\w)"
        r"|^\W*"
        + words(r"item | article | artikel | leistung | product | produkt | details | service | art\.?")
        + r"s?(?!\w)"
    ),
    "quantity": pattern(
        r"^\W*"
        + words(
            r"qty | quantity | hours | units | menge | anzahl | stunden | quantit[ée] | qt[ée] | aantal | hoeveelheid"
            r"| cantidad | quantit[àa] | q\.t[àa] | quantidade | qtd\.?"
        )
        + r"(?!\w)"
    ),
    "unit_price": pattern(
        r"^\W*"
        + words(r"""
            (?:unit |[us]/)?price | rate | unit cost
            (?:einzel|netto|vk-|e-)?preis\w* | prix(?: unitaire)? | p\.?u\.? | prijs\w*
            ep | einzel | precio(?: unitario)? | prezzo(?: unitario)? | pre[çc]o
            """)
        + r"\b"
    ),
    "amount": pattern(
        r"^\W*"
        + words(r"""
            (?:line |net )?(?:amount|total)
            (?:netto|zeilen|gesamt)?betrag | gesamtpreis | gesamt | summe | entgelt
            montant | (?:prix|total) h\.?t\.? | bedrag | prijs incl\w*
            gp | importe | importo | valor
            """)
        + r"\b(?!\W*%)"
    ),
}
_NEXT_SECTION: Final = pattern(
    r"\b"
    + words(r"""
        (?:tax|vat|gst|sst)\W{0,2}summary | payment details | tax ?code
        \w*steueraufschl\w* | belegsummen | zahlungsbedingungen
        """)
    + r"\b"
)
_SUMS: Final = frozenset({"net_total", "tax_total", "total", "amount_due", "cash", "change", NET_OR_TOTAL})


@dataclass(frozen=True, slots=True)
class Header:
    """A table's header: its cells, each with the name of its column where it has one, and the row below it."""

    cells: Sequence[tuple[Cell, str | None]]
    end: int

    @property
    def names(self) -> set[str]:
        """The names of the columns."""
        return {name for _, name in self.cells if name}


@dataclass(slots=True)
class Line:
    """A line while its row, and where the amount stands lower the next one, is read."""

    description: str
    others: list[tuple[Number, str | None]]
    amount: Number | None = None
    quantity: Number | None = field(init=False, default=None)
    unit_price: Number | None = field(init=False, default=None)

    def settle(self) -> None:
        """Tell quantity and price apart: by their product, else by their columns."""
        for (first, _), (second, name) in permutations(self.others[:MAX_NUMBERS], 2):
            makes_amount = self.amount and abs(first.value * second.value - self.amount.value) <= CENT
            if makes_amount and name != "quantity" and not first.mark:
                self.quantity, self.unit_price = first, second
                return
        by_name = {name: number for number, name in reversed(self.others) if name}
        self.quantity, self.unit_price = by_name.get("quantity"), by_name.get("unit_price")


def read_lines(view: View) -> list[Json]:
    """Return the lines under every such header; a row without an amount of money is no line."""
    lines: list[Line] = []
    index = 0
    while index < len(view.rows) and len(lines) < MAX_LINES:
        header = _header(view, index)
        index = header.end if header else index + 1
        if header:
            found, index = _body(view, header)
            lines += found
    return [_json(line) for line in lines[:MAX_LINES]]


def _header(view: View, start: int) -> Header | None:
    """Return the header that begins at row ``start``; it may be printed in up to three rows."""
    cells: list[tuple[Cell, str | None]] = []
    names: set[str] = set()
    for row in view.rows[start : start + HEADER_ROWS]:
        for cell in view.header_cells(row):
            name = next(
                (name for name, words in _COLUMNS.items() if name not in names and words.search(cell.text)), None
            )
            names |= {name} if name else set()
            cells.append((cell, name))
        if not names or row.page != view.rows[start].page or any(number.is_money for number in numbers(row.text, None)):
            return None
        if {"description", "amount"} <= names and names & {"quantity", "unit_price"}:
            return Header(cells, row.index + 1)
    return None


def _body(view: View, header: Header) -> tuple[list[Line], int]:
    lines: list[Line] = []
    pending: Line | None = None
    idle = 0
    for row in view.rows[header.end :]:
        if idle > IDLE_ROWS or _NEXT_SECTION.search(row.text) or _header(view, row.index):
            return lines, row.index
        line = _line(view, row, header)
        label = _label_of_sum(row, line)
        if label in _SUMS:
            return lines, row.index
        if label == ASIDE:
            continue
        if line.amount is None:
            pending = line if line.description and line.others else pending
        elif line.description or pending:
            lines.append(_complete(line, pending))
            pending, idle = None, 0
        idle += 1
    return lines, len(view.rows)


def _complete(line: Line, pending: Line | None) -> Line:
    """Return ``line``, or the one before that waited for the amount that stands alone here."""
    if pending is not None and not line.description:
        pending.amount = line.amount
        line = pending
    line.settle()
    return line


def _label_of_sum(row: Row, line: Line) -> str | None:
    """Return which sum the row is, ``ASIDE`` for one in between; ``None`` for a line with its own numbers."""
    label = label_of(row.cells[0].text)
    if label is None or len(line.others) >= len(("quantity", "price")):
        return None
    if not any(number.is_money for number in numbers(row.text, None)):
        return None
    field, strength = label
    return ASIDE if field is None or (field == "net_total" and strength == MEDIUM) else field


def _line(view: View, row: Row, header: Header) -> Line:
    words: list[str] = []
    found: list[tuple[Number, str | None]] = []
    for cell in row.cells:
        name = _column(cell, row, header)
        values = [number for number in numbers(cell.text, view.separator) if not number.is_percent]
        if name == "description" or (not values and any(map(str.isalpha, cell.text))):
            words += [cell.text] if _describes(cell, name) else []
        else:
            found += [(number, name) for number in values]
    amounts = [number for number, name in found if name == "amount" and number.is_money]
    amount = amounts[-1] if amounts else None
    others = [(number, name) for number, name in found if number is not amount and name != "amount"]
    return Line(" ".join(words)[:MAX_DESCRIPTION], others, amount)


def _describes(cell: Cell, name: str | None) -> bool:
    """Say whether the cell is part of what was sold, not of what it costs."""
    is_wordy = any(map(str.isalpha, cell.text))
    return is_wordy and (name == "description" or (name is None and "%" not in cell.text))


def _column(cell: Cell, row: Row, header: Header) -> str | None:
    """Return the name of the column whose header stands nearest above; by order where there are no boxes."""
    if cell.box is None:
        position = row.cells.index(cell)
        last = [each for each in header.cells if each[0].row is header.cells[-1][0].row]
        return last[position][1] if position < len(last) else None
    distance, name = min(((_distance(cell, head), name) for head, name in header.cells), key=lambda each: each[0])
    return name if distance < FAR else None


def _distance(cell: Cell, header: Cell) -> float:
    """Return how far apart the two are across; of overlapping ones, those with a common edge are nearest."""
    if cell.box is None or header.box is None:
        return 1.0
    gap = max(cell.box[0], header.box[0]) - min(cell.box[2], header.box[2])
    edges = min(abs(cell.box[0] - header.box[0]), abs(cell.box[2] - header.box[2]))
    return gap if gap > 0 else edges - 1.0


def _json(line: Line) -> Json:
    return {
        "description": line.description or None,
        "quantity": _decimal(line.quantity),
        "unit_price": _decimal(line.unit_price, places=2),
        "amount": _decimal(line.amount, places=2),
    }


def _decimal(number: Number | None, *, places: int = 0) -> str | None:
    return None if number is None else decimal_string(number.value, places=places)
