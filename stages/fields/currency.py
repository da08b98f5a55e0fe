"""The currency of an invoice, where the document says one."""

import re
from collections import Counter
from typing import Final

from stages.fields.money import CODES, DOLLAR, SYMBOLS, numbers
from stages.fields.view import Json, Spot, View

NAMED: Final = 0.95
BESIDE_AMOUNTS: Final = 0.9
ONE_OF_SEVERAL: Final = 0.7
DOLLAR_IN_AMERICA: Final = 0.7
MAJORITY: Final = 0.8
_LABEL: Final = re.compile(
    r"\b(?:currency|w[äa]hrung|devise|monnaie|valuta|betr[äa]ge in|amounts? (?:are )?in|in)\b[^\n]{0,3}?[ :(]{1,3}(?P<code>[A-Z]{3})\b|[(](?P<bare>[A-Z]{3}|RM)[)]",
)
_CURRENCY_LABEL: Final = re.compile(r"\b(?:currency|w[äa]hrung|devise|valuta|betr[äa]ge in)\b\W*$", re.IGNORECASE)
_US_DOLLARS: Final = re.compile(r"\bUS[ -]?Dollars?\b|\bU\.S\. dollars?\b", re.IGNORECASE)


def read_currency(view: View) -> Json | None:
    """Return the currency that a label names, else the one that stands beside the amounts.

    A bare ``$`` is many countries' sign: it is the United States' only with an address or words of theirs.
    """
    return _labelled(view) or _beside_amounts(view)


def _labelled(view: View) -> Json | None:
    for cell in view.cells:
        match = _LABEL.search(cell.text)
        code = match and _code(match.group("code") or match.group("bare"))
        if match and code:
            return view.field(code, NAMED, Spot(cell, match.start(), match.end()))
        dollars = _US_DOLLARS.search(cell.text)
        if dollars:
            return view.field("USD", NAMED, Spot(cell, dollars.start(), dollars.end()))
    for label in view.labels(_CURRENCY_LABEL):
        for right in view.right_of(label.cell)[:1]:
            code = _code(right.text.strip())
            if code:
                return view.field(code, NAMED, Spot(right, 0, len(right.text)))
    return None


def _beside_amounts(view: View) -> Json | None:
    found: dict[str, Spot] = {}
    counts: Counter[str] = Counter()
    for cell in view.cells:
        for number in numbers(cell.text, view.separator):
            code = _code(number.mark)
            if code:
                counts[code] += 1
                found[code] = Spot(cell, number.start, number.end)
            elif number.mark == DOLLAR and view.is_american:
                counts[DOLLAR] += 1
                found[DOLLAR] = Spot(cell, number.start, number.end)
        code = _trailing(cell.text)
        if code:
            counts[code] += 1
            found.setdefault(code, Spot(cell, 0, len(cell.text)))
    if not counts:
        return None
    code, count = counts.most_common(1)[0]
    if count < MAJORITY * counts.total():
        return None
    if code == DOLLAR:
        return view.field("USD", DOLLAR_IN_AMERICA, found[code])
    return view.field(code, BESIDE_AMOUNTS if len(counts) == 1 else ONE_OF_SEVERAL, found[code])


def _trailing(text: str) -> str | None:
    """Return the currency that a label ends with, its amount being in a cell of its own."""
    return _code(text.rpartition(" ")[2].strip("():"))


def _code(mark: str | None) -> str | None:
    if not mark:
        return None
    return mark if mark in CODES else SYMBOLS.get(mark)
