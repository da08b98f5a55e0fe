"""Who sells and who buys: from labels, from the letter's address field, or from the head of a receipt."""

import re
from collections.abc import Iterator
from typing import Final

from stages.fields.imprint import read_imprint, read_payee
from stages.fields.layout import Cell, Row
from stages.fields.letterhead import read_letterhead
from stages.fields.lexicon import pattern, words
from stages.fields.names import LEGAL_FORM, SALUTATION, STREET, is_same_name, looks_like_name, name_in
from stages.fields.view import Json, Spot, View

LABELLED: Final = 0.9
SENDER_LINE: Final = 0.8
LEGAL_NAME: Final = 0.65
ONLY_ADDRESS: Final = 0.6
HEAD_ROWS: Final = 12
LINES_OF_BLOCK: Final = 8
ADDRESS_ROWS: Final = 40
SENDER_PARTS: Final = 3
LEFT_EDGE: Final = 0.01

_SELLER_WORDS: Final = words(
    r"""
    seller | vendor | from | sold by | supplier | issued by | service provider
    verk[äa]ufer | rechnungssteller | rechnungsersteller | lieferant | leistungserbringer
    vendeur | fournisseur | [ée]metteur | leverancier | verkoper | afzender
    emisor | proveedor | vendedor | fornitore | emittente | cedente | mittente
    """
)
_SELLER: Final = pattern(rf"^\W*{_SELLER_WORDS}\b[^\w]*(?:/\w+)?\W*$|^\W*{_SELLER_WORDS}\s*:\s*")
_BUYER_WORDS: Final = words(
    r"""
    bill(?:ed)? to | credit(?:ed)? to
    invoiced? to | sold to | buyer | customer | billing address | bill to address | invoice address
    k[äa]ufer | rechnungsempf[äa]nger | rechnung an | leistungsempf[äa]nger | auftraggeber | kunde
    client | acheteur | factur[é]e? [àa] | adresse de facturation | destinataire
    factuuradres | klant | afnemer | cliente | facturar a | facturado a | datos del cliente
    spett\.?\s?(?:le|li|bile)?\.? | destinatario | intestat[oa] a | fatturat[oa] a | cessionario | committente
    """
)
_BUYER: Final = pattern(rf"^\W*{_BUYER_WORDS}\b(?:\s?/\s?\w+)?(?:\s(?:address|name))?\W*")
_NAME_WORDS: Final = words("name | firma | company | nom | naam")
_NAME_LABEL: Final = pattern(rf"^{_NAME_WORDS}\s*:?\s*$|^{_NAME_WORDS}\s*:\s*")
_SENDER_BREAK: Final = re.compile(r"\s+[-–·•|*]\s+|\s*[,·•]\s+")  # noqa: RUF001 - the dash that letters use
_POSTCODE: Final = re.compile(
    r"^(?:[A-Z]{1,2}[ -])?\d{4,5}\s[^\W\d]|^\d{4}\s?[A-Z]{2}\s[^\W\d]|\b[A-Z]{2} \d{5}\b"
    r"|\b[A-Z]{1,2}\d{1,2}[A-Z]? \d[A-Z]{2}\b"
)


def read_parties(view: View, *, is_receipt: bool) -> tuple[Json | None, Json | None]:
    """Return the seller and the buyer."""
    buyer = _labelled(view, _BUYER)
    seller = _labelled(view, _SELLER)
    if seller is None:
        sender, receiver = _letter(view)
        seller, buyer = sender, buyer or receiver
    if seller is None:
        seller = _unlabelled(view, is_receipt=is_receipt, buyer=buyer)
    if buyer is None and seller and not is_receipt:
        buyer = _addressed(view, seller)
    if seller and buyer and seller["value"] == buyer["value"]:
        return seller, None
    return seller, buyer


def _unlabelled(view: View, *, is_receipt: bool, buyer: Json | None) -> Json | None:
    """Return the seller by the foot, the head or the bank account."""
    head = read_letterhead(view, is_receipt=is_receipt, buyer=buyer)
    foot = None if is_receipt else read_imprint(view, buyer)
    if head and foot and is_same_name(head["value"], foot["value"]):
        return head
    return foot or head or read_payee(view, buyer)


def is_buyers_label(text: str) -> bool:
    """Say whether ``text`` opens the buyer's block."""
    return _BUYER.match(text) is not None


def is_sellers_label(text: str) -> bool:
    """Say whether ``text`` opens the seller's block."""
    return _SELLER.match(text) is not None


def _labelled(view: View, pattern: re.Pattern[str]) -> Json | None:
    """Return the name that stands behind or under the first label that has one."""
    for label in view.labels(pattern):
        for spot in _names_at(view, label):
            return view.field(spot.text, LABELLED, spot)
    return None


def _names_at(view: View, label: Spot) -> Iterator[Spot]:
    own = name_in(label.cell, label.end)
    if own:
        yield own
        return
    for cell in _block(view, label):
        match = _NAME_LABEL.match(cell.text)
        if match and match.end() == len(cell.text):
            yield from (spot for right in view.right_of(cell)[:1] if (spot := name_in(right)))
            return
        spot = name_in(cell, match.end() if match else 0)
        if spot:
            yield spot
            return
        if STREET.search(cell.text):
            return


def _block(view: View, label: Spot) -> Iterator[Cell]:
    """Yield the cells under a label, line by line, that belong to its column."""
    rows = view.rows[label.cell.row.index + 1 :][:LINES_OF_BLOCK]
    for row in rows:
        if row.page != label.cell.page:
            return
        index = 0 if row.box is None else _column(row, label)
        if index is not None:
            yield row.cells[index]


def _column(row: Row, label: Spot) -> int | None:
    left, right = (label.box[0], label.box[2]) if label.box else (0.0, 1.0)
    for index, cell in enumerate(row.cells):
        if cell.box and cell.box[0] < right and cell.box[2] > left:
            return index
    return None


def _letter(view: View) -> tuple[Json | None, Json | None]:
    """Read the address field of a letter: a small line of sender, street and town, then the receiver."""
    for row in view.rows[:HEAD_ROWS]:
        for cell in row.cells:
            parts = _SENDER_BREAK.split(cell.text)
            if len(parts) < SENDER_PARTS or not any(map(_POSTCODE.search, parts[1:])) or not looks_like_name(parts[0]):
                continue
            spot = Spot(cell, 0, len(parts[0]))
            below = next(iter(_block(view, spot)), None)
            name = name_in(below) if below else None
            receiver = view.field(name.text, LEGAL_NAME, name) if name and LEGAL_FORM.search(name.text) else None
            return view.field(spot.text, SENDER_LINE, spot), receiver
    return None, None


def _addressed(view: View, seller: Json) -> Json | None:
    """Return the only name, beside the seller's, that stands over a street and a town on the first page."""
    names: dict[str, Spot] = {}
    for row in view.rows[:ADDRESS_ROWS]:
        for cell in row.cells:
            if _POSTCODE.search(cell.text):
                spot = _top_of_block(view, cell)
                if spot and not is_same_name(spot.text, seller["value"]):
                    names.setdefault(spot.text, spot)
    if len(names) != 1:
        return None
    spot = next(iter(names.values()))
    return view.field(spot.text, ONLY_ADDRESS, spot)


def _top_of_block(view: View, town: Cell) -> Spot | None:
    """Return the first of the lines that stand closely over ``town``; what is under it is no name."""
    top = town
    for row in reversed(view.rows[max(0, town.row.index - LINES_OF_BLOCK) : town.row.index]):
        if row.page != town.page or top.box is None:
            break
        above = (
            next((cell for cell in row.cells if cell.box and abs(cell.box[0] - town.box[0]) < LEFT_EDGE), None)
            if town.box
            else None
        )
        if above is None or above.box is None or SALUTATION.search(above.text):
            continue
        if top.box[1] - above.box[3] > 1.5 * (top.box[3] - top.box[1]):
            break
        top = above
    return None if top is town or top.text.endswith(":") else name_in(top)
