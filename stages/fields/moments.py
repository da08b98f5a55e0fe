"""When an invoice was issued and when it is due."""

import re
from collections.abc import Iterator
from typing import Final

from stages.fields.dates import Moment, find_dates
from stages.fields.lexicon import pattern, words
from stages.fields.view import Json, Place, Spot, View

NAMED: Final = 0.95
BELOW: Final = 0.85
PLAIN: Final = 0.8
ONLY: Final = 0.6
AMBIGUOUS: Final = 0.75
REACH: Final = 40
REACH_PAST_DISCOUNT: Final = 120

_NAMED_ISSUE: Final = pattern(
    r"\b"
    + words(r"""
        (?:tax )?(?:invoice|inv|bill|receipt|issue)\s?(?:date|dt) | date (?:of issue|issued) | issued(?: on)?
        rechnungs-?\s?datum | belegdatum | ausstellungsdatum
        date (?:d.?\s?[ée]mission|de (?:la )?facture|facture) | factuur\s?datum | data fattura
        fecha (?:de )?(?:factura|emisi[óo]n)
        """)
    + r"\b"
)
_TITLE_ISSUE: Final = re.compile(
    r"^(?:\w{0,30}rechnung|gutschrift)\b(?!\s(?:gem[äa](?:ß|ss)|zu[rm]?|f[üu]r|nach)\b)[^\n]{0,90}?\bvom\b",
    re.IGNORECASE,
)
_PLAIN_ISSUE: Final = re.compile(r"\b(?:date|datum|tarikh|fecha|data|dated|le)\b", re.IGNORECASE)
# A till prints when it was; what holds from one day to another has no time of day.
_TIME: Final = re.compile(r"(?<![\d:.])(?:[01]?\d|2[0-3]):[0-5]\d(?![\d.])")
# Tills number orders in the row of the date and the time.
_ORDER_NUMBER: Final = pattern(r"\border\s?(?:no|number|nr|id|#)\W*\w*\d\w*")
_NOTHING: Final = re.compile(r"(?!)")
_DUE: Final = pattern(
    r"\b"
    + words(r"""
        due | payable by | pay(?:ment)? by | payment due
        f[äa]llig\w* | zahlbar\b[^\n]{0,90}?\bbis | zahlungsziel | zu zahlen bis
        [ée]ch[ée]ance | [àa] (?:payer|r[ée]gler) avant | vervaldatum | uiterste betaaldatum | scadenza | vencimi?ento
        """)
    + r"\b"
)
_DISCOUNT: Final = pattern(r"\b(?:skonto|discount|escompte|korting|sconto|descuento)\b")
_DISCOUNTED: Final = pattern(
    r"^\W{0,3}(?:mit|abz\w+|abzgl\.?|unter abzug von|with|less|avec|met|con)?\W{0,3}[\d.,]{1,5}\s?%"
)
_OTHER: Final = pattern(
    r"\b"
    + words(r"""
        order | delivery | ship\w* | service | period | valid | birth | print\w* | value | start
        end | arrival | departure | expir\w*
        check-?(?:in|out)
        bestell\w* | liefer\w* | leistungs?\w* | zeitraum | wertstellung | skonto
        livraison | commande | order\s?datum
        """)
    + r"\b"
)


def read_dates(view: View) -> tuple[Json | None, Json | None]:
    """Return the dates of issue and of payment."""
    due = _first(view, _DUE, NAMED)
    issue = (
        _first(view, _NAMED_ISSUE, NAMED)
        or _first(view, _TITLE_ISSUE, NAMED)
        or _first(view, _PLAIN_ISSUE, PLAIN, other=_OTHER)
        or _only(view, _TIME)
        or _only(view)
    )
    return issue, due


def _first(
    view: View, pattern: re.Pattern[str], confidence: float, other: re.Pattern[str] | None = None
) -> Json | None:
    for label in view.labels(pattern):
        if other and (
            other.search(label.cell.text[: label.end + 20]) or _DUE.search(label.cell.text[: label.end + 20])
        ):
            continue
        for place in view.places(label):
            moment = _beginning(view, place)
            if moment:
                return _field(view, place, moment, BELOW if place.is_below else confidence)
    return None


def _beginning(view: View, place: Place) -> Moment | None:
    """Return the date that the place begins with, give or take a word and what paying sooner would save."""
    moments = find_dates(place.text, month_first=view.month_first)
    reach = REACH_PAST_DISCOUNT if _DISCOUNT.search(place.text) else REACH
    full = (moment for moment in moments if not _DISCOUNTED.match(place.text[moment.end :]))
    return next((moment for moment in full if moment.start <= reach), None)


def _only(view: View, beside: re.Pattern[str] | None = None) -> Json | None:
    """Return the only date of the document that nothing gives another meaning, or the only one ``beside`` something."""
    named = _NOTHING if beside is None else _ORDER_NUMBER
    found = [each for each in _free(view, named) if beside is None or beside.search(each[0].cell.row.text)]
    if len({moment.value for _, moment in found}) != 1:
        return None
    place, moment = found[0]
    return _field(view, place, moment, ONLY)


def _free(view: View, ignored: re.Pattern[str]) -> Iterator[tuple[Place, Moment]]:
    """Yield the dates of rows without a word, beside what is ``ignored``, that gives them another meaning."""
    for row in view.rows:
        if _DUE.search(row.text) or _OTHER.search(ignored.sub(" ", row.text)):
            continue
        for cell in row.cells:
            for moment in find_dates(cell.text, month_first=view.month_first):
                yield Place(cell), moment


def _field(view: View, place: Place, moment: Moment, confidence: float) -> Json:
    spot: Spot = place.spot(moment.start, moment.end)
    return view.field(moment.iso, min(confidence, AMBIGUOUS) if moment.is_ambiguous else confidence, spot)
