"""The seller as an invoice tells it away from its head: in the small print at the foot, or as whom to pay.

What the law wants on business letters (register, managing directors, tax number) stands beside the name of who
wrote them, so the foot is believed before an address at the top, which may be the customer's.
"""

import re
from collections.abc import Iterator
from typing import Final

from stages.fields.amounts import money_in
from stages.fields.layout import Cell, Row
from stages.fields.lexicon import pattern, words
from stages.fields.names import LEGAL_FORM, is_same_name, looks_like_name, name_in
from stages.fields.view import Json, Spot, View

FOOT: Final = 0.75
FOOT_ROWS: Final = 12
AT_FOOT: Final = 0.7
PAID_TO: Final = 0.65
MAX_NAME: Final = 70

_REGISTERED: Final = pattern(
    r"\b"
    + words(r"""
        gesch[äa]ftsf[üu]hr\w* | vorstand | inhaber(?:in)? | (?:amts|register)gericht | handelsregister | hr[ab] \d+
        ust\W?-?\s?id\w* | umsatzsteuer-?id\w* | steuer\s?-?(?:nummer|nr) | sitz der gesellschaft | firmenbuch\w* | uid
        registered (?:office|in|number|no) | company (?:reg\w*|no|number) | vat (?:reg\w*|no|number|id\w*) | directors?
        siret | siren | r\.?c\.?s\.? | capital (?:social )?(?:de|of) | n\W? ?tva | tva intra\w* | code ape
        kvk | kamer van koophandel | btw | p\.?\s?iva | partita iva | c\.?f\.? | cod(?:ice)? fiscale | r\.?e\.?a\.?
        c\.?i\.?f\.? | n\.?i\.?f\.? | registro mercantil
        """)
    + r"(?!\w)"
)
_HOLDER_WORDS: Final = words(
    r"""
    (?:bank )?account (?:holder|name) | name of account | beneficiary(?: name)? | payable to | payee
    konto-?inhaber(?:in)? | empf[äa]nger | zahlungsempf[äa]nger
    titulaire(?: du compte)? | b[ée]n[ée]ficiaire | titular(?: de la cuenta)?
    beneficiario | intestatario | intestato a
    rekeninghouder | ten name van | t\.n\.v\.
    """
)
_HOLDER: Final = pattern(rf"\b{_HOLDER_WORDS}(?!\w)\s*:?\s*")
_BREAK: Final = re.compile(rf"\s*[·•|;]\s*|\s+[-–—/]\s+|,\s+(?!{LEGAL_FORM.pattern})")  # noqa: RUF001 - dashes as printed
_NAME: Final = re.compile(rf"(?:[^\n]{{1,{MAX_NAME}}}?{LEGAL_FORM.pattern}(?:\s&\s?Co\.?\s?{LEGAL_FORM.pattern})?)")
_LABEL: Final = re.compile(r"^[^:]{0,30}:\s*")
_NO_SELLER: Final = pattern(
    r"\b(?:bank\w*|\w*bank|\w*kasse|cr[ée]dit|caisse|banca|banco|powered|software|hosted|printed)\b"
)


def read_imprint(view: View, buyer: Json | None) -> Json | None:
    """Return the only company, other than the buyer, that is named in a foot with a register or tax number."""
    names: dict[str, Spot] = {}
    for row in _foot(view):
        for cell in row.cells:
            for spot in _companies(cell):
                if buyer is None or not is_same_name(spot.text, buyer["value"]):
                    names.setdefault(spot.text.casefold(), spot)
    spots = list(names.values())
    if not spots or any(not is_same_name(spot.text, spots[0].text) for spot in spots):
        return None
    return view.field(spots[0].text, FOOT, spots[0])


def read_payee(view: View, buyer: Json | None) -> Json | None:
    """Return whom the invoice says to pay."""
    for label in view.labels(_HOLDER):
        for place in view.places(label):
            spot = name_in(place.cell, place.offset)
            if spot is None or _NO_SELLER.search(spot.text) or (buyer and is_same_name(spot.text, buyer["value"])):
                continue
            return view.field(spot.text, PAID_TO, spot)
    return None


def _foot(view: View) -> list[Row]:
    """Return the rows at the foot of the first page that has one with a register or tax number in it."""
    for page in dict.fromkeys(row.page for row in view.rows):
        rows = [row for row in view.rows if row.page == page][-FOOT_ROWS:]
        rows = [row for row in _behind_amounts(view, rows) if row.box is None or row.box[1] >= AT_FOOT]
        if any(_REGISTERED.search(row.text) for row in rows):
            return rows
    return []


def _behind_amounts(view: View, rows: list[Row]) -> list[Row]:
    """Return the rows after the last one with an amount of money that is not a company's capital."""
    with_money = [at for at, row in enumerate(rows) if any(money_in(view, cell) for cell in row.cells)]
    return rows[max((at + 1 for at in with_money if not _REGISTERED.search(rows[at].text)), default=0) :]


def _companies(cell: Cell) -> Iterator[Spot]:
    """Yield the companies in ``cell``, up to their legal forms."""
    start = 0
    for end in (*(match.span() for match in _BREAK.finditer(cell.text)), (len(cell.text), len(cell.text))):
        part = cell.text[start : end[0]]
        label = _LABEL.match(part)
        begin = label.end() if label else 0
        match = _NAME.match(part, begin)
        if match and looks_like_name(match.group()) and not _NO_SELLER.search(part):
            yield Spot(cell, start + begin, start + match.end())
        start = end[1]
