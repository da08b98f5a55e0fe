"""The lines of an invoice: rows under a header that names a description and an amount."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Final

from stages.fields.amounts import label_of
from stages.fields.layout import Box, Cell, Row
from stages.fields.money import Number, decimal_string, numbers
from stages.fields.view import Json, View

MAX_LINES: Final = 500
MAX_DESCRIPTION: Final = 300
HEADER_ROWS: Final = 2
MIN_COLUMNS: Final = 3
ROWS_WITHOUT_LINES: Final = 12
CENT: Final = Decimal("0.011")

_COLUMNS: Final[Mapping[str, re.Pattern[str]]] = {
    name: re.compile(rf"^\W*(?:{words})\W*$|^\W*(?:{words})\b", re.IGNORECASE)
    for name, words in {
        "description": r"description|item(?: description)?|article|artikel\w*|beschreibung|bezeichnung|leistung|product\w*|"
        r"produkt\w*|d[ée]signation|libell[ée]|omschrijving|particulars|details|service",
        "quantity": r"qty|quantity|menge|anzahl|quantit[ée]|qt[ée]|aantal|hoeveelheid|hours|stunden|units|oty",
        "unit_price": r"(?:unit )?price|rate|u/price|s/price|einzelpreis|e-preis|nettopreis|preis\w*|vk-preis|prix(?: unitaire)?|p\.?u\.?|"
        r"prijs\w*|unit cost",
        "amount": r"amount|total|betrag|nettobetrag|zeilenbetrag|gesamt\w*|summe|montant|prix ht|total ht|bedrag|line total|prijs incl",
    }.items()
}


def read_lines(view: View) -> list[Json]:
    """Return the lines under every such header; a row without an amount of money is no line."""
    lines: list[Json] = []
    index = 0
    while index < len(view.rows) and len(lines) < MAX_LINES:
        columns = _header(view.rows[index])
        index += 1
        if columns:
            found, index = _body(view, columns, index)
            lines += found
    return lines[:MAX_LINES]


def _header(row: Row) -> dict[str, Cell] | None:
    """Return the named columns of a header row, when it has a description, an amount and one more."""
    columns: dict[str, Cell] = {}
    for cell in row.cells:
        name = next((name for name, words in _COLUMNS.items() if name not in columns and words.match(cell.text)), None)
        if name:
            columns[name] = cell
    if "amount" not in columns and "unit_price" in columns and row.cells[-1] is columns["unit_price"]:
        columns["amount"] = columns.pop("unit_price")
    return columns if len(columns) >= MIN_COLUMNS and {"description", "amount"} <= columns.keys() else None


def _body(view: View, columns: Mapping[str, Cell], start: int) -> tuple[list[Json], int]:
    lines: list[Json] = []
    idle = 0
    for row in view.rows[start:]:
        if idle > ROWS_WITHOUT_LINES or _ends(row) or _header(row):
            return lines, row.index
        line = _line(view, row, columns)
        idle = 0 if line else idle + 1
        if line:
            lines.append(line)
    return lines, len(view.rows)


def _ends(row: Row) -> bool:
    """Say whether the sums begin here."""
    label = label_of(row.cells[0].text)
    return (
        label is not None
        and label[0] in {"net_total", "total", "tax_total", "amount_due"}
        and len(row.cells) <= MIN_COLUMNS
    )


def _line(view: View, row: Row, columns: Mapping[str, Cell]) -> Json | None:
    by_column: dict[str, list[Cell]] = {name: [] for name in columns}
    for cell in row.cells:
        by_column[_nearest(cell, row, columns)].append(cell)
    values = {name: _number(view, by_column.get(name, ())) for name in ("quantity", "unit_price", "amount")}
    amount = values["amount"]
    description = " ".join(cell.text for cell in by_column["description"])
    if amount is None or not amount.is_money or not any(map(str.isalpha, description)):
        return None
    return {
        "description": description[:MAX_DESCRIPTION],
        "quantity": _decimal(values["quantity"]),
        "unit_price": _decimal(values["unit_price"], places=2),
        "amount": _decimal(amount, places=2),
    }


def _nearest(cell: Cell, row: Row, columns: Mapping[str, Cell]) -> str:
    """Return the column whose header stands nearest above; by order where there are no boxes."""
    if cell.box is None:
        header = next(iter(columns.values())).row.cells
        position = row.cells.index(cell)
        return next((name for name, head in columns.items() if header.index(head) == position), "description")
    return min(columns, key=lambda name: _distance(cell.box, columns[name].box))


def _distance(box: Box | None, header: Box | None) -> float:
    if box is None or header is None:
        return 1.0
    gap = max(box[0], header[0]) - min(box[2], header[2])
    return gap if gap > 0 else -1.0 / (1.0 + abs(box[0] + box[2] - header[0] - header[2]))


def _number(view: View, cells: Iterator[Cell] | list[Cell] | tuple[()]) -> Number | None:
    found = [number for cell in cells for number in numbers(cell.text, view.separator) if not number.is_percent]
    return found[-1] if found else None


def _decimal(number: Number | None, *, places: int = 0) -> str | None:
    return None if number is None else decimal_string(number.value, places=places)
