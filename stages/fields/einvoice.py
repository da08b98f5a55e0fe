"""Electronic invoices: Cross Industry Invoice (Factur-X, ZUGFeRD, XRechnung) and UBL, taken at their word.

A value that is also printed gets the place where it is printed; the XML wins where the two differ.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import Any, Final

from lxml import etree

from stages.fields.arithmetic import ITEM, Stated, Triple, doubts
from stages.fields.dates import find_dates
from stages.fields.layout import text_cut
from stages.fields.money import CODES, decimal_string, numbers
from stages.fields.view import MAX_EVIDENCE, MAX_VALUE, Json, Spot, View
from stages.fields.xml import find_all, find_text, local_name, parse_xml

CERTAIN: Final = 0.99
DOUBTFUL: Final = 0.5
MAX_LINES: Final = 2_000
MAX_TAXES: Final = 50
MAX_DESCRIPTION: Final = 300
LIMIT: Final = Decimal(10) ** 18
FINEST: Final = Decimal("0.000001")

DATES: Final = frozenset({"issue_date", "due_date"})
AMOUNTS: Final = frozenset({"net_total", "tax_total", "total", "amount_due"})


@dataclass(frozen=True, slots=True)
class Syntax:
    """Where a syntax keeps an invoice's values: paths from the root, in the order of preference."""

    fields: Mapping[str, Sequence[str]]
    tax: str
    tax_values: Mapping[str, str]
    line: str
    line_values: Mapping[str, str]
    line_sum: str
    paid: str
    rounding: str
    base_quantity: str
    line_extras: str
    extra_amount: str
    extra_is_charge: str


_TRADE: Final = "SupplyChainTradeTransaction|SpecifiedSupplyChainTradeTransaction"
_AGREEMENT: Final = f"{_TRADE}/ApplicableHeaderTradeAgreement|ApplicableSupplyChainTradeAgreement"
_SETTLEMENT: Final = f"{_TRADE}/ApplicableHeaderTradeSettlement|ApplicableSupplyChainTradeSettlement"
_SUMMATION: Final = (
    f"{_SETTLEMENT}/SpecifiedTradeSettlementHeaderMonetarySummation|SpecifiedTradeSettlementMonetarySummation"
)
_HEADER: Final = "ExchangedDocument|HeaderExchangedDocument"
_LINE_AGREEMENT: Final = "SpecifiedLineTradeAgreement|SpecifiedSupplyChainTradeAgreement"
_LINE_SETTLEMENT: Final = "SpecifiedLineTradeSettlement|SpecifiedSupplyChainTradeSettlement"

CII: Final = Syntax(
    fields={
        "invoice_number": (f"{_HEADER}/ID",),
        "issue_date": (f"{_HEADER}/IssueDateTime/DateTimeString",),
        "due_date": (f"{_SETTLEMENT}/SpecifiedTradePaymentTerms/DueDateDateTime/DateTimeString",),
        "seller": (f"{_AGREEMENT}/SellerTradeParty/Name",),
        "buyer": (f"{_AGREEMENT}/BuyerTradeParty/Name",),
        "seller_tax_id": (f"{_AGREEMENT}/SellerTradeParty/SpecifiedTaxRegistration/ID",),
        "buyer_tax_id": (f"{_AGREEMENT}/BuyerTradeParty/SpecifiedTaxRegistration/ID",),
        "iban": (f"{_SETTLEMENT}/SpecifiedTradeSettlementPaymentMeans/PayeePartyCreditorFinancialAccount/IBANID",),
        "currency": (f"{_SETTLEMENT}/InvoiceCurrencyCode",),
        "net_total": (f"{_SUMMATION}/TaxBasisTotalAmount",),
        "tax_total": (f"{_SUMMATION}/TaxTotalAmount",),
        "total": (f"{_SUMMATION}/GrandTotalAmount",),
        "amount_due": (f"{_SUMMATION}/DuePayableAmount",),
    },
    tax=f"{_SETTLEMENT}/ApplicableTradeTax",
    tax_values={"rate": "RateApplicablePercent|ApplicablePercent", "base": "BasisAmount", "amount": "CalculatedAmount"},
    line=f"{_TRADE}/IncludedSupplyChainTradeLineItem",
    line_values={
        "description": "SpecifiedTradeProduct/Name",
        "quantity": "SpecifiedLineTradeDelivery|SpecifiedSupplyChainTradeDelivery/BilledQuantity",
        "unit_price": f"{_LINE_AGREEMENT}/NetPriceProductTradePrice/ChargeAmount",
        "amount": f"{_LINE_SETTLEMENT}/SpecifiedTradeSettlementLineMonetarySummation|"
        "SpecifiedTradeSettlementMonetarySummation/LineTotalAmount",
    },
    line_sum=f"{_SUMMATION}/LineTotalAmount",
    paid=f"{_SUMMATION}/TotalPrepaidAmount",
    rounding=f"{_SUMMATION}/RoundingAmount",
    base_quantity=f"{_LINE_AGREEMENT}/NetPriceProductTradePrice/BasisQuantity",
    line_extras=f"{_LINE_SETTLEMENT}/SpecifiedTradeAllowanceCharge",
    extra_amount="ActualAmount",
    extra_is_charge="ChargeIndicator/Indicator",
)

_SUPPLIER: Final = "AccountingSupplierParty/Party"
_CUSTOMER: Final = "AccountingCustomerParty/Party"

UBL: Final = Syntax(
    fields={
        "invoice_number": ("ID",),
        "issue_date": ("IssueDate",),
        "due_date": ("DueDate", "PaymentMeans/PaymentDueDate"),
        "seller": (f"{_SUPPLIER}/PartyLegalEntity/RegistrationName", f"{_SUPPLIER}/PartyName/Name"),
        "buyer": (f"{_CUSTOMER}/PartyLegalEntity/RegistrationName", f"{_CUSTOMER}/PartyName/Name"),
        "seller_tax_id": (f"{_SUPPLIER}/PartyTaxScheme/CompanyID",),
        "buyer_tax_id": (f"{_CUSTOMER}/PartyTaxScheme/CompanyID",),
        "iban": ("PaymentMeans/PayeeFinancialAccount/ID",),
        "currency": ("DocumentCurrencyCode",),
        "net_total": ("LegalMonetaryTotal/TaxExclusiveAmount",),
        "tax_total": ("TaxTotal/TaxAmount",),
        "total": ("LegalMonetaryTotal/TaxInclusiveAmount",),
        "amount_due": ("LegalMonetaryTotal/PayableAmount",),
    },
    tax="TaxTotal/TaxSubtotal",
    tax_values={"rate": "TaxCategory/Percent", "base": "TaxableAmount", "amount": "TaxAmount"},
    line="InvoiceLine|CreditNoteLine",
    line_values={
        "description": "Item/Name",
        "quantity": "InvoicedQuantity|CreditedQuantity",
        "unit_price": "Price/PriceAmount",
        "amount": "LineExtensionAmount",
    },
    line_sum="LegalMonetaryTotal/LineExtensionAmount",
    paid="LegalMonetaryTotal/PrepaidAmount",
    rounding="LegalMonetaryTotal/PayableRoundingAmount",
    base_quantity="Price/BaseQuantity",
    line_extras="AllowanceCharge",
    extra_amount="Amount",
    extra_is_charge="ChargeIndicator",
)
_SYNTAX_OF_ROOT: Final = {"CrossIndustryInvoice": CII, "CrossIndustryDocument": CII, "Invoice": UBL, "CreditNote": UBL}


def read_einvoice(attachments: Sequence[Mapping[str, Any]], view: View) -> tuple[Json, list[Json]] | None:
    """Return what the first electronic invoice among ``attachments`` says, and warnings about it.

    Returns:
        ``None`` when there is none; the pages are read instead.
    """
    for attachment in attachments:
        root = parse_xml(attachment["xml"])
        syntax = None if root is None else _SYNTAX_OF_ROOT.get(local_name(root))
        if root is not None and syntax is not None:
            return _read(root, syntax, view)
    return None


def _read(root: etree._Element, syntax: Syntax, view: View) -> tuple[Json, list[Json]]:
    currency = find_text(root, *syntax.fields["currency"])
    invoice: Json = {}
    for name, paths in syntax.fields.items():
        node = _preferred(list(_nodes(root, paths)), currency)
        invoice[name] = None if node is None else _field(name, node, view)
    invoice["taxes"] = list(_records(root, syntax.tax, syntax.tax_values, MAX_TAXES))
    invoice["lines"] = list(_records(root, syntax.line, syntax.line_values, MAX_LINES))
    cuts = [text_cut([])] if len(invoice["lines"]) >= MAX_LINES else []
    return invoice, [*_doubts(invoice, view), *doubts(invoice, _stated(root, syntax)), *cuts]


def _stated(root: etree._Element, syntax: Syntax) -> Stated:
    """Return what the sums are checked with beside the invoice's fields."""
    line_sum = _number(root, syntax.line_sum)
    paid = (_number(root, syntax.paid) or Decimal(0)) - (_number(root, syntax.rounding) or Decimal(0))
    items = (_item(node, syntax) for node in islice(find_all(root, syntax.line), MAX_LINES))
    return Stated([] if line_sum is None else [line_sum], paid=[paid], items=[item for item in items if item])


def _item(line: etree._Element, syntax: Syntax) -> Triple | None:
    """Return quantity, price of one and amount of a line, without what was added to it or taken off."""
    quantity, price, amount = (_number(line, syntax.line_values[name]) for name in ITEM)
    base = _number(line, syntax.base_quantity) or Decimal(1)
    if quantity is None or price is None or amount is None:
        return None
    worth = amount - sum(_extras(line, syntax))
    # Programs of much use write the line's own quantity as that of the price, and mean a price for one.
    return min(quantity / base, quantity, key=lambda each: abs(each * price - worth)), price, worth


def _extras(line: etree._Element, syntax: Syntax) -> Iterator[Decimal]:
    for extra in find_all(line, syntax.line_extras):
        amount = _number(extra, syntax.extra_amount) or Decimal(0)
        yield amount if find_text(extra, syntax.extra_is_charge) in {"true", "1"} else -amount


def _number(node: etree._Element, path: str) -> Decimal | None:
    text = find_text(node, path)
    return None if text is None else _decimal(text)


def _nodes(root: etree._Element, paths: Sequence[str]) -> Iterator[etree._Element]:
    for path in paths:
        yield from (node for node in find_all(root, path) if (node.text or "").strip())


def _preferred(nodes: list[etree._Element], currency: str | None) -> etree._Element | None:
    """Return the first node; of several tax numbers the VAT one, of several sums the invoice's currency's."""
    for node in nodes:
        if _is_vat_number(node) or (currency and node.get("currencyID") == currency):
            return node
    return nodes[0] if nodes else None


def _is_vat_number(node: etree._Element) -> bool:
    """Say whether a tax number is marked as the VAT one: CII has a code on it, UBL the scheme beside it."""
    if node.get("schemeID") == "VA":
        return True
    scheme = node.getparent()
    return scheme is not None and local_name(scheme) == "PartyTaxScheme" and find_text(scheme, "TaxScheme/ID") == "VAT"


def _field(name: str, node: etree._Element, view: View) -> Json | None:
    text = " ".join((node.text or "").split())
    if name in AMOUNTS:
        amount = _decimal(text)
        return None if amount is None else _shown(decimal_string(amount, places=2), node, _printed_amount(view, amount))
    if name in DATES:
        iso = _iso_date(text)
        return None if iso is None else _shown(iso, node, _printed_date(view, iso))
    if name == "currency":
        return _shown(text, node, _printed_text(view, text)) if text in CODES else None
    value = text.replace(" ", "") if name == "iban" else text
    return _shown(value[:MAX_VALUE], node, _printed_text(view, text))


def _shown(value: str, node: etree._Element, spot: Spot | None) -> Json:
    """Return the value with the place where it is printed, else with the XML element that says it."""
    evidence = f"{local_name(node)} {' '.join((node.text or '').split())}"
    if spot is not None:
        evidence = spot.cell.row.text.replace("\t", " ")
    return {
        "value": value,
        "confidence": CERTAIN,
        "page": None if spot is None else spot.cell.page,
        "box": None if spot is None or spot.box is None else list(spot.box),
        "evidence": evidence[:MAX_EVIDENCE],
    }


def _records(root: etree._Element, path: str, values: Mapping[str, str], limit: int) -> Iterator[Json]:
    for count, node in enumerate(find_all(root, path)):
        if count >= limit:
            return
        yield {name: _value(name, find_text(node, where)) for name, where in values.items()}


def _value(name: str, text: str | None) -> str | None:
    if text is None or name == "description":
        return text and text[:MAX_DESCRIPTION]
    value = _decimal(text)
    places = 2 if name in {"base", "amount", "unit_price"} else 0
    return None if value is None else decimal_string(value, places=places)


def _decimal(text: str) -> Decimal | None:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    if not value.is_finite() or abs(value) >= LIMIT:
        return None
    return value.quantize(FINEST) if value.as_tuple().exponent < -6 else value  # type: ignore[operator]  # noqa: PLR2004 - finite


def _iso_date(text: str) -> str | None:
    """Read ``20180305`` of CII and ``2018-03-05`` of UBL."""
    digits = text.replace("-", "")[:8]
    moments = find_dates(f"{digits[:4]}-{digits[4:6]}-{digits[6:]}") if digits.isdigit() else []
    return moments[0].iso if moments else None


def _printed_text(view: View, text: str) -> Spot | None:
    return _printed(view, lambda cell_text: _span(cell_text.find(text), len(text)))


def _printed_date(view: View, iso: str) -> Spot | None:
    def find(text: str) -> tuple[int, int] | None:
        moments = find_dates(text, month_first=view.month_first)
        return next(((each.start, each.end) for each in moments if each.iso == iso), None)

    return _printed(view, find)


def _printed_amount(view: View, amount: Decimal) -> Spot | None:
    def find(text: str) -> tuple[int, int] | None:
        found = numbers(text, view.separator)
        return next(((each.start, each.end) for each in found if each.is_money and each.value == amount), None)

    return _printed(view, find)


def _printed(view: View, find: Callable[[str], tuple[int, int] | None]) -> Spot | None:
    for cell in view.cells:
        span = find(cell.text)
        if span:
            return Spot(cell, *span)
    return None


def _span(start: int, length: int) -> tuple[int, int] | None:
    return None if start < 0 else (start, start + length)


def _doubts(invoice: Json, view: View) -> list[Json]:
    """Warn of an account that its check digits refuse, and of a total that no page shows."""
    from stdnum import iban  # noqa: PLC0415 - 50 ms that only invoices pay

    warnings: list[Json] = []
    account = invoice["iban"]
    if account is not None and not iban.is_valid(account["value"]):
        account["confidence"] = DOUBTFUL
        warnings.append({"code": "iban_invalid", "pages": []})
    total = invoice["total"]
    if total is not None and total["page"] is None and view.cells:
        warnings.append({"code": "total_not_on_page", "pages": []})
    return warnings
