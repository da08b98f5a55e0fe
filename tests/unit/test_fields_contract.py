"""Contracts read from their opening sentence and their clauses."""

import pytest

from schema.wire.results import NormalizedDocument
from stages.fields.engine import normalize
from tests.support.extracted import document, drawn_page, text_page

AGREEMENT = """Exhibit 10.22

SOFTWARE LICENSE AGREEMENT

This Software License Agreement (this "Agreement") is entered into as of the 23rd day of September,
1997 (the "Effective Date") by and between Northwind Systems, Inc., a Delaware corporation ("Licensor"), and
HARBOR LIGHTS LLC, a Washington limited liability company (the "Licensee").

WHEREAS, Licensor owns certain software;

1. Term. The term of this Agreement shall be for a period of two (2) years and shall continue until September 23,
1999. The Agreement shall automatically renew for successive one-year periods unless either party gives 60 days
written notice.

2. Fees. Licensee shall pay the fees set out in Exhibit A.

3. Termination. Either party may terminate this Agreement upon a material breach by the other party.

4. Governing Law. This Agreement shall be governed by and construed in accordance with the laws of the State of New
York, without regard to conflicts of law.
"""
TEMPLATE = """Mutual Non-Disclosure Agreement

This Agreement is made as of [Date] by and between [Company Name], a ____ corporation, and {party_2_name}.

The law of this Agreement: it is governed by the laws of the State of {governing_law}.
"""


def _read(*pages):
    result = normalize({"document": document(*pages), "kind": "contract", "languages": []})
    NormalizedDocument.model_validate(result)
    return result["contract"]


def _value(contract, name):
    return contract[name] and contract[name]["value"]


def test_the_opening_sentence_tells_title_parties_and_dates():
    """Names and dates go over the ends of lines."""
    contract = _read(text_page(AGREEMENT))

    assert _value(contract, "title") == "SOFTWARE LICENSE AGREEMENT"
    assert _value(contract, "contract_type") == "license"
    assert [(party["value"], party["role"]) for party in contract["parties"]] == [
        ("Northwind Systems, Inc.", "Licensor"),
        ("HARBOR LIGHTS LLC", "Licensee"),
    ]
    assert _value(contract, "agreement_date") == "1997-09-23"
    assert _value(contract, "effective_date") == "1997-09-23"
    assert _value(contract, "expiration_date") == "1999-09-23"


def test_the_clauses_tell_term_law_and_duties():
    """What the parties will ask the system about later."""
    contract = _read(text_page(AGREEMENT))

    assert _value(contract, "term") == "two (2) years"
    assert _value(contract, "renewal_term") == "successive one-year"
    assert _value(contract, "notice_period") == "60 days"
    assert _value(contract, "governing_law") == "New York"
    assert _value(contract, "termination").startswith("Either party may terminate this Agreement")
    assert [each["value"] for each in contract["obligations"]] == ["Licensee shall pay the fees set out in Exhibit A."]


def test_what_a_template_leaves_open_is_unknown():
    """``[Company Name]`` is nobody."""
    contract = _read(text_page(TEMPLATE))

    assert _value(contract, "title") == "Mutual Non-Disclosure Agreement"
    assert contract["parties"] == []
    assert all(
        contract[name] is None
        for name in ("agreement_date", "effective_date", "expiration_date", "governing_law", "notice_period")
    )


@pytest.mark.parametrize(
    "gap", ["[30]", "{days}", "____", "......", ". . . . . ", "<number>", "«NOTICE_DAYS»", "XX", "(insert)"]
)
def test_a_termination_that_is_still_to_be_filled_in_is_unknown(gap):
    """A period that nobody has agreed on yet would be relied on."""
    text = f"Supply Agreement\n\nEither party may terminate this Agreement upon {gap} days of notice.\n"

    assert _read(text_page(text))["termination"] is None


@pytest.mark.parametrize(
    "clause",
    [
        "Either party may terminate this Agreement under Article XX at any time.",
        "Le Client peut demander la résiliation si le «Prestataire» est en retard.",
        "Either party may terminate this Agreement if usage is < 5 or > 10 units.",
        "Either party may terminate this Agreement if fees (amount and date as invoiced) are unpaid.",
    ],
)
def test_what_only_looks_like_a_gap_is_none(clause):
    """Roman numbers, quotation marks and signs of comparison are part of what was agreed."""
    assert _value(_read(text_page(f"Supply Agreement\n\n{clause}\n")), "termination") == clause


@pytest.mark.parametrize(
    "name", ["COMPANY NAME, Inc.", "Your Company LLC", "INSERT NAME Ltd", "XXX Corp", "Name of Client, Inc."]
)
def test_words_that_stand_for_a_name_are_nobody(name):
    """An uppercase label with a legal form is set like a name, and is none."""
    text = f"Supply Agreement\n\nThis Agreement is made between {name} and Alder Cloud GmbH.\n"

    assert name not in [party["value"] for party in _read(text_page(text))["parties"]]


@pytest.mark.parametrize("law", ["INSERT STATE", "YOUR STATE"])
def test_words_that_stand_for_a_place_are_no_law(law):
    """The same goes for whose laws govern."""
    text = f"Supply Agreement\n\nThis Agreement is governed by the laws of {law}.\n"

    assert _read(text_page(text))["governing_law"] is None


def test_fields_of_a_drawn_page_have_a_page_and_a_box():
    """A lawyer wants to see the sentence."""
    law = _read(drawn_page(*AGREEMENT.split("\n")))["governing_law"]

    assert law["page"] == 1
    assert law["box"] is not None
    assert "laws of the State of New York" in law["evidence"]


def test_a_german_contract_is_read_in_german():
    """Vertr\u00e4ge have a Laufzeit and a K\u00fcndigungsfrist."""
    text = (
        "Wartungsvertrag\n\nzwischen Muster Werkzeuge GmbH (nachfolgend \u201eAuftraggeber\u201c) und "
        "Beispiel Dienste AG (nachfolgend \u201eAuftragnehmer\u201c).\n\n"
        "Die Laufzeit betr\u00e4gt zwei Jahre. Die K\u00fcndigungsfrist betr\u00e4gt drei Monate.\n\n"
        "Es gilt das Recht der Bundesrepublik Deutschland.\n"
    )

    contract = _read(text_page(text))

    assert [party["role"] for party in contract["parties"]] == ["Auftraggeber", "Auftragnehmer"]
    assert _value(contract, "term") == "zwei Jahre"
    assert _value(contract, "notice_period") == "drei Monate"
    assert _value(contract, "governing_law") == "Bundesrepublik Deutschland"


def test_a_notice_period_is_not_how_long_a_renewal_takes():
    """Both stand in one sentence, and the first is the longer one."""
    text = (
        "Maintenance Agreement\n\nThis Agreement is made on 15 January 2026 between Alder Ltd and Birch GmbH.\n\n"
        "It renews for periods of one year unless either party gives notice of non-renewal at least 90 days before "
        "the end of the current term.\n"
    )
    contract = normalize({"document": document(text_page(text)), "kind": "contract"})["contract"]

    assert contract["renewal_term"]["value"] == "one year"
    assert contract["notice_period"]["value"] == "90 days"


def _contract(text):
    return _read(text_page(text))


def _parties(contract):
    return [(party["value"], party["role"]) for party in contract["parties"]]


def test_a_form_names_the_party_that_the_sentence_sends_to_it_for():
    """Standard terms name the house; who signs them is filled in below."""
    contract = _contract(
        "Data Licence Agreement\n\nThis Agreement is between Fairwind Data, Inc. (“Fairwind”) and Distributor, as "
        "set forth "
        "below, and describes the terms.\n\nDistributor Information\n\nProvider Name: Kestrel Networks Ltd.\n\n"
        "Business Contact: Name: Jane Roe\n"
    )

    assert _parties(contract) == [("Fairwind Data, Inc.", "Fairwind"), ("Kestrel Networks Ltd.", "Distributor")]


def test_a_form_may_name_both_parties_beside_or_under_their_roles():
    """Cover pages are tables and forms, with labels left of the values or over them."""
    form = drawn_page(
        "Service Agreement",
        "",
        "Provider:                    Alder Cloud GmbH, Hauptstr. 1, Berlin",
        "Customer legal name          Birch Retail LLC",
        "Date:                        3 May 2024",
    )
    stacked = "Order Form\n\nSupplier\nAlder Cloud GmbH\n\nName of the Customer\nBirch Retail LLC\n"

    assert _parties(_read(form)) == [("Alder Cloud GmbH", "Provider"), ("Birch Retail LLC", "Customer")]
    assert _parties(_contract(stacked)) == [("Alder Cloud GmbH", "Supplier"), ("Birch Retail LLC", "Customer")]


def test_an_unfilled_form_names_nobody():
    """A label without a name, a placeholder or a department is no party."""
    contract = _contract(
        "Service Agreement\n\nThis Agreement is between Fairwind Data, Inc. and the customer identified below.\n\n"
        "Customer Name: ____________\n\nProvider: [Provider Legal Name]\n\nCustomer: Accounts Payable\n"
    )

    assert contract["parties"] == []


def test_where_a_company_sits_is_no_part_of_its_name():
    """``Ltd HK`` is a Limited in Hong Kong."""
    contract = _contract(
        "Maintenance Agreement\n\nThis Agreement is entered into as of May 4, 2021, between Rowan Act Ltd HK "
        "(“Rowan”), and "
        "Larch & Co. KG (“Larch”).\n"
    )

    assert _parties(contract) == [("Rowan Act Ltd", "Rowan"), ("Larch & Co. KG", "Larch")]


def test_signatures_date_a_contract_that_says_no_other_date():
    """In the block, the last signature is what an effective date may be said to depend on."""
    text = (
        "Service Agreement\n\nThis Agreement is between Alder Inc. (“Alder”) and Birch LLC (“Birch”). "
        "It is effective as of the last date signed below.\n\n" + "Alder shall deliver. " * 150 + "\n\n"
        "Agreed and accepted:\n\nAlder Inc.\nBy: /s/ J. Roe\nDate: {}\n\nBirch LLC\nBy: /s/ R. Poe\nDate: "
        "{}\n\nBoston, MA 02110\n"
    )
    agreeing, differing = (
        _contract(text.format("3/4/2022", "3/4/2022")),
        _contract(text.format("3/4/2022", "3/14/2022")),
    )

    assert (_value(agreeing, "agreement_date"), _value(agreeing, "effective_date")) == ("2022-03-04", "2022-03-04")
    assert (_value(differing, "agreement_date"), _value(differing, "effective_date")) == (None, "2022-03-14")


def test_an_unsigned_contract_has_no_date():
    """A line to write on, and a date of something else on the last page."""
    contract = _contract(
        "Service Agreement\n\nThis Agreement is between Alder Inc. (“Alder”) and Birch LLC (“Birch”). It is "
        "effective as of the "
        "last date signed below. The price list of 1 March 2022 applies.\n\nBy: ______ Date: ______\n"
    )

    assert (contract["agreement_date"], contract["effective_date"]) == (None, None)


def test_a_german_and_a_french_contract_are_signed_at_a_place():
    """``Hamburg, den …`` and ``Fait à …, le …`` stand over the signatures."""
    filler = "Der Anbieter erbringt die Leistung. " * 100
    german = _contract(
        "Mietvertrag\n\nzwischen Alder GmbH (nachfolgend „Vermieter“) und Birch AG (nachfolgend „Mieter“).\n\n"
        f"{filler}\n\nHamburg, den 12.03.2024\n\nUnterschrift Vermieter    Unterschrift Mieter\n"
    )
    french = _contract(
        "Contrat de prestation\n\nEntre les soussignés : Alder SARL (ci-après « le Prestataire ») et Birch SAS "
        f"(ci-après « le Client »).\n\n{filler}\n\nFait à Lyon, le 3 avril 2023, en deux exemplaires.\n"
    )

    assert _value(german, "agreement_date") == "2024-03-12"
    assert _value(french, "agreement_date") == "2023-04-03"


def test_a_term_that_begins_on_a_known_day_ends_on_one():
    """The end is worked out, says so by its confidence, and shows the term as its evidence."""
    contract = _contract(
        "Development Agreement\n\nThis Agreement is made effective as of 31 August 2023 (the “Effective Date”) by "
        "and between "
        "Alder Inc. (“Alder”) and Birch LLC (“Birch”).\n\nThe initial term of this Agreement shall commence on the "
        "Effective "
        "Date and continue for a period of six (6) months, unless terminated earlier.\n"
    )

    assert _value(contract, "term") == "six (6) months"
    assert _value(contract, "expiration_date") == "2024-02-29"
    assert contract["expiration_date"]["confidence"] < contract["effective_date"]["confidence"]
    assert "six (6) months" in contract["expiration_date"]["evidence"]


def test_what_outlives_a_contract_is_not_its_term():
    """Confidence for two more years, three years of records and a warranty end something else."""
    contract = _contract(
        "Service Agreement\n\nThis Agreement is made on 1 May 2020 (the “Effective Date”) between Alder Inc. "
        "(“Alder”) and "
        "Birch LLC (“Birch”).\n\nDuring the term of this Agreement and for a period of two (2) years after its "
        "termination "
        "neither party shall tell. Birch shall keep records for a period of three (3) years following the period "
        "reported. "
        "This Agreement shall be read with a warranty of one year from delivery.\n"
    )

    assert (contract["term"], contract["expiration_date"]) == (None, None)


def test_the_date_hereof_is_the_date_of_the_agreement():
    """A term that begins with it is as good as dated."""
    contract = _contract(
        "Service Agreement\n\nThis Agreement is made as of June 2, 2020 between Alder Inc. (“Alder”) and Birch LLC "
        "(“Birch”).\n\n"
        "The term will begin on the date hereof and continue for three (3) years.\n"
    )

    assert _value(contract, "effective_date") == "2020-06-02"
    assert _value(contract, "expiration_date") == "2023-06-02"


def test_a_breach_ends_a_contract_sooner_than_a_notice_does():
    """Fifteen days to terminate for cause say nothing of how to stop a renewal."""
    contract = _contract(
        "Service Agreement\n\nAfter the trial Alder may elect to terminate this Agreement upon fifteen days written "
        "notice to "
        "Birch, unless Birch lets the trial expire.\n"
    )

    assert contract["notice_period"] is None


def test_the_law_may_be_named_by_its_courts_or_as_an_adjective():
    """Only under a heading that asks for it; courts alone are a venue."""
    heading = (
        "Service Agreement\n\n13. GOVERNING LAW\n\nAny lawsuit may be brought in a Federal Court located in the {}.\n"
    )
    venue = (
        "Service Agreement\n\n13. VENUE\n\nLawsuits may be brought in a Federal Court located in the State of Ohio.\n"
    )

    assert _value(_contract(heading.format("Commonwealth of Virginia")), "governing_law") == "Virginia"
    assert _contract(venue)["governing_law"] is None
    assert _value(_contract("Terms\n\nThis Agreement is governed by English law.\n"), "governing_law") == "English"


def test_a_right_is_no_obligation():
    """What a party may do, gets or owns is not what it owes."""
    contract = _contract(
        "Service Agreement\n\nThis Agreement is made on 1 May 2020 between Alder Inc. (“Alder”) and Birch LLC "
        "(“Birch”).\n\n"
        "Alder shall have the right to audit. Birch shall be entitled to a refund. Alder will own the results. "
        "Birch shall pay ------ within 30 days. Alder shall not disclose the results.\n"
    )

    assert [each["value"] for each in contract["obligations"]] == [
        "Birch shall pay within 30 days.",
        "Alder shall not disclose the results.",
    ]
