"""What a template leaves open: marks for somebody to fill in, and words that stand for a name. Neither is a value."""

import re
from typing import Final

from stages.fields.lexicon import pattern, words

_ASKING: Final = words(
    "insert | enter | specify | fill in | einf[üu]gen | einsetzen | eintragen | (?:[àa] )?compl[ée]ter"
)
_ASKED: Final = words(
    "name | date | amount | number | tbd | datum | betrag | firma | anschrift | nom | montant | adresse"
)
_OPEN: Final = re.compile(
    r"\[[^\]]{0,80}\]|\{[^}]{0,60}\}|_{3,}|\.{4,}|(?:\. ){4,}|…{2,}"
    r"|<[^\W\d_][^<>@\n]{0,60}>"
    # In French and in Switzerland these are quotation marks, too; a field of a form letter is named like a variable.
    rf"|«(?:[A-Z]\w{{0,20}}[_A-Z]\w{{0,20}}|(?i:{_ASKED}))»"
    rf"|\((?i:{_ASKING}(?: [^()]{{0,60}})?|{_ASKED})\)"
    # After these words it is a Roman number.
    r"|(?<!Article )(?<!ARTICLE )(?<!Section )(?<!Artikel )(?<!Chapter )(?<!Title )(?<!Annex )(?<!Exhibit )\bX{2,}\b"
    r"|\bx{3,}\b|\b(?:INSERT|TBD|T\.B\.D\.)"
)
_PARTY: Final = words(
    r"""
    company | party | client | customer | supplier | vendor | seller | buyer | contractor | consultant
    employer | employee | landlord | tenant | lessor | lessee | licensor | licensee | provider | recipient | business
    firm | entity | corporation | organi[sz]ation | state | country | jurisdiction | legal
    """
)
_STAND_IN: Final = pattern(
    rf"\b(?:{_PARTY}|your|full|first|last)(?: legal)? name\b|\bname of (?:the |your )?{_PARTY}\b"
    rf"|\b(?:insert|enter|your) {_PARTY}\b|\b(?:firmenname|firmenbezeichnung|vorname|nachname)\b"
    r"|\bname de[rs] (?:firma|unternehmens|gesellschaft)|\bnom de (?:la soci[ée]t[ée]|l.entreprise)\b"
)


def is_left_open(text: str) -> bool:
    """Say whether somebody is still to fill something in."""
    return _OPEN.search(text) is not None


def is_stand_in(name: str) -> bool:
    """Say whether a name only says whose name belongs in its place: ``COMPANY NAME, Inc.``."""
    return _STAND_IN.search(name) is not None or is_left_open(name)
