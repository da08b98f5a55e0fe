"""The stages around the child: what goes in, and what is believed of what comes out."""

from uuid import uuid4

import pytest

from schema.domain.errors import ErrorCode, TransientError
from schema.domain.kinds import Kind, MediaType
from schema.domain.options import JobOptions
from schema.domain.outcomes import Warning_
from stages.fields.engine import normalize
from stages.normalize import NormalizeStage
from stages.persist import PersistStage
from stages.sandbox.settings import Budget
from stages.work import StoredDocument, Work
from tests.support.extracted import document, text_page

BUDGET = Budget(5.0, 5.0)


class Parsers:
    """Answers as told and remembers what it was asked."""

    def __init__(self, answer):
        """Keep the answer."""
        self.answer = answer
        self.calls = []

    async def call(self, operation, request, *, budget):
        """Return the answer."""
        self.calls.append((operation, request, budget))
        return self.answer


def _work(kind, **inputs):
    stored = StoredDocument("key", 1, "0" * 64, None, MediaType.TEXT)
    return Work(uuid4(), 1, kind, JobOptions(languages=("deu",)), stored, inputs)


def _normalized(kind="invoice", **changes):
    request = {"document": document(text_page("Total EUR 99.00")), "kind": kind}
    return {**normalize(request), **changes}


async def test_normalize_asks_the_child_and_passes_its_warnings_on():
    """The parent never runs patterns over a document itself."""
    parsers = Parsers(_normalized(warnings=[{"code": "totals_disagree", "pages": [1]}]))
    work = _work(Kind.INVOICE, extract=document(text_page("Total EUR 99.00")))

    completed = await NormalizeStage(parsers, BUDGET).run(work, None)

    ((operation, request, budget),) = parsers.calls
    assert (operation, request["kind"], request["languages"], budget) == ("normalize", "invoice", ["deu"], BUDGET)
    assert completed.output == parsers.answer
    assert completed.warnings == (Warning_("totals_disagree", (1,)),)


@pytest.mark.parametrize(
    "answer", [{}, {"warnings": None}, {"warnings": [{"code": "x"}]}, {"warnings": [{"code": "x", "pages": "no"}]}]
)
async def test_a_child_that_answers_nonsense_is_a_transient_failure(answer):
    """Another attempt gets another child."""
    with pytest.raises(TransientError) as caught:
        await NormalizeStage(Parsers(answer), BUDGET).run(_work(Kind.TEXT, extract=document()), None)

    assert caught.value.code is ErrorCode.INVALID_OUTPUT


async def test_persist_makes_the_result_of_a_valid_document():
    """The result carries the job's own id, whatever the child said."""
    work = _work(Kind.INVOICE, normalize=_normalized())

    completed = await PersistStage().run(work, None)

    assert completed.output["job_id"] == str(work.job_id)
    assert completed.output["version"] == 1
    assert completed.output["invoice"]["total"]["value"] == "99.00"


@pytest.mark.parametrize(
    "changes",
    [
        {"invoice": None},
        {"kind": "text"},
        {"summary": {"text": "", "sentences": []}},
        {"pages": [{"number": 1, "source": "text"}, {"number": 1, "source": "text"}]},
        {"pages": "none"},
        {"surprise": 1},
        {"job_id": "00000000-0000-0000-0000-000000000000"},
        {"invoice": {"total": {"value": "=1+1", "confidence": 1.0}}},
        {"invoice": {"total": {"value": "1.00", "confidence": 7.0}}},
        {"invoice": {"issue_date": {"value": "yesterday", "confidence": 1.0}}},
    ],
)
async def test_persist_believes_nothing_that_does_not_fit(changes):
    """The output came from a process that a hostile document may have taken over."""
    with pytest.raises(TransientError) as caught:
        await PersistStage().run(_work(Kind.INVOICE, normalize=_normalized(**changes)), None)

    assert caught.value.code is ErrorCode.INVALID_OUTPUT
