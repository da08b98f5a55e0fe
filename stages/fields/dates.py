"""Calendar dates in running text and in fields, as ISO 8601, in the languages of the month names below.

``03/04/2018`` is two dates. Which one is meant is decided by the document (another date with a day over 12),
then by its region; the caller is told that it was.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Final

MAX_TEXT: Final = 5_000
FIRST_YEAR: Final = 1900
LAST_YEAR: Final = 2100
LAST_MONTH: Final = 12
PIVOT: Final = 70

_MONTH_NAMES: Final = (
    "january jan januar jänner janvier janv januari enero ene gennaio gen janeiro",
    "february feb februar février févr fév fevrier februari febrero febbraio fevereiro",
    "march mar märz mrz mars maart mrt marzo março",
    "april apr avril avr abril aprile abr",
    "may mai mei mayo maggio maio mag",
    "june jun juni juin junio giugno junho giu",
    "july jul juli juillet juil julio luglio julho lug",
    "august aug août aout augustus agosto ago",
    "september sep sept septembre septiembre settembre setembro set",
    "october oct oktober okt octobre octubre ottobre outubro ott",
    "november nov novembre noviembre novembro",
    "december dec dezember dez décembre déc decembre diciembre dic dicembre dezembro",
)
_MONTHS: Final = {name: number for number, names in enumerate(_MONTH_NAMES, 1) for name in names.split()}
_MONTH: Final = "|".join(sorted(_MONTHS, key=len, reverse=True))

_ISO: Final = re.compile(r"(?<!\d)(?P<y>\d{4})(?P<s>[-/.])(?P<m>\d{1,2})(?P=s)(?P<d>\d{1,2})(?!\d)")
_NUMERIC: Final = re.compile(
    r"(?<![\d./-])(?P<a>\d{1,2})(?P<s>[-/.])[ ]?(?P<b>\d{1,2})(?P=s)[ ]?(?P<y>\d{4}|\d{2})(?![\d]|[./-]\d)"
)
_DAY_MONTH: Final = re.compile(
    r"(?<![\d.,])(?P<d>\d{1,2})[ ]?(?:st|nd|rd|th|er|\.)?[ -]{0,2}(?:day[ ]of[ ]|of[ ]|de[ ])?"
    rf"(?P<m>{_MONTH})\b\.?[ ,-]{{0,3}}(?:de[ ])?(?P<y>\d{{4}}|['’]?\d{{2}}(?![\d:.,%]))",  # noqa: RUF001 - a short year's apostrophe
    re.IGNORECASE,
)
_MONTH_DAY: Final = re.compile(
    rf"(?<![^\W\d_])(?P<m>{_MONTH})\b\.?[ ]?(?P<d>\d{{1,2}})(?:st|nd|rd|th)?[ ]?,?[ ]?(?P<y>\d{{4}})(?!\d)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Moment:
    """A date in a text; ``is_ambiguous`` when day and month could be meant the other way round."""

    value: date
    start: int
    end: int
    is_ambiguous: bool = False

    @property
    def iso(self) -> str:
        """The date as ISO 8601."""
        return self.value.isoformat()


def is_month_first(texts: Iterable[str], *, default: bool) -> bool:
    """Say whether the document writes the month before the day, by its own dates where they tell."""
    month_first = day_first = 0
    for text in texts:
        for match in _NUMERIC.finditer(text[:MAX_TEXT]):
            if match.group("s") == "/":
                month_first += int(match.group("b")) > LAST_MONTH >= int(match.group("a"))
                day_first += int(match.group("a")) > LAST_MONTH >= int(match.group("b"))
    return default if month_first == day_first else month_first > day_first


def find_dates(text: str, *, month_first: bool = False) -> list[Moment]:
    """Return the dates of ``text`` in their order; what is no date of the calendar is left out."""
    text = text[:MAX_TEXT]
    moments: list[Moment] = []
    taken = 0
    for moment in sorted(_candidates(text, month_first=month_first), key=lambda each: (each.start, -each.end)):
        if moment.start >= taken:
            moments.append(moment)
            taken = moment.end
    return moments


def _candidates(text: str, *, month_first: bool) -> Iterator[Moment]:
    for match in _ISO.finditer(text):
        yield from _moment(match, match.group("m"), match.group("d"))
    for match in _NUMERIC.finditer(text):
        yield from _numeric(match, month_first=month_first)
    for pattern in (_DAY_MONTH, _MONTH_DAY):
        for match in pattern.finditer(text):
            yield from _moment(match, str(_MONTHS[match.group("m").lower()]), match.group("d"))


def _numeric(match: re.Match[str], *, month_first: bool) -> Iterator[Moment]:
    first, second = match.group("a"), match.group("b")
    is_open = max(int(first), int(second)) <= LAST_MONTH and first != second
    # Only the slash is used for both orders; a dot or a dash means that the day comes first.
    swapped = int(second) > LAST_MONTH or (month_first and match.group("s") == "/" and int(first) <= LAST_MONTH)
    day, month = (second, first) if swapped else (first, second)
    yield from _moment(match, month, day, is_ambiguous=is_open and match.group("s") == "/")


def _moment(match: re.Match[str], month: str, day: str, *, is_ambiguous: bool = False) -> Iterator[Moment]:
    try:
        value = date(_year(match.group("y")), int(month), int(day))
    except ValueError:
        return
    if FIRST_YEAR <= value.year <= LAST_YEAR:
        yield Moment(value, match.start(), match.end(), is_ambiguous)


def _year(text: str) -> int:
    digits = text.lstrip("'’")  # noqa: RUF001 - a short year's apostrophe
    if len(digits) == len("2018"):
        return int(digits)
    return int(digits) + (2000 if int(digits) < PIVOT else 1900)
