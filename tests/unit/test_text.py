"""Plain text, and text made fit for storing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.domain.errors import ErrorCode, PermanentError
from schema.domain.limits import DocumentLimits
from schema.wire.results import PageSource
from stages.adapters.clean import clean
from stages.adapters.source import Source
from stages.adapters.text import TextReader


def _pages(data, **limits):
    reader = TextReader(Source(data=data), DocumentLimits(**limits))
    return [reader.read(number) for number in range(1, reader.pages + 1)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
def test_text_is_decoded_from_every_accepted_encoding(encoding):
    """A mangled umlaut is a wrong name on an invoice."""
    (page,) = _pages("Überweisung: 5 € und danke".encode(encoding))

    assert (page.source, page.text) == (PageSource.TEXT, "Überweisung: 5 € und danke")


def test_one_bad_byte_spoils_no_other_letter():
    """A byte that a copy has damaged must not turn every umlaut of a text into two wrong letters."""
    (page,) = _pages("Größe und Länge".encode() + b"\xff" + "für alle".encode())

    assert page.text == "Größe und Länge\ufffdfür alle"


def test_form_feeds_part_pages():
    """Printers' pages are pages; a feed at the end begins none."""
    assert [page.text for page in _pages(b"one\n\ftwo\n\fthree\n\f")] == ["one\n", "two\n", "three\n"]


def test_a_page_that_is_too_long_is_cut_at_a_line():
    """One page of a hundred megabytes would fit neither a frame nor a row."""
    pages = _pages(b"0123456789\n" * 10, max_page_chars=25)

    assert "".join(page.text for page in pages) == "0123456789\n" * 10
    assert all(len(page.text) <= 25 and page.text.endswith("\n") for page in pages)


def test_text_of_white_space_alone_is_empty():
    """Nothing to read is said by name, not by an empty result."""
    with pytest.raises(PermanentError) as caught:
        _pages(b" \n\f \n")

    assert caught.value.code is ErrorCode.EMPTY_DOCUMENT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\x00b\x01c", "abc"),
        ("a\r\nb\rc\x0bd\u2028e", "a\nb\nc\nd\ne"),
        ("line\x02", "line-"),
        ("soft\u00adhyphen and\u00a0space", "softhyphen and space"),
        ("\ud83d\ude00", "😀"),
        ("lone \ud800", "lone \ufffd"),
        ("tab\tstays", "tab\tstays"),
    ],
)
def test_text_is_made_fit_for_storing(text, expected):
    """PostgreSQL refuses NUL and lone surrogates; one bad page must not fail its neighbours' batch."""
    assert clean(text) == expected


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_clean_text_can_always_be_stored(text):
    """Whatever a parser yields."""
    result = clean(text)

    assert "\0" not in result
    assert result.encode().decode() == result
    assert clean(result) == result
