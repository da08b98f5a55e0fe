"""The evaluation: what it calls right, wrong and missing, on a corpus of two documents of its own."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tests.evaluation import exposition, outcomes, report, values
from tests.evaluation.__main__ import environment
from tests.evaluation.cases import Variant, cases
from tests.evaluation.comparison import compare
from tests.evaluation.fields import Verdict, judge
from tests.evaluation.figures import by_field, by_kind
from tests.evaluation.manifest import Entry, Part, load
from tests.evaluation.running import Record, judge_language
from tests.evaluation.summaries import judge_summary
from tests.evaluation.texts import score_text

RECEIPT = {
    "id": "receipt-1",
    "path": "files/receipt.jpg",
    "kind": "receipt",
    "upload": {"filename": "photo.jpg", "content_type": "image/jpeg"},
    "expected": "ok-ocr",
    "truth": {"seller": "CORNER SHOP SDN BHD", "issue_date": "2018-03-19", "total": "11.40", "seller_address": "x"},
    "truth_checks": {"company": True, "date": True, "total": False},
    "ref": {"path": "files/receipt.txt", "kind": "transcript"},
}
BOMB = {
    "id": "bomb-1",
    "path": "corpus/files/bomb.zip",
    "kind": "hostile",
    "upload": {"filename": "bomb.zip", "content_type": "application/zip"},
    "expected": "bomb",
    "also_ok": ["unsupported"],
}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Write a corpus of two documents; one path has the folder's own name in it."""
    folder = tmp_path / "corpus"
    (folder / "files").mkdir(parents=True)
    for name in ("receipt.jpg", "receipt.txt", "bomb.zip"):
        (folder / "files" / name).write_bytes(b"Corner Shop")
    (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (RECEIPT, BOMB)))
    return folder


@pytest.fixture
def receipt(corpus: Path) -> Entry:
    """Return the corpus's receipt."""
    return load(corpus)[0]


def record(**changes) -> Record:
    """Return what became of a receipt; in the defaults all is well."""
    made = Record("receipt-1", "receipt", "receipt", "open", "as_it_is", "ok-ocr", outcome="ok-ocr", fits=True)
    return replace(made, **changes)


def found(**values_) -> dict[str, object]:
    """Return a section of a result."""
    return {name: {"value": value} for name, value in values_.items()}


def test_a_manifest_names_files_from_its_folder_or_the_one_above(corpus: Path) -> None:
    """Both are in use; a corpus that is moved must not need another manifest."""
    receipt, bomb = load(corpus)

    assert receipt.path == corpus / "files/receipt.jpg"
    assert bomb.path == corpus / "files/bomb.zip"
    assert (receipt.job_kind, bomb.job_kind) == ("invoice", "text")


def test_a_missing_document_is_told_before_anything_is_sent(corpus: Path) -> None:
    """A run over half a corpus would look like a good one."""
    (corpus / "files/bomb.zip").unlink()

    with pytest.raises(FileNotFoundError):
        load(corpus)


def test_a_third_is_held_out_and_stays_so(receipt: Entry) -> None:
    """Rules made with a document say nothing about others; the same ones must be left alone in every run."""
    parts = [replace(receipt, id=f"d-{number}").part for number in range(300)]

    assert 75 <= parts.count(Part.HELD_OUT) <= 125
    assert parts[:8] == [replace(receipt, id=f"d-{number}").part for number in range(8)]


def test_what_is_not_a_pdf_is_sent_as_it_is(corpus: Path, tmp_path: Path) -> None:
    """Only an invoice with something inside is sent twice."""
    assert [case.variant for case in cases(load(corpus), tmp_path)] == [Variant.AS_IT_IS] * 2


def test_prose_is_sent_once_more_to_be_summed_up(receipt: Entry, tmp_path: Path) -> None:
    """What must be recognized is not recognized twice for it, and nothing is without a text to hold it against."""
    text = replace(receipt, kind="docx", expected="ok-docx")
    others = (receipt, replace(text, expected="ok-ocr"), replace(text, reference=None))

    assert [(case.job_kind, case.group) for case in cases([text], tmp_path)] == [
        ("text", "docx"),
        ("summary", "summary"),
    ]
    assert [case.variant for case in cases(others, tmp_path)] == [Variant.AS_IT_IS] * 3


@pytest.mark.parametrize(
    ("said", "sentences", "length"),
    [
        (["Alder sells pumps.", "Birch buys them."], Verdict.RIGHT, Verdict.RIGHT),
        (["Pumps are bought, it says on the next page."], Verdict.RIGHT, Verdict.RIGHT),
        (["Alder sells planes."], Verdict.WRONG, Verdict.RIGHT),
        (["Alder sells pumps. Birch buys them."], Verdict.WRONG, Verdict.RIGHT),
        (["Birch buys them."] * 8, Verdict.RIGHT, Verdict.WRONG),
        ([], Verdict.MISSING, Verdict.RIGHT),
    ],
)
def test_a_summary_is_sentences_of_the_document(said: list[str], sentences: Verdict, length: Verdict) -> None:
    """Few, in its words, over the end of a page, and not none of a long text."""
    pages = [
        "Alder sells\npumps. And so on. Birch buys them. " + "And more. " * 200 + "Pumps are bought,\n- 1 -",
        "Alder AG\nit says on the next page.",
    ]
    summary = {"text": " ".join(said), "sentences": [{"text": each} for each in said]}

    assert judge_summary(summary, pages) == {"sentences": sentences, "length": length}


@pytest.mark.parametrize(
    ("found", "true", "fields"),
    [
        ("en", "en", {"language": "right"}),
        ("de", "en", {"language": "wrong"}),
        (None, "en", {"language": "missing"}),
        ("de", None, {}),
    ],
)
def test_a_language_is_that_of_the_reference(found: str | None, true: str | None, fields: dict[str, str]) -> None:
    """Where that does not tell one, none is asked for."""
    assert judge_language(record(), found, true) == fields


def test_words_count_as_often_as_they_stand_there() -> None:
    """A text that has a word once has not read it twice."""
    score = score_text("total 11 TOTAL", "Total 11.40 total total")

    assert score is not None
    assert score.words == 5
    assert score.recall == pytest.approx(3 / 5)
    assert score.precision == 1.0


def test_character_error_knows_no_case_and_no_kinds_of_space() -> None:
    """Transcripts are often in capitals, and lines break differently."""
    score = score_text("Corner\n shop", "CORNER SHOP")

    assert score is not None
    assert score.character_error == 0.0
    assert score_text("anything", " .\n") is None


@pytest.mark.parametrize(
    ("code", "size", "outcome"),
    [
        ("password_required", 10, "encrypted"),
        ("empty_document", 0, "empty-file"),
        ("empty_document", 10, "zero-pages"),
        ("memory_limit", 10, "bomb"),
        ("internal_error", 10, "internal_error"),
    ],
)
def test_failures_have_a_class(code: str, size: int, outcome: str) -> None:
    """What no class is for is never expected, so it shows."""
    assert outcomes.of_error(code, size=size) == outcome


@pytest.mark.parametrize(
    ("pages", "outcome"),
    [
        ([("ocr", "a"), ("ocr", "")], "ok-ocr"),
        ([("ocr", "a"), ("text_layer", "b")], "ok-mixed"),
        ([("docx", "a")], "ok-docx"),
        ([("text_layer", " \n")], "ok-empty"),
        ([("ocr", "")], "no-text"),
    ],
)
def test_results_have_a_class_by_where_their_text_is_from(pages: list[tuple[str, str]], outcome: str) -> None:
    """A page without text has no source that counts."""
    assert outcomes.of_result({"pages": [{"source": source, "text": text} for source, text in pages]}) == outcome


def test_what_a_manifest_also_allows_fits(corpus: Path) -> None:
    """Some documents may end in several ways."""
    bomb = load(corpus)[1]

    assert outcomes.fits(bomb, "bomb")
    assert outcomes.fits(bomb, "unsupported")
    assert not outcomes.fits(bomb, "internal_error")


@pytest.mark.parametrize(
    ("read", "true"),
    [
        ("Corner Shop Sdn. Bhd. (12345-X)", "CORNER SHOP SDN BHD"),
        ("Hôtel Saint Denis", "Hotel Saint-Denis"),
        ("The Johns Hopkins University", "John Hopkins University"),
        ("Excite, Inc.", "EXCITE INC"),
    ],
)
def test_names_are_the_same_in_other_spellings(read: str, true: str) -> None:
    """Legal forms, accents, case and one wrong letter make no other company."""
    assert values.same_name(read, true)


def test_other_names_are_others() -> None:
    """A name that only begins alike is not the same."""
    assert not values.same_name("Lieferant GmbH", "Kunden AG Mitte")
    assert not values.same_name("Federated Advisory Services Company", "Federated Investment Management Company")
    assert not values.same_name("", "Inc.")


def test_values_are_compared_by_what_they_mean() -> None:
    """People write the same amount, law and time in many ways."""
    assert values.same_number("9.0", "9.00")
    assert not values.same_number("n/a", "9.00")
    assert values.same_law("the State of New York", "New York")
    assert values.same_law("Netherlands", "Massachusetts; Netherlands")
    assert values.same_duration("thirty (30) days", "30 days")
    assert not values.same_duration("30 months", "30 days")


def test_only_what_is_on_the_page_is_asked_for(receipt: Entry) -> None:
    """``truth_checks`` says what can be read; a truth of another kind than our fields is no field."""
    verdicts = judge(receipt, found(seller="Corner Shop", issue_date="2018-03-20"), xml_counts=False)

    assert verdicts == {"seller": Verdict.RIGHT, "issue_date": Verdict.WRONG}
    assert judge(receipt, {}, xml_counts=True)["total"] is Verdict.MISSING


def test_a_blank_templates_fields_are_to_stay_empty(receipt: Entry) -> None:
    """A placeholder that becomes a value is wrong, not a find."""
    blank = replace(receipt, truth={}, is_template=True)

    verdicts = judge(blank, {**found(governing_law="[STATE]"), "parties": []}, xml_counts=False)

    assert verdicts["governing_law"] is Verdict.WRONG
    assert verdicts["parties"] is Verdict.RIGHT
    assert verdicts["agreement_date"] is Verdict.RIGHT


@pytest.mark.parametrize(
    ("read", "verdict"),
    [
        (["N2K, Inc.", "Excite Inc."], Verdict.RIGHT),
        (["Excite, Inc."], Verdict.MISSING),
        (["Excite, Inc.", "N2K, Inc.", "Delaware"], Verdict.WRONG),
    ],
)
def test_parties_are_right_when_all_are_there_and_no_others(receipt: Entry, read: list[str], verdict: Verdict) -> None:
    """One party too many misleads more than one too few."""
    two = replace(receipt, truth={"parties": ["Excite, Inc.", "N2K, Inc."]}, truth_checks=None)

    assert judge(two, {"parties": [{"value": name} for name in read]}, xml_counts=False) == {"parties": verdict}


def test_figures_keep_the_parts_and_variants_apart() -> None:
    """What rules were made with must not lend its figures to what they were not."""
    text = {"words": 4, "recall": 0.5, "precision": 1.0, "character_error": 0.2}
    records = [
        record(text=text, pages=2, seconds=4.0, fields={"total": "right"}),
        record(id="receipt-2", part="held_out", fits=False, fields={"total": "wrong"}),
        record(id="receipt-1/without_xml", variant="without_xml", fields={"total": "missing"}),
    ]

    receipts = by_kind(records)["receipt"]
    held_out = by_field(records, Part.HELD_OUT)["receipt", "total"]

    assert (receipts.documents, receipts.fitting, receipts.recall) == (2, 1, 0.5)
    assert receipts.pages_per_second == 0.5
    assert (held_out.total, held_out.rate(Verdict.WRONG)) == (1, 1.0)
    assert by_field(records)["receipt", "total"].total == 3


def test_a_later_run_says_what_is_better_and_worse() -> None:
    """A wrong value is worse than a missing one."""
    earlier = {"outcome": "ok-ocr", "fits": True, "text": None, "fields": {"total": "missing", "seller": "wrong"}}
    now = record(outcome="timeout", fits=False, fields={"total": "wrong", "seller": "right", "iban": "right"})

    changes = compare([{"id": "receipt-1", **earlier}, {"id": "gone", **earlier}], [now])

    assert {(change.what, change.is_better) for change in changes} == {
        ("outcome", False),
        ("total", False),
        ("seller", True),
    }


def test_the_report_names_every_document_that_went_wrong() -> None:
    """A share of 99 % helps nobody who has to find the one."""
    console = Console(width=200, record=True, file=io.StringIO())
    records = [record(), record(id="odd-1", outcome="internal_error", fits=False, code="internal_error")]

    report.show(console, records, 1.0, {f"{exposition.PEAK}/extract.ocr": 300 * report.MIB})

    text = console.export_text()
    assert "odd-1: ok-ocr expected, internal_error got" in text
    assert "1 of 2 as may be" in text
    assert "extract.ocr 300 MiB" in text


def test_what_a_system_counts_is_told_as_what_the_run_added() -> None:
    """Counts go back to the start of the processes, peaks are as they are."""
    before = {f"{exposition.PEAK}/a": 5.0, "docstage_child_kills_total/memory": 2.0}
    after = {f"{exposition.PEAK}/a": 7.0, "docstage_child_kills_total/memory": 3.0, "docstage_takeovers_total/x": 0.0}

    assert exposition.changes(before, after) == {f"{exposition.PEAK}/a": 7.0, "docstage_child_kills_total/memory": 1.0}


def test_every_hostile_document_is_told_with_its_code_and_cost() -> None:
    """That it ended as it may says nothing of what it cost."""
    console = Console(width=200, record=True, file=io.StringIO())
    bomb = record(id="bomb-1", kind="hostile", outcome="bomb", code="memory_limit", seconds=1.5, attempts=2)
    bomb.peak_bytes = 300 * report.MIB

    report.show(console, [record(), bomb], 1.0, {})

    (line,) = [line for line in console.export_text().splitlines() if "bomb-1" in line]
    assert [cell.strip() for cell in line.strip("│").split("│")] == [
        "bomb-1", "bomb", "memory_limit", "2", "1.50", "300 MiB",
    ]  # fmt: skip


def test_the_memory_of_one_job_is_what_its_calls_added() -> None:
    """Lanes count apart, and what ran before counts for nothing."""
    before = {f"{exposition.CALL}_sum/ocr": 500.0, f"{exposition.CALL}_count/ocr": 5.0}
    after = {
        f"{exposition.CALL}_sum/ocr": 700.0,
        f"{exposition.CALL}_count/ocr": 7.0,
        f"{exposition.CALL}_sum/validate": 40.0,
        f"{exposition.CALL}_count/validate": 1.0,
    }

    assert exposition.peak_of_one(before, after) == 100
    assert exposition.peak_of_one(after, after) is None


def test_the_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sets a variable means it."""
    file = tmp_path / "docstage.env"
    file.write_text("# written by make run\nDOCSTAGE_URL='http://file'\nDOCSTAGE_API_KEY=ds_file\n")
    monkeypatch.setenv("DOCSTAGE_URL", "http://set")
    monkeypatch.delenv("DOCSTAGE_API_KEY", raising=False)

    settings = environment(file)

    assert (settings["DOCSTAGE_URL"], settings["DOCSTAGE_API_KEY"]) == ("http://set", "ds_file")
