"""Contracts: the title, who agrees with whom, from when to when, and what the clauses say.

What a template leaves open (``stages.fields.placeholders``) is unknown.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from stages.fields import clauses
from stages.fields.contract_dates import Calendar, Dated
from stages.fields.contract_forms import completed, listed, numbered
from stages.fields.contract_parties import Party, described_parties, find_parties
from stages.fields.durations import tidy
from stages.fields.flow import Flow
from stages.fields.lexicon import pattern
from stages.fields.placeholders import is_left_open, is_stand_in
from stages.fields.sentences import sentences, without_headings
from stages.fields.view import MAX_EVIDENCE, Json

SURE: Final = 0.9
LIKELY: Final = 0.75
MAX_TITLE_LINES: Final = 60
MAX_TITLE_WORDS: Final = 14
MAX_CLAUSE: Final = 500
PREAMBLE: Final = 2_500
NEAR: Final = 60
CAPITALIZED: Final = 0.6
SHORT_WORD: Final = 3

_KIND: Final = pattern(
    r"\b(?:agreement|contract|lease|licen[sc]e|deed|memorandum|amendment|addendum|nda"
    r"|\w{0,24}vertrag|\w{0,24}vereinbarung|contrat|accord|convention|bail)\b"
)
_TYPES: Final = tuple(
    (name, pattern(expression))
    for name, expression in {
        "non-disclosure": r"non-?\s?disclosure|confidentiality|\bNDA\b|geheimhaltung|confidentialit[ée]",
        "restrictive covenant": r"restrictive covenant|non-?\s?compet",
        "employment": r"employment|arbeitsvertrag|contrat de travail",
        "independent contractor": r"independent contractor",
        "sponsorship": r"sponsor",
        "co-branding": r"co-?\s?branding",
        "maintenance": r"maintenance|wartung",
        "outsourcing": r"outsourc\w*",
        "development": r"development|entwicklung",
        "marketing": r"marketing|promotion|advertising",
        "license": r"licen[sc]\w*|lizenz",
        "distribution": r"distribut\w*|reseller|vertrieb",
        "lease": r"\blease|rental|miet\w*|\bbail\b",
        "loan": r"\bloan|credit agreement|darlehen|pr[êe]t\b",
        "purchase": r"purchase|\bsales?\b|kauf\w*|vente",
        "supply": r"supply|liefer\w*",
        "services": r"services?\b|consulting|dienst\w*|prestation",
        "joint venture": r"joint venture|collaboration|alliance|partnership",
        "franchise": r"franchis",
        "agency": r"\bagency|handelsvertret",
    }.items()
)
_THIS: Final = re.compile(r"\W*(?:this|dieser|diese|le pr[ée]sent|ce)\b", re.IGNORECASE)


def read_contract(pages: Sequence[Mapping[str, Any]]) -> tuple[Json, list[Json]]:
    """Return what the contract says about itself and warnings about it; the words of all languages are tried.

    Shape: ``schema.wire.results.Contract`` and a list of ``ResultWarning``.
    """
    flow = Flow(pages)
    return _Reader(flow).read(), flow.cuts()


class _Reader:
    """Reads one contract's text."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        # One line of the same length, so that a date or a name may go over a line's end.
        self.text = flow.text.replace("\n", " ")
        self.title = self._find_title()
        opening = self.title[1] if self.title else 0
        self.calendar = Calendar(self.text, flow.text, opening, self._sentences)
        self.parties = self._find_parties(opening) or (self._find_parties(0) if opening else [])

    def read(self) -> Json:
        """Return the contract's fields."""
        return {
            "title": self._field(self.title, SURE),
            "contract_type": self._contract_type(),
            "parties": [self._party(party) for party in self.parties],
            "agreement_date": self._date(self.calendar.agreement),
            "effective_date": self._date(self.calendar.effective),
            "expiration_date": self._date(self.calendar.expiration),
            "term": self._first([self.calendar.term] if self.calendar.term else []),
            "renewal_term": self._clause_value((clauses.RENEWAL,)),
            "notice_period": self._first(clauses.notices(self.text)),
            "termination": self._termination(),
            "governing_law": self._clause_value(clauses.LAWS),
            "obligations": list(self._obligations()),
        }

    def _find_title(self) -> tuple[int, int] | None:
        """Return the first line that names a kind of contract and is set like a title."""
        for piece in self.flow.pieces[:MAX_TITLE_LINES]:
            if _KIND.search(piece.text) and _is_title(piece.text):
                return piece.start, piece.start + len(piece.text)
        return None

    def _find_parties(self, start: int) -> list[Party]:
        """Return the parties, of whom there are at least two, from the opening sentence or a form."""
        text, tabbed = self.flow.text, self.flow.tabbed
        found = find_parties(text, start)
        if len(found) == 1:
            found = completed(text, tabbed, found[0])
        return (
            found
            or numbered(text, start, PREAMBLE)
            or listed(tabbed, start, PREAMBLE)
            or described_parties(text, start)
        )

    def _contract_type(self) -> Json | None:
        if self.title is None:
            return None
        title = self.text[slice(*self.title)]
        name = next((name for name, words in _TYPES if words.search(title)), None)
        return None if name is None else self._field(self.title, LIKELY, value=name)

    def _party(self, party: Party) -> Json:
        field = self._proof((party.start, party.end), SURE if party.role else LIKELY, party.name)
        return {**field, "role": party.role}

    @cached_property
    def _sentences(self) -> list[tuple[int, int]]:
        parts = (part for paragraph in self.flow.paragraphs() for part in without_headings(self.flow.text, *paragraph))
        return [span for part in parts for span in sentences(self.text, *part)]

    def _clause_value(self, patterns: Sequence[re.Pattern[str]]) -> Json | None:
        return self._first(clauses.values(patterns, self.text))

    def _first(self, spans: Iterable[tuple[int, int]]) -> Json | None:
        """Return the first of ``spans`` that nobody is still to fill in."""
        for span in spans:
            around = self.text[max(0, span[0] - NEAR // 2) : span[1] + 2]
            if not is_left_open(around) and not is_stand_in(self.text[slice(*span)]):
                return self._field(span, LIKELY)
        return None

    def _termination(self) -> Json | None:
        for span in self._sentences:
            if clauses.TERMINATION.search(self.text[slice(*span)]) and not is_left_open(self.text[slice(*span)]):
                return self._field((span[0], min(span[1], span[0] + MAX_CLAUSE)), LIKELY)
        return None

    def _obligations(self) -> Iterator[Json]:
        roles = [name for party in self.parties for name in (party.role, party.name) if name]
        pattern = clauses.obligation_pattern(roles)
        count = 0
        for span in self._sentences:
            if count >= clauses.MAX_OBLIGATIONS:
                return
            if pattern.search(self.text[slice(*span)]) and not is_left_open(self.text[slice(*span)]):
                field = self._field((span[0], min(span[1], span[0] + MAX_CLAUSE)), LIKELY)
                if field:
                    count += 1
                    yield field

    def _date(self, found: Dated | None) -> Json | None:
        return None if found is None else self._proof((found.start, found.end), found.confidence, found.iso)

    def _field(self, span: tuple[int, int] | None, confidence: float, value: str | None = None) -> Json | None:
        return None if span is None else self._proof(span, confidence, value or tidy(self.text[slice(*span)]))

    def _proof(self, span: tuple[int, int], confidence: float, value: str) -> Json:
        box = self.flow.box_of(*span)
        context = max(0, span[0] - NEAR) if span[1] - span[0] < NEAR else span[0]
        return {
            "value": value,
            "confidence": confidence,
            "page": self.flow.page_of(span[0]),
            "box": None if box is None else [min(1.0, max(0.0, edge)) for edge in box],
            "evidence": tidy(self.text[context : context + MAX_EVIDENCE]),
        }


def _is_title(text: str) -> bool:
    """Say whether a line is set like a title: short, no sentence, its long words capitalized."""
    words = [word for word in text.split() if len(word) > SHORT_WORD and word[0].isalpha()]
    if not words or len(text.split()) > MAX_TITLE_WORDS or text.endswith((".", ",", ";", ":")) or _THIS.match(text):
        return False
    return sum(word[0].isupper() for word in words) >= CAPITALIZED * len(words) and not is_left_open(text)
