"""Tesseract, the default engine."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytesseract

from schema.domain.errors import ErrorCode, PermanentError, TransientError
from schema.domain.limits import LimitName
from schema.wire.results import PageSource
from stages.adapters.clean import clean
from stages.adapters.ocr import MAX_SIDE, TURNS, Picture, is_blank
from stages.adapters.pages import PageError, PageText, Word

DEFAULT_LANGUAGES: Final = ("eng", "deu", "fra")
_DEFAULT_DPI: Final = 300
_POOR_CONFIDENCE: Final = 0.8
_MIN_ORIENTATION_CONFIDENCE: Final = 1.0
_WORD_LEVEL: Final = "5"


@dataclass(frozen=True, slots=True)
class Tesseract:
    """Tesseract, run as a process of its own for each picture.

    Args:
        languages: its codes for them; empty for what is installed of ``DEFAULT_LANGUAGES``.
        tool_seconds: how long one run may take; a page costs at most three.
        scratch: returns a directory for temporary files.
    """

    languages: tuple[str, ...]
    tool_seconds: float
    scratch: Callable[[], Path]

    @property
    def name(self) -> str:
        """Engine and version."""
        with _tesseract_errors():
            return f"tesseract-{pytesseract.get_tesseract_version(cached=True)}"

    def recognize(self, picture: Picture) -> PageText:
        """Read the picture as it is and, where that reads badly, as it stands when turned upright."""
        if max(picture.pixels.size) > MAX_SIDE:
            raise PageError(
                ErrorCode.IMAGE_TOO_LARGE, limit=MAX_SIDE, actual=max(picture.pixels.size), limit_name=LimitName.SIDE
            )
        if is_blank(picture):
            return PageText(PageSource.OCR, "")
        file = self.scratch() / "page.pgm"
        try:
            page = self._read(picture, file)
            if page.confidence is None or page.confidence < _POOR_CONFIDENCE:
                page = self._upright(picture, file, page)
        finally:
            file.unlink(missing_ok=True)
        return page

    def _upright(self, picture: Picture, file: Path, page: PageText) -> PageText:
        """Return what the turned picture says when it says more than ``page``."""
        turn = self._turn(picture, file)
        if turn not in TURNS:
            return page
        turned = self._read(replace(picture, pixels=picture.pixels.transpose(TURNS[turn])), file)
        return replace(turned, rotation=turn) if _weight(turned) > _weight(page) else page

    def _read(self, picture: Picture, file: Path) -> PageText:
        """Run the recognition on the picture."""
        languages = usable_languages(self.languages)
        picture.pixels.save(file, format="PPM")
        with _tesseract_errors():
            table = pytesseract.image_to_data(
                str(file),
                lang="+".join(languages),
                config=f"--dpi {picture.dpi or _DEFAULT_DPI}",
                timeout=self.tool_seconds,
            )
        return page_from_table(table, picture.pixels.size)

    def _turn(self, picture: Picture, file: Path) -> int:
        """Return by how many degrees clockwise the page in ``file`` must be turned; 0 when that is unclear."""
        if "osd" not in installed_languages():
            return 0
        try:
            told = pytesseract.image_to_osd(
                str(file),
                config=f"--dpi {picture.dpi or _DEFAULT_DPI}",
                output_type=pytesseract.Output.DICT,
                timeout=self.tool_seconds,
            )
        except RuntimeError:
            # Too few characters to tell, mostly; orientation is a help, not a need.
            return 0
        sure = float(told.get("orientation_conf", 0)) >= _MIN_ORIENTATION_CONFIDENCE
        return int(told.get("rotate", 0)) if sure else 0


def installed_languages() -> frozenset[str]:
    """Return Tesseract's installed languages."""
    with _tesseract_errors():
        return frozenset(pytesseract.get_languages(cached=True))


def usable_languages(requested: Sequence[str]) -> tuple[str, ...]:
    """Return the languages to read with.

    Raises:
        PermanentError: ``language_unavailable``, when a requested one is not installed.
        TransientError: ``parser_crashed``, when none at all is installed.
    """
    installed = installed_languages()
    if any(language not in installed for language in requested):
        raise PermanentError(ErrorCode.LANGUAGE_UNAVAILABLE)
    languages = tuple(requested) or tuple(code for code in DEFAULT_LANGUAGES if code in installed)
    if not languages:
        raise TransientError(ErrorCode.PARSER_CRASHED)
    return languages


def page_from_table(table: str, size: tuple[int, int]) -> PageText:
    """Make a page from Tesseract's TSV for a picture of ``size`` pixels; paragraphs are parted by a blank line."""
    words: list[Word] = []
    lines: list[str] = []
    line_of: tuple[str, ...] = ()
    paragraph_of: tuple[str, ...] = ()
    number = -1
    for row in _rows(table):
        place = (row["block_num"], row["par_num"], row["line_num"])
        text = clean(row["text"]).strip()
        if place != line_of:
            if paragraph_of and place[:2] != paragraph_of:
                lines.append("")
            line_of, paragraph_of = place, place[:2]
            number += 1
            lines.append(text)
        else:
            lines[-1] += f" {text}"
        words.append((text, *_box(row, size), _confidence(row), number))
    letters = sum(len(word[0]) for word in words)
    confidence = round(sum(word[5] * len(word[0]) for word in words) / letters, 4) if letters else None
    return PageText(PageSource.OCR, "\n".join(lines), confidence, words=words)


def _rows(table: str) -> Iterable[dict[str, Any]]:
    """Return the rows of words that are not blank."""
    reader = csv.DictReader(io.StringIO(table), delimiter="\t", quoting=csv.QUOTE_NONE)
    return (row for row in reader if row["level"] == _WORD_LEVEL and clean(row["text"] or "").strip())


def _box(row: dict[str, Any], size: tuple[int, int]) -> tuple[float, float, float, float]:
    """Return the row's box as fractions of the picture."""
    left, top = int(row["left"]), int(row["top"])
    width, height = size
    edges = (
        left / width,
        top / height,
        (left + int(row["width"])) / width,
        (top + int(row["height"])) / height,
    )
    x0, y0, x1, y1 = (round(min(max(edge, 0.0), 1.0), 5) for edge in edges)
    return x0, y0, x1, y1


def _confidence(row: dict[str, Any]) -> float:
    """Return the row's confidence from 0 to 1."""
    return round(min(max(float(row["conf"]) / 100, 0.0), 1.0), 4)


def _weight(page: PageText) -> float:
    """Say how much a page was read, by letters and confidence."""
    return len(page.text) * (page.confidence or 0.0)


@contextmanager
def _tesseract_errors() -> Iterator[None]:
    """Turn what pytesseract raises into owned errors.

    Raises:
        TransientError: ``parser_crashed``, when Tesseract cannot be run at all.
        PageError: when it ran out of time (``parser_timeout``) or gave up on the page.
    """
    try:
        yield
    except pytesseract.TesseractNotFoundError:
        raise TransientError(ErrorCode.PARSER_CRASHED) from None
    except pytesseract.TesseractError:
        raise PageError from None
    except RuntimeError:
        raise PageError(ErrorCode.PARSER_TIMEOUT) from None
