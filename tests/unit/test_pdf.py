"""PDFs: text layers with places, what needs recognition, passwords, embedded invoices."""

import pytest

from schema.domain.errors import ErrorCode, PermanentError
from schema.domain.limits import DocumentLimits, LimitName
from schema.wire.results import PageSource
from stages.adapters.lettering import joined
from stages.adapters.pages import PageError, PageText
from stages.adapters.pdf import PdfReader, invoice_xml
from stages.adapters.source import Source
from tests.support.documents import SENTENCE, drawn_pdf, packed_picture, pdf, pdf_with, picture, saved, scan

INVOICE = b'<?xml version="1.0" encoding="ISO-8859-1"?><rsm:CrossIndustryInvoice>Stra\xdfe</rsm:CrossIndustryInvoice>'


class Eye:
    """A recognizer that keeps what it is shown."""

    name = "eye"

    def __init__(self, text="recognized text of the page"):
        """See always the same."""
        self.seen = []
        self.text = text

    def recognize(self, shown):
        """Keep the picture."""
        self.seen.append(shown)
        return PageText(PageSource.OCR, self.text)


def _open(data, eye=None, **limits):
    return PdfReader(Source(data=data), DocumentLimits(**limits), eye or Eye())


def test_a_text_layer_is_taken_as_it_is():
    """Recognizing what is there already would be slower and worse."""
    page = _open(pdf(f"{SENTENCE}\nSecond line.")).read(1)

    assert (page.source, page.text) == (PageSource.TEXT_LAYER, f"{SENTENCE}\nSecond line.")


@pytest.mark.parametrize(
    ("rotation", "inside"),
    [
        (0, (0.1, 0.05, 0.3, 0.12)),
        (90, (0.88, 0.1, 0.95, 0.3)),
        (180, (0.7, 0.88, 0.9, 0.95)),
        (270, (0.05, 0.7, 0.12, 0.9)),
    ],
)
def test_a_word_has_its_place_on_the_page_as_shown(rotation, inside):
    """A field is shown where it was found, also on a page that the viewer turns."""
    (word,) = _open(pdf("Gesamtbetrag", rotation=rotation)).read(1).words
    text, x0, y0, x1, y1, confidence, line = word

    assert (text, confidence, line) == ("Gesamtbetrag", 1.0, 0)
    assert inside[0] <= x0 < x1 <= inside[2]
    assert inside[1] <= y0 < y1 <= inside[3]


def test_words_of_one_line_share_its_number():
    """What stands beside a label is its value."""
    words = _open(pdf("Total 5.00\nDue 1 May")).read(1).words

    assert [(word[0], word[6]) for word in words] == [("Total", 0), ("5.00", 0), ("Due", 1), ("1", 1), ("May", 1)]


def test_a_page_drawn_from_the_bottom_up_is_read_from_the_top_down():
    """Some programs draw their last line first."""
    lines = [f"line {number}" for number in range(6)]
    page = _open(pdf("\n".join(lines), upward=True)).read(1)

    assert page.text.splitlines() == lines
    assert [word[6] for word in page.words] == sorted(word[6] for word in page.words)


def test_a_page_without_text_layer_is_recognized():
    """A scan is a picture."""
    eye = Eye()
    page = _open(scan(SENTENCE), eye).read(1)

    assert (page.source, page.text) == (PageSource.OCR, eye.text)
    assert eye.seen[0].dpi == 300
    assert eye.seen[0].pixels.mode == "L"


def test_a_scan_with_a_stamp_is_recognized_all_the_same():
    """A page number printed on a scan is not the page's text."""
    assert _open(scan(SENTENCE, stamp="Page 1")).read(1).source is PageSource.OCR


def test_a_stamp_is_kept_when_recognition_finds_less():
    """What is known for certain is not given up for nothing."""
    page = _open(scan(SENTENCE, stamp="Page 1"), Eye(text="")).read(1)

    assert (page.source, page.text) == (PageSource.TEXT_LAYER, "Page 1")


def test_a_blank_page_is_not_recognized():
    """The back of every second sheet would cost seconds for nothing."""
    eye = Eye()

    assert _open(pdf(""), eye).read(1).text == ""
    assert eye.seen == []


FULL_PAGE = "q 595 0 0 842 0 0 cm /P0 Do Q"
JUNK = b"neither one thing nor the other"
HALF_A_PICTURE = saved(picture(SENTENCE), "JPEG2000")[:3000]


@pytest.mark.parametrize(
    ("packing", "data"),
    [("DCTDecode", JUNK), ("JPXDecode", JUNK), ("JPXDecode", HALF_A_PICTURE), ("JBIG2Decode", JUNK)],
)
def test_a_page_whose_picture_cannot_be_drawn_has_failed(packing, data):
    """PDFium passes over it in silence, and a page of lost text would be told from a blank one by nobody."""
    eye = Eye()
    with pytest.raises(PageError) as caught:
        _open(drawn_pdf(FULL_PAGE, packed_picture(packing, data)), eye).read(1)

    assert caught.value.code is ErrorCode.CORRUPT_DOCUMENT
    assert eye.seen == []


def test_a_picture_too_large_to_be_drawn_is_named():
    """The sender can do something about it."""
    huge = packed_picture("FlateDecode", JUNK, size=(60_000, 60_000))
    with pytest.raises(PageError) as caught:
        _open(drawn_pdf(FULL_PAGE, huge)).read(1)

    error = caught.value
    assert (error.code, error.limit_name) == (ErrorCode.IMAGE_TOO_LARGE, LimitName.PIXELS)
    assert error.actual == 60_000**2 > error.limit


def test_a_blank_scan_is_blank():
    """The back of a sheet is a page with nothing on it."""
    white = packed_picture("DCTDecode", saved(picture("", size=(62, 88)), "JPEG"), size=(62, 88))

    assert _open(drawn_pdf(FULL_PAGE, white), Eye("")).read(1).text == ""


@pytest.mark.parametrize("thousandths", [150, 300, 500])
def test_spaced_letters_are_words(thousandths):
    """Titles are set like that, and an invoice would not be known for one."""
    letters = " ".join(f"({letter}) -{thousandths}" for letter in "INVOICE No")
    spaced = f"BT /F1 14 Tf 72 700 Td [{letters}] TJ 0 -40 Td ({SENTENCE}) Tj ET"

    assert _open(drawn_pdf(spaced)).read(1).text.split("\n") == ["INVOICE No", "", SENTENCE]


@pytest.mark.parametrize(
    ("letters", "gap"), [("INVOICE", 3.0), ("ABC", 0.3), ("수있는것이다", 0.3), ("12345", 0.3), ("ABCDE", 0.0)]
)
def test_other_single_letters_stay_apart(letters, gap):
    """Columns of marks, initials, and scripts whose words may be one sign."""
    step = 0.01 * (1 + gap)
    words = [(letter, at * step, 0.1, at * step + 0.01, 0.12, 1.0, 0) for at, letter in enumerate(letters)]

    assert joined(words) == tuple(words)


def test_rendering_stays_within_the_pixel_limit():
    """P12: memory stays flat, whatever size a page claims."""
    eye = Eye()

    _open(scan(SENTENCE), eye, max_pixels=2_000_000).read(1)

    width, height = eye.seen[0].pixels.size
    assert width * height <= 2_000_000
    assert eye.seen[0].dpi < 300


def test_a_page_too_large_to_be_read_fails_by_name():
    """Coarser still, its text would be noise."""
    with pytest.raises(PageError) as caught:
        _open(scan(SENTENCE), max_pixels=500_000).read(1)

    assert caught.value.code is ErrorCode.IMAGE_TOO_LARGE
    assert caught.value.actual > caught.value.limit == 500_000


@pytest.mark.parametrize(
    ("data", "limits", "code"),
    [
        (pdf(SENTENCE, user="u", owner="o"), {}, ErrorCode.PASSWORD_REQUIRED),
        (b"%PDF-1.7\nnothing of the kind", {}, ErrorCode.CORRUPT_DOCUMENT),
        (pdf(SENTENCE)[:300], {}, ErrorCode.CORRUPT_DOCUMENT),
        (pdf(SENTENCE, SENTENCE, SENTENCE), {"max_pages": 2}, ErrorCode.TOO_MANY_PAGES),
    ],
)
def test_a_file_that_cannot_be_opened_says_why(data, limits, code):
    """The sender can do something about each of these."""
    with pytest.raises(PermanentError) as caught:
        _open(data, **limits)

    assert caught.value.code is code


def test_an_owner_password_alone_is_no_obstacle():
    """It forbids printing, not reading."""
    assert _open(pdf(SENTENCE, user="", owner="o")).read(1).text == SENTENCE


def test_the_password_of_one_file_does_not_stick_to_the_next():
    """PDFium keeps its last error; a file that sets none must not inherit it."""
    locked = Source(data=pdf(SENTENCE, user="u", owner="o"))
    without_pages = pdf(SENTENCE).replace(b"/Count 1 /Kids [ 3 0 R ]", b"/Count 0 /Kids [       ]")

    with pytest.raises(PermanentError):
        PdfReader(locked, DocumentLimits(), Eye())
    with pytest.raises(PermanentError) as caught:
        _open(without_pages)

    assert caught.value.code is ErrorCode.EMPTY_DOCUMENT


def test_a_page_with_too_much_text_fails_alone():
    """P12: neither a frame nor a row holds a page of any size."""
    with pytest.raises(PageError):
        _open(pdf(SENTENCE), max_page_chars=10).read(1)


def test_an_embedded_invoice_is_handed_on():
    """What the seller's program wrote beats anything read off the page."""
    found = _open(pdf_with("factur-x.xml", INVOICE)).attachments()

    assert found == [{"name": "factur-x.xml", "xml": "<rsm:CrossIndustryInvoice>Straße</rsm:CrossIndustryInvoice>"}]


def test_an_attachment_that_is_too_large_is_left_out():
    """P12: its size is no reason to lose the pages."""
    assert _open(pdf_with("factur-x.xml", INVOICE), max_attachment_bytes=10).attachments() == []


@pytest.mark.parametrize(
    ("name", "data", "taken"),
    [
        ("ZUGFeRD-invoice.xml", b"<a/>", True),
        ("rechnung.xml", b"<ubl:Invoice xmlns:ubl='urn:x'/>", True),
        ("rechnung.xml", b"\xef\xbb\xbf<CreditNote />", True),
        ("rechnung.xml", b"<ubl-2.1:Invoice xmlns:ubl-2.1='urn:x'/>", True),
        ("rechnung.xml", "<Invoice>ä</Invoice>".encode("utf-16"), True),
        ("metadata.xml", b"<rdf/>", False),
        ("invoice.pdf", b"<Invoice/>", False),
        ("factur-x.xml", b"\xff\xff\xff", False),
        ("factur-x.xml", b'<?xml encoding="no-such-code"?><a/>', False),
    ],
)
def test_only_invoices_are_taken_from_attachments(name, data, taken):
    """Other files inside a PDF are nobody's business here."""
    assert (invoice_xml(name, data) is not None) is taken
