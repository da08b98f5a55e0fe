"""The extract stage, with a child that says what the test wants."""

import pytest

from schema.domain.errors import ErrorCode, TransientError
from schema.domain.limits import DocumentLimits
from schema.domain.outcomes import Warning_
from schema.wire.pages import ExtractedDocument, ExtractedPage
from schema.wire.results import PageSource
from stages.extract import ExtractStage
from stages.sandbox.settings import Budget
from tests.support.parsers import FakeParsers, MemoryCheckpoint, MemoryDocuments, work_on

DATA = b"%PDF-1.7"
ENDED = {"failed": [], "attachments": []}


def _page(number, *, source="ocr", text="text", **more):
    words = [[text, 0.1, 0.1, 0.2, 0.2, 0.9, 0]] if text else []
    page = {"number": number, "source": source, "text": text, "confidence": 0.9, "rotation": 0, "words": words}
    return {"page": {**page, **more}}


def _facts(wanted):
    return {"media_type": "application/pdf", "pages_total": 500, "pages_wanted": wanted, "recognition": True}


async def _run(events, answer=ENDED, *, wanted=None, checkpoint=None, parsers=None, **options):
    wanted = wanted or len(events)
    parsers = parsers or FakeParsers(answer, events=({"pages_wanted": wanted}, *events))
    stage = ExtractStage(MemoryDocuments({"document": DATA}), parsers, DocumentLimits(), Budget(60, 10))
    return await stage.run(
        work_on(DATA, inputs={"validate": _facts(wanted)}, **options), checkpoint or MemoryCheckpoint()
    )


async def test_pages_come_out_in_order_as_normalize_wants_them():
    """The output is a contract between two stages."""
    done = await _run([_page(2), _page(1)])

    document = ExtractedDocument.model_validate(done.output)
    assert [page.number for page in document.pages] == [1, 2]
    assert done.warnings == ()


async def test_a_recognized_page_is_kept_at_once():
    """P5: a crash costs at most one page of recognition."""
    checkpoint = MemoryCheckpoint()

    await _run([_page(1), _page(2), _page(3)], checkpoint=checkpoint)

    assert checkpoint.kept == [1, 2, 3]


async def test_pages_of_text_are_kept_in_groups():
    """Writing each down would cost more than reading it again."""
    checkpoint = MemoryCheckpoint()

    await _run([_page(number, source="text_layer") for number in range(1, 61)], checkpoint=checkpoint)

    assert checkpoint.kept == list(range(1, 51))


async def test_a_recognized_page_takes_the_waiting_ones_along():
    """What is kept is always a whole beginning."""
    checkpoint = MemoryCheckpoint()

    await _run([_page(1, source="text_layer"), _page(2), _page(3, source="text_layer")], checkpoint=checkpoint)

    assert checkpoint.kept == [1, 2]


async def test_a_single_page_needs_no_checkpoint():
    """Its outcome is committed in the same instant, and half of all documents are like it."""
    checkpoint = MemoryCheckpoint()

    await _run([_page(1)], checkpoint=checkpoint)

    assert (checkpoint.asked, checkpoint.kept, checkpoint.totals) == (0, [], [])


async def test_pages_of_an_earlier_claim_are_not_read_again():
    """P5: they are skipped by the child and stand in the output all the same."""
    earlier = [ExtractedPage(number=1, source=PageSource.OCR, text="earlier")]
    parsers = FakeParsers(ENDED, events=({"pages_wanted": 2}, _page(2)))

    done = await _run([], wanted=2, parsers=parsers, checkpoint=MemoryCheckpoint(earlier=earlier))

    assert parsers.calls[0]["request"]["skip"] == [1]
    assert [page["text"] for page in done.output["pages"]] == ["earlier", "text"]


async def test_failed_and_empty_pages_are_named():
    """Pages are never dropped silently."""
    answer = {"failed": [2], "attachments": []}

    done = await _run([_page(1, text=""), _page(3)], answer, wanted=3)

    assert done.warnings == (Warning_("page_failed", (2,)), Warning_("no_text", (1,)))


async def test_embedded_invoices_are_handed_on():
    """Normalize prefers them to anything read off the page."""
    attachment = {"name": "factur-x.xml", "xml": "<a/>"}

    done = await _run([_page(1)], {"failed": [], "attachments": [attachment]})

    assert done.output["attachments"] == [attachment]


async def test_a_count_other_than_validates_corrects_the_progress():
    """A release in between may count pages otherwise."""
    checkpoint = MemoryCheckpoint()
    parsers = FakeParsers(ENDED, events=({"pages_wanted": 2}, _page(1), _page(2)))

    await _run([], wanted=5, parsers=parsers, checkpoint=checkpoint)

    assert checkpoint.totals == [2]


async def test_a_tool_gives_up_before_the_child_counts_as_silent():
    """Three runs of a tool make one page; a hung one is a failed page, not a dead child."""
    parsers = FakeParsers(ENDED, events=({"pages_wanted": 1}, _page(1)))

    await _run([], wanted=1, parsers=parsers)

    assert parsers.calls[0]["request"]["tool_seconds"] * 3 < parsers.calls[0]["budget"].silence_seconds


@pytest.mark.parametrize(
    ("events", "answer", "wanted"),
    [
        ([_page(1), _page(1)], ENDED, 2),
        ([_page(0)], ENDED, 1),
        ([_page(1), _page(5000)], ENDED, 2),
        ([_page(1), _page(4)], ENDED, 2),
        ([_page(1)], ENDED, 2),
        ([_page(1)], {"failed": [1], "attachments": []}, 2),
        ([], {"failed": [1], "attachments": []}, 1),
        ([_page(1, words=[["x", 0, 0, 2, 1, 1, 0]])], ENDED, 1),
        ([_page(1, confidence=float("nan"))], ENDED, 1),
        ([_page(1, source="guess")], ENDED, 1),
        ([{"page": "text"}], ENDED, 1),
        ([{"pages_wanted": 10_000}], ENDED, 1),
        ([{}], ENDED, 1),
        ([_page(1)], {}, 1),
        ([_page(1)], {"failed": ["x"], "attachments": []}, 1),
    ],
)
async def test_a_childs_pages_are_checked(events, answer, wanted):
    """P12: pages twice, unasked for, missing or malformed are the child's fault, and never stored."""
    with pytest.raises(TransientError) as caught:
        await _run(events, answer, wanted=wanted, pages=((1, 3),))

    assert caught.value.code is ErrorCode.INVALID_OUTPUT


async def test_without_facts_there_is_nothing_to_go_by():
    """An output of an older release must not crash this one."""
    stage = ExtractStage(MemoryDocuments({}), FakeParsers(), DocumentLimits(), Budget(60, 10))

    with pytest.raises(TransientError) as caught:
        await stage.run(work_on(DATA), MemoryCheckpoint())

    assert caught.value.code is ErrorCode.INVALID_OUTPUT
