"""Pages in columns: one is read to its end before the next, however the file draws them."""

import io
from itertools import chain

import pytest
from reportlab.pdfgen.canvas import Canvas

from schema.domain.limits import DocumentLimits
from stages.adapters.pdf import PdfReader
from stages.adapters.rows import Piece, reading_order
from stages.adapters.source import Source

A4 = (595, 842)
LINES = 8
TITLE = "A heading that goes over all of the columns of the page, as the headings of articles do"
FOOT = "A last line that goes over the whole width of the page and comes behind all of its columns"


def _page(*columns, by_row, left=60, gap=14):
    """Draw columns of equal width, line by line across all of them or one after the other; return the page's text."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4)
    canvas.setFont("Helvetica", 9)
    width = (A4[0] - 2 * left + gap) / len(columns)
    placed = [
        [(left + width * place, 770 - 12 * at, text) for at, text in enumerate(column)]
        for place, column in enumerate(columns)
    ]
    canvas.drawString(left, 800, TITLE)
    for x, y, text in chain.from_iterable(zip(*placed, strict=True)) if by_row else chain.from_iterable(placed):
        canvas.drawString(x, y, text)
    canvas.drawString(left, 600, FOOT)
    canvas.save()
    reader = PdfReader(Source(data=buffer.getvalue()), DocumentLimits(), None)
    return [line for line in reader.read(1).text.split("\n") if line]


def _column(name, words):
    return [f"{name} {at} {words}" for at in range(LINES)]


TWO = (
    _column("Alder", "grows by the river and on wet ground there"),
    _column("Birch", "grows on the hill and on dry ground up here"),
)
THREE = (
    _column("Alder", "grows by rivers on wet land"),
    _column("Birch", "grows on hills on dry land"),
    _column("Cedar", "grows in the parks of lords"),
)


@pytest.mark.parametrize("columns", [TWO, THREE])
@pytest.mark.parametrize("by_row", [True, False])
def test_a_column_is_read_before_the_next(columns, by_row):
    """Otherwise each sentence of one is torn by the lines of the other."""
    assert _page(*columns, by_row=by_row) == [TITLE, *chain.from_iterable(columns), FOOT]


def test_labels_and_values_stay_together():
    """A form's left column is short, and what belongs to a label stands beside it."""
    labels = [f"Label {at}" for at in range(LINES)]
    values = [f"Value {at} that is a good deal longer than its label" for at in range(LINES)]

    assert _page(labels, values, by_row=True)[1:-1] == [f"{a} {b}" for a, b in zip(labels, values, strict=True)]


def test_rows_of_a_table_stay_together():
    """Entries end where they end; running text fills its column."""
    lengths = (44, 12, 9, 30, 11, 8, 15, 10)
    names = [("Part " + "abcde " * 9)[:length].strip() for length in lengths]
    uses = [("Used " + "vwxyz " * 9)[:length].strip() for length in reversed(lengths)]

    assert _page(names, uses, by_row=True)[1:-1] == [f"{a} {b}" for a, b in zip(names, uses, strict=True)]


def test_three_columns_of_a_picture_are_read_one_after_the_other():
    """Recognition finds their lines all over the page."""
    pieces = [
        Piece(((x, y), (x + 300, y), (x + 300, y + 20), (x, y + 20)), "")
        for x in (0, 340, 680)
        for y in range(100, 400, 30)
    ]

    assert [line for line in reading_order(pieces) if line] == [[index] for index in range(30)]
