"""Electronic invoices inside the document."""

import pytest

from schema.wire.results import NormalizedDocument
from stages.fields.engine import normalize
from stages.fields.xml import parse_xml
from tests.support.extracted import document, drawn_page

CII = """<?xml version="1.0"?>
<rsm:CrossIndustryInvoice xmlns:rsm="urn:r" xmlns:ram="urn:a" xmlns:udt="urn:u">
 <rsm:ExchangedDocument><ram:ID>RE-1</ram:ID>
  <ram:IssueDateTime><udt:DateTimeString format="102">20240305</udt:DateTimeString></ram:IssueDateTime>
 </rsm:ExchangedDocument>
 <rsm:SupplyChainTradeTransaction>
  <ram:IncludedSupplyChainTradeLineItem>
   <ram:SpecifiedTradeProduct><ram:Name>Drill</ram:Name></ram:SpecifiedTradeProduct>
   <ram:SpecifiedLineTradeAgreement><ram:NetPriceProductTradePrice><ram:ChargeAmount>50.0000</ram:ChargeAmount>
   </ram:NetPriceProductTradePrice></ram:SpecifiedLineTradeAgreement>
   <ram:SpecifiedLineTradeDelivery><ram:BilledQuantity>2.0000</ram:BilledQuantity></ram:SpecifiedLineTradeDelivery>
   <ram:SpecifiedLineTradeSettlement><ram:SpecifiedTradeSettlementLineMonetarySummation>
    <ram:LineTotalAmount>100.00</ram:LineTotalAmount></ram:SpecifiedTradeSettlementLineMonetarySummation>
   </ram:SpecifiedLineTradeSettlement>
  </ram:IncludedSupplyChainTradeLineItem>
  <ram:ApplicableHeaderTradeAgreement>
   <ram:SellerTradeParty><ram:Name>Seller GmbH</ram:Name>
    <ram:SpecifiedTaxRegistration><ram:ID schemeID="FC">12/345</ram:ID></ram:SpecifiedTaxRegistration>
    <ram:SpecifiedTaxRegistration><ram:ID schemeID="VA">DE136695976</ram:ID></ram:SpecifiedTaxRegistration>
   </ram:SellerTradeParty>
   <ram:BuyerTradeParty><ram:Name>Buyer AG</ram:Name></ram:BuyerTradeParty>
  </ram:ApplicableHeaderTradeAgreement>
  <ram:ApplicableHeaderTradeSettlement>
   <ram:InvoiceCurrencyCode>EUR</ram:InvoiceCurrencyCode>
   <ram:SpecifiedTradeSettlementPaymentMeans><ram:PayeePartyCreditorFinancialAccount>
    <ram:IBANID>DE08700901001234567890</ram:IBANID></ram:PayeePartyCreditorFinancialAccount>
   </ram:SpecifiedTradeSettlementPaymentMeans>
   <ram:ApplicableTradeTax><ram:CalculatedAmount>19.00</ram:CalculatedAmount><ram:BasisAmount>100.00</ram:BasisAmount>
    <ram:RateApplicablePercent>19.00</ram:RateApplicablePercent></ram:ApplicableTradeTax>
   <ram:SpecifiedTradeSettlementHeaderMonetarySummation>
    <ram:TaxBasisTotalAmount>100.00</ram:TaxBasisTotalAmount>
    <ram:TaxTotalAmount currencyID="USD">21.00</ram:TaxTotalAmount>
    <ram:TaxTotalAmount currencyID="EUR">19.00</ram:TaxTotalAmount>
    <ram:GrandTotalAmount>119.00</ram:GrandTotalAmount><ram:DuePayableAmount>119.00</ram:DuePayableAmount>
   </ram:SpecifiedTradeSettlementHeaderMonetarySummation>
  </ram:ApplicableHeaderTradeSettlement>
 </rsm:SupplyChainTradeTransaction>
</rsm:CrossIndustryInvoice>"""
UBL = """<Invoice xmlns="urn:i" xmlns:b="urn:b" xmlns:a="urn:a">
 <b:ID>U-9</b:ID><b:IssueDate>2024-03-05</b:IssueDate><b:DocumentCurrencyCode>EUR</b:DocumentCurrencyCode>
 <a:AccountingSupplierParty><a:Party><a:PartyName><b:Name>Seller BV</b:Name></a:PartyName></a:Party>
 </a:AccountingSupplierParty>
 <a:LegalMonetaryTotal><b:TaxExclusiveAmount>10.00</b:TaxExclusiveAmount>
  <b:TaxInclusiveAmount>12.10</b:TaxInclusiveAmount></a:LegalMonetaryTotal>
 <a:TaxTotal><b:TaxAmount>2.10</b:TaxAmount></a:TaxTotal>
</Invoice>"""


def _read(xml, *lines):
    page = drawn_page(*(lines or ("Rechnung RE-1", "Gesamtbetrag   119,00 EUR")))
    result = normalize({"document": document(page, attachments={"factur-x.xml": xml}), "kind": "invoice"})
    NormalizedDocument.model_validate(result)
    return result["invoice"], [warning["code"] for warning in result["warnings"]]


def test_the_embedded_invoice_wins_over_what_is_printed():
    """It was made to be read by machines; the picture of it was not."""
    invoice, warnings = _read(CII, "Rechnung RE-2", "Gesamtbetrag 999,00 EUR", "119,00")

    values = {name: field["value"] for name, field in invoice.items() if isinstance(field, dict)}
    assert values == {
        "invoice_number": "RE-1",
        "issue_date": "2024-03-05",
        "seller": "Seller GmbH",
        "buyer": "Buyer AG",
        "seller_tax_id": "DE136695976",
        "iban": "DE08700901001234567890",
        "currency": "EUR",
        "net_total": "100.00",
        "tax_total": "19.00",
        "total": "119.00",
        "amount_due": "119.00",
    }
    assert invoice["taxes"] == [{"rate": "19", "base": "100.00", "amount": "19.00"}]
    assert invoice["lines"] == [{"description": "Drill", "quantity": "2", "unit_price": "50.00", "amount": "100.00"}]
    assert warnings == []


@pytest.mark.parametrize(
    ("stated", "wrong", "code"),
    [
        ("<ram:DuePayableAmount>119.00", "<ram:DuePayableAmount>99.00", "due_disagrees"),
        ("<ram:BilledQuantity>2.0000", "<ram:BilledQuantity>3.0000", "lines_disagree"),
        ("<ram:LineTotalAmount>100.00", "<ram:LineTotalAmount>150.00", "lines_disagree"),
        ("<ram:RateApplicablePercent>19.00", "<ram:RateApplicablePercent>7.00", "taxes_disagree"),
    ],
)
def test_an_electronic_invoice_that_does_not_add_up_is_named(stated, wrong, code):
    """It is taken at its word, and its word is checked like any other's."""
    _, warnings = _read(CII.replace(stated, wrong))

    assert warnings == [code]


LINE_OF_100 = "<ram:BilledQuantity>2.0000"
SUMMATION = "<ram:TaxBasisTotalAmount>"


@pytest.mark.parametrize(
    "changes",
    [
        {  # paid before, and rounded
            SUMMATION: f"<ram:TotalPrepaidAmount>20.20</ram:TotalPrepaidAmount>"
            f"<ram:RoundingAmount>0.20</ram:RoundingAmount>{SUMMATION}",
            "DuePayableAmount>119.00": "DuePayableAmount>99.00",
        },
        {  # a price for a hundred
            LINE_OF_100: "<ram:BilledQuantity>200",
            "</ram:ChargeAmount>": "</ram:ChargeAmount><ram:BasisQuantity>100</ram:BasisQuantity>",
        },
        {  # a price for one that is said to be for all
            "</ram:ChargeAmount>": "</ram:ChargeAmount><ram:BasisQuantity>2.0000</ram:BasisQuantity>",
        },
        {  # a line with something taken off, and something added
            LINE_OF_100: "<ram:BilledQuantity>3",
            "<ram:SpecifiedLineTradeSettlement>": "<ram:SpecifiedLineTradeSettlement>"
            "<ram:SpecifiedTradeAllowanceCharge><ram:ChargeIndicator><udt:Indicator>false</udt:Indicator>"
            "</ram:ChargeIndicator><ram:ActualAmount>60</ram:ActualAmount></ram:SpecifiedTradeAllowanceCharge>"
            "<ram:SpecifiedTradeAllowanceCharge><ram:ChargeIndicator><udt:Indicator>true</udt:Indicator>"
            "</ram:ChargeIndicator><ram:ActualAmount>10</ram:ActualAmount></ram:SpecifiedTradeAllowanceCharge>",
        },
        {  # lines that make the net only with what the whole invoice adds
            SUMMATION: f"<ram:LineTotalAmount>90.00</ram:LineTotalAmount>{SUMMATION}",
            "<ram:LineTotalAmount>100.00": "<ram:LineTotalAmount>90.00",
            "50.0000": "45.0000",
        },
    ],
)
def test_what_an_electronic_invoice_adds_and_takes_off_is_reckoned_with(changes):
    """A warning that means nothing is soon read by nobody."""
    xml = CII
    for old, new in changes.items():
        assert old in xml
        xml = xml.replace(old, new)

    _, warnings = _read(xml)

    assert warnings == []


def test_a_value_that_is_also_printed_says_where():
    """XML has no place on a page; the reader of the page still wants to see it."""
    invoice, _ = _read(CII)

    assert (invoice["total"]["page"], invoice["total"]["evidence"]) == (1, "Gesamtbetrag 119,00 EUR")
    assert (invoice["buyer"]["page"], invoice["buyer"]["evidence"]) == (None, "Name Buyer AG")


def test_a_total_that_no_page_shows_is_named():
    """An invoice whose XML says another sum than its picture may be a fraud."""
    assert _read(CII, "Rechnung RE-1", "Gesamtbetrag 19,00 EUR")[1] == ["total_not_on_page"]


def test_ubl_is_read_as_well():
    """Half of Europe sends the other syntax."""
    invoice, warnings = _read(UBL, "Total 12.10")

    assert (invoice["invoice_number"]["value"], invoice["seller"]["value"]) == ("U-9", "Seller BV")
    assert (invoice["net_total"]["value"], invoice["total"]["value"]) == ("10.00", "12.10")
    assert warnings == []


def test_of_several_tax_numbers_in_ubl_the_vat_one_is_taken():
    """Sellers in Germany state the number of their tax office too, often first."""
    schemes = "".join(
        f"<a:PartyTaxScheme><b:CompanyID>{number}</b:CompanyID><a:TaxScheme><b:ID>{scheme}</b:ID></a:TaxScheme>"
        "</a:PartyTaxScheme>"
        for number, scheme in (("201/113/40209", "FC"), ("DE136695976", "VAT"))
    )
    invoice, _ = _read(UBL.replace("</a:Party>", f"{schemes}</a:Party>"))

    assert invoice["seller_tax_id"]["value"] == "DE136695976"


def test_a_single_tax_number_in_ubl_is_taken_whatever_its_scheme():
    """A seller without a VAT number still has one for its tax office."""
    scheme = (
        "<a:PartyTaxScheme><b:CompanyID>201/113/40209</b:CompanyID><a:TaxScheme><b:ID>FC</b:ID></a:TaxScheme>"
        "</a:PartyTaxScheme>"
    )
    invoice, _ = _read(UBL.replace("</a:Party>", f"{scheme}</a:Party>"))

    assert invoice["seller_tax_id"]["value"] == "201/113/40209"


@pytest.mark.parametrize(
    "xml",
    [
        "<Invoice>",
        "not xml",
        '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><Invoice><ID>&b;</ID></Invoice>',
        '<!DOCTYPE x SYSTEM "file:///etc/hostname"><Invoice/>',
    ],
)
def test_broken_or_dangerous_xml_is_left_alone_and_the_page_is_read(xml):
    """A hostile attachment hurts nobody, and costs the document nothing."""
    assert parse_xml(xml) is None

    invoice, _ = _read(xml)

    assert invoice["total"]["value"] == "119.00"


@pytest.mark.parametrize("amount", ["NaN", "Infinity", "1E400", "1e-9999999", "--5", ""])
def test_an_amount_that_is_no_decimal_is_unknown(amount):
    """What cannot be said as a decimal string is not said."""
    invoice, _ = _read(CII.replace("<ram:GrandTotalAmount>119.00", f"<ram:GrandTotalAmount>{amount}"))

    assert invoice["total"] is None or invoice["total"]["value"] == "0.00"
