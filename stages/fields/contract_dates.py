"""When a contract was made, from when it holds, and until when: as dates, or by way of others that are given.

"The date hereof", "the last signature below" and "twelve months from the Effective Date" are as good as a date where
what they refer to is one.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Final

from stages.fields import clauses
from stages.fields.dates import Moment, find_dates, is_month_first
from stages.fields.durations import added
from stages.fields.lexicon import pattern, words
from stages.fields.regions import names_united_states

SURE: Final = 0.9
LIKELY: Final = 0.75
DERIVED: Final = 0.6
PREAMBLE: Final = 2_500
NEAR: Final = 60
SIGNATURES: Final = 1_200
MAX_DATES_SIGNED: Final = 6

_AGREED: Final = pattern(
    r"\b(?:dated|made|entered|as of|effective|executed|day of|dat[ée]|conclu|geschlossen)\b[^.]{0,60}$"
)
_ON: Final = pattern(r"\b(?:this|on|vom|am|le|du)\b[^.]{0,60}$")
_OF_AGREEING: Final = pattern(
    r"\b(?:agreement|contract|deed|lease|parties|\w*vertrag\w*|\w*vereinbarung|contrat|accord|bail)\b"
)
_EFFECTIVE_BEFORE: Final = pattern(
    r"\b(?:effective(?:\s(?:as\sof|on|from|date(?:\sof)?))?|commencing\s(?:on|as\sof)"
    r"|(?:commences?|begins?|(?:becomes?|is)\seffective|takes?\seffect|comes?\sinto\s(?:effect|force))\s(?:on|as\sof|from)"
    r"|in\skraft\s(?:ab|am|seit)|beginnt\sam|tritt\sam|entr(?:e|ée|era)\sen\svigueur\sle)\b[^.;]{0,40}$"
)
_EFFECTIVE_AFTER: Final = re.compile(r"^[\s,]{0,3}\((?:[^()]{0,40})[\"“'‘]?effective date", re.IGNORECASE)  # noqa: RUF001
_EXPIRES_BEFORE: Final = pattern(
    r"\b(?:expir(?:es?|ation\sdate|ing)"
    r"|(?:terminates?|ends?|continue(?:s|d)?|remain\w*)\b[^.;]{0,80}?\b(?:on|through|until|to|earlier\sof)"
    r"|endet\s(?:am|mit)|(?:l[äa]uft|gilt|befristet)\s(?:bis|am)|expire\sle|prend\sfin\sle"
    r"|dur[ée]e\b[^.;]{0,60}\bjusqu|terme?\sle)\b[^.;]{0,40}$"
)
_EXPIRES_AFTER: Final = pattern(r"^[\s,]{0,2}(?:fest\s)?befristet\b")
_BEGINS: Final = words(
    r"""
    effective | commenc\w+ | begin\w* | tak\w+ effect | (?:com\w+|enter\w*) into (?:force|effect)
    tritt | beginnt | in Kraft | entre(?:ra)? en vigueur | prend(?:ra)? effet
    """
)
# When it begins to hold or ends is not when it was made.
_RUNS: Final = pattern(
    r"\b(?:tritt|beginnt|begins?|commenc\w+|starts?|endet|ends?|expires?|until|bis|entre(?:ra)?\sen\svigueur|prend|[àa]\scompter"
    r"|jusqu)\b[^.;]{0,40}$"
)
_THAT_DAY: Final = words(
    r"""
    date hereof | date of this \w+ | (?:day|date)(?: and year)? first (?:above|set forth|written|mentioned)
    date (?:first )?(?:set forth|written|stated) above | hereof | date of execution of this \w+
    """
)
_FROM_THAT_DAY: Final = pattern(rf"\b{_BEGINS}\b[^.;]{{0,60}}?\b(?:on|as of|from|upon)\s(?:the\s)?{_THAT_DAY}\b")
_FROM_SIGNING: Final = pattern(
    rf"\b(?:{_BEGINS}|effective date)\b[^.;]{{0,80}}?\b"
    + words(r"""
        (?:last|latest|later) date (?:signed|of signature|of execution)
        (?:last|latest|later|final) (?:of the )?(?:parties|party|signature|signatory|signing)\b
        date (?:of|on which|upon which|when)[^.;]{0,30} last (?:party|signature|signatory)
        date (?:both|all) parties (?:have )?(?:signed|executed) | date(?:s)? of (?:both|the) signatures?
        (?:mit|nach|durch) (?:der )?(?:beidseitige[nr]? |letzten )?Unterzeichnung | letzte[nr]? Unterschrift
        (?:dernière|la) signature | signature par (?:les deux|toutes les) parties
        """)
)
_SIGNING: Final = re.compile(
    r"IN WITNESS WHEREOF|(?i:agreed (?:to )?and accepted|duly authorized representatives)"
    r"|(?i:executed this \w+ (?:as of|by|on))"
    r"|/s/|\b(?i:by|signature|signed|sign|unterschrift)\s?:|\b[Uu]nterschrift(?:en)?\b|\bFait à\b"
)
_TOWN_AND_DATE: Final = re.compile(
    r"^(?:Fait à )?[A-ZÀ-Þ][^\W\d_]{2,20}(?:[ -][\w.]{2,15}){0,2}, (?:den |am |le )?"
    r"(?P<date>\d{1,2}(?:er)?[. ]{1,2}(?:\d{1,2}\.|[^\W\d_]{3,10}) ?\d{4})\W*$",
    re.MULTILINE,
)
_SIGNED_ON: Final = pattern(
    r"(?:\b(?:date|dated|date signed|signed on|datum|ort, datum)\s?:{0,2}[\s_]{0,3}(?:[^\W\d]{3,20},\s(?:den\s)?)?"
    r"|\bfait à [^\W\d][\w -]{2,30},? le\s|^[^\W\d]{3,20}, (?:den |le )?)$"
)
_DEFINED_DAY: Final = pattern(
    rf"effective\sdate|\b{_THAT_DAY}\b|\bvertragsbeginn|\binkrafttreten|\bentrée en vigueur|\bdate d['’]effet"  # noqa: RUF001
)


@dataclass(frozen=True, slots=True)
class Dated:
    """A date, the span of text that tells it, and how sure it is."""

    value: date
    start: int
    end: int
    confidence: float

    @property
    def iso(self) -> str:
        """The date as ISO 8601."""
        return self.value.isoformat()


@dataclass(frozen=True)
class Calendar:
    """The dates of one contract.

    Args:
        text: the contract in one line.
        lined: the same, with its lines.
        opening: where the title ends.
        sentences: where each sentence begins and ends.
    """

    text: str
    lined: str
    opening: int
    sentences: Sequence[tuple[int, int]]

    @cached_property
    def agreement(self) -> Dated | None:
        """The date of the opening sentence that says when the contract was made, else that of all signatures."""
        for found in self._dates(self.opening, self.opening + PREAMBLE):
            lead = self.text[max(self.opening, found.start - NEAR - 20) : found.start]
            around = self.text[max(0, found.start - 4 * NEAR) : found.end + 2 * NEAR]
            is_agreed = _AGREED.search(lead) or (_ON.search(lead) and _OF_AGREEING.search(around))
            if is_agreed and not _RUNS.search(lead):
                return _dated(found)
        return self._signed[0] if len({each.value for each in self._signed}) == 1 else None

    @cached_property
    def effective(self) -> Dated | None:
        """The date that is called so, or that of what it is said to depend on."""
        given = self._date_by(_EFFECTIVE_BEFORE, _EFFECTIVE_AFTER)
        if given:
            return given
        if self._signed and _FROM_SIGNING.search(self.text):
            return max(self._signed, key=lambda each: each.value)
        if self.agreement and _FROM_THAT_DAY.search(self.text):
            return replace(self.agreement, confidence=LIKELY)
        return None

    @cached_property
    def expiration(self) -> Dated | None:
        """The date that is called so, or the one at which the term is over that began with a known date."""
        return self._date_by(_EXPIRES_BEFORE, _EXPIRES_AFTER) or self._term_over()

    @cached_property
    def term(self) -> tuple[int, int] | None:
        """Where the length of the contract's own term stands."""
        return next(clauses.terms(self.text, self.sentences), None)

    def _term_over(self) -> Dated | None:
        if self.term is None:
            return None
        start, end = self.term
        sentence = next(span for span in self.sentences if span[0] <= start < span[1])
        begin = self.effective or self.agreement
        if not _DEFINED_DAY.search(self.text[slice(*sentence)]) and not (begin and sentence[0] <= begin.start < start):
            return None
        over = added(begin.value, self.text[start:end]) if begin else None
        return Dated(over, start, end, DERIVED) if over else None

    def _date_by(self, before: re.Pattern[str], after: re.Pattern[str]) -> Dated | None:
        """Return the first date that ``before`` leads to or that ``after`` follows."""
        for moment, (start, end) in self._moments:
            lead = self.text[max(start, moment.start - 2 * NEAR) : moment.start]
            if before.search(lead) or after.match(self.text[moment.end : min(end, moment.end + NEAR)]):
                return _dated(moment)
        return None

    @cached_property
    def _moments(self) -> list[tuple[Moment, tuple[int, int]]]:
        """All dates, by their place in the text, each with the sentence that it stands in."""
        return [(moment, span) for span in self.sentences for moment in self._dates(*span)]

    @cached_property
    def _signed(self) -> list[Dated]:
        """The dates that stand beside signatures."""
        return list(self._find_signed())[:MAX_DATES_SIGNED]

    def _find_signed(self) -> Iterator[Dated]:
        yield from self._placed()
        reach = 0
        for mark in _SIGNING.finditer(self.lined):
            begin, reach = max(mark.start() - NEAR, reach), mark.end() + SIGNATURES
            for found in self._dates(begin, reach):
                line = self.lined.rfind("\n", 0, found.start) + 1
                if _SIGNED_ON.search(self.lined[max(line, found.start - NEAR) : found.start]):
                    yield _dated(found)

    def _placed(self) -> Iterator[Dated]:
        """Yield the dates that have a line of their own with the name of a town."""
        for line in _TOWN_AND_DATE.finditer(self.lined, self.opening):
            yield from (_dated(found) for found in self._dates(line.start("date"), line.end("date")))

    @cached_property
    def _month_first(self) -> bool:
        return is_month_first(self.lined.split("\n"), default=names_united_states(self.text))

    def _dates(self, start: int, end: int) -> Iterator[Moment]:
        for found in find_dates(self.text[start:end], month_first=self._month_first):
            yield replace(found, start=found.start + start, end=found.end + start)


def _dated(moment: Moment) -> Dated:
    return Dated(moment.value, moment.start, moment.end, LIKELY if moment.is_ambiguous else SURE)
