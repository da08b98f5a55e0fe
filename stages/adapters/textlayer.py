"""The text layer of a PDF page: words with their places, and whether it is real text at all."""

import ctypes
import math
import unicodedata
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import pypdfium2
import pypdfium2.raw as pdfium

from schema.domain.errors import ErrorCode
from schema.domain.limits import LimitName
from stages.adapters.clean import clean
from stages.adapters.columns import in_columns
from stages.adapters.lettering import joined
from stages.adapters.pages import PageError, Word

Box = tuple[float, float, float, float]
Place = Callable[[float, float, float, float], Box]

_SAMPLE: Final = 200
_MAX_BAD_SHARE: Final = 0.25
_LINE_FEED: Final = 0x0A
_SOFT_HYPHEN: Final = 0x02
_REPLACEMENT: Final = 0xFFFD
_MAX_UPWARD_SHARE: Final = 0.35
_PARAGRAPH_GAP: Final = 0.9
# Control, unassigned and private-use characters: what a font without a usable encoding yields.
_BAD_CATEGORIES: Final = frozenset({"Cc", "Cn", "Co", "Cs"})


@dataclass(frozen=True, slots=True)
class Survey:
    """What a few of its characters tell about a text layer.

    ``visible`` estimates how many are no white space; ``garbage`` when they are not what the page shows.
    """

    visible: int = 0
    garbage: bool = False


@dataclass(frozen=True, slots=True)
class TextLayer:
    """A page's text layer."""

    words: tuple[Word, ...] = ()

    @property
    def text(self) -> str:
        """The words, line by line, with a blank line where the page leaves a gap."""
        lines = _lines(self.words)
        parts = [" ".join(word[0] for word in line) for line in lines]
        for index, (above, below) in reversed(list(enumerate(pairwise(lines), 1))):
            if _gap(above, below):
                parts.insert(index, "")
        return "\n".join(parts)


def survey(page: pypdfium2.PdfPage) -> Survey:
    """Judge the text layer by an even sample of its characters."""
    with closing(page.get_textpage()) as layer:
        count = layer.count_chars()
        sample = range(0, count, max(1, count // _SAMPLE))
        codes = {index: pdfium.FPDFText_GetUnicode(layer, index) for index in sample}
        visible = [index for index, code in codes.items() if not chr(code).isspace()]
        if not visible:
            return Survey()
        bad = sum(_is_bad(layer, index, codes[index]) for index in visible)
        return Survey(count * len(visible) // len(sample), bad > len(visible) * _MAX_BAD_SHARE)


def read_layer(page: pypdfium2.PdfPage, max_chars: int) -> TextLayer:
    """Read the text layer of ``page``.

    Raises:
        PageError: when it has more characters than a page may have.
    """
    with closing(page.get_textpage()) as layer:
        count = layer.count_chars()
        if count > max_chars:
            raise PageError(ErrorCode.PAGE_TOO_LONG, limit=max_chars, actual=count, limit_name=LimitName.PAGE_CHARS)
        codes = [pdfium.FPDFText_GetUnicode(layer, index) for index in range(count)]
        words = _in_reading_order(joined(_words(layer, codes, placement(page))))
        return TextLayer(in_columns(words, _lines(words), page.get_size()))


def placement(page: pypdfium2.PdfPage) -> Place:
    """Return how boxes of the page's own space become fractions of the page as it is shown."""
    left, bottom, right, top = page.get_bbox()
    width, height = (right - left) or 1.0, (top - bottom) or 1.0
    turns = page.get_rotation()

    def place(x0: float, y0: float, x1: float, y1: float) -> Box:
        a, b = (x0 - left) / width, (x1 - left) / width
        c, d = (top - y1) / height, (top - y0) / height
        match turns:
            case 90:
                box = (1 - d, a, 1 - c, b)
            case 180:
                box = (1 - b, 1 - d, 1 - a, 1 - c)
            case 270:
                box = (c, 1 - b, d, 1 - a)
            case _:
                box = (a, c, b, d)
        x, y, z, w = (0.0 if math.isnan(edge) else round(min(max(edge, 0.0), 1.0), 5) for edge in box)
        return x, y, z, w

    return place


def _is_bad(layer: pypdfium2.PdfTextPage, index: int, code: int) -> bool:
    """Say whether a character is one that no reader can have seen on the page."""
    if code == _SOFT_HYPHEN:
        return False
    if code == _REPLACEMENT or unicodedata.category(chr(code)) in _BAD_CATEGORIES:
        return True
    return bool(pdfium.FPDFText_HasUnicodeMapError(layer, index) == 1)


def _words(layer: pypdfium2.PdfTextPage, codes: list[int], place: Place) -> tuple[Word, ...]:
    """Cut the characters into words at white space, and into lines at line ends."""
    words: list[Word] = []
    line, start = 0, -1
    for index, code in enumerate([*codes, 0x20]):
        if not chr(code).isspace():
            start = index if start < 0 else start
            continue
        if start >= 0:
            text = clean("".join(map(chr, codes[start:index])))
            if text:
                words.append((text, *place(*_hull(layer, start, index - 1)), 1.0, line))
            start = -1
        if code == _LINE_FEED:
            line += 1
    return tuple(words)


def _hull(layer: pypdfium2.PdfTextPage, first: int, last: int) -> Box:
    """Return the box around a word, from its first and last character's full height."""
    boxes = []
    for index in {first, last}:
        rect = pdfium.FS_RECTF()
        pdfium.FPDFText_GetLooseCharBox(layer, index, ctypes.byref(rect))
        boxes.append((rect.left, rect.bottom, rect.right, rect.top))
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return min(lefts), min(bottoms), max(rights), max(tops)


def _lines(words: Iterable[Word]) -> list[list[Word]]:
    """Group words by their line."""
    lines: dict[int, list[Word]] = {}
    for word in words:
        lines.setdefault(word[6], []).append(word)
    return list(lines.values())


def _in_reading_order(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Number the lines without holes, sorted by place when the file draws them in no order.

    A file's own order is the better one, as it follows columns; some programs draw from the bottom up.
    """
    lines = _lines(words)
    upward = sum(below[0][2] < above[0][2] - 0.002 for above, below in pairwise(lines))
    if upward > (len(lines) - 1) * _MAX_UPWARD_SHARE:
        lines.sort(key=lambda line: (round(line[0][2], 2), line[0][1]))
    return tuple((*word[:6], number) for number, line in enumerate(lines) for word in line)


def _gap(above: list[Word], below: list[Word]) -> bool:
    """Say whether there is about an empty line, or a jump to elsewhere, between two lines."""
    height = max(word[4] - word[2] for word in above)
    distance = min(word[2] for word in below) - max(word[4] for word in above)
    return distance > height * _PARAGRAPH_GAP or distance < -3 * height
