"""What a file is, by its bytes."""

import codecs
from pathlib import Path

import pytest

from schema.domain.errors import ErrorCode, PermanentError
from schema.domain.kinds import MediaType
from schema.domain.sniff import sniff, text_encoding
from stages.adapters.sniff import identify
from stages.adapters.source import Source
from tests.support.documents import SENTENCE, docx, ole, paragraph, pdf, picture, saved

PHOTO = (Path(__file__).parents[1] / "support" / "photo.heic").read_bytes()
SMALL = picture("x", size=(8, 8))


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (pdf(SENTENCE), MediaType.PDF),
        (b"junk of a mail gateway\r\n" * 20 + pdf(SENTENCE), MediaType.PDF),
        (docx(paragraph(SENTENCE)), MediaType.DOCX),
        (ole(locked=True), MediaType.DOCX),
        (saved(SMALL, "PNG"), MediaType.PNG),
        (saved(SMALL, "JPEG"), MediaType.JPEG),
        (saved(SMALL, "TIFF"), MediaType.TIFF),
        (saved(SMALL, "TIFF", big_tiff=True), MediaType.TIFF),
        (b"MM\x00*\x00\x00\x00\x08", MediaType.TIFF),
        (saved(SMALL, "WEBP"), MediaType.WEBP),
        (PHOTO, MediaType.HEIC),
        (b"\r\n%PDF-draft", MediaType.PDF),
        (SENTENCE.encode(), MediaType.TEXT),
        (b"", None),
        (saved(SMALL, "GIF"), None),
        (b"\0\0\0\x20ftypisom\0\0\2\0isomiso2avc1mp41" + bytes(64), None),
        (b"\0\0\0\x20ftypavif\0\0\0\0avifmif1miaf" + bytes(64), None),
        (b"\0\0\0\x1cftypmif1\0\0\0\0mif1avifmiaf" + bytes(64), None),
        (b"\0\0\0\x18ftypmif1\0\0\0\0mif1miaf" + b"heic" + bytes(64), None),
        (b"\0\0\0\x1cftypmif1\0\0\0\0mif1heicmiaf" + bytes(64), MediaType.HEIC),
        (b"Subject: the file\n\nIt begins with %PDF-1.4 and cannot be opened.\n", MediaType.TEXT),
        (b"\x80\x02junk\xff%PDF-1.4 1 0 obj", MediaType.PDF),
        (b"a line of junk %PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj", MediaType.PDF),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", None),
        (b"\x7fELF\x02\x01\x01" + bytes(64), None),
        (b"{\\rtf1\\ansi text}", None),
        (b"<!DOCTYPE html><html><body>text</body></html>", None),
        (b'<?xml version="1.0"?><svg/>', None),
        (codecs.BOM_UTF8 + b"<!DOCTYPE html><html><body>text</body></html>", None),
        ("<html><body>text</body></html>".encode("utf-16"), None),
        (b"<!-- drawn --> <!-- by hand -->\n<svg><text>text</text></svg>", None),
        (b"<!---->" * 500 + b"a note", MediaType.TEXT),
    ],
)
def test_a_type_is_known_by_its_first_bytes(head, expected):
    """A wrong name or declared type must neither let a file in nor keep it out."""
    assert sniff(head[:4096]) is expected


def test_the_mark_of_a_pdf_counts_in_the_first_kilobyte_only():
    """A text that quotes a PDF further down is a text."""
    assert sniff(b"line of text\n" * 100 + b"%PDF-1.7") is MediaType.TEXT


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("Grüße aus Köln und 5 €".encode(), "utf-8-sig"),
        (codecs.BOM_UTF8 + b"text", "utf-8-sig"),
        ("Grüße und 5 €".encode("cp1252"), "cp1252"),
        ("Grüße".encode("utf-16"), "utf-16"),
        ("Grüße".encode()[:3], "utf-8-sig"),
        ("Grüße".encode("utf-16-le"), "utf-16-le"),
        ("Grüße".encode("utf-16-be"), "utf-16-be"),
        ("Grüße, schöne".encode() + b"\xe9" + "Áí".encode(), "utf-8-sig"),
        (b"caf\xe9 \xe0 la cr\xe8me", "cp1252"),
        (b"text with a \x00 in it", None),
        (bytes(range(1, 32)) * 4, None),
        (codecs.BOM_UTF16_LE + b"\x00\xd8", None),
    ],
)
def test_plain_text_is_what_decodes_with_few_controls(data, expected):
    """Binary data that happens to decode as Windows-1252 must not become a page of noise."""
    assert text_encoding(data) == expected


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", ErrorCode.EMPTY_DOCUMENT),
        (ole(locked=True), ErrorCode.PASSWORD_REQUIRED),
        (ole(locked=False), ErrorCode.UNSUPPORTED_TYPE),
        (b"text at first\n" * 1000 + bytes(100), ErrorCode.UNSUPPORTED_TYPE),
    ],
)
def test_a_refusal_has_a_name(data, code):
    """A password is worth another answer than a file that nobody reads."""
    with pytest.raises(PermanentError) as caught:
        identify(Source(data=data))

    assert caught.value.code is code
