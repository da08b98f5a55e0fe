"""What the clauses of a contract say: law, term, renewal, notice, termination, and who owes what.

Each pattern stays within a sentence and is bounded, so a hostile text costs its length times a constant.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from stages.fields.durations import DURATION
from stages.fields.lexicon import pattern, words

MAX_OBLIGATIONS: Final = 20
LEAD: Final = 100

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
    re.compile(
        r"\b(?:governed\sby|accordance\swith|subject\sto)\s(?P<value>[A-Z][a-z]{2,14}(?:\s[A-Z][a-z]{2,14})?)\s(?:law|Law)s?\b"
        r"|\b(?P<ruling>[A-Z][a-z]{2,14}(?:\s[A-Z][a-z]{2,14})?)\slaw\s(?:shall\s|will\s)?(?:govern|appl(?:y|ies))"
    ),
    re.compile(r"\bRecht\s(?:der|des|von)\s(?P<value>[A-ZÄÖÜ]\w{2,24}(?:\s[A-ZÄÖÜ]\w{2,24}){0,2})"),
    re.compile(r"\b(?P<value>(?:deutsche[sm]|österreichische[sm]|schweizerische[sm])\sRecht)\b"),
    re.compile(r"\b(?:régi|soumis|gouverné)e?s?\s(?:par|au|à)\s(?P<value>(?:le\s|la\s)?(?:droit|loi)\s[a-zà-ÿ]{4,20})"),
    # Under this heading some only say whose courts decide; that is the law they mean.
    re.compile(
        r"\b(?i:governing|applicable|choice\sof)\s(?i:law)[.:\s][^§]{0,120}?\b[Cc]ourts?\s(?:\w+\s){0,2}?"
        rf"(?:of|in)\s(?:the\s)?{_STATE}(?:the\s)?{_PLACE}"
    ),
)
_AGREEMENT: Final = words(
    "agreement | contract | lease | licen[sc]e | vertrag\\w* | vereinbarung | contrat | convention | bail"
)
_OWN_TERM: Final = pattern(
    rf"\b(?:(?:(?:initial |primary |full )?term|initial period)(?:\sof\s(?:this|the)\s(?:\w+\s){{0,3}}?{_AGREEMENT})?"
    rf"|(?:this|the)\s(?:\w+\s){{0,2}}?{_AGREEMENT})(?:\W{{0,3}}\([^)]{{0,60}}\))?\W[^.]{{0,200}}?"
    r"\b(?:for|of|be|is|lasts?|runs?|remains?|continues?|until)\s"
    rf"(?:(?:a|an|the)\s)?(?:(?:initial|fixed|minimum|primary|further)\s)?(?:(?:period|term)\sof\s)?(?P<value>{DURATION})"
    rf"|\b(?:initial\s|minimum\s)?term\s?:\s(?P<named>{DURATION})"
    rf"|(?P<defined>{DURATION})[^.;]{{0,40}}\((?:the|this)?\s?[\"“](?:initial\s)?term\b"
    rf"|\b(?:(?:Mindest)?laufzeit|Vertragsdauer|dur[ée]e)\b[^.]{{0,100}}?(?P<other>{DURATION})"
    rf"|\b(?:f[üu]r\sdie\sDauer\svon|pour\sune\s(?:dur[ée]e|p[ée]riode)\s(?:initiale\s)?de)\s(?P<lasting>{DURATION})"
)
# What outlives the contract, what renews it and how long before one must write are no terms of it.
_OTHER_TIME: Final = pattern(
    r"\b"
    + words(r"""
        surviv\w+ | during the term | confiden\w+ | warrant\w+ | renew\w* | extend\w* | additional | successive | notice
        pay\w* | invoic\w+ | (?:terminat|expir)\w+ (?:of|or) | non-?compet\w+ | previous | prior
        verl[äa]nger\w* | k[üu]ndig\w* | renouvel\w* | recondui\w*
        """)
    + r"\b"
)
_AFTER_THE_END: Final = pattern(
    r"^(?:[’'s]{0,2}\s(?:after|thereafter|prior|before|in\sadvance|written|notice|nach|vor|apr[èe]s|avant)\b"  # noqa: RUF001
    r"|[^.;,]{0,30}?\b(?:after|following|from)\b[^.;,]{0,60}?\b(?:terminat|expir|disclos|complet|deliver|launch|period|end\b))"
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
_TO_TERMINATE: Final = pattern(
    rf"\bterminat(?:e|ed|ing)\b(?:\s(?:this|the)\s(?:\w+\s){{0,2}}?{_AGREEMENT})?(?:\s(?:at\sany\stime|earlier|early))?,?"
    r"\s(?:up)?(?:on|by|with)\b[^.;]{0,30}$"
)
TERMINATION: Final = pattern(
    r"\b(?:may|shall have the right to|can|is entitled to)\b[^.]{0,80}?\bterminate\b|\bmay be terminated\b"
    r"|\bgek[üu]ndigt werden\b|\bRecht zur (?:\w+ )?K[üu]ndigung\b|\bk[üu]ndbar\b|\br[ée]sili(?:[ée]|er|ation)\b"
)
_DUTY: Final = words(
    r"""
    shall | must | agrees?\sto | undertakes?\sto | is\s(?:obligated|required|responsible) | will
    verpflichtet\ssich | ist\sverpflichtet | muss | zahlt | schuldet | hat\b[^.;]{1,120}?\bzu\s[a-zäöü]{3,20}n\b
    s.engage(?:nt)?\s[àa] | doit | doivent | devra | est\stenue?\s(?:de|à)
    """
)
_ACTOR: Final = words(
    r"""
    Licensor | Licensee | Customer | Client | Provider | Supplier | Contractor | Consultant
    Company | Employer | Employee
    Tenant | Landlord | Lessor | Lessee | Seller | Buyer | Purchaser | Vendor | Distributor
    Recipient | Borrower | Lender
    Sponsor | Developer | Each\s[Pp]arty | Both\s[Pp]arties | The\s[Pp]arties
    (?:Auftragnehmer|Auftraggeber|Mieter|Vermieter|K[äa]ufer|Verk[äa]ufer|Arbeitgeber|Arbeitnehmer)(?:in)?
    Anbieter(?:in)? | Kunde | Lizenznehmer(?:in)? | Lizenzgeber(?:in)?
    Prestataire | Bailleur | Locataire | Vendeur | Acheteur | Fournisseur
    """
)


def obligation_pattern(roles: Sequence[str]) -> re.Pattern[str]:
    """Return what an obligation begins with: somebody of ``roles``, or a usual one, who shall do something."""
    actors = "|".join([*map(re.escape, roles), _ACTOR])
    return re.compile(
        r"(?:(?:^|[.;:)]\s|\n|§\s?\d{1,3}\s)(?:[Tt]he\s|Der\s|Die\s|Le\s|La\s|L.(?=\w{3}))?)"
        rf"(?:{actors})(?:\s(?:also|further|hereby)){{0,2}}\s{_DUTY}\b"
        r"(?!\s(?:not|in\sno\sevent|never)\sbe\s(?:liable|responsible))"
        # What somebody may do, gets or owns is no duty.
        r"(?!\s(?:also\s|solely\s|at\sall\stimes\s)?(?:be\s(?:entitled|deemed|permitted|free)|retain|own|receive"
        r"|have\s(?:the|an?|no|\w+\sand)\s[^.;]{0,30}?\b(?:right|option|ability|power|authority|obligation|liability|discretion))\b)"
    )


def terms(text: str, sentences: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield where the contract says how long it runs by itself, not how long a renewal or a duty after it does."""
    for start, end in sentences:
        for match in _OWN_TERM.finditer(text, start, end):
            name = next(name for name, value in match.groupdict().items() if value)
            begin, stop = match.span(name)
            lead, tail = text[max(start, match.start() - LEAD) : begin], text[stop : min(end, stop + LEAD)]
            if not _OTHER_TIME.search(lead) and not _AFTER_THE_END.search(tail):
                yield begin, stop


def notices(text: str) -> Iterator[tuple[int, int]]:
    """Yield where it says how long before the end one must write, not how soon a breach may end it."""
    for start, end in values((NOTICE,), text):
        if not _TO_TERMINATE.search(text[max(0, start - LEAD) : start]):
            yield start, end


def values(patterns: Sequence[re.Pattern[str]], text: str) -> Iterator[tuple[int, int]]:
    """Yield where the patterns' values stand, pattern by pattern."""
    for each in patterns:
        for match in each.finditer(text):
            name = next((name for name, value in match.groupdict().items() if value), None)
            if name:
                yield match.span(name)
