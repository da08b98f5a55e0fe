"""Spans of time as contracts write them: ``twelve (12) months``, ``30 days``, ``one-year``, ``drei Monate``."""

import re
from typing import Final

from stages.fields.lexicon import words

_COUNT: Final = words(
    r"""
    one | two | three | four | five | six | seven | eight | nine | ten | twelve | fifteen | eighteen
    twenty(?:[- ]four)? | thirty(?:[- ]six)? | forty(?:[- ]five)? | sixty | ninety
    ein(?:e[mnrs]?)? | zwei | drei | vier | f[üu]nf | sechs | zw[öo]lf
    une? | deux | trois | quatre | cinq | douze
    \d{1,3}
    """
)
_UNIT: Final = words(
    r"""
    (?:calendar |business |full )?(?:day|week|month|year)s?
    tage?n? | wochen? | monat(?:e|en|s)? | jahr(?:e|en|es)?
    jours? | semaines? | mois | ans? | ann[ée]es?
    """
)
DURATION: Final = rf"\b{_COUNT}\b[-\s]{{0,2}}(?:\(\s?{_COUNT}\s?\))?[-\s]{{0,3}}{_UNIT}\b"
_DURATION: Final = re.compile(DURATION, re.IGNORECASE)
_BLANKS: Final = re.compile(r"\s+")
_SPLIT: Final = re.compile(r"(?<=\d)-\s(?=[a-z])")


def find_duration(text: str) -> re.Match[str] | None:
    """Return the first span of time in ``text``."""
    return _DURATION.search(text)


def tidy(text: str) -> str:
    """Return ``text`` on one line."""
    return _SPLIT.sub(" ", _BLANKS.sub(" ", text)).strip()
