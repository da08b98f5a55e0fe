"""Invoices and receipts read from where things stand."""

from pathlib import Path

import pytest

from schema.domain.limits import DocumentLimits
from schema.domain.options import JobOptions
from schema.wire.results import NormalizedDocument
from stages.child.call import Call
from stages.child.extraction import extract
from stages.fields.engine import normalize
from tests.support.extracted import document, drawn_page, text_page

SAMPLE = Path(__file__).parents[2] / "deploy/samples/invoice.pdf"
GERMAN = (
    "Muster Werkzeuge GmbH - Hafenweg 4 - 20457 Hamburg",
    "",
    "Beispiel Bau AG                                        Rechnung",
    "Lange Gasse 12                                         Rechnungsnummer   RE-2024-0815",
    "80331 M\u00fcnchen                                          Rechnungsdatum    05.03.2024",
    "                                                       F\u00e4llig am         04.04.2024",
    "",
    "Pos   Beschreibung              Menge    Einzelpreis      Betrag",
    "1     Bohrhammer                2        1.250,00         2.500,00",
    "2     Schutzbrille              4        12,50            50,00",
    "",
    "      Nettobetrag                                         2.550,00 \u20ac",
    "      MwSt. 19 %                                          484,50 \u20ac",
    "      Gesamtbetrag                                        3.034,50 \u20ac",
    "",
    "USt-IdNr. DE136695976    IBAN DE08 7009 0100 1234 5678 90",
)
RECEIPT = (
    "     CORNER COFFEE SHOP",
    "     12 HIGH STREET",
    "     Date: 21/09/2017  10:20",
    "2 Espresso              9.90",
    "1 Cake                  0.50",
    "SUBTOTAL                9.81",
    "GST 6%                  0.59",
    "TOTAL                  10.40",
    "CASH                   50.40",
    "CHANGE                 40.00",
)


def _read(*pages):
    result = normalize({"document": document(*pages), "kind": "invoice", "languages": []})
    NormalizedDocument.model_validate(result)
    return result["invoice"], [warning["code"] for warning in result["warnings"]]


def _values(invoice):
    return {name: field["value"] for name, field in invoice.items() if isinstance(field, dict)}


def test_a_german_letter_gives_all_its_fields():
    """One layout with everything on it: address field, columns, table, sums, footer."""
    invoice, warnings = _read(drawn_page(*GERMAN))

    assert _values(invoice) == {
        "invoice_number": "RE-2024-0815",
        "issue_date": "2024-03-05",
        "due_date": "2024-04-04",
        "seller": "Muster Werkzeuge GmbH",
        "buyer": "Beispiel Bau AG",
        "seller_tax_id": "DE136695976",
        "iban": "DE08700901001234567890",
        "currency": "EUR",
        "net_total": "2550.00",
        "tax_total": "484.50",
        "total": "3034.50",
    }
    assert warnings == []


def test_lines_and_taxes_come_from_the_table_and_from_arithmetic():
    """Quantity and price are told apart by their product, a tax line by its rate."""
    invoice, _ = _read(drawn_page(*GERMAN))

    assert invoice["lines"] == [
        {"description": "Bohrhammer", "quantity": "2", "unit_price": "1250.00", "amount": "2500.00"},
        {"description": "Schutzbrille", "quantity": "4", "unit_price": "12.50", "amount": "50.00"},
    ]
    assert invoice["taxes"] == [{"rate": "19", "base": "2550.00", "amount": "484.50"}]


def test_every_field_says_where_it_was_found():
    """A person who doubts a value must be able to look it up."""
    total = _read(drawn_page(*GERMAN))[0]["total"]

    assert total["page"] == 1
    assert total["evidence"] == "Gesamtbetrag 3.034,50 \u20ac"
    assert total["box"][0] == pytest.approx(58 * 0.008)
    assert 0 < total["confidence"] <= 1


def _with_taxes(*lines):
    """Return the German letter with other tax lines; 2,000.00 are taxed by 19, 550.00 by 7 per cent."""
    tax = next(index for index, line in enumerate(GERMAN) if "MwSt." in line)
    return [line.replace("3.034,50", "2.968,50") for line in (*GERMAN[:tax], *lines, *GERMAN[tax + 1 :])]


def test_taxes_of_two_rates_are_added_up():
    """Neither of them is the invoice's tax; the sum is printed nowhere, and proven by net and total."""
    lines = _with_taxes(
        "      zzgl. 19 % MwSt.                                    380,00 \u20ac",
        "      zzgl. 7 % MwSt.                                      38,50 \u20ac",
    )

    invoice, warnings = _read(drawn_page(*lines))

    assert invoice["tax_total"]["value"] == "418.50"
    assert invoice["tax_total"]["evidence"] == "zzgl. 19 % MwSt. 380,00 \u20ac + zzgl. 7 % MwSt. 38,50 \u20ac"
    assert invoice["taxes"] == [
        {"rate": "19", "base": None, "amount": "380.00"},
        {"rate": "7", "base": None, "amount": "38.50"},
    ]
    assert warnings == []


@pytest.mark.parametrize("labels", [("19 % MwSt.", "7 % MwSt."), ("MwSt. voll", "MwSt. halb")])
def test_a_part_of_the_tax_is_not_taken_for_the_whole(labels):
    """Where the parts do not make up the difference of total and net, one is missing or misread."""
    full, reduced = (
        f"      {label:52}{amount} \u20ac" for label, amount in zip(labels, ("380,00", "33,50"), strict=True)
    )

    invoice, _ = _read(drawn_page(*_with_taxes(full, reduced)))

    assert invoice["tax_total"] is None
    assert invoice["taxes"] == []


def test_a_printed_sum_of_several_taxes_is_found():
    """A rate that stands in a column of its own, before or behind the label, makes a part all the same."""
    lines = _with_taxes(
        "      19 %     MwSt.                                      380,00 \u20ac",
        "      MwSt.    7 %                                         38,50 \u20ac",
        "      Summe MwSt.                                         418,50 \u20ac",
    )

    invoice, _ = _read(drawn_page(*lines))

    assert invoice["tax_total"]["evidence"] == "Summe MwSt. 418,50 \u20ac"
    assert [line["amount"] for line in invoice["taxes"]] == ["380.00", "38.50"]


def test_a_department_is_not_the_buyer():
    """The first line of an address is its name; what is under it is at most a part of that."""
    unknown = [line.replace("Beispiel Bau AG", "3. Beispiel    ") for line in GERMAN]
    unknown[3:3] = ["Buchhaltung"]
    named = [line.replace("3. Beispiel    ", "Wagner & Partner") for line in unknown]
    named[2:2] = ["Firma"]
    labelled = ("Rechnung an:", "Accounts Payable", "Harbour Mills", "1 Quay Street")

    assert _read(drawn_page(*unknown))[0]["buyer"] is None
    assert _read(drawn_page(*named))[0]["buyer"]["value"] == "Wagner & Partner"
    assert _read(drawn_page(*labelled))[0]["buyer"]["value"] == "Harbour Mills"


def test_the_names_of_narrow_columns_may_stand_close():
    """A number set right stands far from its neighbours, while the bold names above nearly touch."""
    page = drawn_page(
        "Pos  Bezeichnung                Menge    Einzelpreis    USt  Betrag EUR",
        "1    Bohrhammer                     2         12,50    19 %       25,00",
    )

    invoice, _ = _read(page)

    assert invoice["lines"] == [
        {"description": "Bohrhammer", "quantity": "2", "unit_price": "12.50", "amount": "25.00"}
    ]


def test_the_sample_invoice_is_read_completely():
    """It is the first document that anybody sends: two tax rates, a department, close column names."""
    pages = []
    call = Call(
        {
            "media_type": "application/pdf",
            "limits": DocumentLimits().as_json(),
            "options": JobOptions().as_json(),
            "skip": [],
            "tool_seconds": 1.0,
        },
        lambda event: pages.append(event.get("page")),
        place=Path(),
        blob=SAMPLE.read_bytes(),
    )
    extract(call)

    invoice, warnings = _read(*filter(None, pages))

    values = _values(invoice)
    assert (values["buyer"], values["net_total"]) == ("Beispiel & Partner mbB", "2090.10")
    assert (values["tax_total"], values["total"]) == ("384.56", "2474.66")
    assert [line["amount"] for line in invoice["lines"]] == ["756.00", "859.00", "275.40", "104.70", "95.00"]
    assert [tax["rate"] for tax in invoice["taxes"]] == ["19", "7"]
    assert warnings == []


def test_a_receipt_is_an_invoice():
    """Its seller is its first line, its total what was given less what came back."""
    invoice, warnings = _read(drawn_page(*RECEIPT))

    values = _values(invoice)
    assert values["seller"] == "CORNER COFFEE SHOP"
    assert (values["net_total"], values["tax_total"], values["total"]) == ("9.81", "0.59", "10.40")
    assert values["issue_date"] == "2017-09-21"
    assert "due_date" not in values
    assert warnings == []


def test_a_doubtful_scan_makes_doubtful_fields():
    """Confidence is no better than the page it was read from."""
    sure = _read(drawn_page(*RECEIPT))[0]["total"]["confidence"]
    doubtful = _read(drawn_page(*RECEIPT, confidence=0.5))[0]["total"]["confidence"]

    assert doubtful == pytest.approx(sure / 2, abs=0.001)


def test_sums_that_do_not_add_up_are_named():
    """The values stay as printed; the warning tells that one of them is wrong."""
    lines = [line.replace("3.034,50", "3.043,50") for line in GERMAN]

    invoice, warnings = _read(drawn_page(*lines))

    assert invoice["total"]["value"] == "3043.50"
    assert warnings == ["totals_disagree"]


@pytest.mark.parametrize(
    ("printed", "wrong", "code"),
    [
        ("2        1.250,00         2.500,00", "3        1.250,00         2.500,00", "lines_disagree"),
        ("1.250,00         2.500,00", "1.250,00         3.500,00", "lines_disagree"),
        (
            "      Gesamtbetrag",
            "      Zahlbetrag                                          9.999,00 \u20ac\n      Gesamtbetrag",
            "due_disagrees",
        ),
    ],
)
def test_amounts_that_do_not_make_each_other_are_named(printed, wrong, code):
    """Quantity and price, lines and sums, total and what is due: whoever pays looks at none of them twice."""
    lines = "\n".join(GERMAN).replace(printed, wrong).split("\n")

    _, warnings = _read(drawn_page(*lines))

    assert warnings == [code]


@pytest.mark.parametrize(
    "line",
    [
        "Down payment                   20.00",
        "Previous balance               20.00",
    ],
)
def test_a_due_amount_that_the_document_explains_is_no_conflict(line):
    """What was paid before or is still owed stands between the total and what is due."""
    due = "22.00" if line.startswith("Down") else "62.00"

    invoice, warnings = _read(drawn_page("Invoice 77-1", "Total   42.00", line, f"Amount due   {due}"))

    assert invoice["amount_due"]["value"] == due
    assert warnings == []


@pytest.mark.parametrize(
    "line",
    [
        "Screws             1000        0.03               33.30",  # a price rounded to cents
        "Saws               3           12.33     10%      33.29",  # less a discount
    ],
)
def test_a_price_that_is_rounded_or_reduced_makes_its_amount(line):
    """Half a cent adds up over a thousand pieces, and a discount stands in the line as a percentage."""
    header = "Description        Quantity    Price     Disc.    Amount"
    total = f"Total{line[-5:]:>50}"

    _, warnings = _read(drawn_page("Invoice 77-1", header, line, "", total))

    assert warnings == []


def test_an_iban_with_wrong_check_digits_is_unknown_and_named():
    """Money sent to a misread account is gone."""
    lines = [line.replace("DE08 7009", "DE09 7009") for line in GERMAN]

    invoice, warnings = _read(drawn_page(*lines))

    assert invoice["iban"] is None
    assert warnings == ["iban_invalid"]


def test_a_bare_dollar_sign_is_nobodys_currency():
    """It is Canada's and Australia's too; an American address decides."""
    plain = drawn_page("Invoice 77-1", "Total   $ 12.00")
    american = drawn_page("Invoice 77-1", "Fremont CA 94538", "Total   $ 12.00")

    assert _read(plain)[0]["currency"] is None
    assert _read(american)[0]["currency"]["value"] == "USD"


def test_a_page_without_an_invoice_gives_no_fields():
    """Unknown is null: a letter is not made an invoice by asking."""
    invoice, warnings = _read(text_page("Dear all,\n\nthe picnic is on Sunday. Bring a hat.\n"))

    assert _values(invoice) == {}
    assert (invoice["taxes"], invoice["lines"], warnings) == ([], [], [])


def test_plain_text_without_boxes_is_read_by_its_columns():
    """A text file has lines and gaps and nothing else."""
    invoice, _ = _read(text_page("Invoice number:  A-17\nInvoice date:  2024-02-01\nTotal  EUR 99.00\n"))

    assert _values(invoice) == {
        "invoice_number": "A-17",
        "issue_date": "2024-02-01",
        "currency": "EUR",
        "total": "99.00",
    }
    assert invoice["total"]["box"] is None


def test_lines_beyond_the_most_are_named():
    """Of a list of thousands of lines the rest is left out, and that is told."""
    lines = [f"Part {number}        1           1.00     1.00" for number in range(600)]

    invoice, warnings = _read(drawn_page("Description        Quantity    Price    Amount", *lines))

    assert len(invoice["lines"]) == 500
    assert warnings == ["text_cut"]
