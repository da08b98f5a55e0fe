"""The validate stage, with a child that says what the test wants."""

import pytest

from schema.domain.errors import ErrorCode, PermanentError, TransientError
from schema.domain.kinds import MediaType
from schema.domain.limits import DocumentLimits, limits_from_json
from schema.domain.outcomes import Warning_
from schema.domain.states import Lane
from stages.sandbox.settings import INLINE_BYTES, Budget
from stages.validate import ValidateStage, contradicts
from tests.support.parsers import FakeParsers, MemoryCheckpoint, MemoryDocuments, work_on

BUDGET = Budget(10, 5)
FACTS = {"media_type": "application/pdf", "pages_total": 9, "pages_wanted": 3, "recognition": False, "animation": False}


async def _run(parsers, data=b"%PDF-1.7", **work):
    stage = ValidateStage(MemoryDocuments({"document": data}), parsers, DocumentLimits(max_pages=7), BUDGET)
    return await stage.run(work_on(data, **work), MemoryCheckpoint())


async def test_what_was_found_out_is_handed_on():
    """Extract goes by it, and progress counts the pages that were asked for."""
    done = await _run(FakeParsers(FACTS))

    assert done.output == FACTS
    assert (done.media_type, done.pages_total, done.lane) == ("application/pdf", 3, Lane.EXTRACT_TEXT)
    assert done.warnings == ()


async def test_a_document_to_be_recognized_goes_to_the_lane_of_scans():
    """Scans must never block documents with a text layer."""
    assert (await _run(FakeParsers({**FACTS, "recognition": True}))).lane is Lane.EXTRACT_OCR


async def test_a_small_document_travels_in_the_call():
    """A scratch file would cost more than reading a short text does."""
    parsers = FakeParsers(FACTS)

    await _run(parsers, pages=((1, 2),))

    (call,) = parsers.calls
    assert (call["operation"], call["blob"], call["scratch"]) == ("inspect", b"%PDF-1.7", None)
    assert call["request"]["options"]["pages"] == ((1, 2),)
    assert limits_from_json(call["request"]["limits"]) == DocumentLimits(max_pages=7)


async def test_a_large_document_travels_as_a_file(tmp_path):
    """Memory stays flat, whatever the size."""
    parsers = FakeParsers(FACTS, folder=tmp_path)
    data = b"%PDF-1.7" + bytes(INLINE_BYTES)

    await _run(parsers, data)

    (call,) = parsers.calls
    assert (call["blob"], call["scratch"]) == (None, tmp_path)
    assert (tmp_path / "document").read_bytes() == data
    assert call["request"]["path"] == str(tmp_path / "document")


async def test_an_empty_document_needs_no_child():
    """There is nothing to look at."""
    parsers = FakeParsers(FACTS)

    with pytest.raises(PermanentError) as caught:
        await _run(parsers, b"")

    assert caught.value.code is ErrorCode.EMPTY_DOCUMENT
    assert parsers.calls == []


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {**FACTS, "media_type": "text/html"},
        {**FACTS, "pages_total": 0},
        {**FACTS, "pages_wanted": "many"},
        {**FACTS, "more": 1},
    ],
)
async def test_a_childs_word_is_checked(answer):
    """P12: a document may own the child that says this."""
    with pytest.raises(TransientError) as caught:
        await _run(FakeParsers(answer))

    assert caught.value.code is ErrorCode.INVALID_OUTPUT


async def test_a_contradicted_declaration_is_a_warning():
    """The bytes decide; the sender may want to know."""
    done = await _run(FakeParsers(FACTS), declared="image/png")

    assert done.warnings == (Warning_("type_mismatch"),)


async def test_pictures_that_nobody_reads_are_told_of():
    """Pages are never dropped silently, even those of an animation."""
    done = await _run(FakeParsers({**FACTS, "animation": True}))

    assert done.warnings == (Warning_("first_picture_only"),)


@pytest.mark.parametrize(
    ("declared", "found", "expected"),
    [
        (None, MediaType.PDF, False),
        ("application/pdf", MediaType.PDF, False),
        ("Application/PDF; name=x", MediaType.PDF, False),
        ("application/octet-stream", MediaType.PDF, False),
        ("image/jpg", MediaType.JPEG, False),
        ("text/csv; charset=utf-8", MediaType.TEXT, False),
        ("text/plain", MediaType.PDF, True),
        ("image/png", MediaType.JPEG, True),
    ],
)
def test_only_another_type_contradicts(declared, found, expected):
    """Aliases and generic types say nothing against the bytes."""
    assert contradicts(declared, found) is expected


def test_limits_survive_their_json():
    """Parent and child must hold a document to the same limits, and old children to new ones."""
    limits = DocumentLimits(max_pages=3, max_ratio=9)

    assert limits_from_json(limits.as_json()) == limits
    assert limits_from_json({"max_pages": 3, "unknown": 1}) == DocumentLimits(max_pages=3)
