"""Which engine reads a page, and what becomes of the pieces that the accurate one finds."""

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from schema.domain.errors import ErrorCode
from schema.domain.options import JobOptions, OcrMode
from schema.wire.results import PageSource
from stages.adapters.careful import CarefulRecognizer, recognizer_for
from stages.adapters.ocr import Picture
from stages.adapters.pages import PageError, PageText
from stages.adapters.rapid import RapidOcr
from stages.adapters.rows import Piece, reading_order
from stages.adapters.spacing import Letter, parted
from stages.adapters.tesseract import Tesseract


class Reader:
    """An engine that reads every picture alike, and counts."""

    name = "reader-1"

    def __init__(self, page):
        """Read every picture as ``page``."""
        self.page = page
        self.asked = 0

    def recognize(self, picture):
        """Return the page, or raise it."""
        del picture
        self.asked += 1
        if isinstance(self.page, Exception):
            raise self.page
        return self.page


def _page(text, confidence, box=(0.0, 0.0, 1.0, 1.0)):
    words = [(word, *box, confidence, 0) for word in text.split()]
    return PageText(PageSource.OCR, text, confidence if words else None, words=words)


def _printed(lines, *, size=36, width=700):
    """Return lines of print, as a receipt has them."""
    image = Image.new("L", (width, 40 + len(lines) * 2 * size), "white")
    draw = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        draw.text((30, 20 + number * 2 * size), line, fill="black", font=ImageFont.load_default(size))
    return Picture(image)


def _read(fast, accurate, picture=None):
    return CarefulRecognizer(fast, accurate).recognize(picture or _printed(["something"]))


def test_a_page_that_was_read_well_is_read_once():
    """The accurate engine takes several times as long."""
    fast, accurate = Reader(_page("all is well", 0.96)), Reader(_page("never seen", 0.99))

    assert _read(fast, accurate).text == "all is well"
    assert accurate.asked == 0


def test_a_page_that_was_not_read_with_confidence_is_read_again():
    """This is what makes photographs of receipts readable."""
    fast, accurate = Reader(_page("T0ta1 l5.4O", 0.7)), Reader(_page("Total 15.40", 0.99))

    assert _read(fast, accurate).text == "Total 15.40"


def test_print_that_is_in_no_words_box_makes_a_page_be_read_again():
    """An engine is confident of what it read, and says nothing about what it overlooked."""
    fast = Reader(_page("corner", 0.99, box=(0.0, 0.0, 0.05, 0.05)))
    accurate = Reader(_page("the whole page", 0.99))

    assert _read(fast, accurate).text == "the whole page"


def test_a_second_reading_that_found_no_more_does_not_replace_a_confident_one():
    """The fast engine knows more of layout."""
    fast = Reader(_page("the heading", 0.96, box=(0.0, 0.0, 0.05, 0.05)))

    assert _read(fast, Reader(_page("heading the", 0.99))).text == "the heading"


def test_a_second_reading_that_saw_next_to_nothing_is_not_taken():
    """The accurate engine, too, overlooks things."""
    fast, accurate = Reader(_page("a page full of words", 0.8)), Reader(_page("a", 0.99))

    assert _read(fast, accurate).text == "a page full of words"


def test_a_page_on_which_the_fast_engine_gave_up_is_left_to_the_accurate_one():
    """Two engines are two chances."""
    fast, accurate = Reader(PageError(ErrorCode.PARSER_TIMEOUT)), Reader(_page("read after all", 0.9))

    assert _read(fast, accurate).text == "read after all"


def test_a_page_that_is_too_large_is_too_large_for_both():
    """Limits hold whoever reads."""
    fast = Reader(PageError(ErrorCode.IMAGE_TOO_LARGE, limit=1, actual=2))

    with pytest.raises(PageError):
        _read(fast, Reader(_page("no", 1.0)))


def test_an_empty_sheet_is_not_searched_twice():
    """Scans have many empty backs."""
    accurate = Reader(_page("dust", 0.9))

    assert _read(Reader(_page("", None)), accurate, Picture(Image.new("L", (300, 300), "white"))).text == ""
    assert accurate.asked == 0


@pytest.mark.parametrize(
    ("options", "engine"),
    [
        (JobOptions(ocr=OcrMode.FAST), Tesseract),
        (JobOptions(ocr=OcrMode.ACCURATE), RapidOcr),
        (JobOptions(), CarefulRecognizer),
        (JobOptions(languages=("rus",), ocr=OcrMode.ACCURATE), Tesseract),
    ],
)
def test_a_job_chooses_its_engine(tmp_path, options, engine):
    """A language that the accurate engine does not know stays with the one that was asked for it."""
    assert isinstance(recognizer_for(options, 10, lambda: tmp_path), engine)


def _letters(text):
    """Return the letters of evenly set ``text``; a ``_`` is white that was not read as a space."""
    return [
        None if sign == " " else Letter(sign, (index + 0.5) / len(text), 0.9)
        for index, sign in enumerate(text)
        if sign != "_"
    ]


def _line(text, *, pitch=20, height=40):
    """Return a line's picture with a bar for each letter of ``text``."""
    line = np.full((height, pitch * len(text)), 255, np.uint8)
    for index, sign in enumerate(text):
        if sign not in "_ ":
            line[8:-8, index * pitch + 3 : (index + 1) * pitch - 3] = 0
    return line


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tax_invoice", "tax invoice"),
        ("tax invoice", "tax invoice"),
        ("taxinvoice", "taxinvoice"),
        ("id:_38599", "id: 38599"),
        ("1_2", "12"),
    ],
)
def test_a_space_that_was_not_read_is_seen_by_its_white(line, expected):
    """Models of lines leave spaces out; in numbers a gap is more likely bad print."""
    found = parted(_letters(line), _line(line, pitch=20 if line != "1_2" else 12))

    assert "".join(letter.text if letter else " " for letter in found) == expected


def _piece(x0, y0, x1, y1, text="text"):
    return Piece(((x0, y0), (x1, y0), (x1, y1), (x0, y1)), text)


def test_a_label_and_its_amount_are_one_line():
    """Totals are found by what stands beside them."""
    pieces = [_piece(500, 102, 560, 122), _piece(0, 100, 90, 120), _piece(0, 130, 90, 150)]

    assert reading_order(pieces) == [[1, 0], [2]]


def test_a_slanting_page_is_read_along_its_lines():
    """Nobody lays a receipt straight; the far end of one line is as high as the middle of the next."""
    slope = 0.06

    def slanting(x0, x1, y):
        return Piece(
            ((x0, y + slope * x0), (x1, y + slope * x1), (x1, y + slope * x1 + 20), (x0, y + slope * x0 + 20)), "text"
        )

    pieces = [slanting(0, 300, 0), slanting(700, 1000, 0), slanting(0, 300, 30), slanting(700, 1000, 30)]

    assert reading_order(pieces) == [[0, 1], [2, 3]]


def test_columns_of_running_text_are_read_one_after_the_other():
    """Otherwise every line of one would be torn by a line of the other."""
    left = [_piece(0, y, 480, y + 20) for y in range(100, 400, 30)]
    right = [_piece(520, y, 1000, y + 20) for y in range(100, 400, 30)]
    pieces = [_piece(200, 20, 800, 50), *left, *right]

    order = [line for line in reading_order(pieces) if line]

    assert order == [[index] for index in range(21)]


def test_a_gap_between_lines_parts_paragraphs():
    """Text keeps its paragraphs."""
    pieces = [_piece(0, 0, 100, 20), _piece(0, 25, 100, 45), _piece(0, 90, 100, 110)]

    assert reading_order(pieces) == [[0], [1], [], [2]]
