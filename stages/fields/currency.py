"""The currency of an invoice, where the document says one."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from stages.fields.lexicon import pattern, words
from stages.fields.money import CODES, DOLLAR, SYMBOLS, numbers
from stages.fields.view import Json, Spot, View

NAMED: Final = 0.95
BESIDE_AMOUNTS: Final = 0.9
ONE_OF_SEVERAL: Final = 0.7
DOLLAR_IN_AMERICA: Final = 0.7
MAJORITY: Final = 0.8
_WORDS: Final = words("currency | w[äa]hrung | devise | monnaie | valuta | betr[äa]ge in | amounts? (?:are )?in")
_LABEL: Final = re.compile(rf"\b(?i:{_WORDS})[ :(]{{1,4}}(?P<code>[A-Z]{{3}})\b|[(](?P<bare>[A-Z]{{3}}|RM)[)]")
_CURRENCY_LABEL: Final = pattern(rf"\b{_WORDS}\W*$")
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
    for code, spot in _marks(view):
        counts[code] += 1
        found.setdefault(code, spot)
    if not counts:
        return None
    code, count = counts.most_common(1)[0]
    if count < MAJORITY * counts.total():
        return None
    if code == DOLLAR:
        return view.field("USD", DOLLAR_IN_AMERICA, found[code])
    return view.field(code, BESIDE_AMOUNTS if len(counts) == 1 else ONE_OF_SEVERAL, found[code])


def _marks(view: View) -> Iterator[tuple[str, Spot]]:
    """Yield the currencies that stand beside numbers or end a label."""
    for cell in view.cells:
        for number in numbers(cell.text, view.separator):
            code = _code(number.mark) or (DOLLAR if number.mark == DOLLAR and view.is_american else None)
            if code:
                yield code, Spot(cell, number.start, number.end)
        code = _trailing(cell.text)
        if code:
            yield code, Spot(cell, 0, len(cell.text))


def _trailing(text: str) -> str | None:
    """Return the currency that a label ends with, its amount being in a cell of its own."""
    return _code(text.rpartition(" ")[2].strip("():"))


def _code(mark: str | None) -> str | None:
    if not mark:
        return None
    return mark if mark in CODES else SYMBOLS.get(mark)
