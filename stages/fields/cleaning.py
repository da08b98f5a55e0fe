"""Clean text: what a person reads on the page, without the traces of how it was typeset or recognized.

Everything here is linear in the length of the text; texts that are already clean are left untouched quickly.
"""

import re
import unicodedata
from typing import Final

_LIGATURES: Final = {
    "\ufb00": "ff",
    "\ufb01": "fi",
    "\ufb02": "fl",
    "\ufb03": "ffi",
    "\ufb04": "ffl",
    "\ufb05": "st",
    "\ufb06": "st",
}
# pdfium writes U+FFFE and U+0002 where a line was hyphenated; both mean what a soft hyphen means.
_BREAK_MARKS: Final = "\u00ad\ufffe\x02"
_SPACES: Final = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_INVISIBLE: Final = "\u200b\u2060\ufeff\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_NEWLINES: Final = {"\u2028": "\n", "\u2029": "\n\n", "\x85": "\n", "\x0b": "\n", "\x0c": "\n\n"}

_CONTROLS: Final = (*range(0x09), *range(0x0E, 0x20), *range(0x7F, 0x85), *range(0x86, 0xA0))
_SURROGATES: Final = range(0xD800, 0xE000)
_TABLE: Final = (
    dict.fromkeys((*_CONTROLS, *_SURROGATES))
    | {ord(char): text for char, text in _LIGATURES.items()}
    | {ord(char): "\u00ad" for char in _BREAK_MARKS}
    | {ord(char): " " for char in _SPACES}
    | dict.fromkeys(map(ord, _INVISIBLE))
    | {ord(char): text for char, text in _NEWLINES.items()}
)

_SOFT_BREAK: Final = re.compile(r"\u00ad[ \t]*\n[ \t]*(?=\S)")
_HARD_BREAK: Final = re.compile(r"(?<=[^\W\d_]{2})[-\u2010][ \t]*\n[ \t]*(?=[^\W\d_]{2})")
_CONJUNCTION: Final = re.compile(r"(?:und|oder|bzw|and|or|to|et|ou|als|sowie)\b")
_BLANKS: Final = re.compile(r"[ \t]{2,}")
_EMPTY_LINES: Final = re.compile(r"\n{3,}")


def clean_text(text: str) -> str:
    """Return ``text`` as a reader sees it: composed, unhyphenated, paragraphs kept, no control characters."""
    text = clean_characters(text.replace("\r\n", "\n").replace("\r", "\n"))
    if "\u00ad" in text:
        text = _SOFT_BREAK.sub("", text).replace("\u00ad", "")
    if "-\n" in text or "\u2010" in text or "- \n" in text:
        text = _dehyphenate(text)
    if "  " in text:
        text = _BLANKS.sub(_narrowed, text)
    lines = [line.strip(" ") for line in text.split("\n")]
    return _EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip("\n")


def clean_word(text: str) -> str:
    """Return one word of a page without ligatures, soft hyphens and control characters."""
    return text if text.isascii() and text.isprintable() else clean_characters(text).replace("\u00ad", "")


def clean_characters(text: str) -> str:
    """Compose ``text`` and replace what only typesetting needs; soft hyphens stay for the caller to judge."""
    if text.isascii() and "\x0c" not in text and text.replace("\n", "").isprintable():
        return text
    return unicodedata.normalize("NFC", text.translate(_TABLE))


def _narrowed(match: re.Match[str]) -> str:
    """Keep a column's gap as a tab where there was one, else as one space."""
    return "\t" if "\t" in match.group() else " "


def _dehyphenate(text: str) -> str:
    """Join words that were split at a line's end.

    A lower-case continuation drops the hyphen (``docu-/ment``); a capital keeps it (``Anglo-/American``), and
    so does a German ``Ein-/und Ausgang``, whose hyphen stands for the missing half.
    """
    parts: list[str] = []
    position = 0
    for match in _HARD_BREAK.finditer(text):
        parts.append(text[position : match.start()])
        if _CONJUNCTION.match(text, match.end()):
            parts.append("- ")
        elif text[match.end()].isupper():
            parts.append("-")
        position = match.end()
    parts.append(text[position:])
    return "".join(parts)
