"""The accurate engine with its real models."""

import pytest
from PIL import Image, ImageDraw, ImageFont

from stages.adapters.ocr import TURNS, Picture
from stages.adapters.rapid import RapidOcr

RECEIPT = ("ARTRANGE STATIONERS", "TAX INVOICE", "Date: 10/04/2017", "Total 15.40")


def _printed(lines, *, size=36, width=700):
    """Return lines of print, as a receipt has them."""
    image = Image.new("L", (width, 40 + len(lines) * 2 * size), "white")
    draw = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        draw.text((30, 20 + number * 2 * size), line, fill="black", font=ImageFont.load_default(size))
    return Picture(image)


@pytest.mark.parametrize("turn", [90, 180])
def test_the_accurate_engine_reads_a_page_whichever_way_it_lies(turn):
    """People photograph receipts lying on their side."""
    upright = _printed(RECEIPT)
    pixels = upright.pixels.transpose(TURNS[360 - turn]) if turn else upright.pixels

    page = RapidOcr().recognize(Picture(pixels))

    assert page.rotation == turn
    assert page.text.split() == " ".join(RECEIPT).split()
    assert page.confidence is not None
    assert page.confidence > 0.9


def test_words_of_the_accurate_engine_have_their_places():
    """Fields point at where they were found."""
    page = RapidOcr().recognize(_printed(["Total", "amount due 15.40"]))

    total, amount, due, number = page.words
    assert [word[0] for word in page.words] == ["Total", "amount", "due", "15.40"]
    assert total[6] < amount[6] == due[6] == number[6]
    assert amount[1] < amount[3] <= due[1] < due[3] <= number[1] < number[3] < 0.7
    assert total[4] < amount[2]


def test_signs_of_another_script_are_ruled_out_on_a_page_in_latin_letters():
    """The models were taught Chinese first and see it in smudges."""
    page = RapidOcr().recognize(_printed(["**** paid ****", "thank you for shopping with us"]))

    assert page.text.isascii()
    assert "thank you for shopping with us" in page.text
