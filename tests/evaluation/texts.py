"""How much of a text was read: words first, because extractors differ in the order of what they read."""

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from typing import Final

from rapidfuzz.distance import Levenshtein

_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class TextScore:
    """One text against its reference.

    Shape: ``recall`` is the share of the reference's words that were read and ``precision`` the share of the words
    read that are in the reference, each as often as it stands there; ``character_error`` is the number of edits
    over the reference's length, without regard to case and spaces' kinds, and may exceed 1.
    """

    words: int
    recall: float
    precision: float
    character_error: float


def score_text(read: str, reference: str) -> TextScore | None:
    """Compare two texts; a reference without a word scores nothing."""
    wanted, got = Counter(words(reference)), Counter(words(read))
    total, common = sum(wanted.values()), sum((wanted & got).values())
    if not total:
        return None
    plain = folded(reference)
    return TextScore(
        words=total,
        recall=common / total,
        precision=common / sum(got.values()) if got else 1.0,
        character_error=Levenshtein.distance(folded(read), plain) / len(plain),
    )


def words(text: str) -> list[str]:
    """Return the runs of letters and digits, case folded."""
    return _WORD.findall(folded(text))


def folded(text: str) -> str:
    """Return ``text`` in one Unicode form and one case, with single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
