"""Numbers that name something: the invoice, its parties for the tax office, the account to pay to."""

import re
from collections.abc import Iterator
from typing import Final

from stages.fields.dates import find_dates
from stages.fields.layout import Cell, overlap
from stages.fields.lexicon import pattern, words
from stages.fields.parties import is_buyers_label, is_sellers_label
from stages.fields.view import Json, Place, Spot, View

BESIDE: Final = 0.95
BELOW: Final = 0.85
TITLE: Final = 0.9
WEAK: Final = 0.6
MAX_TITLE_ROWS: Final = 40
MIN_TAX_DIGITS: Final = 7
ROWS_OF_BLOCK: Final = 8
LABEL_AND_VALUE: Final = 2

_NO: Final = r"(?:n[o0r]\b\.?|n[uú]m(?:ber|mer|[ée]ro)?\b\.?|n\.?[°º]\.?|n\.(?=\s)|#|id\b)"
_DOCUMENT: Final = (
    r"(?:invoice|inv|rechnungs?|faktura|gutschrifts?|beleg|facture|avoir|factuur|fattura|factura|fatura|abono|"
    r"credit\s?(?:note|memo)|creditnota|nota di credito|receipt|bill|quittungs?|ticket|doc(?:ument)?|check)"
)
_NUMBER_LABEL: Final = re.compile(
    rf"\b{_DOCUMENT}[ .-]{{0,2}}(?:(?:{_NO})+)"
    rf"|(?<!\w){_NO}\s?(?:de\s|della\s|di\s|der\s|of\s|van\s)?(?:la\s|the\s)?{_DOCUMENT}(?!\w)",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(r"(?:invoice|rechnung|gutschrift|facture|factuur|factura|fattura|fatura)", re.IGNORECASE)
_TITLE: Final = re.compile(
    r"^(?:tax |pro forma |proforma |commercial )?(?:invoice|\w{0,12}rechnung|gutschrift|facture|avoir|factuur|fattura|"
    rf"factura|fatura|credit (?:note|memo)|creditnota|nota di credito|quittung)\b"
    r"(?:[^\n:]{0,60}\([^()\n]{1,40}\))?"
    rf"\W{{0,3}}(?:{_NO})?\W{{0,3}}",
    re.IGNORECASE,
)
_BARE_LABEL: Final = re.compile(rf"^\W{{0,2}}{_NO}\s?:?\s?", re.IGNORECASE)
_HAS_DIGIT: Final = re.compile(r"\d")
_HASH: Final = re.compile(r"^#\s?")
_TOKEN: Final = re.compile(
    r"[\W_]{0,4}(?P<token>(?:[A-Z]{2} (?=\d+/\d))?(?=[A-Za-z/_.-]{0,24}\d)"
    r"[A-Za-z0-9](?:[A-Za-z0-9/_.-]{0,38}[A-Za-z0-9])?)(?![\w%€$])"
)

_VAT_LABEL: Final = pattern(
    r"\b(?:ust|umsatzsteuer|vat|tva|btw|iva|gst|sst|mwst|tax)\b[ .-]{0,3}"
    + words(r"id | 1d | ident | reg | no | nr | num | n° | nummer | identifi\w* | intracom\w*")
    + r"?"
    r"|\bust-?id|\bsteuer-?\s?(?:nr|nummer)|\btin\b|\bein\b|\bp(?:artita|\.)? ?iva\b"
)
_VAT: Final = re.compile(
    r"\b(?P<id>"
    + words(r"""
        ATU ?\d{8} | BE ?[01]?\d{9} | CHE[ -]?\d{3}\.?\d{3}\.?\d{3} | DE ?\d{3} ?\d{3} ?\d{3} | DK ?\d{8}
        ES ?[A-Z0-9]\d{7}[A-Z0-9] | FI ?\d{8} | FR ?[A-Z0-9]{2} ?\d{3} ?\d{3} ?\d{3} | GB ?\d{3} ?\d{4} ?\d{2}
        IE ?\d[A-Z0-9+*]\d{5}[A-Z]{1,2} | IT ?\d{11} | LU ?\d{8} | NL ?\d{9} ?B ?\d{2}
        PL ?\d{10} | PT ?\d{9} | SE ?\d{12}
        """)
    + r")(?!\w)"
)
_TAX_NUMBER: Final = pattern(
    r"[\W_]{0,8}(?:no\b|nr\b|id\b|number\b|reg\b|nummer\b)?[\W_]{0,6}(?P<id>\d[\d /.-]{5,18}\d)(?!\w)"
)
_BUYERS: Final = re.compile(
    r"\b(?:client|customer|buyer|ihre|uw|votre|your|kunde\w*|k[äa]ufer|acheteur|recipient)\b", re.IGNORECASE
)
_IBAN: Final = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{2,4}){3,8}(?: ?[A-Z0-9]{1,3})?\b")


def read_invoice_number(view: View) -> Json | None:
    """Return the invoice's number, from its label or from the title."""
    candidates = sorted(_numbers(view), key=lambda each: -each[1])
    if not candidates:
        return None
    spot, confidence = candidates[0]
    return view.field(spot.text, confidence, spot)


def read_tax_ids(view: View) -> tuple[Json | None, Json | None]:
    """Return the seller's and the buyer's tax number; one without an owner is the seller's."""
    seller: Json | None = None
    buyer: Json | None = None
    for spot, confidence, is_buyers in sorted(_tax_ids(view), key=lambda each: -each[1]):
        field = view.field(_compact(spot.text), confidence, spot)
        if is_buyers:
            buyer = buyer or field
        elif seller is None:
            seller = field
    if seller and buyer and seller["value"] == buyer["value"]:
        return None, buyer
    return seller, buyer


def read_iban(view: View) -> tuple[Json | None, bool]:
    """Return the account to pay to, and whether one was printed that its own check digits refuse."""
    from stdnum import iban  # noqa: PLC0415 - 50 ms that only invoices pay

    is_refused = False
    for cell in view.cells:
        for match in _IBAN.finditer(cell.text):
            value = next((part for part in _shortenings(match.group()) if iban.is_valid(part)), None)
            if value is not None:
                return view.field(
                    iban.compact(value), BESIDE, Spot(cell, match.start(), match.start() + len(value))
                ), False
            is_refused = is_refused or "IBAN" in cell.text.upper()
    return None, is_refused


def _numbers(view: View) -> Iterator[tuple[Spot, float]]:
    for label in view.labels(_NUMBER_LABEL):
        is_named = _NAMED.search(label.text) is not None
        spot, place = _token(view, label)
        if spot and place:
            yield spot, (BELOW if place.is_below else BESIDE) if is_named else WEAK
    for row in view.rows[:MAX_TITLE_ROWS]:
        for cell in row.cells:
            for form, confidence in ((_TITLE, TITLE), (_HASH, WEAK)):
                match = form.match(cell.text)
                if match and (spot := _token_at(Place(cell, match.end()))):
                    yield spot, confidence
                elif match and form is _TITLE and match.end() == len(cell.text):
                    yield from _under_title(view, Spot(cell, 0, match.end()))


def _under_title(view: View, title: Spot) -> Iterator[tuple[Spot, float]]:
    """Take the number in a column that is headed by the bare word: behind a label of its own, or alone there."""
    for cell in view.below(title):
        label = _BARE_LABEL.match(cell.text)
        if label and (spot := _token_at(Place(cell, label.end()))):
            yield spot, TITLE
            return
        spot = _token_at(Place(cell))
        if spot and spot.end == len(cell.text) and spot.start == 0 and len(title.cell.row.cells) > 1:
            yield spot, WEAK
        return


def _token(view: View, label: Spot) -> tuple[Spot, Place] | tuple[None, None]:
    for place in view.places(label):
        spot = _token_at(place)
        if spot:
            return spot, place
        # What stands beside a label without a digit is the next column's label.
        if place.text.strip(" :.#-") and (place.cell is label.cell or place.is_below or _HAS_DIGIT.search(place.text)):
            return None, None
    return None, None


def _token_at(place: Place) -> Spot | None:
    """Return the first word at ``place`` that can be a number: it has a digit and is no date."""
    match = _TOKEN.match(place.text)
    if match is None or any(
        moment.start <= match.end("token") for moment in find_dates(place.text[: match.end() + 12])
    ):
        return None
    return place.spot(match.start("token"), match.end("token"))


def _tax_ids(view: View) -> Iterator[tuple[Spot, float, bool]]:
    for row in view.rows:
        for cell in row.cells:
            for match in _VAT.finditer(cell.text):
                labelled = _VAT_LABEL.search(row.text) is not None
                if labelled or _is_valid_vat(match.group("id")):
                    yield (
                        Spot(cell, match.start("id"), match.end("id")),
                        BESIDE if labelled else BELOW,
                        _is_buyers(view, cell),
                    )
    for label in view.labels(_VAT_LABEL):
        for place in view.places(label):
            number = None if place.is_below else _TAX_NUMBER.match(place.text)
            if number and sum(map(str.isdigit, number.group("id"))) >= MIN_TAX_DIGITS:
                yield place.spot(number.start("id"), number.end("id")), WEAK, _is_buyers(view, label.cell)


def _is_valid_vat(text: str) -> bool:
    from stdnum.eu import vat  # noqa: PLC0415 - only invoices pay for it

    return bool(vat.is_valid(text))


def _is_buyers(view: View, cell: Cell) -> bool:
    """Say whether a number is the buyer's: it says so, or the last block that was opened above is the buyer's."""
    if _BUYERS.search(cell.row.text):
        return True
    for row in reversed(view.rows[max(0, cell.row.index - ROWS_OF_BLOCK) : cell.row.index]):
        for other in row.cells:
            if is_buyers_label(other.text):
                return (
                    cell.box is None
                    or overlap(other.box, cell.box, axis=0) > 0
                    or len(cell.row.cells) <= LABEL_AND_VALUE
                )
            if is_sellers_label(other.text):
                return False
    return False


def _compact(text: str) -> str:
    return text.replace(" ", "") if text[:2].isalpha() else text.strip()


def _shortenings(text: str) -> Iterator[str]:
    """Yield ``text`` and what is left of it without its last words: a following word is no part of an IBAN."""
    while text:
        yield text
        text = text.rpartition(" ")[0]
