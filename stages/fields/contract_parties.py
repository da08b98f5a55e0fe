"""The parties of a contract, from the sentence that opens it, each with the name that the contract gives it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from stages.fields.durations import tidy
from stages.fields.lexicon import pattern, words
from stages.fields.names import LEGAL_FORM
from stages.fields.placeholders import is_stand_in

MAX_PREAMBLE: Final = 3_000
# A cover and a table of contents may stand before the sentence that gives the parties their names.
MAX_FRONT: Final = 16_000
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
_LINK: Final = r"(?:of|the|for|in|de|du|des|la|le|für|und|&|/|[-–]|d/b/a|dba|von|van|der|e|y|et)"  # noqa: RUF001
_FIRMS: Final = rf"{_WORD}(?:,\s{_WORD}){{1,2}},?\s(?:&|and)\s"
_SMALL: Final = rf"[a-z][\w.-]{{1,24}}(?=,?\s{_SUFFIX})"
_NAME: Final = re.compile(
    rf"(?:{_FIRMS})?(?:{_WORD}|{_SMALL})(?:(?:\s(?:{_LINK}\s){{0,2}}|,\s(?={_SUFFIX})){_WORD}){{0,9}}"
)
_BLOCK: Final = re.compile(
    r"\b(?:BETWEEN|Between|ZWISCHEN|[Zz]wischen|(?:ENTRE|Entre)(?:\s(?i:les\ssoussign[ée]e?s))?)\s?:?\s*\n"
)
_ARTICLE: Final = r"(?:(?i:der|die|dem|das|herrn?|frau|la\ssoci[ée]t[ée]|la|le|the)\s)?"
_LINE: Final = re.compile(rf"\s*(?:\(?[1-9ivx]{{1,3}}[.)]\s+)?{_ARTICLE}(?P<name>{_WORD}[^\n]{{2,80}})")
_BLOCK_NEXT: Final = re.compile(r"\n\s*(?:AND|And|and|UND|und|ET|et|&)\s?:?\s*\n")
_BETWEEN: Final = re.compile(
    r"\b(?:between|among|zwischen|entre(?: les soussign[ée]s)?)\b\s*(?:and among\s*)?:?\s*", re.IGNORECASE
)
_NEXT: Final = re.compile(r"(?:\b(?:and|und|et)\b|\n\s*&|;|\n\n)[\s,:]*", re.IGNORECASE)
_AND: Final = re.compile(r"\s(?:and|und|et)\s", re.IGNORECASE)
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
    r"^[\s,(]{0,4}(?:an?|the|eine?|une?)\s[^()]{0,80}?\b(?:corporation|company|partnership|trust|universit\w+|organi[sz]\w+|agency|fund|institute|incorporated|"
    r"individual|person|association|bank|soci[ée]t[ée]|gesellschaft)\b",
    re.IGNORECASE,
)
_QUOTED: Final = r"[\"“”„«'‘]\s?(?:(?:le|la|der|die|das|the)\s|l[’'])?(?P<{}>[A-Z][^\"“”»'’()\n]{{1,40}}?)\s?[\"”“»'’]"  # noqa: RUF001 - quotes as printed
_ROLE: Final = re.compile(
    rf"\((?:[^()]{{0,100}}?){_QUOTED.format('role')}[^()]{{0,60}}\)"
    r"|\b(?:hereinafter|hereafter|herein|referred\s+to|called|known|nachfolgend|im\sFolgenden|ci-apr[èe]s)\b[^\"“”„«'‘.;()]{0,40}\(?"  # noqa: RUF001
    rf"{_QUOTED.format('other')}"
)
_DESCRIPTION_BEGINS: Final = re.compile(
    r",?\s(?:an?|the|having|located|with|whose|hereinafter|of)\s|\s?\((?:hereinafter|the|[\"“])|;", re.IGNORECASE
)
# Where a company is, printed behind its legal form, is no part of what it is called.
_SEAT: Final = re.compile(
    rf"(?P<form>{LEGAL_FORM.pattern})\s\(?"
    + words(r"H\.?K | U\.?K | U\.?S\.?A? | P\.?R\.?C | UAE | SG | CN | JP | DE | FR | CH | NL | BE | IT | ES | CA | AU")
    + r"\.?\)?$"
)
_DOCUMENT: Final = pattern(r"\b(?:agreement|contract|exhibit|schedule|vertrag|contrat)\b")
_FIRST_NAME: Final = re.compile(r"(?:^|\n\n)\s*(?=[A-Z][\w.&, -]{2,60}(?:, an?\s|\s\())")
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
    """Return the parties that an opening sentence after ``start`` joins, best one that gives each its defined name.

    Returns:
        Nothing for a template, whose names are placeholders. A single one where a sentence names no other.
    """
    first: list[Party] = []
    for between in _BETWEEN.finditer(text, start, start + MAX_FRONT):
        parties = _in_block(text, between.start()) or _joined(text, between.end())
        if len(parties) > 1 and all(party.role for party in parties):
            return parties
        if len(parties) > len(first) and len(first) < 2 and between.start() < start + MAX_PREAMBLE:  # noqa: PLR2004 - two agree
            first = parties
    return first


def described_parties(text: str, start: int) -> list[Party]:
    """Return the parties of a first sentence that names them without a word such as between, each with its role."""
    stop = _PREAMBLE_END.search(text, start, start + MAX_PREAMBLE)
    end = min(len(text), start + MAX_PREAMBLE // 2, stop.start() if stop else len(text))
    opening = _FIRST_NAME.search(text, start, end)
    if opening is None:
        return []
    parties = _joined(text, opening.end())
    return parties if len(parties) > 1 and any(party.role for party in parties) else []


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
        if line and role and is_partys_name(name := line_name(line.group("name"))):
            found.append(Party(name, _role_of(role), line.start("name"), line.start("name") + len(name)))
    return found


def line_name(line: str) -> str:
    """Return the name that a line begins with: up to its legal form, or to what describes it."""
    described = _DESCRIPTION_BEGINS.search(line)
    head = line[: described.start()] if described else line
    forms = list(LEGAL_FORM.finditer(head))
    return (head[: forms[-1].end()] if forms else head).strip(" ,;")


def _role_of(match: re.Match[str]) -> str:
    return tidy(match.group("role") or match.group("other")).strip(" ,.")


def _joined(text: str, start: int) -> list[Party]:
    stop = _PREAMBLE_END.search(text, start, start + MAX_PREAMBLE)
    end = min(len(text), start + MAX_PREAMBLE // 2, stop.start() if stop else len(text))
    openings = [start, *(match.end() for match in _NEXT.finditer(text, start, end))]
    # "Research and Engineering Company" is one name as long as there is somebody else to agree with.
    for may_be_joined in (True, False):
        found = _at_openings(text, openings, end, may_be_joined=may_be_joined)
        if len(found) > 1:
            break
    parties = list(_roles(text, found[:MAX_PARTIES], end))
    roles = {party.role.casefold() for party in parties if party.role}
    return [party for party in parties if party.name.casefold() not in roles or party.role == party.name]


def _at_openings(text: str, openings: Sequence[int], end: int, *, may_be_joined: bool) -> list[Party]:
    """Return the parties that begin at ``openings``, none of them within another."""
    found: list[Party] = []
    for opening in openings:
        if found and opening < found[-1].end:
            continue
        party = _party(text, opening, end, may_be_joined=may_be_joined)
        if party is None or any(other.name.startswith(party.name) for other in found):
            continue
        # Without a legal form, the defined term behind a name may be the one of the name before it.
        if found and not LEGAL_FORM.search(party.name) and not _ROLE.search(text, found[-1].end, party.start):
            continue
        found.append(party)
    return found


def _party(text: str, opening: int, end: int, *, may_be_joined: bool) -> Party | None:
    """Return the name at ``opening``, when what follows it shows that it is a party's."""
    match = _NAME.match(text, opening, end)
    if match is None:
        article = _OPENING.match(text, opening, end)
        match = _NAME.match(text, article.end(), end) if article else None
    if match is None:
        return None
    party = _proven(text, match.start(), match.end())
    joint = _AND.match(text, match.end(), end) if party is None and may_be_joined else None
    rest = _NAME.match(text, joint.end(), end) if joint else None
    return _proven(text, match.start(), rest.end()) if rest else party


def _proven(text: str, start: int, end: int) -> Party | None:
    """Return the party in the span, if a legal form, a description or a defined term says that it is one."""
    span, behind = text[start:end], text[end : end + DESCRIPTION]
    name = tidy(span).rstrip(" ,") if LEGAL_FORM.search(span) else tidy(span).rstrip(" ,.")
    name = _SEAT.sub(r"\g<form>", name)
    is_named = LEGAL_FORM.search(name) or _ENTITY.match(behind) or _ROLE.match(behind.lstrip(" \n,"))
    if not is_named or not is_partys_name(name) or _PLACEHOLDER.match(behind.lstrip()):
        return None
    return Party(name, None, start, end)


def is_partys_name(name: str) -> bool:
    """Say whether ``name`` can be a party's: no placeholder, no role, no document."""
    return (
        len(name) > 1
        and any(map(str.isalpha, name))
        and not _PLACEHOLDER.search(name)
        and not is_stand_in(name)
        and not _GENERIC.fullmatch(name)
        and not _DOCUMENT.search(name)
    )


def _roles(text: str, parties: list[Party], end: int) -> Iterator[Party]:
    """Give each party the first defined term between its name and the next party's."""
    for index, party in enumerate(parties):
        limit = parties[index + 1].start if index + 1 < len(parties) else end
        role = _ROLE.search(text, party.end, min(limit, party.end + 4 * DESCRIPTION))
        yield Party(party.name, _role_of(role) if role else None, party.start, party.end)
