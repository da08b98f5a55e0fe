"""RapidOCR, the accurate engine: PP-OCR models that come in its wheel, run inside the child."""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from schema.wire.results import PageSource
from stages.adapters.clean import clean
from stages.adapters.ocr import TURNS, Picture, is_blank
from stages.adapters.pages import PageText, Word
from stages.adapters.rows import Piece, Point, reading_order
from stages.adapters.spacing import Letter, parted

# Tesseract's codes of the languages whose every letter the models know.
LANGUAGES: Final = frozenset({
    "afr", "bos", "cat", "ces", "cym", "dan", "deu", "eng", "est", "eus", "fin", "fra", "gle", "glg", "hrv", "hun",
    "isl", "ita", "lat", "lav", "lit", "msa", "nld", "nor", "oci", "pol", "por", "ron", "slk", "slv", "spa", "sqi",
    "swe", "swa", "tur", "chi_sim", "chi_tra", "jpn",
})  # fmt: skip
_EAST_ASIAN: Final = frozenset({"chi_sim", "chi_tra", "jpn"})

# Bounds of what finding text costs: some 600 MB and three seconds. Reading is done on the full picture.
_MAX_FINDING_PIXELS: Final = 1_400_000
_SMALL_SIDE: Final = 960
_MAX_ENLARGEMENT: Final = 3.0
# The odds of 18,000 signs at each step of a long line are some 30 MB, and the library holds them several times.
_LINES_AT_ONCE: Final = 2
_LEAST_CONFIDENCE: Final = 0.5
# The models were taught Chinese first, and take a smudge for one of its signs.
_FIRST_EAST_ASIAN: Final = 0x2E80
_FOREIGN_SHARE: Final = 0.3
_TRIED_TURNED: Final = 6
_UPRIGHT_BY: Final = 0.02
_TALL: Final = 1.5

Pixels = NDArray[np.uint8]
Reading = tuple[list[Letter | None], float]


@dataclass(frozen=True, slots=True)
class _Found:
    """Where pieces of text are, and what each looks like when cut out."""

    corners: NDArray[np.float32]
    cuttings: list[Pixels]


class RapidOcr:
    """The models, loaded by the first page that needs them and kept for the life of the child.

    Args:
        languages: Tesseract's codes; without an East Asian one no sign of those scripts is read, unless most of
            the page is in them.
    """

    def __init__(self, languages: Sequence[str] = ()) -> None:
        """Load nothing yet."""
        self._east_asian = bool(_EAST_ASIAN.intersection(languages))

    @property
    def name(self) -> str:
        """Engine and version."""
        return f"rapidocr-{version('rapidocr')}"

    def recognize(self, picture: Picture) -> PageText:
        """Read the picture, turned upright when its text lies or stands on its head."""
        if is_blank(picture):
            return PageText(PageSource.OCR, "")
        pixels = _pixels(picture.pixels)
        found = _find(pixels)
        turn = _turn(found)
        if turn:
            pixels = _pixels(picture.pixels.transpose(TURNS[turn]))
            found = _find(pixels)
        page = self._page(found, (pixels.shape[1], pixels.shape[0]))
        return replace(page, rotation=turn)

    def _page(self, found: _Found, size: tuple[int, int]) -> PageText:
        """Read all pieces and put them in order."""
        readings = _read(found.cuttings)
        if not self._east_asian:
            readings = _without_foreign(found.cuttings, readings)
        kept = [
            (corners, parted(letters, cutting[:, :, 0]))
            for corners, cutting, (letters, confidence) in zip(found.corners, found.cuttings, readings, strict=True)
            if letters and confidence >= _LEAST_CONFIDENCE
        ]
        pieces = [Piece(_points(corners), _text(letters)) for corners, letters in kept]
        return _assemble(pieces, [letters for _, letters in kept], size)


@cache
def _engine() -> Any:  # noqa: ANN401 - the library tells no types
    """Load the models: once in the life of a process, as that takes longer than reading a page."""
    # Loaded with the first page that needs it: 150 MB that most children never use.
    import rapidocr  # noqa: PLC0415

    models = Path(rapidocr.__file__).parent / "models"
    return rapidocr.RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.use_vertical_padding": False,
            "Global.return_word_box": True,
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            # Named, because the library looks on the network for what it does not find.
            "Det.model_path": str(models / "PP-OCRv6_det_small.onnx"),
            "Rec.model_path": str(models / "PP-OCRv6_rec_small.onnx"),
            "Det.limit_type": "max",
            "Rec.rec_batch_num": _LINES_AT_ONCE,
        }
    )


def _pixels(image: Image.Image) -> Pixels:
    """Return the picture as the models take it, enlarged when it is small."""
    factor = min(_SMALL_SIDE / max(image.size), _MAX_ENLARGEMENT)
    if factor > 1:
        image = image.resize((round(image.width * factor), round(image.height * factor)), Image.Resampling.LANCZOS)
    return np.asarray(image.convert("RGB"))


def _find(pixels: Pixels) -> _Found:
    """Find pieces of text."""
    from rapidocr.main import RapidOCRError  # noqa: PLC0415 - see _engine

    engine = _engine()
    height, width = pixels.shape[:2]
    shrink = min(1.0, math.sqrt(_MAX_FINDING_PIXELS / (height * width)))
    engine.cfg.Det.limit_side_len = math.ceil(max(height, width) * shrink)
    if engine.text_det is not None:
        engine.text_det.limit_side_len = engine.cfg.Det.limit_side_len
    try:
        cuttings, found = engine.detect_and_crop(pixels, {})
    except RapidOCRError:
        # Its way to say that there is no text.
        return _Found(np.zeros((0, 4, 2), np.float32), [])
    return _Found(np.asarray(found.boxes, np.float32), cuttings)


def _read(cuttings: list[Pixels]) -> list[Reading]:
    """Read pieces of text: letter by letter with ``None`` for a space, and the confidence in all of it."""
    if not cuttings:
        return []
    told = _engine().recognize_txt(cuttings)
    return [
        (_letters(text, info), float(score))
        for text, info, score in zip(told.txts, told.word_results, told.scores, strict=True)
    ]


def _letters(text: str, info: Any) -> list[Letter | None]:  # noqa: ANN401 - the library's own
    """Give each letter its place and confidence, in whole steps of the model."""
    columns = iter([column for word in info.word_cols for column in word])
    letters: list[Letter | None] = []
    for index, character in enumerate(text):
        if character.isspace():
            letters.append(None)
        else:
            at = min((next(columns) + 0.5) / max(info.line_txt_len, 1.0), 1.0)
            letters.append(Letter(character, at, float(info.confs[index])))
    return letters


def _without_foreign(cuttings: list[Pixels], readings: list[Reading]) -> list[Reading]:
    """Read the pieces again in which a few signs of another script were seen, with those signs ruled out."""
    foreign = [index for index, (letters, _) in enumerate(readings) if any(map(_is_foreign, letters))]
    signs = sum(map(_is_foreign, (letter for letters, _ in readings for letter in letters)))
    if not foreign or signs > _FOREIGN_SHARE * sum(len(letters) for letters, _ in readings):
        return readings
    decoder = _engine().text_rec.postprocess_op
    ruled_out = [index for index, sign in enumerate(decoder.character) if len(sign) == 1 and _is_east_asian(sign)]
    _engine().text_rec.postprocess_op = lambda odds, *rest, **named: decoder(_less(odds, ruled_out), *rest, **named)
    try:
        again = _read([cuttings[index] for index in foreign])
    finally:
        _engine().text_rec.postprocess_op = decoder
    result = list(readings)
    for index, reading in zip(foreign, again, strict=True):
        result[index] = reading
    return result


def _less(odds: NDArray[np.float32], ruled_out: list[int]) -> NDArray[np.float32]:
    """Return the odds of each sign at each step with some signs ruled out."""
    odds[:, :, ruled_out] = 0.0
    return odds


def _is_foreign(letter: Letter | None) -> bool:
    """Say whether it is a sign that no page in a European language has."""
    return letter is not None and _is_east_asian(letter.text)


def _is_east_asian(sign: str) -> bool:
    """Say whether it is a sign of an East Asian script."""
    return ord(sign[0]) >= _FIRST_EAST_ASIAN


def _turn(found: _Found) -> int:
    """Return by how many degrees clockwise the picture must be turned.

    The longest pieces are read as they are and upside down: lines that lie have been cut out turned to the
    left, so of the two readings the better one tells both which way they lie and which side is up.
    """
    if not found.cuttings:
        return 0
    long = sorted(range(len(found.cuttings)), key=lambda index: -found.cuttings[index].shape[1])[:_TRIED_TURNED]
    sides = [_sides(found.corners[index]) for index in long]
    lying = sum(high > wide * _TALL for wide, high in sides) * 2 > len(sides)
    tried = [found.cuttings[index] for index in long]
    as_is, turned = (_certainty(_read(some)) for some in (tried, [np.ascontiguousarray(t[::-1, ::-1]) for t in tried]))
    upside_down = turned > as_is + _UPRIGHT_BY
    if lying:
        return 90 if upside_down else 270
    return 180 if upside_down else 0


def _certainty(readings: Iterable[Reading]) -> float:
    """Return how sure the readings are, by letters."""
    weights = [(len(letters), confidence) for letters, confidence in readings]
    letters = sum(weight for weight, _ in weights)
    return sum(weight * confidence for weight, confidence in weights) / letters if letters else 0.0


def _sides(corners: NDArray[np.float32]) -> tuple[float, float]:
    """Return a piece's width and height."""
    return math.dist(corners[0], corners[1]), math.dist(corners[0], corners[3])


def _points(corners: NDArray[np.float32]) -> tuple[Point, Point, Point, Point]:
    """Return a piece's corners."""
    a, b, c, d = ((float(x), float(y)) for x, y in corners)
    return a, b, c, d


def _text(letters: Iterable[Letter | None]) -> str:
    """Return the letters as text."""
    return "".join(letter.text if letter else " " for letter in letters)


def _assemble(pieces: list[Piece], letters: list[list[Letter | None]], size: tuple[int, int]) -> PageText:
    """Make a page of pieces."""
    words: list[Word] = []
    lines: list[str] = []
    number = -1
    for row in reading_order(pieces):
        number += bool(row)
        found = [word for index in row for word in _words(pieces[index], letters[index], size, number)]
        words.extend(found)
        lines.append(" ".join(word[0] for word in found))
    count = sum(len(word[0]) for word in words)
    confidence = round(sum(word[5] * len(word[0]) for word in words) / count, 4) if count else None
    return PageText(PageSource.OCR, "\n".join(lines), confidence, words=words)


def _words(piece: Piece, letters: Sequence[Letter | None], size: tuple[int, int], number: int) -> list[Word]:
    """Cut a piece into its words, each with the part of the piece's box that its letters take."""
    words: list[Word] = []
    groups: list[list[Letter]] = [[]]
    for letter in letters:
        if letter is None:
            groups.append([])
        else:
            groups[-1].append(letter)
    groups = [group for group in groups if group]
    edges = [0.0, *((left[-1].at + right[0].at) / 2 for left, right in itertools.pairwise(groups)), 1.0]
    for index, group in enumerate(groups):
        text = clean("".join(letter.text for letter in group)).strip()
        if text:
            confidence = sum(letter.confidence for letter in group) / len(group)
            span = _span(group, edges[index], edges[index + 1])
            words.append((text, *_box(piece, span, size), round(min(max(confidence, 0.0), 1.0), 4), number))
    return words


def _span(group: Sequence[Letter], low: float, high: float) -> tuple[float, float]:
    """Return where a word begins and ends along its piece: half a letter beyond its outer letters' middles."""
    width = (group[-1].at - group[0].at) / max(len(group) - 1, 1) if len(group) > 1 else (high - low) / 2
    return max(low, group[0].at - width / 2), min(high, group[-1].at + width / 2)


def _box(piece: Piece, span: tuple[float, float], size: tuple[int, int]) -> tuple[float, float, float, float]:
    """Return the upright box around a part of a piece, as fractions of the picture."""
    a, b, c, d = piece.corners
    points = [
        (start[axis] + (end[axis] - start[axis]) * share) / size[axis]
        for axis in (0, 1)
        for start, end in ((a, b), (d, c))
        for share in span
    ]
    x0, y0, x1, y1 = (
        round(min(max(edge, 0.0), 1.0), 5)
        for edge in (min(points[:4]), min(points[4:]), max(points[:4]), max(points[4:]))
    )
    return x0, y0, x1, y1
