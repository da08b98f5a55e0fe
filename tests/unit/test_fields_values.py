"""Amounts and dates as people print them."""

from decimal import Decimal

import pytest

from stages.fields.dates import find_dates, is_month_first
from stages.fields.money import decimal_separator, decimal_string, numbers


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3\u00a0038,14".replace("\u00a0", " "), "3038.14"),
        ("1'234.50", "1234.50"),
        ("1.234,56", "1234.56"),
        ("1,234.56", "1234.56"),
        ("1,234,567.89", "1234567.89"),
        ("EUR 12,00", "12.00"),
        ("RM7.90", "7.90"),
        ("$ 4.11", "4.11"),
        ("-17808,00", "-17808.00"),
        ("0.01-", "-0.01"),
        ("(12.50)", "-12.50"),
    ],
)
def test_an_amount_is_read_whatever_its_separators(text, value):
    """The same sum is printed in many ways across Europe."""
    assert [str(number.value) for number in numbers(text, None) if number.is_money] == [value]


@pytest.mark.parametrize(
    "text", ["05.03.2018", "12:30:22", "1.234", "DE123456789", "19,0 %", "v1.2.3", "201/113/40209"]
)
def test_what_is_no_amount_is_not_taken_for_one(text):
    """A date or a tax number as a total would be worse than no total."""
    assert not [number for number in numbers(text, None) if number.is_money]


def test_the_document_tells_what_one_separator_before_three_digits_means():
    """``1.234`` is a thousand where cents stand behind a comma, and unknown where nothing tells."""
    separator = decimal_separator(["12,50", "3,99", "100,00"])

    assert separator == ","
    assert [number.value for number in numbers("1.234 \u20ac", separator)] == [Decimal(1234)]
    assert not list(numbers("1.234 \u20ac", None))


def test_decimal_strings_keep_cents_and_drop_needless_zeros():
    """Clients compare these strings."""
    assert decimal_string(Decimal("9.9000"), places=2) == "9.90"
    assert decimal_string(Decimal("20.0000")) == "20"
    assert decimal_string(Decimal(5), places=2) == "5.00"


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("05.03.2018", "2018-03-05"),
        ("2016/05/01 14:11", "2016-05-01"),
        ("8-9-2022", "2022-09-08"),
        ("21.05.14", "2014-05-21"),
        ("7. Mai 2014", "2014-05-07"),
        ("1er mars 2018", "2018-03-01"),
        ("August 3 , 2014", "2014-08-03"),
        ("the 23rd day of September, 1997", "1997-09-23"),
        ("12-Mar-18", "2018-03-12"),
        ("18/06/2018", "2018-06-18"),
        ("03/20/2023", "2023-03-20"),
    ],
)
def test_a_date_is_read_in_the_languages_of_its_month_names(text, iso):
    """Results speak ISO 8601 whatever the document speaks."""
    assert [moment.iso for moment in find_dates(text)] == [iso]


@pytest.mark.parametrize("text", ["31.02.2018", "99/99/2018", "May 2020", "01.05.14-31.05.14", "3.14"])
def test_what_is_no_day_of_the_calendar_is_no_date(text):
    """A period, a month or a typing error is not a day."""
    assert find_dates(text) == []


def test_an_open_order_of_day_and_month_is_decided_by_the_documents_other_dates():
    """Only the document can tell, and the field says that it had to."""
    month_first = is_month_first(["03/20/2023"], default=False)

    (moment,) = find_dates("04/05/2023", month_first=month_first)

    assert (moment.iso, moment.is_ambiguous) == ("2023-04-05", True)
    assert find_dates("04/05/2023")[0].iso == "2023-05-04"
