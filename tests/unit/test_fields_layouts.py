"""Invoices whose facts stand in other places: labels over values, sums in a row, credit notes."""

import pytest

from stages.fields.invoice import read_invoice
from tests.support.extracted import drawn_page

CREDIT_MEMO = (
    "Cascade Supply LLC                              CREDIT MEMO",
    "880 Pine St                                     Credit Memo #: CM-2201",
    "Portland, OR 97204                              Date: 06/14/2024",
    "                                                Original Invoice: 4471-B",
    "Credit To:",
    "Juniper Dental LLC",
    "12 Elm Ave",
    "Salem, OR 97301",
    "",
    "Description                   Qty    Price      Amount",
    "Returned chairs               2      $100.00    ($200.00)",
    "",
    "                              Subtotal          ($200.00)",
    "                              Tax 5%             ($10.00)",
    "                              Total Credit      ($210.00)",
)
AVOIR = (
    "Aulne Conseil SARL",
    "8 rue des Lilas",
    "69003 Lyon",
    "",
    "AVOIR n° AV-2023-07                      Date : 12/06/2023",
    "Référence facture : FA-2023-118 du 09/02/2023",
    "",
    "Facturé à",
    "Bouleau SAS",
    "2 place du Marché",
    "75011 Paris",
    "",
    "Désignation        Quantité    Prix unitaire    Montant",
    "Retour manuels     -2          20,00            -40,00",
    "",
    "                   Montant HT                   -40,00 €",
    "                   TVA 5,5 %                     -2,20 €",
    "                   Montant de l'avoir TTC       -42,20 €",
)
SUMS_IN_A_ROW = (
    "Erle Bau GmbH",
    "Ringstr. 3, 01067 Dresden",
    "",
    "Kunden-Nr.     Rechnungs-Nr.    Rechnungsdatum    Leistungsdatum",
    "K-1001         R-77120          11.01.2024        05.01.2024",
    "",
    "Leistung                      Menge    EP         GP",
    "Estrich                       40 m²    25,00      1.000,00",
    "",
    "Nettobetrag      MwSt-Satz     MwSt-Betrag     Bruttobetrag",
    "1.000,00 €       19 %          190,00 €        1.190,00 €",
    "",
    "Zahlbar bis 21.01.2024 mit 2 % Skonto (1.166,20 €) oder bis 10.02.2024 netto.",
)
NUMBER_UNDER_TITLE = (
    "Weinhof Ahorn e.K.                                   Rechnung",
    "Am Berg 2                                            Nr.: 2024/105",
    "67434 Neustadt                                       vom: 02.02.2024",
    "",
    "Rechnung an:",
    "Hotel Seeblick",
    "Uferweg 1",
    "78462 Konstanz",
    "",
    "Art.                Menge    Preis     USt     Summe",
    "Wein                60       8,00      19%     480,00",
    "Traubensaft         20       3,00      7%      60,00",
    "",
    "                    Zwischensumme              540,00",
    "                    USt 19%                     91,20",
    "                    USt 7%                       4,20",
    "                    Rechnungsbetrag EUR        635,40",
)
SUBSCRIPTION = (
    "Invoice",
    "",
    "Invoice number  3F2A-0007",
    "Date of issue   March 3, 2024",
    "Date due        March 17, 2024",
    "",
    "Quill Labs, Inc.                 Bill to",
    "548 Market St                    Jane Roe",
    "San Francisco, CA 94104          12 Elm Street",
    "United States                    Austin, TX 78701",
    "",
    "$20.00 USD due March 17, 2024",
    "",
    "Description              Qty    Unit price    Amount",
    "Quill Pro                1      $20.00        $20.00",
    "Mar 3 - Apr 3, 2024",
    "",
    "                         Subtotal             $20.00",
    "                         Total                $20.00",
    "                         Amount due           $20.00 USD",
)
WITHOUT_TAX = (
    "RECHNUNG",
    "",
    "Rechnungsnummer          Datum             Kundennummer",
    "2024-0099                17.07.2024        88213",
    "",
    "Alder IT UG (haftungsbeschränkt)      Birch Praxis Dr. Roe",
    "Parkweg 1                             Marktplatz 5",
    "04109 Leipzig                         50667 Köln",
    "",
    "Bezeichnung     Anzahl   Einzel   Gesamt",
    "Server          1        900,00   900,00",
    "Summe                             900,00 €",
    "Kein Ausweis von Umsatzsteuer gemäß § 19 UStG.",
)
PORTUGUESE = (
    "Amieiro Lda.",
    "Rua Direita 5, 1100-001 Lisboa",
    "",
    "Fatura n.º FT 2024/88     Data: 2024-03-02   Vencimento: 2024-04-01",
    "Cliente: Bétula SA",
    "",
    "Descrição      Qtd     Preço    Total",
    "Serviço        1       100,00   100,00",
    "Total ilíquido          100,00",
    "IVA 23%                  23,00",
    "Total a pagar       € 123,00",
)
DELIVERY_NOTE = (
    "Alder GmbH                    Lieferschein",
    "                              Nr. L-2201",
    "                              Datum 03.05.2024",
    "Bestellung 4711 vom 28.04.2024",
    "Menge  Artikel",
    "3      Pumpe",
)
KNOWN = {
    "credit memo": (
        CREDIT_MEMO,
        {"seller": "Cascade Supply LLC", "buyer": "Juniper Dental LLC", "invoice_number": "CM-2201"}
        | {"issue_date": "2024-06-14", "net_total": "-200.00", "tax_total": "-10.00", "total": "-210.00"},
    ),
    "avoir": (
        AVOIR,
        {"seller": "Aulne Conseil SARL", "buyer": "Bouleau SAS", "invoice_number": "AV-2023-07"}
        | {"issue_date": "2023-06-12", "net_total": "-40.00", "tax_total": "-2.20", "total": "-42.20"},
    ),
    "sums in a row": (
        SUMS_IN_A_ROW,
        {"seller": "Erle Bau GmbH", "buyer": None, "invoice_number": "R-77120", "issue_date": "2024-01-11"}
        | {"due_date": "2024-02-10", "net_total": "1000.00", "tax_total": "190.00", "total": "1190.00"},
    ),
    "number under title": (
        NUMBER_UNDER_TITLE,
        {"seller": "Weinhof Ahorn e.K.", "buyer": "Hotel Seeblick", "invoice_number": "2024/105"}
        | {"issue_date": "2024-02-02", "net_total": "540.00", "tax_total": "95.40", "total": "635.40"},
    ),
    "subscription": (
        SUBSCRIPTION,
        {"seller": "Quill Labs, Inc.", "buyer": "Jane Roe", "invoice_number": "3F2A-0007", "currency": "USD"}
        | {"issue_date": "2024-03-03", "due_date": "2024-03-17", "tax_total": None, "total": "20.00"},
    ),
    "without tax": (
        WITHOUT_TAX,
        {"seller": "Alder IT UG", "buyer": "Birch Praxis Dr. Roe", "invoice_number": "2024-0099"}
        | {"issue_date": "2024-07-17", "tax_total": None, "total": "900.00"},
    ),
    "portuguese": (
        PORTUGUESE,
        {"seller": "Amieiro Lda.", "buyer": "Bétula SA", "invoice_number": "FT 2024/88", "issue_date": "2024-03-02"}
        | {"due_date": "2024-04-01", "net_total": "100.00", "tax_total": "23.00", "total": "123.00"},
    ),
    "delivery note": (
        DELIVERY_NOTE,
        {"seller": "Alder GmbH", "invoice_number": None, "total": None, "net_total": None, "due_date": None},
    ),
}


def _read(lines):
    return read_invoice([drawn_page(*lines)], (), None)[0]


@pytest.mark.parametrize("name", KNOWN)
def test_facts_are_found_wherever_they_stand(name):
    """Every field that is known, and null where nothing is printed."""
    lines, known = KNOWN[name]
    invoice = _read(lines)

    assert {field: invoice[field] and invoice[field]["value"] for field in known} == known


@pytest.mark.parametrize(
    ("lines", "sold"),
    [
        (SUMS_IN_A_ROW, [("Estrich", "40", "25.00", "1000.00")]),
        (NUMBER_UNDER_TITLE, [("Wein", "60", "8.00", "480.00"), ("Traubensaft", "20", "3.00", "60.00")]),
        (PORTUGUESE, [("Serviço", "1", "100.00", "100.00")]),
        (AVOIR, [("Retour manuels", "-2", "20.00", "-40.00")]),
        (DELIVERY_NOTE, []),
    ],
)
def test_lines_are_found_under_short_and_foreign_headers(lines, sold):
    """``EP`` and ``GP`` are prices, ``Qtd`` counts."""
    found = _read(lines)["lines"]

    assert [(each["description"], each["quantity"], each["unit_price"], each["amount"]) for each in found] == sold


def test_a_day_until_which_paying_is_cheaper_is_not_when_it_is_due():
    """The discount has its own date, also where it is the only one."""
    lines = (*SUMS_IN_A_ROW[:-1], "Zahlbar bis 21.01.2024 mit 2 % Skonto.")

    assert _read(lines)["due_date"] is None
