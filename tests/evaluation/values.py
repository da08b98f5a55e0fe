"""Whether a value that was read is the true one; forms in which people write the same thing are the same."""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final

from rapidfuzz.distance import Levenshtein

from tests.evaluation.texts import folded, words

# One wrong letter in ten is a slip of the recognition: the name is still the right one.
NAME_LIKENESS: Final = 0.9
_LEGAL_FORMS: Final = frozenset(
    {"ag", "bhd", "bv", "co", "corp", "corporation", "gmbh", "inc", "incorporated", "kg", "limited", "llc", "llp", "lp"}
    | {"ltd", "nv", "plc", "pte", "pty", "sa", "sarl", "sas", "sdn", "se", "spa", "srl", "ug"}
)
_ASIDE: Final = re.compile(r"\([^)]*\)|\bd/b/a\b.*|\band all of its\b.*", re.IGNORECASE)
_INITIALS: Final = re.compile(r"(?<=\b[A-Za-z])\.\s?(?=[A-Za-z]\b)")
_ONES: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_TENS: Final = {"fifteen": 15, "eighteen": 18, "twenty": 20, "thirty": 30, "forty-five": 45, "sixty": 60, "ninety": 90}
_NUMBER_WORDS: Final = {name: str(number) for number, name in enumerate(_ONES, 1)} | {
    name: str(number) for name, number in _TENS.items()
}
_WORD: Final = re.compile(r"[a-z]+(?:-five)?")
_LAW: Final = re.compile(r"\b(?:the|laws?|state|commonwealth|republic|federal|of|usa?|united states(?: of america)?)\b")
_DURATION: Final = re.compile(r"(\d+)\W*\)?\W*(day|week|month|year)")


def same_number(read: str, true: str) -> bool:
    """Compare amounts."""
    try:
        return Decimal(read) == Decimal(true)
    except InvalidOperation:
        return False


def same_code(read: str, true: str) -> bool:
    """Compare numbers and codes by their letters and digits."""
    return "".join(words(read)) == "".join(words(true))


def same_name(read: str, true: str) -> bool:
    """Compare names of people and companies, without remarks and legal forms."""
    first, second = _bare_name(read), _bare_name(true)
    return bool(first) and Levenshtein.normalized_similarity(first, second) >= NAME_LIKENESS


def same_title(read: str, true: str) -> bool:
    """Compare titles; one may have a remark or a number more."""
    first, second = "".join(words(read)), "".join(words(true))
    return bool(first) and (first in second or second in first or same_name(read, true))


def same_law(read: str, true: str) -> bool:
    """Compare laws by the place; of several true ones, one is enough."""
    return _law(read) in {_law(each) for each in true.split(";")}


def same_duration(read: str, true: str) -> bool:
    """Compare lengths of time by number and unit."""
    first, second = _duration(read), _duration(true)
    return first is not None and second is not None and first.groups() == second.groups()


def _duration(text: str) -> re.Match[str] | None:
    return _DURATION.search(_WORD.sub(lambda word: _NUMBER_WORDS.get(word[0], word[0]), folded(text)))


def same_parties(read: Sequence[str], true: Sequence[str]) -> bool:
    """Say whether these are the parties, all of them and no others."""
    return not strangers(read, true) and not strangers(true, read)


def strangers(names: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the names that are none of the others."""
    return [name for name in names if not any(same_name(name, other) for other in others)]


def _bare_name(name: str) -> str:
    parts = words(_accentless(_INITIALS.sub("", _ASIDE.sub(" ", name))))
    while len(parts) > 1 and parts[-1] in _LEGAL_FORMS:
        parts.pop()
    return "".join(parts[1:] if len(parts) > 1 and parts[0] == "the" else parts)


def _accentless(name: str) -> str:
    return "".join(each for each in unicodedata.normalize("NFKD", name) if not unicodedata.combining(each))


def _law(name: str) -> str:
    return "".join(words(_LAW.sub(" ", folded(name))))


COMPARISONS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "invoice_number": same_code,
    "issue_date": same_code,
    "due_date": same_code,
    "seller": same_name,
    "buyer": same_name,
    "seller_tax_id": same_code,
    "iban": same_code,
    "currency": same_code,
    "net_total": same_number,
    "tax_total": same_number,
    "total": same_number,
    "amount_due": same_number,
    "title": same_title,
    "agreement_date": same_code,
    "effective_date": same_code,
    "expiration_date": same_code,
    "renewal_term": same_duration,
    "notice_period": same_duration,
    "governing_law": same_law,
}
