"""Sentences of running text, in linear time; an abbreviation, an initial or an ordinal (``3. Mai``) ends none."""

import re
from collections.abc import Iterator
from typing import Final

MAX_SENTENCE: Final = 1_200
_END: Final = re.compile(
    r"[.!?…][\"'”’»)\]]{0,2}(?=\s+[\"'“„«(\[§]{0,2}\s?[^\W_a-zà-öø-ÿ])"  # noqa: RUF001 - quotes as printed
    # Chinese and Japanese put no blank behind a sentence.
    r"|[。！？][」』”’）]{0,2}"  # noqa: RUF001 - marks as printed
)
# The next line begins anew, so that the first line of a numbered clause is no heading.
_HEADING: Final = re.compile(
    r"^(?:§ ?\d{1,3}[a-z]?|(?:Article|Section|Clause|Artikel|ARTICLE|SECTION) \w{1,5}|\d{1,2}(?:\.\d{1,2}){0,2}[.)]?)"
    r"[ \t.:–—-]{1,4}[A-ZÀ-Þ][^\n.;:!?]{1,60}\n(?=[\s(§]*[A-ZÀ-Þ\d])",  # noqa: RUF001 - dashes as printed
    re.MULTILINE,
)
_LAST_WORD: Final = re.compile(r"[^\s(]{1,24}$")
_ABBREVIATIONS: Final = frozenset(
    [
        "mr",
        "mrs",
        "ms",
        "dr",
        "prof",
        "st",
        "no",
        "nos",
        "vs",
        "etc",
        "inc",
        "ltd",
        "co",
        "corp",
        "llc",
        "jr",
        "sr",
        "fig",
        "al",
        "cf",
        "e.g",
        "i.e",
        "u.s",
        "u.k",
        "art",
        "sec",
        "para",
        "approx",
        "dept",
        "est",
        "jan",
        "feb",
        "mar",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
        "nr",
        "str",
        "bzw",
        "z.b",
        "ca",
        "usw",
        "vgl",
        "abs",
        "ziff",
        "d.h",
        "u.a",
        "gem",
        "hrsg",
        "bd",
        "ggf",
        "evtl",
        "inkl",
        "zzgl",
        "bspw",
        "tel",
        "hr",
        "fr",
        "m",
        "mme",
        "mlle",
        "p",
        "pp",
        "env",
        "ex",
        "av",
        "cie",
        "ste",
    ]
)


def sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where each sentence of ``text[start:end]`` begins and ends."""
    opened = start
    for match in _END.finditer(text, start, end):
        if match.group().startswith(".") and not _closes(text[max(opened, match.start() - 24) : match.start()]):
            continue
        yield from _trimmed(text, opened, match.end())
        opened = match.end()
    yield from _trimmed(text, opened, end)


def without_headings(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of ``text[start:end]`` between numbered headings that have a line of their own."""
    opened = start
    for match in _HEADING.finditer(text, start, end):
        yield opened, match.start()
        opened = match.end()
    yield opened, end


def _closes(before: str) -> bool:
    """Say whether a full stop after ``before`` ends a sentence."""
    match = _LAST_WORD.search(before)
    if match is None:
        return False
    word = match.group().casefold().strip("\"'“„«(")
    is_initial = len(word) == 1 and word.isalpha()
    is_ordinal = word.isdigit() and len(word) <= len("31")
    return not (is_initial or is_ordinal or word in _ABBREVIATIONS)


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    part = text[start:end]
    stripped = part.strip()
    if stripped and len(stripped) <= MAX_SENTENCE:
        begin = start + len(part) - len(part.lstrip())
        yield begin, begin + len(stripped)
