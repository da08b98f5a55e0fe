"""The form and its parser, fed in pieces of any size."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intake.form import Bounds, Form
from intake.idempotency import checked_key
from intake.problems import REFUSALS, Problem, ProblemCode
from intake.uploads import Upload, boundary_of
from schema.domain.kinds import Kind, MediaType
from schema.domain.options import OcrMode

BOUNDS = Bounds(default_deadline_seconds=60, max_deadline_seconds=600)
HEAD = b"%PDF-1.7\n"


async def in_pieces(body: bytes, size: int) -> AsyncGenerator[bytes, None]:
    """Yield a body as a network would."""
    for start in range(0, len(body), size):
        yield body[start : start + size]


def multipart(file: bytes, boundary: bytes = b"b", **fields: bytes) -> bytes:
    """Write a form by hand."""
    parts = [b'Content-Disposition: form-data; name="%s"\r\n\r\n%s' % (n.encode(), v) for n, v in fields.items()]
    parts.append(
        b'Content-Disposition: form-data; name="file"; filename="a"\r\nContent-Type: Text/Plain; x=y\r\n\r\n' + file
    )
    return b"".join(b"--" + boundary + b"\r\n" + part + b"\r\n" for part in parts) + b"--" + boundary + b"--\r\n"


async def read(body: bytes, size: int, boundary: bytes = b"b", max_bytes: int = 1 << 20) -> tuple[Upload, bytes]:
    """Read a form to its end."""
    upload = Upload(in_pieces(body, size), boundary, Form(BOUNDS), max_bytes=max_bytes, silence_seconds=5)
    return upload, b"".join([piece async for piece in upload.pieces()])


@given(st.binary(max_size=20_000), st.integers(min_value=1, max_value=9_000))
@settings(max_examples=60, deadline=None)
def test_a_file_comes_out_as_it_went_in_however_it_was_cut(content: bytes, size: int):
    """A boundary may fall anywhere; a parser that minds would change documents now and then."""
    file = HEAD + content.replace(b"\r\n--b", b"")

    upload, found = asyncio.run(read(multipart(file, kind=b"text"), size))

    assert found == file
    assert upload.size_bytes == len(file)
    assert upload.media_type is MediaType.PDF
    assert upload.declared_type == "text/plain"


@given(st.binary(max_size=3000))
@settings(max_examples=100, deadline=None)
def test_a_body_of_any_bytes_is_read_or_refused_by_name(body: bytes):
    """What strangers send must never become a 500."""
    try:
        asyncio.run(read(b"--b\r\n" + body, 100))
        status = 200
    except Problem as problem:
        status = problem.status

    assert status < 500


async def test_a_file_of_exactly_the_limit_is_taken_and_one_byte_more_is_not():
    """The limit that is told is the limit that holds."""
    await read(multipart(HEAD, kind=b"text"), 7, max_bytes=len(HEAD))

    with pytest.raises(Problem) as refused:
        await read(multipart(HEAD + b"x", kind=b"text"), 7, max_bytes=len(HEAD))

    assert refused.value.code is ProblemCode.DOCUMENT_TOO_LARGE
    assert refused.value.members == {"limit": len(HEAD), "actual": len(HEAD) + 1}


async def test_an_endless_tail_after_the_last_boundary_is_cut_off():
    """The parser ignores what follows the form, so the count of bytes read must not."""

    async def endless() -> AsyncGenerator[bytes, None]:
        yield multipart(HEAD, kind=b"text")
        while True:
            yield bytes(10_000)

    upload = Upload(endless(), b"b", Form(BOUNDS), max_bytes=1000, silence_seconds=5)

    with pytest.raises(Problem) as refused:
        _ = [piece async for piece in upload.pieces()]

    assert refused.value.code is ProblemCode.DOCUMENT_TOO_LARGE


def test_all_fields_are_read():
    """The form is the whole contract of a submission."""
    form = Form(BOUNDS)
    for name, text in {
        "kind": "invoice",
        "languages": "eng+deu",
        "pages": "1-3,5",
        "strict": "true",
        "deadline_seconds": "600",
        "client_tag": "order 7",
        "ocr": "Accurate",
        "sentences": "12",
    }.items():
        form.add(name, text)

    wishes = form.wishes()

    assert wishes.kind is Kind.INVOICE
    assert wishes.options.languages == ("eng", "deu")
    assert wishes.options.pages == ((1, 3), (5, 5))
    assert wishes.options.strict is True
    assert wishes.options.client_tag == "order 7"
    assert wishes.options.ocr is OcrMode.ACCURATE
    assert wishes.options.sentences == 12
    assert wishes.deadline_seconds == 600


def test_empty_fields_are_as_good_as_none():
    """An HTML form sends every field, filled in or not."""
    form = Form(BOUNDS)
    for name in ("languages", "pages", "strict", "ocr", "sentences", "deadline_seconds", "client_tag"):
        form.add(name, "")
    form.add("kind", "text")

    plain = Form(BOUNDS)
    plain.add("kind", "text")

    assert form.wishes() == plain.wishes()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kind", "Text"),
        ("languages", "english"),
        ("pages", "0"),
        ("strict", "perhaps"),
        ("ocr", "careful"),
        ("sentences", "31"),
        ("sentences", "0"),
        ("deadline_seconds", "0"),
        ("deadline_seconds", "١٢"),
        ("client_tag", "a\nb"),
    ],
)
def test_a_refused_value_is_named_but_not_repeated(name: str, text: str):
    """P10: what a client typed may be anything, and problems are logged by clients."""
    with pytest.raises(Problem) as refused:
        Form(BOUNDS).add(name, text)

    assert refused.value.code is ProblemCode.INVALID_PARAMETER
    assert refused.value.members["parameter"] == name
    assert text not in (refused.value.detail or "").split(": expected")[0].removeprefix(name) or text == ""


def test_a_fingerprint_tells_requests_apart_by_all_that_matters():
    """A key reused for another document or another wish must show."""

    def fingerprint(sha256: str = "a", **fields: str) -> str:
        form = Form(BOUNDS)
        for name, text in ({"kind": "text"} | fields).items():
            form.add(name, text)
        return form.wishes().fingerprint(sha256)

    variants = [
        fingerprint(),
        fingerprint("b"),
        fingerprint(kind="invoice"),
        fingerprint(languages="eng"),
        fingerprint(pages="1"),
        fingerprint(strict="true"),
        fingerprint(ocr="fast"),
        fingerprint(sentences="5"),
        fingerprint(deadline_seconds="60"),
        fingerprint(client_tag="x"),
    ]

    assert len(set(variants)) == len(variants)
    assert fingerprint() == variants[0]


@pytest.mark.parametrize(
    ("header", "boundary"),
    [("multipart/form-data; boundary=b", b"b"), ('Multipart/Form-Data; charset=utf-8; boundary="x y"', b"x y")],
)
def test_a_boundary_is_read_as_clients_write_it(header: str, boundary: bytes):
    """Quoted, unquoted, upper case: all of it is seen in the wild."""
    assert boundary_of(header) == boundary


@pytest.mark.parametrize("header", [None, "", "application/json", "multipart/form-data", "multipart/mixed; boundary=b"])
def test_without_a_boundary_there_is_no_form(header: str | None):
    """Guessing would read a document as a form."""
    with pytest.raises(Problem) as refused:
        boundary_of(header)

    assert refused.value.code is ProblemCode.NOT_MULTIPART


@pytest.mark.parametrize(("header", "key"), [(None, None), ("abc", "abc"), (' "abc" ', "abc"), ('"', '"')])
def test_a_key_is_the_same_with_and_without_quotes(header: str | None, key: str | None):
    """The IETF draft quotes it, most clients do not."""
    assert checked_key(header) == key


def test_every_problem_code_has_its_meaning():
    """A code without a status or a sentence would be a 500 of its own."""
    assert set(REFUSALS) == set(ProblemCode)
    assert all(refusal.title.endswith(".") for refusal in REFUSALS.values())
