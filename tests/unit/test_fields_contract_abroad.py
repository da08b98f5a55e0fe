"""Contracts as several countries draw them up: who, when, until when, under which law."""

import pytest

from schema.wire.results import NormalizedDocument
from stages.fields.engine import normalize
from tests.support.extracted import document, text_page

SERVICES_DE = """Dienstleistungsvertrag

zwischen

der Alder IT GmbH, Hafenweg 4, 20457 Hamburg, vertreten durch den Geschäftsführer Max Roe
– nachfolgend „Auftragnehmer“ genannt –

und

der Birch Handels AG, Ringstr. 4, 50667 Köln
– nachfolgend „Auftraggeber“ genannt –

wird folgender Vertrag geschlossen:

§ 1 Vertragsgegenstand
Der Auftragnehmer verpflichtet sich, die IT-Systeme des Auftraggebers zu warten. Der Auftraggeber zahlt die
vereinbarte Vergütung.

§ 2 Laufzeit und Kündigung
(1) Der Vertrag tritt am 1. Januar 2024 in Kraft und hat eine Laufzeit von 24 Monaten.
(2) Er verlängert sich jeweils um ein Jahr, wenn er nicht mit einer Frist von drei Monaten zum Ende der Laufzeit
gekündigt wird.
(3) Das Recht zur fristlosen Kündigung aus wichtigem Grund bleibt unberührt.

§ 3 Schlussbestimmungen
Es gilt deutsches Recht. Gerichtsstand ist Hamburg.

Hamburg, den 12. Dezember 2023
"""  # noqa: RUF001 - dashes as printed
LEASE_DE = """Mietvertrag über Gewerberäume

Vermieter: Alder Immobilien GmbH & Co. KG, Hafenweg 4, 20457 Hamburg
Mieter: Birch Praxis GbR, Ringstr. 4, 20457 Hamburg

§ 1 Das Mietverhältnis beginnt am 01.04.2022 und ist bis zum 31.03.2027 befristet.
§ 2 Der Mieter hat die Miete bis zum dritten Werktag zu zahlen. Der Vermieter hat die Räume instand zu halten.
§ 3 Die Kündigungsfrist beträgt sechs Monate zum Quartalsende.
§ 4 Der Vertrag unterliegt dem Recht der Bundesrepublik Deutschland.

Hamburg, 15.03.2022
"""
SERVICES_FR = """CONTRAT DE PRESTATION DE SERVICES

ENTRE LES SOUSSIGNÉES :

La société AULNE CONSEIL, SARL au capital de 10 000 euros, dont le siège social est situé 8 rue des Lilas, 69003
Lyon, ci-après dénommée « le Prestataire »,

ET

La société BOULEAU SAS, dont le siège est à Paris, ci-après dénommée « le Client »,

IL A ÉTÉ CONVENU CE QUI SUIT :

Article 1 – Objet
Le Prestataire s'engage à fournir les services décrits en annexe. Le Client s'engage à payer le prix convenu.

Article 2 – Durée
Le présent contrat entre en vigueur le 1er mars 2023 pour une durée de douze mois. Il sera renouvelé par tacite
reconduction pour des périodes successives d'un an, sauf dénonciation avec un préavis de trois mois.

Article 3 – Résiliation
Le contrat peut être résilié par lettre recommandée en cas de manquement.

Article 4 – Droit applicable
Le présent contrat est soumis au droit français.

Fait à Lyon, le 15 février 2023
"""  # noqa: RUF001 - dashes as printed
EMPLOYMENT_US = """EMPLOYMENT AGREEMENT

This Employment Agreement (the "Agreement"), dated January 5, 2022, is by and between Larch Robotics, Inc., a
Delaware corporation (the "Company"), and Jane Q. Roe, an individual residing in Ohio (the "Executive").

1. Term. The Executive's employment shall commence on February 1, 2022 (the "Start Date") and shall continue for
an initial term of three (3) years from the Start Date, unless sooner terminated. Thereafter, the term shall
automatically renew for additional one-year periods unless either party gives at least ninety (90) days' prior
written notice of non-renewal.
2. Duties. The Executive shall devote her full time to the Company. The Company shall pay the Executive a base
salary of $200,000.
3. Termination. The Company may terminate the Executive's employment at any time for Cause.
4. Governing Law. This Agreement shall be governed by, and construed under, the laws of the State of Ohio.
"""
SERVICES_UK = """THIS AGREEMENT is dated 14 September 2021

PARTIES

(1) LARKFIELD PRINT LIMITED incorporated and registered in England and Wales with company number 01234567 whose
registered office is at 14 Mill Lane, Leeds (Supplier)
(2) BIRCH RETAIL PLC incorporated and registered in Scotland with company number SC123456 whose registered
office is at 3 Market Square, York (Customer)

BACKGROUND

(A) The Supplier carries on the business of printing.

1. COMMENCEMENT AND DURATION
This agreement shall commence on 1 October 2021 and shall continue, unless terminated earlier in accordance with
clause 9, until 30 September 2023.
2. SUPPLIER'S RESPONSIBILITIES
The Supplier shall use reasonable endeavours to provide the Services. The Customer shall co-operate with the
Supplier.
9. TERMINATION
Either party may terminate this agreement by giving three months' written notice.
12. GOVERNING LAW
This agreement and any dispute shall be governed by and construed in accordance with the law of England and Wales.
"""
POLICY = """Return Policy

You may return goods until 30 June. Contact Acme Inc. with questions between Monday and Friday, or on 1 May 2024.
"""
STORY = "It was agreed between Mr. Roe and Jane Poe that the term of the lease was of no consequence on 3 May 2021."
KNOWN = {
    "german services": (
        SERVICES_DE,
        [("Alder IT GmbH", "Auftragnehmer"), ("Birch Handels AG", "Auftraggeber")],
        {"agreement_date": "2023-12-12", "effective_date": "2024-01-01", "expiration_date": "2026-01-01"}
        | {"term": "24 Monaten", "renewal_term": "ein Jahr", "notice_period": "drei Monaten"}
        | {"governing_law": "deutsches Recht"},
    ),
    "german lease": (
        LEASE_DE,
        [("Alder Immobilien GmbH & Co. KG", "Vermieter"), ("Birch Praxis GbR", "Mieter")],
        {"agreement_date": "2022-03-15", "effective_date": "2022-04-01", "expiration_date": "2027-03-31"}
        | {"term": None, "notice_period": "sechs Monate", "governing_law": "Bundesrepublik Deutschland"},
    ),
    "french services": (
        SERVICES_FR,
        [("AULNE CONSEIL, SARL", "Prestataire"), ("BOULEAU SAS", "Client")],
        {"agreement_date": "2023-02-15", "effective_date": "2023-03-01", "expiration_date": "2024-03-01"}
        | {"term": "douze mois", "renewal_term": "un an", "notice_period": "trois mois"}
        | {"governing_law": "droit français"},
    ),
    "american employment": (
        EMPLOYMENT_US,
        [("Larch Robotics, Inc.", "Company"), ("Jane Q. Roe", "Executive")],
        {"agreement_date": "2022-01-05", "effective_date": "2022-02-01", "expiration_date": "2025-02-01"}
        | {"term": "three (3) years", "renewal_term": "additional one-year", "notice_period": "ninety (90) days"}
        | {"governing_law": "Ohio"},
    ),
    "british services": (
        SERVICES_UK,
        [("LARKFIELD PRINT LIMITED", "Supplier"), ("BIRCH RETAIL PLC", "Customer")],
        {"agreement_date": "2021-09-14", "effective_date": "2021-10-01", "expiration_date": "2023-09-30"}
        | {"term": None, "renewal_term": None, "notice_period": None, "governing_law": "England and Wales"},
    ),
    "policy": (POLICY, [], {"agreement_date": None, "effective_date": None, "governing_law": None, "term": None}),
    "story": (STORY, [], {"effective_date": None, "expiration_date": None, "governing_law": None, "term": None}),
}


def _read(text):
    result = normalize({"document": document(text_page(text)), "kind": "contract", "languages": []})
    NormalizedDocument.model_validate(result)
    return result["contract"]


@pytest.mark.parametrize("name", KNOWN)
def test_what_a_contract_says_is_found_in_its_country(name):
    """Every field that is known, and null where nothing is said."""
    text, parties, known = KNOWN[name]
    contract = _read(text)

    assert [(party["value"], party["role"]) for party in contract["parties"]] == parties
    assert {field: contract[field] and contract[field]["value"] for field in known} == known


@pytest.mark.parametrize(
    ("text", "owed"),
    [
        (SERVICES_DE, ["verpflichtet sich, die IT-Systeme", "zahlt die vereinbarte Vergütung."]),
        (LEASE_DE, ["hat die Miete", "hat die Räume"]),
        (SERVICES_FR, ["s'engage à fournir", "s'engage à payer"]),
        (SERVICES_UK, ["shall use reasonable endeavours", "shall co-operate"]),
    ],
)
def test_who_owes_what_is_told_in_the_contracts_own_words(text, owed):
    """One sentence each, in their order."""
    values = [each["value"] for each in _read(text)["obligations"]]

    assert len(values) == len(owed)
    assert all(words in value for words, value in zip(owed, values, strict=True))


def test_a_clause_begins_behind_its_heading():
    """The number and the heading are not what the parties agreed."""
    termination = _read(SERVICES_UK)["termination"]["value"]

    assert termination == "Either party may terminate this agreement by giving three months' written notice."
