"""Invoices and receipts as many countries write them: labels, layouts and numbers differ, the facts do not."""

import pytest

from schema.wire.results import NormalizedDocument
from stages.fields.engine import normalize
from tests.support.extracted import document, drawn_page

BRITISH = (
    "                          Larkfield Print Ltd                       INVOICE",
    "                          14 Mill Lane, Leeds LS1 4AB",
    "                          VAT Reg No: GB 123 4567 82",
    "",
    "Invoice to                           Invoice No     Invoice Date    Due Date",
    "Birch Retail Limited                 LP-20981       07/11/2023      07/12/2023",
    "3 Market Square",
    "York YO1 8SL",
    "",
    "Description                   Qty      Unit price    VAT     Amount",
    "Posters A2                    100      2.40          20%     240.00",
    "Reading books                 12       5.00          0%      60.00",
    "",
    "                              Subtotal                       300.00",
    "                              VAT 20% on 240.00               48.00",
    "                              Total GBP                      348.00",
    "",
    "Account name: Larkfield Print Ltd   Sort code 12-34-56   Account 12345678",
)
AMERICAN = (
    "Cascade Supply Co., Inc.",
    "880 Pine Street, Portland, OR 97204",
    "",
    "INVOICE",
    "Invoice #: 4471-B                     Bill To:",
    "Invoice Date: 03/04/2024              Juniper Dental LLC",
    "Due Date: 04/03/2024                  12 Elm Ave, Salem, OR 97301",
    "PO Number: 99120",
    "",
    "Item                          Quantity    Rate         Amount",
    "Chairs                        4           $1,250.00    $5,000.00",
    "Delivery                      1           $150.00      $150.00",
    "",
    "                                          Subtotal     $5,150.00",
    "                                          Sales Tax (8.25%)   $424.88",
    "                                          Total        $5,574.88",
    "                                          Payments     $1,000.00",
    "                                          Balance Due  $4,574.88",
)
GERMAN_CREDIT = (
    "Alder Technik GmbH · Werkstr. 9 · 04109 Leipzig",
    "",
    "Birch Handels AG",
    "Ringstr. 4",
    "50667 Köln",
    "",
    "Gutschrift                                  Gutschrift-Nr.: GS-2023-044",
    "                                            Datum: 18.12.2023",
    "zur Rechnung RE-2023-310 vom 01.12.2023",
    "",
    "Pos  Artikel                  Menge    Preis        Gesamt",
    "1    Rücknahme Pumpe          1        -1.200,00    -1.200,00",
    "",
    "                              Summe netto           -1.200,00 EUR",
    "                              zzgl. 19 % USt          -228,00 EUR",
    "                              Gutschriftsbetrag     -1.428,00 EUR",
)
FRENCH = (
    "Aulne Conseil SARL                               FACTURE N° FA-2023-118",
    "8 rue des Lilas                                  Date d'émission : 9 février 2023",
    "69003 Lyon                                       Date d'échéance : 11 mars 2023",
    "SIRET 732 829 320 00074",
    "",
    "                                                 Client :",
    "                                                 Bouleau SAS",
    "                                                 2 place du Marché",
    "                                                 75011 Paris",
    "",
    "Désignation                   Qté    PU HT       TVA      Total HT",
    "Formation                     2      1 200,00    20 %     2 400,00",
    "Manuels                       10     20,00       5,5 %    200,00",
    "",
    "Taux      Base HT       Montant TVA",
    "20 %      2 400,00      480,00",
    "5,5 %     200,00        11,00",
    "",
    "                              Total HT            2 600,00 €",
    "                              Total TVA           491,00 €",
    "                              Total TTC           3 091,00 €",
    "                              Net à payer         3 091,00 €",
    "IBAN FR14 2004 1010 0505 0001 3M02 606",
)
SPANISH = (
    "Aliso Servicios, S.L.",
    "Calle Mayor 10, 28013 Madrid",
    "CIF: B58818501",
    "",
    "FACTURA",
    "Número de factura: 2024/0031",
    "Fecha de factura: 15/01/2024",
    "Fecha de vencimiento: 14/02/2024",
    "",
    "Cliente: Abedul Comercial, S.A.",
    "",
    "Concepto                      Cantidad    Precio      Importe",
    "Mantenimiento                 1           1.500,00    1.500,00",
    "",
    "                              Base imponible          1.500,00 €",
    "                              IVA 21 %                  315,00 €",
    "                              Total factura           1.815,00 €",
)
ITALIAN = (
    "Ontano Impianti S.r.l.",
    "Via Garibaldi 5, 20121 Milano",
    "P.IVA 00743110157",
    "",
    "Fattura n. 87/2024 del 22/03/2024                Spett.le",
    "Scadenza: 21/04/2024                             Betulla S.p.A.",
    "                                                 Corso Italia 8",
    "                                                 10121 Torino",
    "",
    "Descrizione                   Quantità    Prezzo      Importo",
    "Installazione                 1           2.000,00    2.000,00",
    "",
    "                              Imponibile              2.000,00",
    "                              IVA 22%                   440,00",
    "                              Totale documento     € 2.440,00",
)
DUTCH = (
    "Els Techniek B.V.",
    "Kade 12",
    "3011 AB Rotterdam",
    "",
    "Factuur",
    "",
    "Factuurnummer     F2024-1190           Klant",
    "Factuurdatum      02-05-2024           Berk Handel B.V.",
    "Vervaldatum       01-06-2024           Gracht 7",
    "                                       1012 LM Amsterdam",
    "",
    "Omschrijving                  Aantal      Prijs       Bedrag",
    "Onderhoud                     3           250,00      750,00",
    "",
    "                              Subtotaal               € 750,00",
    "                              BTW 21%                 € 157,50",
    "                              Totaal te betalen       € 907,50",
    "",
    "KvK 12345678   BTW NL004495445B01   IBAN NL91 ABNA 0417 1643 00",
)
SWISS = (
    "Erle Elektro AG                              Rechnung 55120",
    "Seestrasse 3                                 Rechnungsdatum: 30.04.2024",
    "8002 Zürich                                  Zahlbar bis: 30.05.2024",
    "CHE-116.281.710 MWST",
    "",
    "Bezeichnung                   Anzahl      Preis         Betrag",
    "Schaltschrank                 1           11'250.00     11'250.00",
    "",
    "                              Zwischensumme             11'250.00",
    "                              MWST 8.1%                    911.25",
    "                              Rundung                       -0.05",
    "                              Total CHF                 12'161.20",
)
TWO_PAGES = (
    (
        "Alder Cloud Ltd                                  Invoice number: AC-7781",
        "1 Dock Road, Bristol BS1 5TY                     Date of issue: 28 February 2024",
        "Bill to: Birch Retail Limited                    Payment due: 29 March 2024",
        "",
        "Description                   Qty      Price       Amount",
        "Storage                       10       12.50       125.00",
        "Traffic                       20       3.00        60.00",
        "                              Carried forward      185.00",
        "                              Page 1 of 2",
    ),
    (
        "Alder Cloud Ltd                                  Invoice number: AC-7781",
        "                              Brought forward      185.00",
        "Description                   Qty      Price       Amount",
        "Support                       1        99.00       99.00",
        "",
        "                              Net total            284.00",
        "                              VAT @ 20%            56.80",
        "                              Invoice total     £ 340.80",
        "                              Page 2 of 2",
    ),
)
GERMAN_TILL = (
    "      Bäckerei Ahorn",
    "      Hauptstr. 8, 79098 Freiburg",
    "      Tel. 0761 123456",
    "Brot                        4,20 B",
    "Kaffee                      2,80 A",
    "SUMME                EUR    7,00",
    "Gegeben BAR          EUR   10,00",
    "Rückgeld             EUR    3,00",
    "MwSt      Netto    Steuer   Brutto",
    "A 19%     2,35     0,45     2,80",
    "B 7%      3,93     0,27     4,20",
    "14.06.2024   08:12   Kasse 2   Bon 4711",
)
FRENCH_TILL = (
    "      BRASSERIE DU PORT",
    "      3 quai Sud",
    "      13002 MARSEILLE",
    "      Ticket 0042   le 05/08/2023 à 13:41",
    "2 Plat du jour             31,00",
    "1 Café                      2,50",
    "TOTAL TTC                  33,50 €",
    "dont TVA 10%                3,05",
    "CB                         33,50",
    "MERCI DE VOTRE VISITE",
)
AMERICAN_TILL = (
    "        RIVERSIDE GRILL",
    "        410 Water St",
    "        Austin, TX 78701",
    "  Server: Ann      Table 12      06/09/2024 7:42 PM",
    "  2 Burger                 28.00",
    "  1 Soda                    3.50",
    "  Subtotal                 31.50",
    "  Tax                       2.60",
    "  Total                    34.10",
    "  Tip      ________",
    "  Suggested 20% tip: 6.30",
)
KNOWN = {
    "british": (
        (BRITISH,),
        {"seller": "Larkfield Print Ltd", "buyer": "Birch Retail Limited", "invoice_number": "LP-20981"}
        | {"issue_date": "2023-11-07", "due_date": "2023-12-07", "currency": "GBP"}
        | {"net_total": "300.00", "tax_total": "48.00", "total": "348.00"},
    ),
    "american": (
        (AMERICAN,),
        {"seller": "Cascade Supply Co., Inc.", "buyer": "Juniper Dental LLC", "invoice_number": "4471-B"}
        | {"issue_date": "2024-03-04", "due_date": "2024-04-03", "currency": "USD"}
        | {"net_total": "5150.00", "tax_total": "424.88", "total": "5574.88", "amount_due": "4574.88"},
    ),
    "german credit note": (
        (GERMAN_CREDIT,),
        {"seller": "Alder Technik GmbH", "buyer": "Birch Handels AG", "invoice_number": "GS-2023-044"}
        | {"issue_date": "2023-12-18", "due_date": None, "currency": "EUR"}
        | {"net_total": "-1200.00", "tax_total": "-228.00", "total": "-1428.00"},
    ),
    "french": (
        (FRENCH,),
        {"seller": "Aulne Conseil SARL", "buyer": "Bouleau SAS", "invoice_number": "FA-2023-118"}
        | {"issue_date": "2023-02-09", "due_date": "2023-03-11", "currency": "EUR"}
        | {"net_total": "2600.00", "tax_total": "491.00", "total": "3091.00", "iban": "FR1420041010050500013M02606"},
    ),
    "spanish": (
        (SPANISH,),
        {"seller": "Aliso Servicios, S.L.", "buyer": "Abedul Comercial, S.A.", "invoice_number": "2024/0031"}
        | {"issue_date": "2024-01-15", "due_date": "2024-02-14", "currency": "EUR"}
        | {"net_total": "1500.00", "tax_total": "315.00", "total": "1815.00"},
    ),
    "italian": (
        (ITALIAN,),
        {"seller": "Ontano Impianti S.r.l.", "buyer": "Betulla S.p.A.", "invoice_number": "87/2024"}
        | {"issue_date": "2024-03-22", "due_date": "2024-04-21", "currency": "EUR"}
        | {"net_total": "2000.00", "tax_total": "440.00", "total": "2440.00"},
    ),
    "dutch": (
        (DUTCH,),
        {"seller": "Els Techniek B.V.", "buyer": "Berk Handel B.V.", "invoice_number": "F2024-1190"}
        | {"issue_date": "2024-05-02", "due_date": "2024-06-01", "currency": "EUR"}
        | {"net_total": "750.00", "tax_total": "157.50", "total": "907.50", "iban": "NL91ABNA0417164300"},
    ),
    "swiss": (
        (SWISS,),
        {"seller": "Erle Elektro AG", "buyer": None, "invoice_number": "55120"}
        | {"issue_date": "2024-04-30", "due_date": "2024-05-30", "currency": "CHF"}
        | {"net_total": "11250.00", "tax_total": "911.25", "total": "12161.20"},
    ),
    "two pages": (
        TWO_PAGES,
        {"seller": "Alder Cloud Ltd", "buyer": "Birch Retail Limited", "invoice_number": "AC-7781"}
        | {"issue_date": "2024-02-28", "due_date": "2024-03-29", "currency": "GBP"}
        | {"net_total": "284.00", "tax_total": "56.80", "total": "340.80"},
    ),
    "german till": (
        (GERMAN_TILL,),
        {"seller": "Bäckerei Ahorn", "buyer": None, "issue_date": "2024-06-14", "total": "7.00", "currency": "EUR"},
    ),
    "french till": (
        (FRENCH_TILL,),
        {"seller": "BRASSERIE DU PORT", "buyer": None, "issue_date": "2023-08-05", "total": "33.50"}
        | {"tax_total": "3.05", "currency": "EUR"},
    ),
    "american till": (
        (AMERICAN_TILL,),
        {"seller": "RIVERSIDE GRILL", "buyer": None, "issue_date": "2024-06-09", "total": "34.10"}
        | {"net_total": "31.50", "tax_total": "2.60", "currency": None},
    ),
}


def _read(pages):
    drawn = [drawn_page(*lines, number=number) for number, lines in enumerate(pages, 1)]
    result = normalize({"document": document(*drawn), "kind": "invoice", "languages": []})
    NormalizedDocument.model_validate(result)
    return result["invoice"]


@pytest.mark.parametrize("name", KNOWN)
def test_what_an_invoice_says_is_found_in_its_country(name):
    """Every field that is known, and null where nothing is printed."""
    pages, known = KNOWN[name]
    invoice = _read(pages)

    assert {field: invoice[field] and invoice[field]["value"] for field in known} == known


def test_taxes_of_several_rates_are_told_apart():
    """A table of rates in France, a till's in Germany."""
    french, till = _read((FRENCH,)), _read((GERMAN_TILL,))

    assert [(tax["rate"], tax["base"], tax["amount"]) for tax in french["taxes"]] == [
        ("20", "2400.00", "480.00"),
        ("5.5", "200.00", "11.00"),
    ]
    assert {(tax["rate"], tax["amount"]) for tax in till["taxes"]} == {("19", "0.45"), ("7", "0.27")}


def test_lines_go_on_over_the_page_and_carry_no_sums():
    """What is carried forward was not sold twice."""
    lines = _read(TWO_PAGES)["lines"]

    assert [(line["description"], line["amount"]) for line in lines] == [
        ("Storage", "125.00"),
        ("Traffic", "60.00"),
        ("Support", "99.00"),
    ]
