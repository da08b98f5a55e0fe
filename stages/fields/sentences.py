"""Sentences of running text, in linear time; an abbreviation, an initial or an ordinal (``3. Mai``) ends none."""

import re
from collections.abc import Iterator
from typing import Final

MAX_SENTENCE: Final = 1_200
_END: Final = re.compile(r"[.!?…][\"'”’»)\]]{0,2}(?=\s+[\"'“„«(\[]{0,2}[^\W_a-zà-öø-ÿ])")  # noqa: RUF001 - quotes as printed
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
