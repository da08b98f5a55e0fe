"""Invoices and receipts: the embedded XML where there is one, else rules on what stands where."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from stages.fields.amounts import Amount, choose_totals, find_amounts
from stages.fields.currency import read_currency
from stages.fields.identifiers import read_iban, read_invoice_number, read_tax_ids
from stages.fields.moments import read_dates
from stages.fields.money import decimal_string
from stages.fields.parties import read_parties
from stages.fields.tables import read_lines
from stages.fields.taxes import read_taxes
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
            return invoice, [*warnings, *check_invoice(invoice)]
    invoice, is_refused = _read_pages(view)
    warnings = check_invoice(invoice)
    return invoice, [*warnings, {"code": "iban_invalid", "pages": []}] if is_refused else warnings


def check_invoice(invoice: Mapping[str, Any]) -> list[Json]:
    """Return a warning for every sum that does not add up."""
    net, tax, total = (_decimal(invoice[name]) for name in ("net_total", "tax_total", "total"))
    taxes = [Decimal(line["amount"]) for line in invoice["taxes"] if line["amount"] is not None]
    lines = [Decimal(line["amount"]) for line in invoice["lines"] if line["amount"] is not None]
    checks = {
        "totals_disagree": _differ(None if net is None or tax is None else net + tax, total),
        "taxes_disagree": bool(taxes) and _differ(sum(taxes, Decimal()), tax),
        "lines_disagree": bool(lines)
        and all(_differ(sum(lines, Decimal()), each) for each in (net, total) if each is not None),
    }
    return [{"code": code, "pages": []} for code, is_off in checks.items() if is_off]


def _read_pages(view: View) -> tuple[Json, bool]:
    issue_date, due_date = read_dates(view)
    seller, buyer = read_parties(view, is_receipt=any(_RECEIPT.search(row.text) for row in view.rows))
    seller_tax_id, buyer_tax_id = read_tax_ids(view)
    iban, is_refused = read_iban(view)
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
        **_totals(view),
        "taxes": read_taxes(view),
        "lines": read_lines(view),
    }
    return invoice, is_refused


def _totals(view: View) -> dict[str, Json | None]:
    totals = choose_totals(find_amounts(view))
    fields: dict[str, Json | None] = dict.fromkeys(_TOTALS)
    for name, amount in totals.chosen.items():
        agrees = totals.agrees and name != "amount_due"
        fields[name] = _field(view, amount, AGREEING if agrees else NAMED[amount.strength])
    if fields["total"] is None and fields["amount_due"] is not None and fields["net_total"] is None:
        fields["total"] = fields["amount_due"]
    return fields


def _field(view: View, amount: Amount, confidence: float) -> Json:
    return view.field(decimal_string(amount.value, places=2), confidence, amount.spot)


def _decimal(field: Mapping[str, Any] | None) -> Decimal | None:
    return None if field is None else Decimal(field["value"])


def _differ(first: Decimal | None, second: Decimal | None) -> bool:
    return first is not None and second is not None and abs(first - second) > TOLERANCE
