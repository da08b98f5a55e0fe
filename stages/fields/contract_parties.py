"""The parties of a contract, from the sentence that opens it, each with the name that the contract gives it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from stages.fields.durations import tidy
from stages.fields.lexicon import pattern, words
from stages.fields.names import LEGAL_FORM

MAX_PREAMBLE: Final = 3_000
MAX_PARTIES: Final = 6
MAX_NAME: Final = 120
DESCRIPTION: Final = 160

_SUFFIX: Final = (
    words(
        r"""
        Inc | INC | Incorporated | LLC | L\.L\.C | Ltd | LTD | Limited | LIMITED | LP | L\.P
        LLP | N\.A | Corp | CORP | Co | CO | PLC | plc
        GmbH | AG | S\.A | SAS | SARL | B\.V | N\.V
        """
    )
    + r"\b\.?"
)
_WORD: Final = r"[A-Z0-9À-ÖØ-Þ][\w.&'’/-]{0,30}"  # noqa: RUF001 - the apostrophe that documents print
_LINK: Final = r"(?:of|the|for|de|du|des|la|le|für|und|&|d/b/a|dba|von|van|der)"
_NAME: Final = re.compile(rf"{_WORD}(?:(?:\s(?:{_LINK}\s){{0,2}}|,\s(?={_SUFFIX})){_WORD}){{0,9}}")
_BLOCK: Final = re.compile(r"\b(?:BETWEEN|Between|ZWISCHEN|Zwischen|ENTRE|Entre)\s?:?\s*\n")
_LINE: Final = re.compile(rf"\s*(?P<name>{_WORD}[^\n]{{2,80}})")
_BLOCK_NEXT: Final = re.compile(r"\n\s*(?:AND|And|and|UND|und|ET|et|&)\s?:?\s*\n")
_BETWEEN: Final = re.compile(
    r"\b(?:between|among|zwischen|entre(?: les soussign[ée]s)?)\b\s*(?:and among\s*)?:?\s*", re.IGNORECASE
)
_NEXT: Final = re.compile(r"(?:\b(?:and|und|et)\b|&|;)[\s,:]*", re.IGNORECASE)
_PREAMBLE_END: Final = re.compile(
    r"\b"
    + words(r"""
        WHEREAS | RECITALS? | R E C I T A L S | WITNESSETH | NOW,? THEREFORE | The part(?:ies|y)
        Background | IT IS | expressly agree
        (?:collectively|each|individually),? (?:referred|a )
        Pr[äa]ambel | Il a [ée]t[ée]
        """)
    + r"\b"
)
_OPENING: Final = re.compile(
    r"^(?:the|der|die|das|la soci[ée]t[ée]|le|la|by and|\(?[1-9ivx]{1,3}[.)])\s+", re.IGNORECASE
)
_ENTITY: Final = re.compile(
    r"^[\s,(]{0,4}(?:an?|the|eine?|une?)\s[^()\n]{0,80}?\b(?:corporation|company|partnership|trust|universit\w+|organi[sz]ed|incorporated|"
    r"individual|person|association|bank|soci[ée]t[ée]|gesellschaft)\b",
    re.IGNORECASE,
)
_ROLE: Final = re.compile(
    r"\((?:[^()]{0,100}?)[\"“”„«'‘]\s?(?P<role>[A-Z][^\"“”»'’()\n]{1,40}?)\s?[\"”“»'’][^()]{0,60}\)"  # noqa: RUF001 - quotes as printed
)
_PLACEHOLDER: Final = re.compile(r"[\[\]{}<>]|_{2,}|\.{4,}|…")
_GENERIC: Final = pattern(
    r"(?:the )?"
    + words(r"""
        compan(?:y|ies) | contractor | customer | client | provider | supplier
        part(?:y(?: [A-Z0-9])?|ies) | employer | employee
        licensor | licensee | seller | buyer | lessor | lessee | landlord | tenant | vendor
        discloser | recipient | distributor
        you | us | we | agreement | effective date | section | article | [A-Z]
        auftraggeber | auftragnehmer
        """)
)


@dataclass(frozen=True, slots=True)
class Party:
    """A party as the preamble names it: where the name stands, and the defined term in brackets behind it."""

    name: str
    role: str | None
    start: int
    end: int


def find_parties(text: str, start: int) -> list[Party]:
    """Return the parties that the first opening sentence after ``start`` joins.

    Returns:
        Nothing for a template, whose names are placeholders, and unless there are two.
    """
    for between in _BETWEEN.finditer(text, start, start + MAX_PREAMBLE):
        parties = _in_block(text, between.start()) or _joined(text, between.end())
        if len(parties) > 1:
            return parties
    return []


def _in_block(text: str, start: int) -> list[Party]:
    """Return the parties that are set apart as blocks of lines, each opened by a name and closed by a role."""
    opening = _BLOCK.match(text, start)
    if opening is None:
        return []
    end = min(len(text), start + MAX_PREAMBLE // 2)
    starts = [opening.end(), *(match.end() for match in _BLOCK_NEXT.finditer(text, opening.end(), end))]
    found = []
    for begin, limit in pairwise([*starts, end]):
        line, role = _LINE.match(text, begin, limit), _ROLE.search(text, begin, limit)
        if line and role and _is_name(line.group("name").strip()):
            name = line.group("name").strip()
            found.append(Party(name, tidy(role.group("role")), line.start("name"), line.start("name") + len(name)))
    return found


def _joined(text: str, start: int) -> list[Party]:
    stop = _PREAMBLE_END.search(text, start, start + MAX_PREAMBLE)
    end = min(len(text), start + MAX_PREAMBLE // 2, stop.start() if stop else len(text))
    openings = [start, *(match.end() for match in _NEXT.finditer(text, start, end))]
    found: list[Party] = []
    for opening in openings:
        party = _party(text, opening, end)
        if party and not any(other.name.startswith(party.name) for other in found):
            found.append(party)
    return list(_roles(text, found[:MAX_PARTIES], end))


def _party(text: str, opening: int, end: int) -> Party | None:
    """Return the name at ``opening``, when what follows it shows that it is a party's."""
    match = _NAME.match(text, opening, end)
    if match is None:
        article = _OPENING.match(text, opening, end)
        match = _NAME.match(text, article.end(), end) if article else None
    if match is None:
        return None
    name = tidy(match.group()).rstrip(" ,") if LEGAL_FORM.search(match.group()) else tidy(match.group()).rstrip(" ,.")
    behind = text[match.end() : match.end() + DESCRIPTION]
    is_named = LEGAL_FORM.search(name) or _ENTITY.match(behind) or _ROLE.match(behind.lstrip(" \n,"))
    if not is_named or not _is_name(name) or _PLACEHOLDER.match(behind.lstrip()):
        return None
    return Party(name, None, match.start(), match.end())


def _is_name(name: str) -> bool:
    return (
        len(name) > 1 and not _PLACEHOLDER.search(name) and not _GENERIC.fullmatch(name) and any(map(str.isalpha, name))
    )


def _roles(text: str, parties: list[Party], end: int) -> Iterator[Party]:
    """Give each party the first defined term between its name and the next party's."""
    for index, party in enumerate(parties):
        limit = parties[index + 1].start if index + 1 < len(parties) else end
        role = _ROLE.search(text, party.end, min(limit, party.end + 4 * DESCRIPTION))
        yield Party(party.name, tidy(role.group("role")).strip(" ,.") if role else None, party.start, party.end)
