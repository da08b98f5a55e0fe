"""What can be the name of a company or a person, and what only stands where one might."""

import re
from typing import Final

from stages.fields.layout import Cell
from stages.fields.lexicon import pattern, words
from stages.fields.money import numbers
from stages.fields.view import Spot

MIN_LETTERS: Final = 3
MAX_NAME: Final = 100

LEGAL_FORM: Final = re.compile(
    r"(?<!\w)"
    + words(r"""
        GmbH | mbH | mbB | PartG | GbR | AG | KG | OHG | UG | SE | e\.\s?K\. | e\.\s?V\.
        SARL | S\.A\.R\.L\.? | SASU? | S\.A\.S?\.? | EURL | SNC | S\.?r\.?l\.? | S\.p\.A\. | SpA | S\.L\. | Lda\.?
        Ltd\.? | Limited | LLC | L\.L\.C\. | LLP | Inc\.? | Incorporated | Corp\.? | Corporation | PLC | plc | Pty
        INC\.? | LTD\.? | LIMITED | CORP\.? | CORPORATION | INCORPORATED | GMBH | L\.?P\. | LP | N\.A\.
        B\.?V\.? | N\.?V\.? | Oy | AB | A/S | ApS | AS | S[Dd][Nn]\.?\s?B[Hh][Dd]\.? | S/B | BHD
        """)
    + r"(?!\w)"
)
_ATTENTION: Final = pattern(r"^(?:attn\.?|att\.|z\.\s?hd\.?|z\.\s?h\.?|t\.a\.v\.?|[àa] l'attention de|c/o)\s*:?\s*")
SALUTATION: Final = pattern(
    r"^\W*"
    + words("herrn? | frau | firma | an | mr | mrs | ms | messrs | to | monsieur | madame | mme | de heer")
    + r"\W*$"
)
_NO_NAME_WORDS: Final = words(
    r"""
    tel | fax | phone | e-?mail | date | invoice | receipt | page | no\. | number | account | tax
    gst | vat | reg | currency
    doc(?:ument)? no | salesperson | machine | terminal | operator | counter | member | copy | ref | order
    cash(?!\s(?:&|and)\scarry) | table | cashier | welcome | thanks? | copyright | gln
    \w*datum | rechnung | seite | \w*nummer | ust | bestell | w[äa]hrung | beispiel\w*
    facture | factuur
    \w*buchhaltung | einkauf | abteilung | sekretariat | rechnungswesen
    accounts? (?:payable|receivable) | accounting | purchasing | procurement | \w+ department
    comptabilit[ée] | service (?:comptable|achats) | administratie | inkoop
    \w*address?e?n? | \w*adres
    """
)
_NOT_A_NAME: Final = pattern(rf"@|https?:|www\.|\b{_NO_NAME_WORDS}\b")
_STREET_WORDS: Final = words(
    r"""
    street | st | road | rd | avenue | ave | lane | blvd | box | lot
    stra(?:ß|ss)e | str\. | weg | platz | allee | postfach
    rue | chemin | place | calle | avenida | avda\. | plaza | paseo | via | viale | piazza | corso
    jalan | jln | lorong | taman
    """
)
STREET: Final = pattern(
    rf"\b{_STREET_WORDS}\b|\w(?:straße|strasse|weg|platz|allee|straat|gracht|laan|plein|singel)\b"
    rf"|^\W*\d{{4,5}}\b|\b[A-Z]{{2}} \d{{5}}\b"
)
# A remark or a registration number in brackets, or one that stands bare behind a legal form.
_TAIL: Final = re.compile(r"\s*(?:[(<\[][^()<>\[\]]{2,24}[)>\]]|\([^()]{2,24})$")
_NUMBER_BEHIND: Final = re.compile(r"\s+[A-Z]{0,2}\d{4,}[\s-]{0,2}[A-Z]?$")


def name_in(cell: Cell, start: int = 0) -> Spot | None:
    """Return the part of ``cell`` that can be a name."""
    match = _ATTENTION.match(cell.text[start:])
    start += match.end() if match else 0
    text = cell.text[start:]
    text = text.lstrip(" :.-'‘’“")  # noqa: RUF001 - specks that recognition takes for quotes
    start = len(cell.text) - len(text)
    text = _without_tail(text)
    if LEGAL_FORM.search(text):
        text = _without_tail(_NUMBER_BEHIND.sub("", text))
    return Spot(cell, start, start + len(text)) if looks_like_name(text) else None


def looks_like_name(text: str) -> bool:
    """Say whether ``text`` can be a name: mostly letters, no address, amount or label; a legal form says it is one."""
    letters = sum(map(str.isalpha, text))
    if text.startswith("("):
        return False
    if not letters >= MIN_LETTERS or len(text) > MAX_NAME or letters < len(text) / 2:
        return False
    if LEGAL_FORM.search(text):
        return True
    return not (
        _NOT_A_NAME.search(text)
        or SALUTATION.search(text)
        or STREET.search(text)
        or any(number.is_money for number in numbers(text, None))
    )


def is_same_name(first: str, second: str) -> bool:
    """Say whether one of two names is the other, or its beginning or end."""
    short, long = sorted((first.casefold(), second.casefold()), key=len)
    return short in long


def _without_tail(text: str) -> str:
    tail = _TAIL.search(text)
    return (text[: tail.start()] if tail else text).rstrip(" :,;")
