"""What the clauses of a contract say: law, term, renewal, notice, termination, and who owes what.

Each pattern stays within a sentence and is bounded, so a hostile text costs its length times a constant.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from stages.fields.durations import DURATION
from stages.fields.lexicon import pattern, words

MAX_OBLIGATIONS: Final = 20

_STATE: Final = (
    r"(?:(?:Federal |internal |substantive )?"
    r"(?:State|Commonwealth|Province|Republic|Kingdom|Canton|state|STATE)\s(?:of|OF)\s(?:the\s)?)?"
)
_NO_PLACE: Final = r"(?!(?:State|Commonwealth|Republic|The|This)\b)"
_NAME: Final = r"[A-ZÀ-Þ][\w-]{1,24}"
_PLACE: Final = rf"(?P<value>{_NO_PLACE}{_NAME}(?:\s(?:and\s|of\s|of\sthe\s|the\s)?{_NAME}){{0,3}})"
LAWS: Final = (
    re.compile(
        r"\b(?:governed|construed|interpreted|enforced|determined)\b[^.]{0,200}?\b(?:laws?|LAWS?)\b,?\s(?:and\s\w+\s)?"
        rf"(?:in\s(?:force|effect)\sin|of|OF)\s(?:the\s|THE\s)?{_STATE}(?:the\s)?{_PLACE}"
    ),
    re.compile(
        r"\b(?:Governing|Applicable|Choice of)\s(?:Law|law)\s?:\s(?:The\s)?(?:laws?\sof\s)?(?:the\s)?"
        rf"{_STATE}{_PLACE}"
    ),
    re.compile(r"\bRecht\s(?:der|des|von)\s(?P<value>[A-ZÄÖÜ]\w{2,24}(?:\s[A-ZÄÖÜ]\w{2,24}){0,2})"),
    re.compile(r"\b(?P<value>(?:deutsche[sm]|österreichische[sm]|schweizerische[sm])\sRecht)\b"),
    re.compile(r"\b(?:régi|soumis|gouverné)e?s?\s(?:par|au|à)\s(?P<value>(?:le\s|la\s)?(?:droit|loi)\s[a-zà-ÿ]{4,20})"),
)
TERM: Final = pattern(
    rf"\b(?:term|period)\b[^.]{{0,160}}?\b(?:for|of|be)\s(?:a\s(?:period|term)\sof\s|an?\s(?:initial\s)?(?:period|term)\sof\s)?"
    rf"(?P<value>{DURATION})"
    rf"|\b(?:Laufzeit|Vertragsdauer|dur[ée]e)\b[^.]{{0,100}}?(?P<other>{DURATION})"
)
_RENEWS: Final = words(
    r"""
    renew(?:s|ed|al)? | extend(?:ed|s)?\b[^.]{0,40}?\b(?:for|terms?)
    verl[äa]nger\w*
    reconduit\w* | renouvel\w* | reconduction
    """
)
RENEWAL: Final = pattern(
    rf"\b{_RENEWS}\b[^.]{{0,160}}?(?P<value>(?:(?:successive|additional|consecutive|further)\s)?{DURATION})"
)
_AHEAD: Final = r"\b(?:prior|before|in\sadvance|preceding|ahead)\b"
_OF_NOTICE: Final = r"[’'s]{0,2}\s(?:(?:prior|advance|previous|written|and|or)\s){0,4}(?:notice|notification|notify)"  # noqa: RUF001
# How long a renewal takes stands in the same sentence: only what is said of the notice counts.
NOTICE: Final = pattern(
    rf"\b{_RENEWS}\b[^.]{{0,300}}?(?P<value>{DURATION}){_OF_NOTICE}\b"
    rf"|(?P<first>{DURATION}){_OF_NOTICE}\b[^.]{{0,160}}?\b(?:renew\w*|expir\w*|non-?renew\w*|not\sto\sextend)\b"
    rf"|\b{_RENEWS}\b[^.]{{0,240}}?\b(?:notice|notify|notifies|notification|written)\b[^.]{{0,120}}?"
    rf"(?P<second>{DURATION})[^.]{{0,24}}?{_AHEAD}"
    rf"|\b(?:notice|notify|notifies)\b[^.]{{0,120}}?(?P<third>{DURATION})[^.]{{0,24}}?{_AHEAD}"
    r"[^.]{0,80}?\b(?:renewal|expiration|expiry|end\sof)\b"
    rf"|\b(?:K[üu]ndigungsfrist|Frist\svon|pr[ée]avis\sde)\b[^.]{{0,60}}?(?P<fourth>{DURATION})"
)
TERMINATION: Final = pattern(
    r"\b(?:may|shall have the right to|can|is entitled to)\b[^.]{0,80}?\bterminate\b|\bmay be terminated\b"
    r"|\bgek[üu]ndigt werden\b|\bk[üu]ndbar\b|\br[ée]sili(?:[ée]|er|ation)\b"
)
_DUTY: Final = words(
    r"shall | must | agrees?\sto | undertakes?\sto | is\s(?:obligated|required|responsible) | will | verpflichtet\ssich"
)
_ACTOR: Final = words(
    r"""
    Licensor | Licensee | Customer | Client | Provider | Supplier | Contractor | Consultant
    Company | Employer | Employee
    Tenant | Landlord | Lessor | Lessee | Seller | Buyer | Purchaser | Vendor | Distributor
    Recipient | Borrower | Lender
    Sponsor | Developer | Each\s[Pp]arty | Both\s[Pp]arties | The\s[Pp]arties
    Auftragnehmer | Auftraggeber | Mieter | Vermieter
    """
)


def obligation_pattern(roles: Sequence[str]) -> re.Pattern[str]:
    """Return what an obligation begins with: somebody of ``roles``, or a usual one, who shall do something."""
    actors = "|".join([*map(re.escape, roles), _ACTOR])
    return re.compile(
        rf"(?:^|[.;:)]\s|\n)(?:[Tt]he\s)?(?:{actors})(?:\s(?:also|further|hereby)){{0,2}}\s{_DUTY}\b"
        r"(?!\snot\sbe\s(?:liable|responsible))"
    )


def values(patterns: Sequence[re.Pattern[str]], text: str) -> Iterator[tuple[int, int]]:
    """Yield where the patterns' values stand, pattern by pattern."""
    for each in patterns:
        for match in each.finditer(text):
            name = next((name for name, value in match.groupdict().items() if value), None)
            if name:
                yield match.span(name)
