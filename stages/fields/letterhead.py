"""The seller as it stands at the top of a receipt or a letter: the line that what follows belongs to.

Not every first line is the shop's: people write names on receipts before they scan them, malls and brands stand over
the company that sells. A legal form speaks for a line, then a word of trade, then the registration number or the
address right under it.
"""

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from stages.fields.layout import Cell, Row, overlap
from stages.fields.lexicon import pattern, words
from stages.fields.money import numbers
from stages.fields.names import LEGAL_FORM, STREET, name_in
from stages.fields.view import Json, Spot, View

HEAD_ROWS: Final = 14
LEGAL, TRADE, RIGHT_UNDER, UNDER, FIRST, BEHIND = 3, 2, 2, 1, 1, -3
SURE: Final = 4
LEGAL_NAME: Final = 0.65
WELL_PLACED: Final = 0.65
FIRST_LINE: Final = 0.6
FEW_LETTERS: Final = 5

_TRADE_WORDS: Final = words(
    r"""
    trading | enterprises? | industries | holdings | marketing | services | supply | supplies | company | co\.
    restaurants? | cafe | caf[ée] | coffee | bistro | bakery | pizza | kitchen | grill | foods?
    shops? | stores? | mart | (?:super|hyper)?market | cash (?:&|and) carry | pharmacy | clinic | hotel | hardware
    stationers? | stationery | book(?:s|shop|store) | florist | boutique | gallery | furniture | gifts? | decor?
    electrical | electronics | machinery | motors? | auto
    restoran | kedai | pasaraya | pasar | perniagaan | perusahaan | syarikat | farmasi | klinik | butik
    superm[aä]rkt | b[äa]ckerei | konditorei | apotheke | drogerie | gasthaus | gasthof | metzgerei | buchhandlung
    tankstelle | werkstatt | friseur | blumen | getr[äa]nkemarkt
    boulangerie | p[âa]tisserie | pharmacie | brasserie | [ée]picerie | librairie | supermarch[ée] | magasin
    fleuriste | soci[ée]t[ée] | [ée]tablissements | ets | garage
    apotheek | bakkerij | winkel | slagerij
    """
)
_TRADE: Final = pattern(rf"(?<!\w){_TRADE_WORDS}(?!\w)")
_IDENTITY: Final = pattern(
    r"^\W*(?:\(?(?:co(?:mpany)?|business|biz|reg\w*|roc|gst|sst|vat|tax|ust|siret|siren|tva|kvk|btw|iva|abn|ein)\b"
    r"[^\n]{0,24}\d|[A-Z]{0,3}\d{5,}[\s.-]{0,2}[A-Z]?\W*$|(?:tel|fax|phone|telefon|t[ée]l)\b)"
    r"|\(\W?[A-Z]{0,2}\d{4,}[\s.-]{0,2}[A-Z]?\)\W*$"
)
_ADDRESS: Final = pattern(
    r"\b(?:ground|first|second|third|\d(?:st|nd|rd|th)) floor\b"
    r"|^\W*(?:no\.?\s?|lot\s)?\d+[A-Z]?\s?[,&-]\s?\S"
    r"|^\W*(?:no|lot|unit|level|ground)\b\.?\s?\S*\d"
)
_ANYBODYS: Final = words(
    r"""
    gmail | googlemail | outlook | hotmail | live | yahoo | icloud | gmx | web | t-online | freenet
    orange | wanadoo | free | laposte | sfr | libero | ziggo | kpnmail
    """
)
_DOMAIN: Final = pattern(rf"(?:@|www\.|https?://)(?!{_ANYBODYS}\.|www\.)(?P<name>[\w-]{{2,60}})\.[a-z]{{2,}}")
_ITEMS: Final = pattern(
    r"\b(?:qty|quantity|descriptions?|unit price|menge|anzahl|bezeichnung|quantit[ée]|d[ée]signation)\b"
)
_ARTICLES: Final = frozenset({"the", "and", "for", "der", "die", "das", "und", "les", "des", "het", "een"})
_OPEN_START: Final = re.compile(r"^(?:&|and\b)|^[^(]*\)", re.IGNORECASE)
_OPEN_END: Final = re.compile(r"\([^)]*$|&\W*$")
_IN_BRACKETS: Final = re.compile(r"\([^)]*\)?|[^(]*\)")


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A name at the top: the spots that it was put together from, and how much speaks for it."""

    spots: tuple[Spot, ...]
    score: int

    @property
    def text(self) -> str:
        """The whole name."""
        return " ".join(spot.text for spot in self.spots)


def read_letterhead(view: View, *, is_receipt: bool, buyer: Json | None) -> Json | None:
    """Return the name at the top for which most speaks; without a legal form only where something else tells.

    The first line is also the seller's where somebody else is named as the buyer.
    """
    rows = _head_rows(view)
    domains = {match.group("name").casefold() for cell in view.cells for match in _DOMAIN.finditer(cell.text)}
    found = [each for each in _candidates(rows) if buyer is None or each.text != buyer["value"]]
    if not found:
        return None
    best = max(found, key=lambda each: each.score)
    if LEGAL_FORM.search(best.text):
        return view.field(best.text, LEGAL_NAME, *best.spots)
    if is_receipt or best.score >= SURE:
        return view.field(best.text, WELL_PLACED if best.score >= SURE else FIRST_LINE, *best.spots)
    spelled = next((each for each in found if _is_spelled_by(each.text, domains)), None)
    if spelled:
        return view.field(spelled.text, FIRST_LINE, *spelled.spots)
    first = found[0]
    return view.field(first.text, FIRST_LINE, *first.spots) if buyer and first.spots[0].cell.row.index == 0 else None


def _is_spelled_by(name: str, domains: AbstractSet[str]) -> bool:
    """Say whether an address in the web or of a mailbox bears the name."""
    bare = "".join(filter(str.isalnum, name.casefold()))
    told = [domain.replace("-", "") for domain in domains]
    return len(bare) >= FEW_LETTERS and any(
        bare.startswith(domain) or domain.startswith(bare) for domain in told if len(domain) >= FEW_LETTERS
    )


def _head_rows(view: View) -> list[Row]:
    """Return the rows over the first goods and amounts."""
    rows: list[Row] = []
    for row in view.rows[:HEAD_ROWS]:
        if row.page != view.rows[0].page or (rows and _ITEMS.search(row.text)):
            break
        if rows and any(number.is_money for number in numbers(row.text, view.separator)):
            break
        rows.append(row)
    return rows


def _candidates(rows: Sequence[Row]) -> list[_Candidate]:
    names = list(_names(rows))
    anchors = [index for index, row in enumerate(rows) if _is_identity(row)]
    first_name = next((rows.index(spots[0].cell.row) for spots in names), 0)
    anchor = next((index for index in anchors if index > first_name), len(rows))
    return [
        _Candidate(spots, _score(spots, rows, anchors, anchor) + (FIRST if spots is names[0] else 0)) for spots in names
    ]


def _score(spots: tuple[Spot, ...], rows: Sequence[Row], anchors: Sequence[int], anchor: int) -> int:
    """Add up what speaks for a name; who stands under the first address is somebody else."""
    text, row = " ".join(spot.text for spot in spots), rows.index(spots[-1].cell.row)
    score = LEGAL if LEGAL_FORM.search(text) else 0
    score += TRADE if _TRADE.search(text) else 0
    if row in anchors or row + 1 in anchors:
        score += RIGHT_UNDER
    elif row + 2 in anchors:
        score += UNDER
    return score + (BEHIND if row > anchor else 0)


def _names(rows: Sequence[Row]) -> Iterator[tuple[Spot, ...]]:
    """Yield what can be names, those over several lines put together."""
    last: tuple[Spot, ...] = ()
    cells = (cell for row in rows for cell in row.cells if not (_IDENTITY.match(cell.text) or _is_address_part(cell)))
    for spot in (spot for cell in cells if (spot := name_in(cell)) and _is_said(spot.text)):
        if last and _continues(last[-1], spot):
            # What was cut off as a remark is the beginning of what goes on here.
            whole = Spot(last[-1].cell, last[-1].start, len(last[-1].cell.text))
            last = (*last[:-1], whole if _OPEN_END.search(whole.text) else last[-1], spot)
            continue
        if last:
            yield last
        last = (spot,)
    if last:
        yield last


def _is_address_part(cell: Cell) -> bool:
    """Say whether a line goes on behind its comma, as the lines of an address do."""
    return cell.text.endswith(",") and LEGAL_FORM.search(cell.text) is None


def _is_said(text: str) -> bool:
    """Say whether ``text`` begins like a name and is more than an article."""
    begins = text[0].isupper() or text[0].isdigit() or text[0] == "&" or LEGAL_FORM.search(text) is not None
    return begins and text.casefold() not in _ARTICLES


def _continues(above: Spot, below: Spot) -> bool:
    """Say whether a name goes on in the next line, because a bracket is open or that line says nothing of its own."""
    if below.cell.row.index != above.cell.row.index + 1 or LEGAL_FORM.search(above.text):
        return False
    if above.box and below.box and overlap(above.box, below.box, axis=0) == 0:
        return False
    if _OPEN_END.search(above.cell.text[above.start :]) or _OPEN_START.search(below.text):
        return True
    own = _TRADE.sub(" ", LEGAL_FORM.sub(" ", _IN_BRACKETS.sub(" ", below.text)))
    return not any(map(str.isalpha, own))


def _is_identity(row: Row) -> bool:
    return any(pattern.search(cell.text) is not None for cell in row.cells for pattern in (_IDENTITY, STREET, _ADDRESS))
