"""Invoices and receipts: the embedded XML where there is one, else rules on what stands where."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from stages.fields.amounts import Amount, find_amounts
from stages.fields.currency import read_currency
from stages.fields.identifiers import read_iban, read_invoice_number, read_tax_ids
from stages.fields.moments import read_dates
from stages.fields.money import decimal_string
from stages.fields.parties import read_parties
from stages.fields.tables import read_lines
from stages.fields.taxes import read_taxes, taxes_of
from stages.fields.totals import Totals, choose_totals
from stages.fields.view import Json, View

AGREEING: Final = 0.97
NAMED: Final = {5: 0.9, 4: 0.85, 3: 0.85, 2: 0.7, 1: 0.4}
TOLERANCE: Final = Decimal("0.06")
_TOTALS: Final = ("net_total", "tax_total", "total", "amount_due")
_RECEIPT: Final = re.compile(
    r"\b(?:cash|change|cashier|receipt|tendered|table|kasse|kassenbon|bon|rendu|ticket|simplified tax invoice)\b",
    re.IGNORECASE,
)


def read_invoice(
    pages: Sequence[Mapping[str, Any]], attachments: Sequence[Mapping[str, Any]], language: str | None
) -> tuple[Json, list[Json]]:
    """Return what the invoice says and warnings about it.

    Shape: ``schema.wire.results.Invoice`` and a list of ``ResultWarning``.
    """
    view = View(pages, language)
    if attachments:
        from stages.fields.einvoice import read_einvoice  # noqa: PLC0415 - lxml is loaded only for XML

        found = read_einvoice(attachments, view)
        if found is not None:
            invoice, warnings = found
            return invoice, [*warnings, *check_sums(invoice)]
    amounts = find_amounts(view)
    invoice, is_refused = _read_pages(view, amounts)
    warnings = [*check_sums(invoice), *check_lines(invoice, amounts)]
    return invoice, [*warnings, _warning("iban_invalid")] if is_refused else warnings


def check_sums(invoice: Mapping[str, Any]) -> list[Json]:
    """Return a warning for a net and tax that do not make the total, and for taxes that do not make the tax."""
    net, tax, total = (_decimal(invoice[name]) for name in ("net_total", "tax_total", "total"))
    taxes = _amounts(invoice["taxes"])
    warnings = []
    if _differ(None if net is None or tax is None else net + tax, total):
        warnings.append(_warning("totals_disagree"))
    if taxes and _differ(sum(taxes), tax):
        warnings.append(_warning("taxes_disagree"))
    return warnings


def check_lines(invoice: Mapping[str, Any], amounts: Sequence[Amount]) -> list[Json]:
    """Return a warning when the lines make none of the sums that the invoice prints."""
    lines = _amounts(invoice["lines"])
    sums = [amount.value for amount in amounts if amount.field in {"net_total", "total"}]
    if lines and sums and all(_differ(sum(lines), each) for each in sums):
        return [_warning("lines_disagree")]
    return []


def _read_pages(view: View, amounts: Sequence[Amount]) -> tuple[Json, bool]:
    issue_date, due_date = read_dates(view)
    seller, buyer = read_parties(view, is_receipt=any(_RECEIPT.search(row.text) for row in view.rows))
    seller_tax_id, buyer_tax_id = read_tax_ids(view)
    iban, is_refused = read_iban(view)
    totals = choose_totals(amounts)
    invoice: Json = {
        "invoice_number": read_invoice_number(view),
        "issue_date": issue_date,
        "due_date": due_date,
        "seller": seller,
        "buyer": buyer,
        "seller_tax_id": seller_tax_id,
        "buyer_tax_id": buyer_tax_id,
        "iban": iban,
        "currency": read_currency(view),
        **_fields(view, totals),
        "taxes": read_taxes(view) or taxes_of(totals),
        "lines": read_lines(view),
    }
    return invoice, is_refused


def _fields(view: View, totals: Totals) -> dict[str, Json | None]:
    fields: dict[str, Json | None] = dict.fromkeys(_TOTALS)
    for name, amount in totals.chosen.items():
        agrees = totals.agrees and name != "amount_due"
        fields[name] = _field(view, amount, AGREEING if agrees else NAMED[min(amount.strength, max(NAMED))])
    return fields


def _field(view: View, amount: Amount, confidence: float) -> Json:
    spots = [amount.spot] if amount.is_printed or not amount.parts else [part.spot for part in amount.parts]
    return view.field(decimal_string(amount.value, places=2), confidence, *spots)


def _decimal(field: Mapping[str, Any] | None) -> Decimal | None:
    return None if field is None else Decimal(field["value"])


def _amounts(lines: Sequence[Mapping[str, Any]]) -> list[Decimal]:
    return [Decimal(line["amount"]) for line in lines if line["amount"] is not None]


def _warning(code: str) -> Json:
    return {"code": code, "pages": []}


def _differ(first: Decimal | int | None, second: Decimal | None) -> bool:
    return first is not None and second is not None and abs(first - second) > TOLERANCE
