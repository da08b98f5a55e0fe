"""Where in the document a passage stands, if it stands there at all: what a model says is believed by this alone."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final
from unicodedata import normalize

from stages.fields.layout import Box, union

MAX_PASSAGE: Final = 1_500
_NEAR: Final = 200
_BLANKS: Final = re.compile(r"\s+")
# Marks that a model writes in one way and documents in many; a soft hyphen is not seen on the page.
_ALIKE: Final = {
    **dict.fromkeys(map(ord, "\u2018\u2019"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e"), '"'),
    **dict.fromkeys(map(ord, "\u2010\u2011\u2013\u2014\u2212"), "-"),
    ord("\u00ad"): "",
}
_JOINTS: Final = frozenset("-/._,'\u2019+&@")


class Folded:
    """A text without blanks, case and variants of marks, and the way back to it."""

    def __init__(self, text: str) -> None:
        """Fold character by character, so that each result knows where it comes from."""
        self.source = text
        pairs = [(one, place) for place, char in enumerate(text) for one in _fold(char)]
        self._text = "".join(one for one, _ in pairs)
        self._places = [place for _, place in pairs]

    def find(self, wanted: str) -> tuple[int, int] | None:
        """Return the first span where ``wanted`` stands, and is not a part of a longer word or number."""
        needle = "".join(map(_fold, wanted))
        at = self._text.find(needle) if needle else -1
        while at >= 0:
            start, end = self._places[at], self._places[at + len(needle) - 1] + 1
            if not (_goes_on(self.source, start, -1) or _goes_on(self.source, end - 1, 1)):
                return start, end
            at = self._text.find(needle, at + 1)
        return None


@dataclass(frozen=True, slots=True)
class Passage:
    """A span of a page's text."""

    page: "PageText"
    start: int
    end: int

    @property
    def text(self) -> str:
        """What stands there, in one line; the document's own words, never the model's."""
        return _BLANKS.sub(" ", self.page.text[self.start : self.end]).strip()

    def within(self, wanted: str) -> "Passage | None":
        """Return where ``wanted`` stands in this passage."""
        span = Folded(self.page.text[self.start : self.end]).find(wanted)
        if span is None:
            return None
        start, end = self.start + span[0], self.start + span[1]
        is_cut = _goes_on(self.page.text, start, -1) or _goes_on(self.page.text, end - 1, 1)
        return None if is_cut else Passage(self.page, start, end)

    def part(self, start: int, end: int) -> "Passage":
        """Return another span of the same page."""
        return Passage(self.page, start, end)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the lines that the passage touches, each with where it begins: a number is read with all of it.

        Of a line that goes on and on, what is near: the rules do not read far into one.
        """
        text = self.page.text
        begin = max(text.rfind("\n", 0, self.start) + 1, self.start - _NEAR)
        end = text.find("\n", self.end)
        for line in text[begin : min(len(text) if end < 0 else end, self.end + _NEAR)].split("\n"):
            yield begin, line
            begin += len(line) + 1

    def holds(self, start: int, end: int) -> bool:
        """Say whether a span of the page's text is in the passage."""
        return self.start <= start and end <= self.end


class PageText:
    """A page's text, and its words for the boxes."""

    def __init__(self, page: Mapping[str, Any]) -> None:
        """Keep the page."""
        self.number: int = page["number"]
        self.text: str = page["text"]
        confidence = page.get("confidence")
        self.confidence: float = 1.0 if confidence is None else confidence
        self._words: Sequence[Sequence[Any]] = page.get("words", ())

    @cached_property
    def folded(self) -> Folded:
        """The text to look for passages in."""
        return Folded(self.text)

    def box_of(self, passage: Passage, part: Passage) -> Box | None:
        """Return the box of ``part``'s words, where they stand together as ``passage`` does."""
        text, starts = self._spelled
        span = text.find(passage.text)
        inner = None if span is None else Folded(text.source[slice(*span)]).find(part.text)
        if span is None or inner is None:
            return None
        start, end = span[0] + inner[0], span[0] + inner[1]
        found = (
            word
            for word, begin in zip(self._words, starts, strict=True)
            if begin < end and begin + len(word[0]) > start
        )
        box = union((word[1], word[2], word[3], word[4]) for word in found)
        return None if box is None else tuple(min(1.0, max(0.0, edge)) for edge in box)  # type: ignore[return-value]  # four of four

    @cached_property
    def _spelled(self) -> tuple[Folded, list[int]]:
        """The words one after the other, and where each begins."""
        starts, position = [], 0
        for word in self._words:
            starts.append(position)
            position += len(word[0]) + 1
        return Folded(" ".join(word[0] for word in self._words)), starts


class Proof:
    """All pages of a document."""

    def __init__(self, pages: Sequence[Mapping[str, Any]]) -> None:
        """Take the pages in their order."""
        self.pages = [PageText(page) for page in pages]

    def find(self, quote: str) -> Passage | None:
        """Return the first place where ``quote`` stands; ``None`` when it stands nowhere, or is too long for one."""
        if len(quote) > MAX_PASSAGE:
            return None
        for page in self.pages:
            span = page.folded.find(quote)
            if span is not None and span[1] - span[0] <= MAX_PASSAGE:
                return Passage(page, *span)
        return None


@lru_cache(maxsize=4096)
def _fold(char: str) -> str:
    folded = normalize("NFKD", char).casefold().translate(_ALIKE)
    return "".join(folded.split())


def _goes_on(text: str, at: int, step: int) -> bool:
    """Say whether the word or number at the edge ``at`` goes on beyond it: ``234.00`` is no part of ``1,234.00``."""
    beyond = at + step
    if not 0 <= beyond < len(text) or not text[at].isalnum():
        return False
    if text[beyond] in _JOINTS:
        beyond += step
        return 0 <= beyond < len(text) and text[beyond].isalnum()
    return text[beyond].isalnum()
