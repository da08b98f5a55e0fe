"""Clean text, language, sentences and summaries."""

import subprocess
import sys

import pytest

from schema.wire.results import NormalizedDocument
from stages.fields.cleaning import clean_text
from stages.fields.engine import normalize
from stages.fields.language import detect_language
from stages.fields.sentences import sentences
from tests.support.extracted import document, drawn_page, text_page

NUMBERS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"),
    *("ninth", "tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth"),
)


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("e\u0301t\u00e9", "\u00e9t\u00e9"),
        ("o\ufb03ce \ufb01le", "office file"),
        ("docu\u00ad\nment", "document"),
        ("docu-\nment", "document"),
        ("docu\ufffe\nment", "document"),
        ("Anglo-\nAmerican", "Anglo-American"),
        ("Ein-\nund Ausgang", "Ein- und Ausgang"),
        ("pages 3-\n4", "pages 3-\n4"),
        ("a\x00b\x07c\ud800d", "abcd"),
        ("one\u00a0two  three", "one two three"),
        ("first\r\nline\n\n\n\nnext paragraph", "first\nline\n\nnext paragraph"),
        ("left  \t right", "left\tright"),
    ],
)
def test_text_is_cleaned_of_how_it_was_typeset_and_keeps_its_paragraphs(raw, clean):
    """What a person would copy from the page, not what the typesetter left in the file."""
    assert clean_text(raw) == clean


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Sehr geehrte Damen und Herren, wir danken f\u00fcr Ihren Auftrag und liefern wie folgt.", "de"),
        ("Nous vous remercions de votre commande et vous prions de trouver la facture ci-jointe.", "fr"),
        ("We thank you for your order and enclose the invoice for the goods delivered.", "en"),
        ("17.50 3004 AB-12", None),
        ("", None),
    ],
)
def test_the_language_is_told_or_left_open(text, language):
    """A few numbers have no language; saying one would be a guess."""
    assert detect_language([text]) == language


def test_a_text_that_the_detector_refuses_still_has_a_language():
    """One noncharacter in a hostile file must not cost the whole text its language, nor raise."""
    text = "We thank you for your order \ufdd0\uffff and enclose <b the invoice for the goods. \x01"

    assert detect_language([text]) == "en"


def test_one_requested_language_is_taken_where_the_text_does_not_tell():
    """The client may know what a page of numbers does not say."""
    assert detect_language(["471102"], ["deu"]) == "de"
    assert detect_language(["471102"], ["deu", "eng"]) is None


def test_an_abbreviation_or_an_ordinal_ends_no_sentence():
    """Sentences are quoted in summaries: a torn one misleads."""
    text = "Dr. Smith met Acme Inc. on Oct. 11, 1996. It cost 3.50 euros. Am 3. Mai war Schluss."

    assert [text[start:end] for start, end in sentences(text, 0, len(text))] == [
        "Dr. Smith met Acme Inc. on Oct. 11, 1996.",
        "It cost 3.50 euros.",
        "Am 3. Mai war Schluss.",
    ]


def test_kind_text_gives_every_page_its_clean_text():
    """The plainest kind has no section of its own."""
    result = normalize({"document": document(text_page("A \ufb01ne day.")), "kind": "text", "languages": []})

    checked = NormalizedDocument.model_validate(result)
    assert checked.pages[0].text == "A fine day."
    assert (checked.invoice, checked.contract, checked.summary) == (None, None, None)


def test_kind_text_loads_no_parser_and_no_model():
    """Tiny texts come at several hundred a second through fresh children; what they do not need costs them."""
    program = (
        "import sys; from stages.fields.engine import normalize;"
        "normalize({'document': {'pages': [{'number': 1, 'source': 'text', 'text': 'Hello'}]}, 'kind': 'text'});"
        "print([name for name in ('pydantic', 'lxml', 'stdnum', 'decimal') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603

    assert done.stdout.strip() == "[]"


def _report(*sentences_, number):
    head = f"Quarterly report of Example Works - confidential - page {number}"
    return drawn_page(head, "", *sentences_, "", f"{number}", number=number)


def test_a_summary_quotes_whole_sentences_with_their_place_and_no_header():
    """Headers and page numbers say nothing, and a quote must be found again."""
    pages = (
        _report("The new press raised the output of the plant by a third.", number=1),
        _report("Customers asked for the new press more often than expected.", number=2),
        _report("The plant will order a second press in the coming year.", number=3),
    )

    summary = normalize({"document": document(*pages), "kind": "summary"})["summary"]

    assert [each["page"] for each in summary["sentences"]] == [1, 2, 3]
    assert "confidential" not in summary["text"]
    assert all(0 <= edge <= 1 for each in summary["sentences"] for edge in each["box"])


@pytest.mark.parametrize("wanted", [1, 2, 12])
def test_a_summary_has_as_many_sentences_as_are_asked_for(wanted):
    """One line for a list, half a page for a reader."""
    told = [f"The {number} press of the plant raised the output in the {number} year." for number in NUMBERS]
    pages = [_report(*told[place : place + 5], number=place // 5 + 1) for place in range(0, len(told), 5)]

    asked = {"document": document(*pages), "kind": "summary", "sentences": wanted}

    assert len(normalize(asked)["summary"]["sentences"]) == wanted


@pytest.mark.parametrize(
    "notice",
    [
        "This email and any attachments are confidential and intended for the addressee alone.",
        "If you are not the intended recipient, the press of the plant must delete this report.",
        "Copyright of the plant and of its press, all rights reserved in every country.",
        "Please consider the environment of the plant before you print this report.",
        "Diese E-Mail enthält vertrauliche Informationen über die Presse des Werks.",
        "Dieses Schreiben wurde maschinell erstellt und ist ohne Unterschrift gültig.",
        "Ce message et ses pièces jointes sont confidentiels et destinés au seul destinataire.",
    ],
)
def test_a_summary_leaves_out_what_stands_under_every_mail(notice):
    """It comes back in every document, and would be the first thing to be chosen by its words."""
    matter = "The new press raised the output of the plant by a third."
    text = f"{matter}\n\n{notice}\n"

    summary = normalize({"document": document(text_page(text)), "kind": "summary"})["summary"]

    assert [each["text"] for each in summary["sentences"]] == [matter]


@pytest.mark.parametrize(
    "matter",
    [
        "The duties of confidentiality outlive the sale of the plant by three years.",
        "Die Berichte der Presse werden nachts automatisch erstellt und im Werk verteilt.",
        "Reports about the press are automatically generated by the plant each night.",
    ],
)
def test_a_summary_keeps_what_only_speaks_of_such_matters(matter):
    """A contract about secrets or a manual about reports is summed up like any other."""
    summary = normalize({"document": document(text_page(f"{matter}\n")), "kind": "summary"})["summary"]

    assert summary["text"] == matter


def test_a_text_without_blanks_is_summed_up():
    """Japanese ends a sentence with a mark of its own, breaks lines anywhere and puts nothing between words."""
    first = "新しい印刷機は工場の生産量を三割も増やした。"
    second = "顧客は新しい印刷機を予想よりも頻繁に求めた！"  # noqa: RUF001 - the mark of Japanese
    text = f"四半期報告\n\n{first}{second[:10]}\n{second[10:]}\n"

    summary = normalize({"document": document(text_page(text)), "kind": "summary"})["summary"]

    assert [each["text"] for each in summary["sentences"]] == [first, second]


def test_a_document_without_sentences_has_an_empty_summary():
    """A price list cannot be summed up by quoting it."""
    summary = normalize({"document": document(text_page("Bolts\t12\nNuts\t30")), "kind": "summary"})["summary"]

    assert summary == {"text": "", "sentences": []}


@pytest.mark.parametrize("kind", ["summary", "contract"])
def test_what_is_too_long_to_be_read_whole_is_named_with_its_pages(kind):
    """A clause behind the end of what is read would else be taken for one that is not there."""
    long = "The press of the plant is new and it is loud.\n" * 5_000
    pages = [text_page(long, number=number) for number in (1, 2, 3)]

    result = normalize({"document": document(*pages), "kind": kind})

    assert result["warnings"] == [{"code": "text_cut", "pages": [2, 3]}]


def test_what_is_read_whole_has_no_warning():
    """A warning on every long document would be read by nobody."""
    page = text_page("The press of the plant is new and it is loud.\n" * 5_000)

    assert normalize({"document": document(page), "kind": "contract"})["warnings"] == []
