"""Receipts as tills print them and people hand them in: who sold, when, for how much."""

import pytest

from stages.fields.invoice import read_invoice
from tests.support.extracted import drawn_page

RECEIPT = (
    "        HONG HENG HARDWARE",
    "      TRADING (KL) SDN BHD",
    "        (752213-K)",
    "   12, JALAN SATU, 50100 KUALA LUMPUR",
    "        TAX INVOICE",
    "   19-03-18 17:02   SH01",
    "   NAILS              1     12.40",
)


def _receipt(*totals, head=RECEIPT):
    """Read the receipt with these lines under it."""
    return read_invoice([drawn_page(*head, *totals, confidence=0.9)], (), "en")[0]


def test_a_name_over_two_lines_is_one_name():
    """A line of nothing but trade and legal form is the end of the line above it."""
    seller = _receipt("   TOTAL   12.40")["seller"]

    assert seller["value"] == "HONG HENG HARDWARE TRADING (KL) SDN BHD"
    assert seller["evidence"] == "HONG HENG HARDWARE + TRADING (KL) SDN BHD"


def test_what_is_written_over_a_receipt_is_not_its_seller():
    """People put their names on what they hand in; the shop is whom the address belongs to."""
    head = ("   TAN CHAY YEE", "", "   ABC HO TRADING", *RECEIPT[3:])

    assert _receipt("   TOTAL   12.40", head=head)["seller"]["value"] == "ABC HO TRADING"


def test_who_stands_under_the_sellers_address_is_not_the_seller():
    """It is the customer, whatever its legal form says."""
    head = ("   GARDEN BAKERY SDN BHD", *RECEIPT[2:5], "   FRESH MARKET SDN BHD", *RECEIPT[5:])

    assert _receipt("   TOTAL   12.40", head=head)["seller"]["value"] == "GARDEN BAKERY SDN BHD"


@pytest.mark.parametrize(
    ("name", "seller"),
    [
        ("CORNER SHOP S/B 273500-U (KSB)", "CORNER SHOP S/B"),
        ("CORNER SHOP (KL ) SDN BHD (139386 X)", "CORNER SHOP (KL ) SDN BHD"),
        ("FIVE STAR CASH & CARRY", "FIVE STAR CASH & CARRY"),
    ],
)
def test_a_registration_number_is_no_part_of_the_name(name, seller):
    """It stands right behind the name, in brackets or bare."""
    assert _receipt("   TOTAL   12.40", head=(f"   {name}", *RECEIPT[3:]))["seller"]["value"] == seller


@pytest.mark.parametrize(
    "totals",
    [
        ("   TOTAL INCL. OF GST   12.42", "   ROUNDING ADJ   -0.02", "   TOTAL RM   12.40"),
        ("   TOTAL   12.42", "   ROUNDING   -0.02", "           12.40", "   CASH   20.00", "   CHANGE   7.60"),
        ("   SUBTOTAL   11.72", "   GST   0.70", "   TOTAL   12.42", "   ROUNDED TOTAL (RM)   12.40"),
        ("   SUBTOTAL   12.40", "   CASH   20.00", "   CHANGE   7.60"),
        ("   SUB TOTAL   12.40", "   TOTAL DUE (GST INC)   12.40", "   PAID   CASH   20.00", "   CHANGE   7.60"),
        ("   TOTAL 6% SUPPLIES (INC. GST)   10.60", "   TOTAL 0% SUPPLIES   1.80", "   TOTAL PAYABLE   12.40"),
        ("   TOTAL QTY   4.00", "   TOTAL INCLUDES GST 0%   12.40", "   CASH   12.40"),
        ("   TOTAI   12.40", "   (TOTAL INCLUDED GST @ 6%   0.70)"),
    ],
)
def test_the_total_of_a_receipt_is_what_was_paid(totals):
    """Tills round, split by rate, and call it many names."""
    assert _receipt(*totals)["total"]["value"] == "12.40"


def test_of_several_dates_the_one_with_a_time_is_the_receipts():
    """Offers run from one day to another; a till prints the minute."""
    invoice = _receipt("   TOTAL   12.40", "   OFFER 24-02-2018 - 04-04-2018")

    assert invoice["issue_date"]["value"] == "2018-03-19"


def test_a_line_of_an_address_is_not_the_shop():
    """Malls stand in the address under the shop that is called after them."""
    head = ("   A03061", "   YNG Harbour City", "   S117, Second Floor,", "   Harbour City,", "   81100 Johor Bahru")

    assert (
        _receipt("   TOTAL   12.40", "   CASH   12.40", head=(*head, *RECEIPT[4:]))["seller"]["value"]
        == "YNG Harbour City"
    )


def test_the_date_beside_an_orders_number_and_a_time_is_the_receipts():
    """A till numbers orders; what is ordered from a supplier has a date of its own, without a minute."""
    till = (*RECEIPT[:4], "   Order No.   1000219      11/03/2018 06:20 PM", RECEIPT[6])
    supplier = (*RECEIPT[:4], "   Order No.   1000219      11/03/2018", RECEIPT[6])

    assert _receipt("   TOTAL   12.40", head=till)["issue_date"]["value"] == "2018-03-11"
    assert _receipt("   TOTAL   12.40", head=supplier)["issue_date"] is None


@pytest.mark.parametrize(
    "proof",
    [
        ("   CASH   20.00", "   CHANGE   7.60"),
        ("   TAXABLE AMT   11.70", "   GST 6%   0.70"),
    ],
)
def test_a_total_whose_point_was_misread_is_proven_by_other_amounts(proof):
    """``12-40`` is the total where what was paid, or net and tax, make it so."""
    total = _receipt("   TOTAL       12-40", *proof)["total"]

    assert total["value"] == "12.40"
    assert "12-40" in total["evidence"]


@pytest.mark.parametrize(
    "rows",
    [
        (),
        ("   TOTAL       12-40",),
        ("   TOTAL       12-40", "   CASH   20.00", "   CHANGE   7.70"),
        ("   TOTAL ITEMS   1", "   MEMBER POINTS   124.00"),
        ("   TEL TOTAL CARE   03-1234", "   SAVED   1.20"),
    ],
)
def test_a_receipt_without_a_legible_total_has_none(rows):
    """Goods, points and a mark that nothing proves are no total."""
    assert _receipt(*rows)["total"] is None
