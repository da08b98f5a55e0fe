"""Spans of time as contracts write them: ``twelve (12) months``, ``30 days``, ``one-year``, ``drei Monate``."""

import calendar
import re
from datetime import date, timedelta
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
_NUMBER_NAMES: Final = {
    1: "one ein eine einem einen einer eines un une",
    2: "two zwei deux",
    3: "three drei trois",
    4: "four vier quatre",
    5: "five fünf funf cinq",
    6: "six sechs",
    7: "seven",
    8: "eight",
    9: "nine",
    10: "ten",
    12: "twelve zwölf zwolf douze",
    15: "fifteen",
    18: "eighteen",
    20: "twenty",
    24: "twenty-four",
    30: "thirty",
    36: "thirty-six",
    40: "forty",
    45: "forty-five",
    60: "sixty",
    90: "ninety",
}
_NUMBERS: Final = {name: number for number, names in _NUMBER_NAMES.items() for name in names.split()}
_PARTS: Final = re.compile(rf"(?P<count>{_COUNT})\b.*?(?P<unit>{_UNIT})$", re.IGNORECASE | re.DOTALL)
_MONTHS_A_YEAR: Final = 12
_DAYS_A_WEEK: Final = 7
# A heading that was underlined on a typewriter.
_RULE: Final = re.compile(r"(?:^|\s)-{3,}(?:\s-{2,})*(?=\s|$)")
_BLANKS: Final = re.compile(r"\s+")
_SPLIT: Final = re.compile(r"(?<=\d)-\s(?=[a-z])")


def find_duration(text: str) -> re.Match[str] | None:
    """Return the first span of time in ``text``."""
    return _DURATION.search(text)


def added(begin: date, duration: str) -> date | None:
    """Return the day that lies a span of time after ``begin``; ``None`` where that depends on what a working day is."""
    match = _PARTS.search(duration)
    if match is None:
        return None
    count, unit = _number(match.group("count")), match.group("unit").casefold()
    if count is None or "business" in unit:
        return None
    unit = unit.split()[-1]
    if unit.startswith(("day", "tag", "jour")):
        return begin + timedelta(days=count)
    if unit.startswith(("week", "woche", "semaine")):
        return begin + timedelta(days=count * _DAYS_A_WEEK)
    return _months_after(begin, count * (1 if unit.startswith("mo") else _MONTHS_A_YEAR))


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else _NUMBERS.get(text.casefold().replace(" ", "-"))


def _months_after(begin: date, months: int) -> date:
    """Return the same day of a later month, or that month's last."""
    year, month = divmod(begin.year * _MONTHS_A_YEAR + begin.month - 1 + months, _MONTHS_A_YEAR)
    return date(year, month + 1, min(begin.day, calendar.monthrange(year, month + 1)[1]))


def tidy(text: str) -> str:
    """Return ``text`` on one line, without ruled ones."""
    return _SPLIT.sub(" ", _BLANKS.sub(" ", _RULE.sub(" ", text))).strip()
