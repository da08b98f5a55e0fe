"""What extract hands to normalize: pages with their words and where each stands.

Shape: a word is ``[text, x0, y0, x1, y1, confidence, line]``: a list, because a 600-page manual has
300,000 of them. Boxes are fractions of the page, or of its picture as turned upright, origin top left;
``line`` numbers the page's lines in reading order from 0, so that words of one line stay together.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from schema.wire.results import PageSource

# Bounds also keep out infinity and NaN, which a parser that a document took over might send.
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Word = tuple[str, Fraction, Fraction, Fraction, Fraction, Fraction, int]


class ExtractedPage(BaseModel):
    """One page's text in reading order, its words, and how it was read.

    Units: ``confidence`` 0 to 1 or ``None`` where reading is certain; ``rotation`` in degrees clockwise by
    which the picture was turned upright.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: int
    source: PageSource
    text: str
    confidence: Fraction | None = None
    rotation: Literal[0, 90, 180, 270] = 0
    words: list[Word] = []


class Attachment(BaseModel):
    """An XML invoice that a PDF carries inside (Factur-X, ZUGFeRD, XRechnung, UBL), as text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    xml: str


class ExtractedDocument(BaseModel):
    """All pages of a document that were read; failed ones are named in the stage's warnings."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pages: list[ExtractedPage]
    attachments: list[Attachment] = []
