"""Which amounts an invoice calls its net, tax, total and due amount, and which of them agree."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from typing import Final

from stages.fields.layout import Cell, Row
from stages.fields.lexicon import pattern, words
from stages.fields.money import CODES, MAX_RATE, SYMBOLS, Number, numbers
from stages.fields.view import Spot, View

ROUNDED: Final = 6
STRONG: Final = 3
MEDIUM: Final = 2
WEAK: Final = 1
ROWS_TO_ROUNDED: Final = 4
MAX_ROUNDING: Final = Decimal("0.05")
FEW_LETTERS: Final = 3

NET, TAX, TOTAL, DUE = "net_total", "tax_total", "total", "amount_due"
# Tills call so what is to be paid, businesses what is to be taxed.
NET_OR_TOTAL: Final = "net_or_total"
CASH, CHANGE, ROUNDING = "cash", "change", "rounding"

_TAX: Final = words(
    r"""
    tax(?:es?)? | vat | gst | sst | hst
    mwst\.? | m\.w\.st | ust\.? | umsatzsteuer | mehrwertsteuer | steuer
    tva | t\.v\.a\. | btw | iva
    """
)
_INCLUDED: Final = words("included?s? | davon | dont | enthält | enthalten\\w* | darin")
_ASIDE: Final = words(
    r"""
    qty | quantity | items? | savings? | disc(?:ount)? | prepaid | paid | shipping
    supplies | points | capital | charges? | credits?
    balance (?:before|after|forward)
    menge | stk | rabatt\w* | zuschl\w* | abschl\w* | skonto | anzahlung\w*
    versand\w* | kapital | geb[üu]hr\w* | kosten
    remise | acompte | korting
    """
)
_DUE_WORDS: Final = words(
    r"""
    (?:amount|balance|total)\s+(?:amount\s+)?due | ^\W*due(?=\W*$) | amount payable | balance | outstanding
    zahlbetrag | (?:noch )?zu (?:be)?zahlen(?:de\w*)? | offener betrag
    (?:solde|net|reste) [àa] payer | te betalen | da pagare | a pagar
    """
)
_NET_WORDS: Final = words(
    r"""
    excl\w* | without | before | net | taxable
    exkl\w* | ohne | netto(?:summe|betrag|warenwert)? | bemessungsgrundlage
    il[íi]quido | hors | h\.?t\.? | imponibile | base imponible | grondslag
    """
)
_TOTAL_WORDS: Final = words(
    r"""
    grand\s?total | total (?:amount )?payable | nett total
    invoice (?:total|amount) | total (?:for this )?invoice | total amount
    gesamtbetrag | gesamtsumme | rechnungsbetrag | rechnungssumme | brutto(?:summe|betrag)? | endbetrag | endsumme
    total\s+ttc | ttc | montant total | factuur\s?totaal | totale (?:fattura|documento) | importe total
    total factura | importo totale | totaalbedrag | gutschrifts?betrag | montant de l.avoir
    """
)
_SUBTOTAL_WORDS: Final = words(
    "(?:sub|sun)[- ]?tota[al]* | zwischensumme | positionssumme | summe positionen | sous[- ]total"
)
_PLAIN_TOTAL_WORDS: Final = words(
    "t[o0a]ta[l1i] | totaal | t?tl | totale | summe | gesamt | insgesamt | jumlah | betrag"
)

# The first that fits decides: a "total excluding tax" is no total, a "total including tax" is no tax.
_LABELS: Final = tuple(
    (field, strength, pattern(expression))
    for field, strength, expression in (
        (
            ROUNDING,
            STRONG,
            r"^\W*(?:bill |cash )?(?:round(?:ing|ed)?(?!\W*total)|rnd|rundung\w*|arrondi\w*|afronding)\b",
        ),
        (TOTAL, ROUNDED, r"^\W*(?:round(?:ed|ing)? total\b|(?:grand )?total\b.{0,16}\bround(?:ed|ing)\b)"),
        (TOTAL, MEDIUM, rf"^[^\w(]*total included?s?\W{_TAX}\b"),
        (TAX, MEDIUM, rf"(?:^\W*in[ck]l?\w*|\b{_INCLUDED})\b[^\n]{{0,16}}?\b{_TAX}\b"),
        (CASH, STRONG, r"\b(?:cash|tendered|gegeben|bar|esp[èe]ces|contant)\b|^\W*(?:pay|paid|payment|received)\b"),
        (CHANGE, STRONG, r"\b(?:change|r[üu]ckgeld|rendu|monnaie|wisselgeld)\b"),
        (
            TOTAL,
            STRONG,
            r"\b(?:credit (?:note )?(?:total|amount)|total (?:amount )?credit(?:ed)?|total (?:de l.)?avoir)\b",
        ),
        (None, STRONG, rf"\b{_ASIDE}\b"),
        (DUE, STRONG, rf"\b{_DUE_WORDS}\b"),
        (NET_OR_TOTAL, MEDIUM, r"^\W*net total\W*$"),
        (NET, STRONG, rf"\b{_NET_WORDS}(?:\b|\W|$)"),
        (TOTAL, STRONG, rf"\b{_TOTAL_WORDS}\b|\btota[al]\w*\W.{{0,12}}\bin[ck]l|\bamount incl"),
        (TAX, STRONG, rf"\b(?:total|sum|summe|montant|sales) (?:of )?(?:de la )?{_TAX}\b"),
        (TAX, STRONG, rf"\b{_TAX}[ -]?(?:betrag|amount|bedrag|total)|\bsteuerbetrag\b"),
        (NET, MEDIUM, rf"\b{_SUBTOTAL_WORDS}\b"),
        (TOTAL, MEDIUM, rf"^\W*(?:takeout |to )?{_PLAIN_TOTAL_WORDS}\b"),
        (TAX, MEDIUM, rf"\b{_TAX}(?:\b|\W|$)"),
    )
)
_RATE: Final = re.compile(r"\W*\d{1,2}(?:[.,]\d{1,2})?\s?%\W*")
_BLURRED: Final = re.compile(r"\W*(?P<whole>\d{1,6})\s?[-–:;~_*']\s?(?P<cents>\d{2})\W*")  # noqa: RUF001 - marks as read
_LETTERS: Final = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount that a label calls by one of the fields' names.

    ``rate`` is the tax rate beside it. ``parts`` are the amounts of the single rates that make it up; where it
    is not printed itself, they are its proof. What is not printed is believed only where other amounts make it.
    """

    field: str
    strength: int
    value: Decimal
    spot: Spot
    is_alone: bool = True
    rate: Decimal | None = None
    parts: tuple["Amount", ...] = ()
    is_printed: bool = True


def money_in(view: View, cell: Cell) -> list[Number]:
    """Return the amounts of money in ``cell``."""
    return [number for number in numbers(cell.text, view.separator) if number.is_money]


def find_amounts(view: View) -> list[Amount]:
    """Return all labelled amounts, those of rows in which two make the third, rounded totals, and blurred ones."""
    amounts = [amount for row in view.rows for amount in (*_meant(_labelled(view, row)), *_sums(view, row))]
    return [*amounts, *_rounded(view, amounts), *_blurred(view)]


def _meant(amounts: Iterable[Amount]) -> Iterator[Amount]:
    """Take what may be one of two for both; the sums tell which."""
    for amount in amounts:
        if amount.field == NET_OR_TOTAL:
            yield replace(amount, field=NET, strength=WEAK)
            yield replace(amount, field=TOTAL)
        else:
            yield amount


def label_of(text: str) -> tuple[str | None, int] | None:
    """Return the field that a label names and how surely; ``(None, …)`` for other things that are counted."""
    for field, strength, words_of_label in _LABELS:
        if words_of_label.search(text):
            return field, strength
    return None


def _labelled(view: View, row: Row) -> Iterator[Amount]:
    """Read a row as labels, each followed by its amounts; the last amount is the one that is meant."""
    label: tuple[str | None, int] | None = None
    group: list[Cell] = []
    for left, cell in zip((None, *row.cells), row.cells, strict=False):
        found = money_in(view, cell)
        head = cell.text[: found[0].start] if found else cell.text
        if _is_wordy(head):
            yield from _closed(view, label, group)
            label, group = label_of(head), [left] if left and _RATE.fullmatch(left.text) else []
        group.append(cell)
    yield from _closed(view, label, group)


def _closed(view: View, label: tuple[str | None, int] | None, group: list[Cell]) -> Iterator[Amount]:
    found = [(number, cell) for cell in group for number in money_in(view, cell)]
    if label is None or label[0] is None or not found:
        return
    number, cell = found[-1]
    spot = Spot(cell, number.start, number.end)
    yield Amount(label[0], label[1], number.value, spot, len(found) == 1, _rate(view, group, label[0]))


def _rate(view: View, cells: Iterable[Cell], field: str) -> Decimal | None:
    """Return the only percentage in ``cells``; beside a tax it may be a bare number."""
    found = [number for cell in cells for number in numbers(cell.text, view.separator) if 0 < number.value <= MAX_RATE]
    rates = [number.value for number in found if number.is_percent]
    if not rates and field == TAX:
        rates = [number.value for number in found if not number.is_money]
    return rates[0] if len(rates) == 1 else None


def _sums(view: View, row: Row) -> Iterator[Amount]:
    """Take a row of exactly three amounts, of which the first two make the third, for net, tax and total."""
    found = [(number, cell) for cell in row.cells for number in money_in(view, cell)]
    if len(found) != len((NET, TAX, TOTAL)):
        return
    net, tax, total = (number.value for number, _ in found)
    if net + tax == total and abs(tax) < abs(net) and tax:
        rate = _rate(view, row.cells, TAX)
        for field, (number, cell) in zip((NET, TAX, TOTAL), found, strict=True):
            yield Amount(field, WEAK, number.value, Spot(cell, number.start, number.end), rate=rate)


def _rounded(view: View, amounts: Iterable[Amount]) -> Iterator[Amount]:
    """Yield what a total became by rounding: it stands in or right under a row that says so."""
    named = list(amounts)
    totals = [amount for amount in named if amount.field == TOTAL]
    for index in sorted({amount.spot.cell.row.index for amount in named if amount.field == ROUNDING}):
        before = [total.value for total in totals if total.spot.cell.row.index < index][-1:]
        for row in view.rows[index : index + ROWS_TO_ROUNDED]:
            for cell in row.cells:
                for number in money_in(view, cell):
                    if any(0 < abs(number.value - total) <= MAX_ROUNDING for total in before):
                        yield Amount(TOTAL, ROUNDED, number.value, Spot(cell, number.start, number.end))


def _blurred(view: View) -> Iterator[Amount]:
    """Yield totals whose point recognition took for another mark; only sums can show that they are amounts."""
    for row in view.rows if view.has_recognized else ():
        for label, cell in pairwise(row.cells):
            match = _BLURRED.fullmatch(cell.text)
            if match and view.is_recognized(row.page) and (label_of(label.text) or ("",))[0] == TOTAL:
                value = Decimal(f"{match.group('whole')}.{match.group('cents')}")
                yield Amount(TOTAL, WEAK, value, Spot(cell, match.start("whole"), match.end("cents")), is_printed=False)


def _is_wordy(text: str) -> bool:
    """Say whether ``text`` can be a label: more than a currency or a speck that was taken for a letter."""
    bare = text.strip(" :.")
    return bare not in SYMBOLS and bare not in CODES and len(_LETTERS.findall(bare)) >= FEW_LETTERS
