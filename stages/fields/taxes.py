"""Tax lines of an invoice: a rate, a base and an amount that agree with each other, or with the totals."""

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import permutations
from typing import Final

from stages.fields.amounts import NET, TAX
from stages.fields.layout import Row
from stages.fields.money import MAX_RATE, Number, decimal_string, numbers
from stages.fields.totals import Totals
from stages.fields.view import Json, View

MAX_NUMBERS: Final = 6
MAX_LINES: Final = 20
TOLERANCE: Final = Decimal("0.011")
HUNDRED: Final = Decimal(100)
_TAX_WORD: Final = re.compile(
    r"\b(?:tax|vat|gst|sst|tva|taxe|mwst|ust|btw|iva|umsatzsteuer|mehrwertsteuer|s[rt]\b)", re.IGNORECASE
)


def read_taxes(view: View) -> list[Json]:
    """Return the tax lines that prove themselves: rows in which a rate, a base and an amount fit."""
    lines: dict[tuple[str, str, str], Json] = {}
    for row in view.rows:
        line = _tax_line(view, row)
        if line:
            lines.setdefault((line["rate"], line["base"], line["amount"]), line)
    return list(lines.values())[:MAX_LINES]


def taxes_of(totals: Totals) -> list[Json]:
    """Return the tax lines that are printed without a base, where net, taxes and total prove them."""
    net, tax = totals.chosen.get(NET), totals.chosen.get(TAX)
    if not totals.agrees or net is None or tax is None:
        return []
    if tax.parts:
        return [_json(part.rate, None, part.value) for part in tax.parts]
    if tax.rate is not None and _fits(tax.rate, net.value, tax.value):
        return [_json(tax.rate, net.value, tax.value)]
    return []


def _tax_line(view: View, row: Row) -> Json | None:
    found = [number for cell in row.cells for number in numbers(cell.text, view.separator)][:MAX_NUMBERS]
    money = [number for number in found if number.is_money]
    if len(money) < len(("base", "amount")):
        return None
    is_named = _TAX_WORD.search(row.text) is not None
    for rate in _rates(found, is_named=is_named):
        for base, amount in permutations(money, 2):
            if _fits(rate, base.value, amount.value):
                return _json(rate, base.value, amount.value)
    return None


def _fits(rate: Decimal, base: Decimal, amount: Decimal) -> bool:
    return bool(amount) and abs(base * rate / HUNDRED - amount) <= TOLERANCE


def _json(rate: Decimal | None, base: Decimal | None, amount: Decimal) -> Json:
    return {
        "rate": None if rate is None else decimal_string(rate),
        "base": None if base is None else decimal_string(base, places=2),
        "amount": decimal_string(amount, places=2),
    }


def _rates(found: list[Number], *, is_named: bool) -> Iterator[Decimal]:
    """Yield what can be a rate: a percentage, or a small number in a row that speaks of tax."""
    is_named = is_named and not any(number.is_percent for number in found)
    for number in found:
        can_be_rate = number.is_percent or (is_named and not number.mark)
        if can_be_rate and 0 < number.value <= MAX_RATE:
            yield number.value
