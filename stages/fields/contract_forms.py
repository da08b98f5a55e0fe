"""The parties of a contract that are filled into a form: ``Customer Legal Name: Acme Ltd.``."""

import re
from collections.abc import Iterator
from typing import Final

from stages.fields.contract_parties import MAX_FRONT, Party, is_partys_name, line_name
from stages.fields.durations import tidy
from stages.fields.lexicon import words
from stages.fields.names import LEGAL_FORM

_ROLE: Final = words(
    r"""
    Party\s[A-D1-4] | (?:First|Second|Disclosing|Receiving)\sParty
    Licensor | Licensee | Lessor | Lessee | Landlord | Tenant | Seller | Buyer | Vendor | Purchaser | Supplier
    Customer | Client | (?:Service\s)?Provider | Contractor | Consultant | Employer | Distributor | Reseller | Partner
    Franchisor | Franchisee | Sponsor | Publisher | Subscriber | Lender | Borrower
    Auftraggeber(?:in)? | Auftragnehmer(?:in)? | Vermieter(?:in)? | Mieter(?:in)?
    Verk[äa]ufer(?:in)? | K[äa]ufer(?:in)? | Kunde | Kundin | Anbieter(?:in)?
    Lizenzgeber(?:in)? | Lizenznehmer(?:in)? | Arbeitgeber(?:in)?
    Bailleur | Locataire | Vendeur | Acheteur | Prestataire | Fournisseur
    """
)
_NAME_OF: Final = words(
    r"""
    (?:[’']s\s)?(?:full\s)?(?:legal\s)?(?:entity\s|company\s)?name | legal\sentity | company | entity
    \((?:name|firma|firmenname|nom|raison\ssociale)\)
    """  # noqa: RUF001 - the apostrophe that documents print
)
# The label's line holds nothing else but the name, which may also stand in the next line or the next cell.
_FILLED: Final = re.compile(
    rf"(?:^|\n)[ \t]*(?:\(?\d[.)]\s*)?(?i:(?:full\s)?(?:legal\s)?name\sof\s(?:the\s)?)?(?P<role>(?i:{_ROLE}))"
    rf"(?:\s?(?i:{_NAME_OF}))?[ ]?(?::\s*|\t[ \t]*|\n{{1,2}})(?P<name>[A-Z0-9À-ÖØ-Þ][^\n\t]{{2,100}})"
)
_HEADING: Final = re.compile(r"(?:^|\n)[ ]*(?:PARTIES|Parties|BETWEEN|Between|The Parties)\s?:?[ ]*(?=\n)")
_NUMBERED: Final = re.compile(
    r"\n\s*\(?[1-9][.)]\s+(?P<name>[A-Z0-9À-ÖØ-Þ][^\n,;()]{1,90}?)(?=,|\s\(|\s(?:incorporated|registered|an?|whose|of|having)\s)"
    r"(?:(?!\n\s*\(?[1-9][.)]\s)[^§]){0,500}?\((?:the\s)?[“\"]?(?:the\s)?(?P<role>[A-Z][A-Za-z]{2,20}(?:\s[A-Z][A-Za-z]{2,20})?)[”\"]?\)"
)
_ELSEWHERE: Final = re.compile(
    r"\band\s(?:the\s|a\s)?(?P<role>[A-Z]\w{2,20}|customer|client|company|entity|party|person|organi[sz]ation)\b"
    r"[^.;]{0,80}?\b(?:set\sforth|identified|named|described|listed|specified|indicated|below|above|signing)\b"
)


def listed(tabbed: str, start: int, length: int) -> list[Party]:
    """Return the parties that a form names behind their roles, unless there is but one.

    Args:
        tabbed: the text with a tab for every wide gap.
        start: where to begin.
        length: how far to look.
    """
    found = list(_filled(tabbed, start, start + length))
    return found if len(found) > 1 else []


def numbered(text: str, start: int, length: int) -> list[Party]:
    """Return the parties of a numbered list under a heading, each closed by its role in brackets."""
    heading = _HEADING.search(text, start, start + length)
    if heading is None:
        return []
    found = [
        Party(tidy(each.group("name")), tidy(each.group("role")), each.start("name"), each.end("name"))
        for each in _NUMBERED.finditer(text, heading.end(), heading.end() + length)
        if is_partys_name(each.group("name"))
    ]
    return found if len(found) > 1 else []


def completed(text: str, tabbed: str, party: Party) -> list[Party]:
    """Return the parties of a sentence that names one and sends to the form for the other; else nothing."""
    elsewhere = _ELSEWHERE.search(text, party.end, party.end + 400)
    if elsewhere is None:
        return []
    role = elsewhere.group("role")
    others = (each for each in _filled(tabbed, elsewhere.end(), elsewhere.end() + MAX_FRONT) if not _same(each, party))
    other = next(others, None)
    if other is None:
        return []
    return [party, Party(other.name, role if role[0].isupper() else other.role, other.start, other.end)]


def _filled(tabbed: str, start: int, end: int) -> Iterator[Party]:
    """Yield each name that a role stands before, once; only a legal form shows that it is no remark."""
    seen: list[Party] = []
    for line in _FILLED.finditer(tabbed, start, end):
        name = line_name(line.group("name"))
        party = Party(name, tidy(line.group("role")), line.start("name"), line.start("name") + len(name))
        if LEGAL_FORM.search(name) and is_partys_name(name) and not any(_same(party, other) for other in seen):
            seen.append(party)
            yield party


def _same(first: Party, second: Party) -> bool:
    """Say whether two are one, as far as the shorter name goes."""
    short, long = sorted((_bare(first.name), _bare(second.name)), key=len)
    return long.startswith(short)


def _bare(name: str) -> str:
    return "".join(filter(str.isalnum, LEGAL_FORM.sub("", name).casefold()))
