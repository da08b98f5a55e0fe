"""Amounts as people print them, read without a guess: ``1.234,56``, ``1,234.56``, ``1'234.50``, ``3 038,14``.

What one separator before three digits means (``1.234``) only the rest of the document can tell; where it does
not, there is no amount.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

MAX_TEXT: Final = 2_000
CENTS: Final = 2
GROUP: Final = 3
MAX_RATE: Final = 30

SYMBOLS: Final = {
    "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "zł": "PLN", "Kč": "CZK", "RM": "MYR", "US$": "USD",
    "A$": "AUD", "C$": "CAD", "S$": "SGD", "HK$": "HKD", "R$": "BRL", "Fr.": "CHF", "SFr.": "CHF",
}  # fmt: skip
CODES: Final = frozenset(
    {
        "EUR", "USD", "GBP", "CHF", "MYR", "JPY", "CNY", "INR", "CAD", "AUD", "NZD", "SGD", "HKD", "SEK", "NOK",
        "DKK", "PLN", "CZK", "HUF", "RON", "BGN", "TRY", "ZAR", "BRL", "MXN", "AED", "SAR", "ILS", "KRW", "THB",
        "IDR", "PHP", "VND", "TWD", "UAH", "RUB", "ISK", "CLP", "COP", "ARS", "EGP", "MAD", "TND",
    }
)  # fmt: skip
DOLLAR: Final = "$"

_MARK: Final = "|".join(re.escape(mark) for mark in sorted((*SYMBOLS, DOLLAR, *CODES), key=len, reverse=True))
_NUMBER: Final = re.compile(
    rf"(?P<before>(?<![A-Za-z])(?:{_MARK})[ ]?)?"
    r"(?<![\w.,'’/:])(?P<sign>[-−–][ ]?)?"  # noqa: RUF001 - typographic minus and dash are what documents print
    rf"(?P<inner>(?:{_MARK})[ ]?)?"
    r"(?P<number>\d{1,3}(?:(?P<group>[ .,'’])\d{3})(?:(?P=group)\d{3}){0,4}(?:[.,]\d{1,4})?"  # noqa: RUF001 - Swiss groups
    r"|\d{1,15}(?:[.,]\d{1,4})?)"
    r"(?![.,'’]?\d|[/:]\d|[-–]\d|[^\W\d_]{0,1}\d)"  # noqa: RUF001 - as above
    rf"(?P<minus>-(?!\w))?(?P<after>[ ]?(?:{_MARK})(?![A-Za-z]))?(?P<percent>[ ]?%)?"
)
_DECIMAL: Final = re.compile(r"(?<!\d)\d{1,3}(?:[ .,'’]?\d{3})*([.,])\d{2}(?![.,]?\d)")  # noqa: RUF001 - as above


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text: its value, its currency mark, and whether it is printed the way money is."""

    value: Decimal
    start: int
    end: int
    mark: str | None = None
    places: int = 0
    is_percent: bool = False

    @property
    def is_money(self) -> bool:
        """Whether it has cents, or a currency beside a whole number."""
        return not self.is_percent and (self.places == CENTS or (self.mark is not None and self.places == 0))


def decimal_separator(texts: Iterable[str]) -> str | None:
    """Return the separator that the document's cents stand behind; ``None`` when it uses both, or none."""
    votes = {",": 0, ".": 0}
    for text in texts:
        for match in _DECIMAL.finditer(text[:MAX_TEXT]):
            votes[match.group(1)] += 1
    comma, dot = votes[","], votes["."]
    if comma > 3 * dot:
        return ","
    return "." if dot > 3 * comma else None


def numbers(text: str, separator: str | None) -> Iterator[Number]:
    """Yield the numbers of ``text`` from left to right.

    Args:
        text: a cell's text.
        separator: the document's decimal separator, where it is known.
    """
    for match in _NUMBER.finditer(text[:MAX_TEXT]):
        value = _value(match.group("number"), separator)
        if value is None:
            continue
        in_brackets = text[match.start() - 1 : match.start()] == "(" and text[match.end() : match.end() + 1] == ")"
        negative = in_brackets or bool(match.group("sign") or match.group("minus"))
        mark = match.group("before") or match.group("inner") or match.group("after")
        yield Number(
            value=-value if negative else value,
            start=match.start(),
            end=match.end(),
            mark=mark.strip() if mark else None,
            places=-int(value.as_tuple().exponent),
            is_percent=match.group("percent") is not None,
        )


def decimal_string(value: Decimal, *, places: int = 0) -> str:
    """Return ``value`` in plain digits, with at least ``places`` decimals and no zeros behind those."""
    text = format(value, "f")
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0").ljust(places, "0")
    text = f"{whole}.{fraction}" if fraction else whole
    return "0" if text == "-0" else text


def _value(text: str, separator: str | None) -> Decimal | None:
    """Return the number that ``text`` prints; ``None`` when it could be two."""
    text = text.replace(" ", "").replace("'", "").replace("’", "")  # noqa: RUF001 - Swiss groups
    marks = [char for char in text if char in ".,"]
    if not marks:
        return Decimal(text)
    last = marks[-1]
    behind = len(text) - text.rindex(last) - 1
    other = "," if last == "." else "."
    if other in marks:
        return Decimal(text.replace(other, "").replace(last, ".")) if marks.count(last) == 1 else None
    if len(marks) > 1:
        return Decimal(text.replace(last, "")) if behind == GROUP else None
    if behind != GROUP or last == separator:
        return Decimal(text.replace(last, "."))
    return Decimal(text.replace(last, "")) if separator == other else None
