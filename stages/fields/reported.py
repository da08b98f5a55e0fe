"""The engine that takes a model's answer and believes of it what stands in the document.

A value counts when its quote stands in the document and the value in its quote. Texts are then taken as the document
writes them, so that not a word of the model's own gets into a result; numbers and dates are read again by the rules.
All else is dropped, and a warning says that something was: a wrong value is worse than a missing one.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from schema.wire.results import (
    Contract,
    CurrencyField,
    DateField,
    DecimalField,
    Found,
    Invoice,
    PartyField,
)
from stages.fields.arithmetic import doubts, printed
from stages.fields.boilerplate import is_boilerplate
from stages.fields.dates import find_dates
from stages.fields.engine import Request, frame
from stages.fields.money import CODES, DOLLAR, SYMBOLS, decimal_string, numbers
from stages.fields.proof import Passage, Proof
from stages.fields.shapes import shapes
from stages.fields.turning import turn_back
from stages.fields.view import MAX_EVIDENCE, MAX_VALUE, Json, View

T = TypeVar("T")
PROVEN: Final = 0.85
"""What a value is worth that stands where the model says: that it is the right one is still the model's word."""
UNPROVEN: Final = "not_in_document"
MAX_ITEMS: Final = 500
MAX_SENTENCES: Final = 10
_CODE: Final = re.compile(r"\b[A-Z]{3}\b")
# Of a number and its currency a quote may leave out the currency.
_DIGITS: Final = re.compile(r"\d(?:.*\d)?")
_SIGNS: Final = tuple(mark for mark in SYMBOLS if len(mark) == 1)
# Of these the rules print no cents where the document has none.
_PLAIN: Final = frozenset({"rate", "quantity"})


@dataclass(frozen=True, slots=True)
class ReportedEngine:
    """Reads fields out of a model's answer; ``name`` is the model's, as results tell it."""

    name: str
    answer: Mapping[str, Any]

    def normalize(self, request: Request) -> Json:
        """Return the JSON of a ``schema.wire.results.NormalizedDocument``."""
        result = frame(request, self.name)
        reader = Reader(Proof(request.pages), lambda: View(request.pages, result["language"]))
        if request.kind == "summary":
            result["summary"] = reader.summary(self.answer, request.sentences or MAX_SENTENCES)
        elif request.kind == "invoice":
            invoice = result["invoice"] = reader.section(Invoice, self.answer)
            if invoice["iban"] and not _has_check_digits(invoice["iban"]):
                invoice["iban"] = None
                result["warnings"].append({"code": "iban_invalid", "pages": []})
            result["warnings"] += doubts(invoice, printed(reader.view))
        elif request.kind == "contract":
            result["contract"] = reader.section(Contract, self.answer)
        if reader.has_dropped:
            result["warnings"].append({"code": UNPROVEN, "pages": []})
        turn_back(result, request.pages)
        return result


@dataclass(slots=True)
class Reader:
    """Reads one answer and remembers whether anything of it was not believed."""

    proof: Proof
    look: Callable[[], View]
    has_dropped: bool = field(default=False, init=False)
    _seen: View | None = field(default=None, init=False)

    def section(self, section: type[BaseModel], answer: Mapping[str, Any]) -> Json:
        """Return the fields of a section, as far as they are proven."""
        found: Json = {}
        for shape in shapes(section):
            if shape.is_list:
                items = (self._item(shape.model, each) for each in answer[shape.name][:MAX_ITEMS])
                found[shape.name] = [item for item in items if item is not None]
            else:
                reported = answer[shape.name]
                found[shape.name] = None if reported is None else self._item(shape.model, reported)
        return found

    def summary(self, answer: Mapping[str, Any], most: int) -> Json:
        """Return the first ``most`` sentences that stand in the document, in its order and once each."""
        found = [self._find(each["quote"]) for each in answer["sentences"][:most]]
        passages = {(each.page.number, each.start): each for each in found if each and not is_boilerplate(each.text)}
        chosen = [passages[place] for place in sorted(passages)]
        sentences = [
            {"text": each.text, "page": each.page.number, "box": each.page.box_of(each, each)} for each in chosen
        ]
        return {"text": " ".join(each.text for each in chosen), "sentences": sentences}

    def _item(self, model: type[BaseModel], reported: Mapping[str, Any]) -> Json | None:
        quote = self._find(reported["quote"])
        if quote is None:
            return None
        return self._field(model, reported, quote) if issubclass(model, Found) else self._row(model, reported, quote)

    def _field(self, model: type[BaseModel], reported: Mapping[str, Any], quote: Passage) -> Json | None:
        """Return a value with its proof."""
        proven = self._noted(self._prove(model, reported["value"], quote))
        if proven is None:
            return None
        value, part = proven
        found = {
            "value": value,
            "confidence": round(PROVEN * quote.page.confidence, 3),
            "page": quote.page.number,
            "box": quote.page.box_of(quote, part),
            "evidence": quote.text[:MAX_EVIDENCE],
        }
        if model is PartyField:
            role = None if reported["role"] is None else self._noted(self._text(reported["role"], quote))
            found["role"] = role and role[0]
        return found

    def _row(self, model: type[BaseModel], reported: Mapping[str, Any], quote: Passage) -> Json | None:
        """Return a line or a tax with those of its values that stand in its quote."""
        row: Json = {}
        for name in model.model_fields:
            value = reported[name]
            prove = self._text if name == "description" else self._decimal
            proven = None if value is None else self._noted(prove(value, quote))
            row[name] = proven and proven[0]
            if proven and name in _PLAIN:
                row[name] = decimal_string(Decimal(proven[0]))
        return row if any(value is not None for value in row.values()) else None

    def _prove(self, model: type[BaseModel], value: str, quote: Passage) -> tuple[str, Passage] | None:
        if model is DecimalField:
            return self._decimal(value, quote)
        if model is DateField:
            return self._date(value, quote)
        return self._currency(value, quote) if model is CurrencyField else self._text(value, quote)

    def _text(self, value: str, quote: Passage) -> tuple[str, Passage] | None:
        part = quote.within(value)
        return None if part is None else (part.text[:MAX_VALUE], part)

    def _decimal(self, value: str, quote: Passage) -> tuple[str, Passage] | None:
        wanted = Decimal(value)
        for begin, line in quote.lines():
            for number in numbers(line, self.view.separator):
                digits = _DIGITS.search(line, number.start, number.end)
                part = digits and quote.part(begin + digits.start(), begin + digits.end())
                if number.value == wanted and part and quote.holds(part.start, part.end):
                    return decimal_string(number.value, places=2), part
        return None

    def _date(self, value: str, quote: Passage) -> tuple[str, Passage] | None:
        lines = list(quote.lines())
        text = " ".join(line for _, line in lines)
        for moment in find_dates(text, month_first=self.view.month_first):
            start, end = lines[0][0] + moment.start, lines[0][0] + moment.end
            if moment.iso == value and quote.holds(start, end):
                return value, quote.part(start, end)
        return None

    def _currency(self, value: str, quote: Passage) -> tuple[str, Passage] | None:
        text, separator = quote.page.text[quote.start : quote.end], self.view.separator
        marks = {number.mark for number in numbers(text, separator)} | set(_CODE.findall(text))
        marks |= {sign for sign in _SIGNS if sign in text}
        dollar = "USD" if self.view.is_american else None
        codes = {dollar if mark == DOLLAR else SYMBOLS.get(mark, mark) for mark in marks if mark is not None}
        return (value, quote) if value in CODES and value in codes else None

    def _find(self, quote: str) -> Passage | None:
        return self._noted(self.proof.find(quote))

    def _noted(self, found: T | None) -> T | None:
        """Pass on what was found, and remember where it was nothing."""
        self.has_dropped = self.has_dropped or found is None
        return found

    @property
    def view(self) -> View:
        """What the document's own numbers and dates say about how it writes them; looked at when first needed."""
        if self._seen is None:
            self._seen = self.look()
        return self._seen


def _has_check_digits(found: Json) -> bool:
    """Say whether an account's number is one, and write it as one."""
    from stdnum import iban  # noqa: PLC0415 - 50 ms that only invoices pay

    found["value"] = iban.compact(found["value"])
    return bool(iban.is_valid(found["value"]))
