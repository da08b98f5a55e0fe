"""Whether an invoice's amounts make each other, whoever has read them; what does not is told and left as it is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from stages.fields.money import numbers
from stages.fields.view import Json, View

TOLERANCE: Final = Decimal("0.06")
HUNDRED: Final = Decimal(100)
ITEM: Final = ("quantity", "unit_price", "amount")
Triple = tuple[Decimal, Decimal, Decimal]


@dataclass(frozen=True, slots=True)
class Stated:
    """What else a document says about its amounts.

    Args:
        sums: what its lines may make, beside its net and its total.
        rates: per cent by which a line may be less than its price makes it, or more: a discount, a tax.
        paid: amounts by which what is due may differ from the total: paid before, carried over, rounded.
        items: quantity, price and amount of the lines; ``None`` for those that the lines themselves tell.
    """

    sums: Sequence[Decimal] = ()
    rates: Iterable[Decimal] = ()
    paid: Iterable[Decimal] = ()
    items: Sequence[Triple] | None = None


def printed(view: View, sums: Sequence[Decimal] = ()) -> Stated:
    """Return what the pages state; every percentage and every amount on them may be meant."""
    found = [number for cell in view.cells for number in numbers(cell.text, view.separator)]
    return Stated(
        sums,
        rates={number.value for number in found if number.is_percent},
        paid={number.value for number in found if number.is_money},
    )


def doubts(invoice: Mapping[str, Any], stated: Stated) -> list[Json]:
    """Return a warning for each kind of amounts that do not make each other.

    Shape: a list of ``ResultWarning``.
    """
    found = {
        "totals_disagree": _is_wrong_total(invoice),
        "due_disagrees": _is_wrong_due(invoice, stated.paid),
        "taxes_disagree": _are_wrong_taxes(invoice),
        "lines_disagree": _are_wrong_lines(invoice, stated),
    }
    return [{"code": code, "pages": []} for code, is_wrong in found.items() if is_wrong]


def _is_wrong_total(invoice: Mapping[str, Any]) -> bool:
    net, tax, total = (_decimal(invoice[name]) for name in ("net_total", "tax_total", "total"))
    return net is not None and tax is not None and _differ(net + tax, total)


def _is_wrong_due(invoice: Mapping[str, Any], paid: Iterable[Decimal]) -> bool:
    """Say whether what is due is not the total, and the document does not say what stands between them."""
    total, due = _decimal(invoice["total"]), _decimal(invoice["amount_due"])
    # Nothing is due of what was paid in full.
    if total is None or not due or not _differ(due, total):
        return False
    return all(_differ(abs(total - due), abs(each)) for each in paid)


def _are_wrong_taxes(invoice: Mapping[str, Any]) -> bool:
    """Say whether the taxes do not make the tax, or a rate and its base not its tax."""
    taxes = _amounts(invoice["taxes"])
    told = (_values(tax, ("rate", "base", "amount")) for tax in invoice["taxes"])
    return (bool(taxes) and _differ(sum(taxes), _decimal(invoice["tax_total"]))) or any(
        _differ(base * rate / HUNDRED, amount) for rate, base, amount in filter(None, told)
    )


def _are_wrong_lines(invoice: Mapping[str, Any], stated: Stated) -> bool:
    """Say whether the lines make none of the sums, or a line's quantity and price not its amount."""
    lines = _amounts(invoice["lines"])
    named = (_decimal(invoice[name]) for name in ("net_total", "total"))
    sums = [*stated.sums, *(each for each in named if each is not None)]
    if lines and sums and all(_differ(sum(lines), each) for each in sums):
        return True
    items = (_values(line, ITEM) for line in invoice["lines"]) if stated.items is None else stated.items
    factors = [Decimal(1), *(1 + sign * rate / HUNDRED for rate in stated.rates for sign in (-1, 1))]
    return any(_is_wrong_item(item, factors) for item in items if item)


def _is_wrong_item(item: Triple, factors: Sequence[Decimal]) -> bool:
    """Say whether a price, which may be rounded in its last place, makes the amount with none of ``factors``."""
    quantity, price, amount = item
    room = TOLERANCE + abs(quantity) * _half_a_place(price)
    return all(abs(quantity * price * factor - amount) > room for factor in factors)


def _half_a_place(value: Decimal) -> Decimal:
    return Decimal(5).scaleb(min(-2, int(value.as_tuple().exponent)) - 1)


def _values(record: Mapping[str, Any], names: tuple[str, str, str]) -> Triple | None:
    """Return three values of a line or a tax; ``None`` unless all are known."""
    if any(record[name] is None for name in names):
        return None
    first, second, third = (Decimal(record[name]) for name in names)
    return first, second, third


def _decimal(field: Mapping[str, Any] | None) -> Decimal | None:
    return None if field is None else Decimal(field["value"])


def _amounts(records: Sequence[Mapping[str, Any]]) -> list[Decimal]:
    return [Decimal(record["amount"]) for record in records if record["amount"] is not None]


def _differ(first: Decimal | int | None, second: Decimal | None) -> bool:
    return first is not None and second is not None and abs(first - second) > TOLERANCE
