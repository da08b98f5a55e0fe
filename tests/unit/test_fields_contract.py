"""Contracts read from their opening sentence and their clauses."""

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
