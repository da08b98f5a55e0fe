"""An extractive summary: the sentences that say most of what the document says, in its order."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Any, Final

from stages.fields.boilerplate import is_boilerplate
from stages.fields.flow import Flow
from stages.fields.layout import text_cut
from stages.fields.sentences import sentences
from stages.fields.view import Json

MAX_CANDIDATES: Final = 3_000
MIN_WORDS: Final = 6
GOOD_WORDS: Final = 12
LONG_WORDS: Final = 45
MIN_LETTER: Final = 4
FEWEST: Final = 3
MOST: Final = 7
MAX_SUMMARY: Final = 2_000
REPETITION: Final = 0.5
LEAD: Final = 0.35
MIN_LETTERS_SHARE: Final = 0.6
# Chinese, Japanese and Korean: two characters are about what a word is elsewhere.
_UNSPACED: Final = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_RUN: Final = re.compile(rf"[{_UNSPACED}]+")
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_LINE_END: Final = re.compile(rf"(?<=[{_UNSPACED}。、，！？])\s*\n\s*(?=[{_UNSPACED}])")  # noqa: RUF001 - marks as printed
_TERMINAL: Final = re.compile(r"[.!?…。！？][\"'”’»)\]」』）]{0,2}$")  # noqa: RUF001 - marks as printed
_BLANKS: Final = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence, where it stands, and the content words it has."""

    start: int
    end: int
    text: str
    words: frozenset[str]
    length: int
    rank: int


def summarize(pages: Sequence[Mapping[str, Any]], *, wanted: int | None = None) -> tuple[Json, list[Json]]:
    """Return the summary, of ``wanted`` sentences at most, and warnings about it; a document may have no sentences.

    Words are weighed by how often they come back, so it works in any language; one that puts no blanks between its
    words is weighed by pairs of characters.

    Shape: ``schema.wire.results.Summary`` and a list of ``ResultWarning``.
    """
    flow = Flow(pages)
    candidates = _candidates(flow)
    chosen = _choose(candidates, wanted)
    summary = {
        "text": " ".join(each.text for each in chosen),
        "sentences": [_sentence(flow, each) for each in chosen],
    }
    is_full = len(candidates) >= MAX_CANDIDATES
    return summary, flow.cuts() or ([text_cut([])] if is_full else [])


def _candidates(flow: Flow) -> list[Candidate]:
    """Return the whole sentences: no headings, no table rows, no fragments, no boilerplate, nothing twice."""
    seen: set[str] = set()
    found: list[Candidate] = []
    for paragraph in flow.paragraphs():
        for start, end in sentences(flow.text, *paragraph):
            text = _BLANKS.sub(" ", _LINE_END.sub("", flow.text[start:end]))
            words = _WORD.findall(_RUN.sub(" ", text))
            pairs = [run[place : place + 2] for run in _RUN.findall(text) for place in range(len(run) - 1)]
            if len(found) >= MAX_CANDIDATES:
                return found
            length = len(words) + len(pairs) // 2
            if text.casefold() in seen or not _is_whole(text, length) or is_boilerplate(text):
                continue
            seen.add(text.casefold())
            content = frozenset([word.casefold() for word in words if len(word) >= MIN_LETTER] + pairs)
            found.append(Candidate(start, end, text, content, length, len(found)))
    return found


def _is_whole(text: str, length: int) -> bool:
    return (
        length >= MIN_WORDS
        and not text[0].islower()
        and _TERMINAL.search(text) is not None
        and sum(map(str.isalpha, text)) >= MIN_LETTERS_SHARE * len(text.replace(" ", ""))
    )


def _choose(candidates: list[Candidate], wanted: int | None) -> list[Candidate]:
    """Choose the best sentences one by one, each time holding back those that repeat what is chosen."""
    if not candidates:
        return []
    weights = _weights(candidates)
    scores = {each: _score(each, weights, len(candidates)) for each in candidates}
    chosen: list[Candidate] = []
    room = MAX_SUMMARY
    if wanted is None:
        wanted = max(FEWEST, min(MOST, round(sqrt(len(candidates)))))
    elif wanted > MOST:
        room = MAX_SUMMARY * wanted // MOST
    while scores and len(chosen) < wanted:
        best = max(scores, key=lambda each: (scores[each], -each.rank))
        del scores[best]
        if best.length and len(best.text) <= room:
            chosen.append(best)
            room -= len(best.text)
            for each in scores:
                scores[each] *= 1.0 - REPETITION * _shared(each, best)
    return sorted(chosen, key=lambda each: each.start)


def _weights(candidates: list[Candidate]) -> dict[str, float]:
    """Weigh words that come back in some sentences, but not in most: those are the language's own."""
    counts = Counter(word for each in candidates for word in each.words)
    total = len(candidates)
    return {
        word: log(1 + count) * log(1 + total / count)
        for word, count in counts.items()
        if count > 1 or total < MIN_WORDS
    }


def _score(candidate: Candidate, weights: Mapping[str, float], total: int) -> float:
    weight = sum(weights.get(word, 0.0) for word in candidate.words) / (len(candidate.words) + MIN_LETTER)
    length = min(1.0, candidate.length / GOOD_WORDS) * min(1.0, LONG_WORDS / candidate.length)
    lead = 1.0 + LEAD / (1.0 + 10.0 * candidate.rank / total)
    return weight * length * lead


def _shared(first: Candidate, second: Candidate) -> float:
    smaller = min(len(first.words), len(second.words))
    return len(first.words & second.words) / smaller if smaller else 0.0


def _sentence(flow: Flow, candidate: Candidate) -> Json:
    box = flow.box_of(candidate.start, candidate.end)
    return {
        "text": candidate.text,
        "page": flow.page_of(candidate.start),
        "box": None if box is None else [min(1.0, max(0.0, edge)) for edge in box],
    }
