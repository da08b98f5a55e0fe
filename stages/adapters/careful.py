"""Which engine reads a page: one of the two, or the accurate one where the fast one is not confident."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image

from schema.domain.options import JobOptions, OcrMode
from stages.adapters.ocr import TURNS, Picture, TextRecognizer
from stages.adapters.pages import PageError, PageText, Word
from stages.adapters.rapid import LANGUAGES, RapidOcr
from stages.adapters.tesseract import Tesseract

# Measured: pages that Tesseract reads with more than this have all but one in fifty of their words right, and
# photographed receipts never come near it.
_CONFIDENT: Final = 0.945
# What is printed and in no word's box was not read. Lines and logos are up to this share of a form's ink.
_UNREAD_SHARE: Final = 0.45
_LOOKED_AT_PIXELS: Final = 1_000_000
_DARKER_BY: Final = 48
# The second reading has more of the page, or as much; only one that saw next to nothing is worse.
_SAW_LITTLE: Final = 0.6
_SAW_MORE: Final = 1.1


def recognizer_for(options: JobOptions, tool_seconds: float, scratch: Callable[[], Path]) -> TextRecognizer:
    """Return what reads this job's pages.

    A language that the accurate engine was not taught is left to Tesseract, whatever was asked for.
    """
    fast = Tesseract(options.languages, tool_seconds, scratch)
    if options.ocr is OcrMode.FAST or not LANGUAGES.issuperset(options.languages):
        return fast
    accurate = RapidOcr(options.languages)
    return accurate if options.ocr is OcrMode.ACCURATE else CarefulRecognizer(fast, accurate)


@dataclass(frozen=True, slots=True)
class CarefulRecognizer:
    """Reads each page with the fast engine, and again with the accurate one where that is not enough."""

    fast: TextRecognizer
    accurate: TextRecognizer

    @property
    def name(self) -> str:
        """Both engines."""
        return f"{self.fast.name}+{self.accurate.name}"

    def recognize(self, picture: Picture) -> PageText:
        """Return the better reading.

        Raises:
            PageError: when neither engine could read the page.
        """
        try:
            page = self.fast.recognize(picture)
        except PageError as error:
            if error.limit is not None:
                raise
            return self.accurate.recognize(picture)
        if page.confidence is None and not has_ink(picture):
            return page
        if _is_good(page, picture):
            return page
        return better(page, self.accurate.recognize(picture))


def better(first: PageText, second: PageText) -> PageText:
    """Return the second, accurate reading unless it saw too little.

    Where the first was confident, the second has to have found what was overlooked: Tesseract knows more of layout.
    """
    needed = _SAW_MORE if (first.confidence or 0.0) >= _CONFIDENT else _SAW_LITTLE
    return first if _sure_letters(second.words) < needed * _sure_letters(first.words) else second


def unread_share(page: PageText, picture: Picture) -> float:
    """Return which part of the picture's ink lies in no word's box."""
    pixels = picture.pixels.transpose(TURNS[page.rotation]) if page.rotation else picture.pixels
    ink = _ink(pixels)
    total = int(ink.sum())
    if not total:
        return 0.0
    height, width = ink.shape
    for _, x0, y0, x1, y1, _, _ in page.words:
        ink[int(y0 * height) : int(y1 * height) + 2, int(x0 * width) : int(x1 * width) + 2] = False
    return float(ink.sum()) / total


def has_ink(picture: Picture) -> bool:
    """Say whether anything is drawn at all."""
    return bool(_ink(picture.pixels).any())


def _ink(pixels: Image.Image) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Return where a small version of the picture is darker than its paper."""
    small = pixels.copy()
    small.thumbnail((_LOOKED_AT_PIXELS**0.5,) * 2, Image.Resampling.BOX)
    grey = np.asarray(small, dtype=np.int16)
    ink: np.ndarray[tuple[int, int], np.dtype[np.bool_]] = grey < np.median(grey) - _DARKER_BY
    return ink


def _is_good(page: PageText, picture: Picture) -> bool:
    """Say whether a reading needs no second one."""
    return (page.confidence or 0.0) >= _CONFIDENT and unread_share(page, picture) <= _UNREAD_SHARE


def _sure_letters(words: Sequence[Word]) -> float:
    """Count letters, each by how sure it is."""
    return sum(len(word[0]) * word[5] for word in words)
