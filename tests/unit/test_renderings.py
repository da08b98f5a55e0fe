"""A result as text, Markdown, CSV and JSON."""

import csv
import io

from schema.wire.renderings import as_csv, as_json, as_markdown, as_text
from schema.wire.results import Result


def _field(value, **more):
    return {"value": value, "confidence": 0.9, "page": 1, "box": None, "evidence": None, **more}


def _result(kind="invoice", **sections):
    return {
        "version": 1,
        "job_id": "00000000-0000-0000-0000-000000000001",
        "kind": kind,
        "pages": [
            {"number": 1, "source": "text", "confidence": None, "text": "one"},
            {"number": 2, "source": "text", "confidence": None, "text": "two"},
        ],
        "warnings": [],
        "invoice": None,
        "contract": None,
        "summary": None,
        **sections,
    }


def _invoice(**fields):
    return {"seller": None, "total": None, "taxes": [], "lines": [], **fields}


def _csv_rows(result):
    return list(csv.reader(io.StringIO(as_csv(result), newline="")))[1:]


def test_json_has_text_only_when_asked_for():
    """Results are fetched often and mostly for their fields."""
    result = _result(invoice=_invoice())

    assert "text" not in as_json(result, include_text=False)
    assert all("text" not in page for page in as_json(result, include_text=False)["pages"])
    assert as_json(result, include_text=True)["text"] == "one\n\f\ntwo"


def test_kind_text_always_has_its_text():
    """It is what was asked for."""
    assert as_json(_result("text"), include_text=False)["pages"][1]["text"] == "two"
    assert as_text(_result("text")) == "one\n\f\ntwo"


def test_json_is_in_the_order_in_which_people_read_it():
    """PostgreSQL keeps the keys of JSON by their length, at every depth."""
    whole = Result.model_validate(
        _result(
            "contract",
            engine="rules-1",
            contract={"title": _field("Lease"), "parties": [_field("Acme", role="Lessor")]},
        )
    )
    stored = _as_jsonb_keeps_it(whole.model_dump(mode="json"))

    shown = as_json(stored, include_text=True)

    assert next(iter(stored)) != "version"
    assert list(shown)[:6] == ["version", "job_id", "kind", "language", "engine", "pages"]
    assert list(shown)[-1] == "text"
    assert list(shown["pages"][0]) == ["number", "source", "confidence", "text"]
    assert list(shown["contract"])[:3] == ["title", "contract_type", "parties"]
    assert list(shown["contract"]["title"]) == ["value", "confidence", "page", "box", "evidence"]
    assert list(shown["contract"]["parties"][0])[:3] == ["value", "role", "confidence"]
    assert {**shown, "text": None} == {**stored, "text": None}


def _as_jsonb_keeps_it(value):
    if isinstance(value, list):
        return [_as_jsonb_keeps_it(each) for each in value]
    if isinstance(value, dict):
        return {key: _as_jsonb_keeps_it(value[key]) for key in sorted(value, key=lambda key: (len(key), key))}
    return value


def test_fields_and_columns_come_in_the_order_of_the_models():
    """PostgreSQL keeps the keys of JSON by their length, which means nothing to people."""
    line = {"amount": "100.00", "quantity": "2", "unit_price": "50.00", "description": "Drill"}
    result = _result(invoice={"lines": [line], "total": _field("119.00"), "buyer": None, "seller": _field("Acme")})

    fields = [row[0] for row in _csv_rows(result)]
    markdown = as_markdown(result)

    columns = ["description", "quantity", "unit_price", "amount"]
    assert fields == ["seller", "buyer", "total", *(f"lines[0].{column}" for column in columns)]
    assert markdown.index("| Seller |") < markdown.index("| Buyer |") < markdown.index("| Total |")
    assert "| Description | Quantity | Unit price | Amount |" in markdown


def test_csv_has_a_row_for_every_value_and_an_empty_one_for_the_unknown():
    """One shape for every kind, so that a spreadsheet can be filled from it."""
    line = {"description": "Drill", "quantity": "2", "unit_price": None, "amount": "100.00"}
    rows = _csv_rows(_result(invoice=_invoice(total=_field("-17.50"), lines=[line])))

    assert rows == [
        ["seller", "", "", ""],
        ["total", "-17.50", "0.9", "1"],
        ["lines[0].description", "Drill", "", ""],
        ["lines[0].quantity", "2", "", ""],
        ["lines[0].amount", "100.00", "", ""],
    ]


def test_no_value_becomes_a_formula_in_a_spreadsheet():
    """The seller's name is written by a stranger."""
    for value in ("=HYPERLINK(1)", "+1+1", "-2+3", "@SUM(A1)", "\t=1"):
        rows = _csv_rows(_result(invoice=_invoice(seller=_field(value))))

        assert rows[0][1] == f"'{value}"


def test_markdown_shows_fields_lines_parties_and_warnings():
    """People read it in an e-mail or a pull request."""
    contract = {"title": _field("LEASE"), "parties": [_field("A, Inc.", role="Landlord")], "obligations": []}
    shown = as_markdown(_result("contract", contract=contract, warnings=[{"code": "page_failed", "pages": [3]}]))

    assert "| Title | LEASE | 0.90 | 1 |" in shown
    assert "| A, Inc. | Landlord | 1 |" in shown
    assert "- `page_failed` (p. 3)" in shown


def test_no_value_becomes_markup():
    """A name must not break the table, nor load a picture."""
    shown = as_markdown(_result(invoice=_invoice(seller=_field("a|b <img src=x>\n![x](http://x)"))))

    assert r"a\|b &lt;img src=x\> !\[x\](http://x)" in shown


def test_a_summary_is_a_list_of_quotes_with_pages():
    """Each sentence can be found again."""
    summary = {"text": "So it is.", "sentences": [{"text": "So it is.", "page": 2, "box": None}]}

    assert "- So it is. (p. 2)" in as_markdown(_result("summary", summary=summary))
    assert _csv_rows(_result("summary", summary=summary)) == [["sentences[0]", "So it is.", "", "2"]]
