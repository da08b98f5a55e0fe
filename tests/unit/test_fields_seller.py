"""Who sent an invoice, where its head does not say so."""

import pytest

from stages.fields.invoice import read_invoice
from tests.support.extracted import drawn_page, text_page

TABLE = (
    "Rechnung Nr. 2024-17                         Datum: 05.03.2024",
    "Pos   Beschreibung              Menge    Einzelpreis      Betrag",
    "1     Wartung                   2        50,00            100,00",
    "      Gesamtbetrag                                        100,00 €",
)
BUYER = ("Harbour Mills GmbH", "Lange Gasse 12", "80331 München", "")
BLANK = ("",) * 28


def _seller(*lines):
    seller = read_invoice([drawn_page(*lines)], (), "de")[0]["seller"]
    return seller and seller["value"]


@pytest.mark.parametrize(
    "foot",
    [
        ("Alder Werkzeuge GmbH & Co. KG · Hafenweg 4 · 20457 Hamburg", "Amtsgericht Hamburg HRB 12345"),
        ("Alder Werkzeuge GmbH & Co. KG      Nordbank AG             Geschäftsführer: A. Roe", "Hafenweg 4"),
        ("Alder Werkzeuge GmbH & Co. KG, SIRET 123 456 789 00011, au capital de 10.000,00 €",),
        ("Firma: Alder Werkzeuge GmbH & Co. KG | USt-IdNr. DE136695976",),
    ],
)
def test_the_foot_names_who_wrote_where_the_top_names_who_is_written_to(foot):
    """A logo is a picture: the only company at the top is the customer, in the window of the envelope."""
    assert _seller(*BUYER, *TABLE, *BLANK, *foot) == "Alder Werkzeuge GmbH & Co. KG"


def test_the_customer_at_the_top_is_then_the_buyer():
    """With the sender known, the other address is the receiver's."""
    invoice = read_invoice([drawn_page(*BUYER, *TABLE, *BLANK, "Alder AG, Sitz der Gesellschaft: Hamburg")], (), "de")[
        0
    ]

    assert (invoice["seller"]["value"], invoice["buyer"]["value"]) == ("Alder AG", "Harbour Mills GmbH")


def test_a_foot_without_a_register_or_with_several_companies_names_nobody():
    """A slogan and a list of group companies leave it to the head of the letter."""
    slogan = ("Made with Quick Invoices Ltd.",)
    group = ("Alder AG, Sitz: Hamburg     Birch GmbH, HRB 77", "Vorstand: A. Roe")

    assert _seller(*TABLE, *BLANK, *slogan) is None
    assert _seller(*TABLE, *BLANK, *group) is None


@pytest.mark.parametrize(
    "line",
    [
        "Kontoinhaber: Alder Werkzeuge",
        "Account name: Alder Werkzeuge",
        "Titulaire du compte : Alder Werkzeuge",
        "Rekeninghouder    Alder Werkzeuge",
        "Please make checks payable to: Alder Werkzeuge",
    ],
)
def test_who_is_to_be_paid_is_the_seller_where_nobody_else_is(line):
    """The holder of the account; never the bank."""
    bank = "Bank: Nordbank AG"

    assert _seller(*TABLE, "", line, bank) == "Alder Werkzeuge"
    assert _seller(*TABLE, "", bank, "Account holder: Nordbank AG") is None


def test_a_name_without_a_legal_form_is_believed_where_an_address_spells_it():
    """The web or mail address is a check of the name, never its source; anybody has a mailbox at a provider."""
    head = ("Azure Garden", "12 High Street")

    assert _seller(*head, "info@azuregarden.example", *TABLE) == "Azure Garden"
    assert _seller(*head, "info@somebody.example", *TABLE) is None
    assert _seller("Outlook", "12 High Street", "azuregarden@outlook.com", *TABLE) is None
    assert _seller("info@azuregarden.example", *TABLE) is None


def test_plain_text_has_a_foot_too():
    """Its last lines."""
    lines = "\n".join((*BUYER, *TABLE, "", "Alder GmbH, Registergericht Hamburg HRB 9"))

    assert read_invoice([text_page(lines)], (), "de")[0]["seller"]["value"] == "Alder GmbH"
