"""Invoices and receipts: the embedded XML where there is one, else rules on what stands where."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from stages.fields.amounts import Amount, find_amounts
from stages.fields.arithmetic import doubts, printed
from stages.fields.currency import read_currency
from stages.fields.identifiers import read_iban, read_invoice_number, read_tax_ids
from stages.fields.layout import MAX_ROWS, text_cut
from stages.fields.moments import read_dates
from stages.fields.money import decimal_string
from stages.fields.parties import read_parties
from stages.fields.tables import MAX_LINES, read_lines
from stages.fields.taxes import read_taxes, taxes_of
from stages.fields.totals import Totals, choose_totals
from stages.fields.view import Json, View

AGREEING: Final = 0.97
NAMED: Final = {5: 0.9, 4: 0.85, 3: 0.85, 2: 0.7, 1: 0.4}
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
            return found
    amounts = find_amounts(view)
    invoice, is_refused = _read_pages(view, amounts)
    sums = [amount.value for amount in amounts if amount.field in {"net_total", "total"}]
    warnings = [*doubts(invoice, printed(view, sums)), *_cuts(view, invoice)]
    return invoice, [*warnings, {"code": "iban_invalid", "pages": []}] if is_refused else warnings


def _cuts(view: View, invoice: Json) -> list[Json]:
    """Return a warning when there are more rows than are looked at, or more lines than are told."""
    if len(view.rows) >= MAX_ROWS:
        return [text_cut(sorted(number for number in view.numbers if number >= view.rows[-1].page))]
    return [text_cut([])] if len(invoice["lines"]) >= MAX_LINES else []


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
