"""Which of the labelled amounts are an invoice's net, tax, total and due amount: those that agree with each other."""

from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product
from typing import Final

from stages.fields.amounts import CASH, CHANGE, DUE, MEDIUM, NET, ROUNDED, TAX, TOTAL, Amount

PAID: Final = 2
MAX_CANDIDATES: Final = 12
CENT: Final = Decimal("0.01")
SEVERAL: Final = 2


@dataclass(frozen=True, slots=True)
class Totals:
    """The amounts chosen for each field, and whether net and tax make the total."""

    chosen: dict[str, Amount]
    agrees: bool


def choose_totals(amounts: Iterable[Amount]) -> Totals:
    """Choose the amounts that agree with each other where some do, else the best named ones."""
    by_field: dict[str, list[Amount]] = defaultdict(list)
    for amount in amounts:
        by_field[amount.field].append(amount)
    rates = {amount.rate for amount in by_field[TAX] if amount.rate is not None}
    if len(rates) >= SEVERAL:
        by_field |= {name: _whole(by_field[name], rates) for name in (NET, TAX, TOTAL)}
    candidates = {name: _paid_in_cash(name, by_field) for name in (NET, TAX, TOTAL, DUE)}
    candidates[TOTAL] = candidates[TOTAL] or _settled(by_field)
    # A sum that the document does not print is believed only where it agrees with what is printed.
    printed = {name: [each for each in found if each.is_printed] for name, found in candidates.items()}
    best = {name: _best(found) for name, found in printed.items() if found}
    rounded = [amount for amount in candidates[TOTAL] if amount.strength >= ROUNDED]
    agreeing = _agreeing(*(_ranked(candidates[name]) for name in (NET, TAX, TOTAL)))
    if agreeing is not None:
        return Totals(best | agreeing | ({TOTAL: rounded[-1]} if rounded else {}), agrees=True)
    if {NET, TOTAL} <= best.keys() and len({tax.value for tax in printed[TAX]}) >= SEVERAL:
        del best[TAX]  # The sums speak against each of several taxes; any of them may be a part.
    return Totals(best, agrees=False)


def _whole(amounts: list[Amount], rates: AbstractSet[Decimal]) -> list[Amount]:
    """Put one sum in the place of the amounts that are told rate by rate, of which none is the invoice's."""
    parts = {(amount.rate, amount.value): amount for amount in amounts if amount.rate in rates}
    whole = [amount for amount in amounts if amount.rate not in rates]
    if len(parts) != len(rates) or {rate for rate, _ in parts} != rates:
        return whole
    ordered = tuple(parts.values())
    total = sum((part.value for part in ordered), Decimal(0))
    printed = [replace(amount, parts=ordered) for amount in whole if amount.value == total]
    computed = replace(ordered[-1], value=total, rate=None, parts=ordered, is_printed=False)
    return [*(amount for amount in whole if amount.value != total), *(printed or [computed])]


def _paid_in_cash(name: str, by_field: dict[str, list[Amount]]) -> list[Amount]:
    """Trust a total more that is what was given less what was given back."""
    if name != TOTAL:
        return by_field[name]
    paid = {cash.value - change.value for cash, change in product(by_field[CASH][:3], by_field[CHANGE][:3])}
    return [_trusted(each) if each.value in paid else each for each in by_field[name]]


def _trusted(amount: Amount) -> Amount:
    return replace(amount, strength=amount.strength + PAID, is_printed=amount.is_printed or not amount.parts)


def _best(amounts: list[Amount]) -> Amount:
    """Return the best named amount; of equals the last, because sums follow what they sum up."""
    return max(enumerate(amounts), key=lambda each: (each[1].is_alone, each[1].strength, each[0]))[1]


def _ranked(amounts: list[Amount]) -> list[Amount]:
    """Return each value once, best named first."""
    ranked: dict[Decimal, Amount] = {}
    for amount in sorted(amounts, key=lambda each: -each.strength):
        ranked.setdefault(amount.value, amount)
    return list(ranked.values())[:MAX_CANDIDATES]


def _agreeing(nets: list[Amount], taxes: list[Amount], totals: list[Amount]) -> dict[str, Amount] | None:
    """Return the best named net, tax and total of which the first two make the third."""
    agreeing = [
        (net.strength + tax.strength + total.strength, total.value, net, tax, total)
        for net, tax, total in product(nets, taxes, totals)
        if abs(net.value + tax.value - total.value) <= CENT and total.value and abs(tax.value) <= abs(net.value)
    ]
    if not agreeing:
        return None
    _, _, net, tax, total = max(agreeing, key=lambda each: each[:2])
    return {NET: net, TAX: tax, TOTAL: total}


def _settled(by_field: dict[str, list[Amount]]) -> list[Amount]:
    """Return what a document that names no total says was paid, or is to be paid when nothing has been yet."""
    cash, change = by_field[CASH][:3], by_field[CHANGE][:3]
    paid = {given.value - back.value for given, back in product(cash, change)} or {given.value for given in cash}
    named = [*by_field[DUE], *by_field[NET]]
    found = [amount for amount in named if amount.value in paid] or ([] if cash else by_field[DUE])
    return [replace(amount, field=TOTAL, strength=MEDIUM) for amount in found]
