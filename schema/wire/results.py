"""The one result of a job, as clients get it.

Shape: money and rates are decimal strings, dates ISO 8601, boxes fractions of the page with the origin top
left. A field is an object with ``value`` and its evidence, or ``null`` when unknown; it is never a guess.
"""

from enum import StrEnum
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from schema.domain.kinds import Kind

DECIMAL_PATTERN = r"^-?\d{1,18}(\.\d{1,6})?$"
Fraction = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Box = tuple[Fraction, Fraction, Fraction, Fraction]
Confidence = Annotated[float, Field(ge=0.0, le=1.0)]
DecimalString = Annotated[str, Field(pattern=DECIMAL_PATTERN)]
DateString = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]


class Model(BaseModel):
    """Strict about unknown keys: a stage that produces one has a defect."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Found(Model):
    """Where in the document a value was found."""

    confidence: Confidence
    page: int | None = None
    box: Box | None = None
    evidence: str | None = None


class TextField(Found):
    """A text value with its evidence."""

    value: str


class DecimalField(Found):
    """A decimal value, as a string, with its evidence."""

    value: DecimalString


class DateField(Found):
    """A calendar date with its evidence."""

    value: DateString


class CurrencyField(Found):
    """An ISO 4217 currency with its evidence."""

    value: Currency


class PartyField(TextField):
    """A party to a contract and the role that the contract gives it."""

    role: str | None = None


class TaxLine(Model):
    """One tax rate of an invoice; ``rate`` is in per cent."""

    rate: DecimalString | None = None
    base: DecimalString | None = None
    amount: DecimalString | None = None


class InvoiceLine(Model):
    """One line of an invoice."""

    description: str | None = None
    quantity: DecimalString | None = None
    unit_price: DecimalString | None = None
    amount: DecimalString | None = None


class Invoice(Model):
    """What an invoice or receipt says."""

    invoice_number: TextField | None = None
    issue_date: DateField | None = None
    due_date: DateField | None = None
    seller: TextField | None = None
    buyer: TextField | None = None
    seller_tax_id: TextField | None = None
    buyer_tax_id: TextField | None = None
    iban: TextField | None = None
    currency: CurrencyField | None = None
    net_total: DecimalField | None = None
    tax_total: DecimalField | None = None
    total: DecimalField | None = None
    amount_due: DecimalField | None = None
    taxes: list[TaxLine] = []
    lines: list[InvoiceLine] = []


class Contract(Model):
    """What a contract says about itself."""

    title: TextField | None = None
    contract_type: TextField | None = None
    parties: list[PartyField] = []
    agreement_date: DateField | None = None
    effective_date: DateField | None = None
    expiration_date: DateField | None = None
    term: TextField | None = None
    renewal_term: TextField | None = None
    notice_period: TextField | None = None
    termination: TextField | None = None
    governing_law: TextField | None = None
    obligations: list[TextField] = []


class SummarySentence(Model):
    """One sentence taken from the document."""

    text: str
    page: int | None = None
    box: Box | None = None


class Summary(Model):
    """Sentences of the document that say most about it, in the order of the document."""

    text: str
    sentences: list[SummarySentence] = []


class PageSource(StrEnum):
    """Where a page's text came from."""

    TEXT_LAYER = "text_layer"
    OCR = "ocr"
    DOCX = "docx"
    TEXT = "text"


class Page(Model):
    """One page; ``text`` is there when asked for, and always for kind ``text``."""

    number: int
    source: PageSource
    confidence: Confidence | None = None
    text: str | None = None


class ResultWarning(Model):
    """Something to know about an otherwise good result."""

    code: str
    pages: list[int] = []


class NormalizedDocument(Model):
    """What normalize hands to persist: the result without the job's id."""

    kind: Kind
    language: str | None = None
    engine: str
    pages: list[Page]
    warnings: list[ResultWarning] = []
    invoice: Invoice | None = None
    contract: Contract | None = None
    summary: Summary | None = None


class Result(NormalizedDocument):
    """The one result of a job."""

    version: Literal[1] = 1
    job_id: UUID
