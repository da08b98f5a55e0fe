"""Documents of every type through validate and extract, in real children with the real tools."""

import zlib
from functools import partial
from pathlib import Path

import pytest

from schema.domain.errors import ErrorCode, PermanentError
from schema.domain.limits import DocumentLimits, LimitName
from schema.domain.outcomes import Warning_
from schema.domain.states import Lane
from stages.sandbox.pool import Sandbox
from stages.sandbox.settings import INLINE_BYTES, SandboxSettings
from tests.support.documents import (
    SENTENCE,
    billion_laughs,
    bomb,
    deflated,
    docx,
    drawn_pdf,
    filtered_pdf,
    jbig2,
    ole,
    packed_picture,
    paragraph,
    pdf,
    pdf_with,
    picture,
    png_of_size,
    saved,
    scan,
    tiff,
)
from tests.support.parsers import MemoryCheckpoint
from tests.support.passage import passed

SAMPLES = Path(__file__).parents[2] / "deploy" / "samples"
MIB = 1 << 20
TURNED = picture("\n".join([SENTENCE] * 12)).rotate(180)


@pytest.fixture(scope="module")
async def sandbox(tmp_path_factory):
    """One pool for all documents: what one of them breaks, the next would notice."""
    settings = SandboxSettings(scratch_dir=tmp_path_factory.mktemp("scratch"), memory_bytes=1024 * MIB)
    pool = Sandbox(settings)
    await pool.start()
    yield pool
    await pool.close()


@pytest.fixture
def process(sandbox):
    """Take a document through both stages."""
    return partial(passed, sandbox)


@pytest.mark.parametrize(
    ("data", "source", "lane"),
    [
        (SENTENCE.encode(), "text", Lane.EXTRACT_TEXT),
        (docx(paragraph(SENTENCE)), "docx", Lane.EXTRACT_TEXT),
        (pdf(SENTENCE), "text_layer", Lane.EXTRACT_TEXT),
        (scan(SENTENCE), "ocr", Lane.EXTRACT_OCR),
        (tiff(SENTENCE), "ocr", Lane.EXTRACT_OCR),
        (saved(picture(SENTENCE, mode="1"), "TIFF", compression="group4"), "ocr", Lane.EXTRACT_OCR),
        (saved(picture(SENTENCE), "PNG"), "ocr", Lane.EXTRACT_OCR),
        (saved(picture(SENTENCE, mode="CMYK"), "JPEG"), "ocr", Lane.EXTRACT_OCR),
        (saved(picture(SENTENCE, mode="RGBA"), "WEBP"), "ocr", Lane.EXTRACT_OCR),
    ],
)
async def test_every_type_yields_its_text(process, data, source, lane):
    """The product's first promise to its users."""
    done = await process(data)

    assert done.texts == [SENTENCE]
    assert [page.source for page in done.pages] == [source]
    assert done.validated.lane is lane


SCANNED = picture(SENTENCE)


@pytest.mark.parametrize(
    ("packing", "data", "bits"),
    [("JBIG2Decode", jbig2(SCANNED), 1), ("JPXDecode", saved(SCANNED, "JPEG2000"), 8)],
)
async def test_a_scan_is_read_however_it_is_packed(process, packing, data, bits):
    """Scanners and archives pack pictures as no camera does."""
    scanned = packed_picture(packing, data, bits=bits)

    assert (await process(drawn_pdf("q 595 0 0 842 0 0 cm /P0 Do Q", scanned))).texts == [SENTENCE]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("invoice.pdf", ["Rechnungsnummer: RE-2026-00417", "IBAN: DE89 3704 0044 0532 0130 00", "2.474,66"]),
        ("letter-scan.pdf", ["Dear Sir or Madam,", "notice of termination under clause 9.1"]),
        ("receipt-photo.jpg", ["TOTAL GBP 30.30", "Soup of the day 6.50"]),
        ("contract.docx", ["MAINTENANCE AGREEMENT", "Monthly inspection per lift 85.00", "laws of England and Wales"]),
        ("minutes.txt", ["Minutes of the project meeting"]),
    ],
)
async def test_the_samples_of_the_demo_can_be_read(process, name, said):
    """The first thing that a new user tries must work."""
    text = " ".join((await process((SAMPLES / name).read_bytes())).texts)

    assert [phrase for phrase in said if phrase not in text] == []


async def test_a_recognized_word_knows_its_place_and_how_sure_it_is(process):
    """A field is shown where it was found."""
    (page,) = (await process(saved(picture(SENTENCE), "PNG"))).pages
    text, x0, y0, x1, y1, confidence, line = page.words[0]

    assert text == "The"
    assert 0.07 < x0 < x1 < 0.2
    assert 0.05 < y0 < y1 < 0.1
    assert confidence > 0.8
    assert line == 0
    assert page.confidence > 0.8


async def test_an_upside_down_scan_is_turned(process):
    """Whoever feeds the scanner does not look."""
    (page,) = (await process(saved(TURNED, "PNG"))).pages

    assert page.rotation == 180
    assert "quick brown fox" in page.text


async def test_a_mixed_document_takes_each_page_as_it_is(process):
    """A signed contract is text with a scanned last page."""
    letter = scan(SENTENCE, "Second page of the scan.")
    checkpoint = MemoryCheckpoint()

    done = await process(letter, checkpoint=checkpoint)

    assert done.texts == [SENTENCE, "Second page of the scan."]
    assert checkpoint.kept == [1, 2]


async def test_only_the_pages_asked_for_are_read(process):
    """Page 1 to 3 of a manual is no reason to read all of it."""
    done = await process(pdf("one", "two", "three"), pages=((2, 3), (9, 9)))

    assert [page.number for page in done.pages] == [2, 3]
    assert done.validated.pages_total == 2


async def test_a_page_that_cannot_be_read_is_a_warning_or_a_failure_as_asked(process):
    """Pages are never dropped silently."""
    limits = DocumentLimits(max_page_chars=60)
    data = pdf(SENTENCE, SENTENCE * 2)

    done = await process(data, limits=limits)
    with pytest.raises(PermanentError) as caught:
        await process(data, limits=limits, strict=True)

    assert done.extracted.warnings == (Warning_("page_failed", (2,)),)
    assert (caught.value.code, caught.value.pages) == (ErrorCode.PAGE_FAILED, (2,))


async def test_a_page_without_text_is_a_warning(process):
    """A photograph of a cat is a valid document with nothing to read."""
    done = await process(saved(picture(""), "PNG"))

    assert done.texts == [""]
    assert done.extracted.warnings == (Warning_("no_text", (1,)),)


async def test_an_embedded_invoice_comes_along(process):
    """Factur-X and ZUGFeRD carry the truth inside."""
    done = await process(pdf_with("factur-x.xml", b"<Invoice>1</Invoice>"))

    assert [(found.name, found.xml) for found in done.attachments] == [("factur-x.xml", "<Invoice>1</Invoice>")]


async def test_a_large_document_is_read_from_a_file(process):
    """Beyond a frame's size it never lies in the parent's memory."""
    text = f"{SENTENCE}\n" * 3000
    assert len(text) > INLINE_BYTES

    assert (await process(text.encode())).pages[0].text == text


async def test_the_bytes_decide_and_a_contradiction_is_told(process):
    """A wrong name must neither let a file in nor keep it out."""
    done = await process(pdf(SENTENCE), declared="image/png")

    assert done.texts == [SENTENCE]
    assert done.validated.warnings == (Warning_("type_mismatch"),)


@pytest.mark.parametrize(
    ("data", "options", "code"),
    [
        (bytes(100), {}, ErrorCode.UNSUPPORTED_TYPE),
        (ole(locked=True), {}, ErrorCode.PASSWORD_REQUIRED),
        (pdf(SENTENCE, user="u", owner="o"), {}, ErrorCode.PASSWORD_REQUIRED),
        (pdf(SENTENCE)[:300], {}, ErrorCode.CORRUPT_DOCUMENT),
        (pdf(*"abcdefghijklmnopqrstuvwxyz"), {}, ErrorCode.TOO_MANY_PAGES),
        (scan(SENTENCE), {"limits": DocumentLimits(max_pixels=500_000)}, ErrorCode.IMAGE_TOO_LARGE),
        (png_of_size(100_000, 100_000), {}, ErrorCode.IMAGE_TOO_LARGE),
        (saved(picture(SENTENCE), "PNG")[:2000], {}, ErrorCode.CORRUPT_DOCUMENT),
        (bomb(40 * MIB), {}, ErrorCode.ARCHIVE_BOMB),
        (bomb(40 * MIB, declared=100), {}, ErrorCode.CORRUPT_DOCUMENT),
        (billion_laughs(), {}, ErrorCode.ARCHIVE_BOMB),
        (pdf(SENTENCE), {"pages": ((7, 9),)}, ErrorCode.PAGE_OUT_OF_RANGE),
        (pdf(SENTENCE), {"languages": ("tlh",)}, ErrorCode.LANGUAGE_UNAVAILABLE),
    ],
)
async def test_what_cannot_be_processed_fails_by_name(process, data, options, code):
    """P12: the worst outcome is a named failure of that one job."""
    with pytest.raises(PermanentError) as caught:
        await process(data, **options)

    assert caught.value.code is code
    assert (await process(SENTENCE.encode())).texts == [SENTENCE]


@pytest.mark.parametrize(
    ("content", "filters"),
    [
        (deflated(b" ", 3000 * MIB), ("FlateDecode",)),
        # One request for four times of what there is, refused while less than half of the limit is in use.
        (deflated(b"z", 190 * MIB), ("FlateDecode", "ASCII85Decode")),
    ],
)
async def test_a_page_that_inflates_beyond_the_memory_is_the_documents_failure(process, content, filters):
    """P12: the parser's own abort is no crash worth another attempt, and the sender sees the limit."""
    twice = filtered_pdf(zlib.compress(content, 9), "FlateDecode", *filters)
    with pytest.raises(PermanentError) as caught:
        await process(twice)

    assert (caught.value.code, caught.value.limit_name) == (ErrorCode.MEMORY_LIMIT, LimitName.MEMORY_BYTES)
    assert (caught.value.limit, caught.value.actual > 0) == (1024 * MIB, True)
