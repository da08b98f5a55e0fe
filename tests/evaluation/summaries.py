"""Whether a summary is one: sentences that stand in the document, few of them, and not none."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from stages.fields.summary import MAX_SUMMARY, MOST
from tests.evaluation.fields import Verdict
from tests.evaluation.texts import words

# A document with so many words has something to say.
ENOUGH_WORDS: Final = 300


def judge_summary(summary: Mapping[str, Any], pages: Sequence[str]) -> dict[str, Verdict]:
    """Judge a result's ``summary`` by the texts of the document's own pages.

    ``sentences`` are right when each stands in them, missing when there is none in a long text;
    ``length`` is right when they are no more and no longer than they may be.
    """
    said = [sentence["text"] for sentence in summary["sentences"]]
    folded = [f" {' '.join(words(page))} " for page in pages]
    is_kept = len(said) <= MOST and len(summary["text"]) <= MAX_SUMMARY + MOST
    return {
        "sentences": _sentences(said, folded),
        "length": Verdict.RIGHT if is_kept and summary["text"] == " ".join(said) else Verdict.WRONG,
    }


def _sentences(said: Sequence[str], pages: Sequence[str]) -> Verdict:
    if not said and sum(page.count(" ") for page in pages) > ENOUGH_WORDS:
        return Verdict.MISSING
    return Verdict.RIGHT if all(_stands_in(words(sentence), pages) for sentence in said) else Verdict.WRONG


def _stands_in(sentence: Sequence[str], pages: Sequence[str]) -> bool:
    """Say whether the words stand one after another on a page, or at the end of one and the beginning of the next."""
    if any(f" {' '.join(sentence)} " in page for page in pages):
        return True
    return any(
        f" {' '.join(sentence[:cut])} " in page and f" {' '.join(sentence[cut:])} " in following
        for page, following in pairwise(pages)
        for cut in range(1, len(sentence))
    )
