"""Makes the sample documents beside this file: ``python -m deploy.samples.make_samples``.

Companies, people and numbers are invented; the bank account is the one that banks use in examples. Needs the
development dependencies (reportlab, python-docx).
"""

import io
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Final

import pypdfium2
from docx import Document
from docx.document import Document as WordDocument
from PIL import Image, ImageFilter
from reportlab.lib.units import mm  # type: ignore[import-untyped]  # it has no stubs of its own
from reportlab.lib.utils import ImageReader  # type: ignore[import-untyped]  # it has no stubs of its own
from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped]  # it has no stubs of its own

from deploy.samples.texts import (
    CONTRACT,
    CONTRACT_OPENING,
    FEES,
    INVOICE_BUYER,
    INVOICE_FACTS,
    INVOICE_FOOTER,
    INVOICE_SELLER,
    INVOICE_TERMS,
    LETTER,
    MINUTES,
    RECEIPT,
)

HERE: Final = Path(__file__).parent
A4: Final = (210 * mm, 297 * mm)
CENT: Final = Decimal("0.01")
CHANCE: Final = random.Random(7)  # noqa: S311 - the same noise every time


@dataclass(frozen=True, slots=True)
class Item:
    """One line of the invoice; ``rate`` is the tax in per cent."""

    description: str
    quantity: int
    price: Decimal
    rate: int = 19

    @property
    def amount(self) -> Decimal:
        """The line's net amount."""
        return self.quantity * self.price


ITEMS: Final = (
    Item("Drehstuhl »Fjord«, Netzrücken, schwarz", 4, Decimal("189.00")),
    Item("Schreibtisch 160 x 80 cm, höhenverstellbar", 2, Decimal("429.50")),
    Item("Kopierpapier A4, 80 g, Karton zu 5 x 500 Blatt", 12, Decimal("22.95")),
    Item("Fachbuch »Ergonomie am Arbeitsplatz«", 3, Decimal("34.90"), rate=7),
    Item("Lieferung und Aufbau, pauschal", 1, Decimal("95.00")),
)


def main() -> None:
    """Write all samples."""
    (HERE / "invoice.pdf").write_bytes(invoice())
    (HERE / "letter-scan.pdf").write_bytes(scanned(letter()))
    (HERE / "receipt-photo.jpg").write_bytes(photograph(receipt()))
    contract().save(str(HERE / "contract.docx"))
    (HERE / "minutes.txt").write_text(MINUTES, encoding="utf-8")


def money(amount: Decimal) -> str:
    """Write an amount as Germans do."""
    return f"{amount.quantize(CENT):,}".translate(str.maketrans(",.", ".,"))


def invoice() -> bytes:
    """Make a German invoice with a text layer."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    canvas.setTitle("Rechnung")
    _write(canvas, 20, 275, INVOICE_SELLER, size=9)
    _write(canvas, 20, 240, INVOICE_BUYER, size=11)
    _write(canvas, 130, 240, INVOICE_FACTS, size=10)
    canvas.setFont("Helvetica-Bold", 15)
    canvas.drawString(20 * mm, 192 * mm, "Rechnung RE-2026-00417")
    bottom = _invoice_table(canvas, 180)
    _write(canvas, 20, bottom - 14, INVOICE_TERMS, size=10)
    _write(canvas, 20, 22, INVOICE_FOOTER, size=8)
    canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def _invoice_table(canvas: Canvas, top: float) -> float:
    """Draw lines and sums; return where they end, in millimetres."""
    rows: list[Sequence[str]] = [("Pos.", "Bezeichnung", "Menge", "Einzelpreis", "USt.", "Betrag EUR")]
    rows += [
        (str(number), item.description, str(item.quantity), money(item.price), f"{item.rate} %", money(item.amount))
        for number, item in enumerate(ITEMS, 1)
    ]
    _rows(canvas, top, rows)
    canvas.line(20 * mm, (top - 2) * mm, 190 * mm, (top - 2) * mm)
    net = sum((item.amount for item in ITEMS), Decimal(0))
    taxes = {
        rate: sum((item.amount for item in ITEMS if item.rate == rate), Decimal(0)) * rate / 100 for rate in (19, 7)
    }
    sums = [("", "", "", "", "Zwischensumme netto", money(net))]
    sums += [("", "", "", "", f"zzgl. {rate} % USt.", money(tax)) for rate, tax in taxes.items()]
    total = net + sum(tax.quantize(CENT) for tax in taxes.values())
    sums.append(("", "", "", "", "Gesamtbetrag", money(total)))
    below = top - 7 * len(rows) - 4
    _rows(canvas, below, sums)
    return below - 7 * len(sums)


def _rows(canvas: Canvas, top: float, rows: Sequence[Sequence[str]]) -> None:
    """Draw rows of cells: the first two set left, numbers set right."""
    edges = (20, 31, 122, 148, 168, 190)
    for index, row in enumerate(rows):
        canvas.setFont("Helvetica-Bold" if row[0] == "Pos." or row[4] == "Gesamtbetrag" else "Helvetica", 9.5)
        y = (top - 7 * index) * mm
        for column, text in enumerate(row):
            x = edges[column] * mm
            if column <= 1:
                canvas.drawString(x, y, text)
            else:
                canvas.drawRightString(x, y, text)


def letter() -> list[Image.Image]:
    """Draw a letter of two pages."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    for text in LETTER:
        _write(canvas, 25, 270, text, size=11.5, font="Times-Roman", leading=1.45)
        canvas.showPage()
    canvas.save()
    return _rendered(buffer.getvalue(), dpi=150)


def scanned(pages: Sequence[Image.Image]) -> bytes:
    """Make a PDF of pictures, as a scanner does: a little turned, a little grey, a little noise."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    for page, angle in zip(pages, (0.6, -0.4), strict=True):
        turned = page.rotate(angle, resample=Image.Resampling.BICUBIC, fillcolor=250)
        dirty = _noisy(turned.point(lambda value: 30 + value * 0.84), 14).filter(ImageFilter.GaussianBlur(0.5))
        picture = ImageReader(io.BytesIO(_jpeg(dirty, 42)))
        canvas.drawImage(picture, 0, 0, *A4)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def receipt() -> Image.Image:
    """Draw a till receipt."""
    buffer = io.BytesIO()
    size = (56 * mm, 106 * mm)
    canvas = Canvas(buffer, pagesize=size, invariant=1)
    _write(canvas, 5, 98, RECEIPT, size=9, font="Courier-Bold")
    canvas.showPage()
    canvas.save()
    return _rendered(buffer.getvalue(), dpi=260)[0]


def photograph(paper: Image.Image) -> bytes:
    """Lay the paper on a table and take its picture, from a little aside and in poor light."""
    width, height = paper.size
    table = Image.new("RGB", (width + 180, height + 160), (104, 78, 58))
    table.paste(paper.convert("RGB"), (90, 80))
    w, h = table.size
    quad = (8, 5, -9, h + 4, w + 7, h - 8, w - 4, 12)
    aslant = table.transform(table.size, Image.Transform.QUAD, quad, Image.Resampling.BICUBIC)
    turned = aslant.rotate(0.7, resample=Image.Resampling.BICUBIC, fillcolor=(104, 78, 58))
    light = Image.linear_gradient("L").resize(turned.size).point(lambda value: 205 + value // 6)
    lit = Image.composite(turned, Image.new("RGB", turned.size, (60, 58, 54)), light)
    return _jpeg(_noisy(lit, 18).filter(ImageFilter.GaussianBlur(0.6)), 60)


def contract() -> WordDocument:
    """Write a contract with a table, numbered clauses, a header and a footer."""
    document = Document()
    when = datetime(2026, 1, 15, tzinfo=UTC)
    document.core_properties.created = document.core_properties.modified = when
    document.core_properties.author = ""
    section = document.sections[0]
    section.header.paragraphs[0].text = "Confidential"
    section.footer.paragraphs[0].text = "Maintenance Agreement MA-2026-018"
    document.add_heading("MAINTENANCE AGREEMENT", 0)
    for text in CONTRACT_OPENING:
        document.add_paragraph(text)
    for heading, clauses in CONTRACT:
        document.add_heading(heading, 1)
        for clause in clauses:
            document.add_paragraph(clause)
        if heading.startswith("3."):
            _fees(document)
    document.add_paragraph("Signed for Alder Facilities Ltd\t\tSigned for Brightwater Lifts GmbH")
    return document


def _fees(document: WordDocument) -> None:
    """Add the table of fees."""
    table = document.add_table(rows=0, cols=3, style="Table Grid")
    for row in FEES:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text


def _write(
    canvas: Canvas, x: float, y: float, text: str, *, size: float, font: str = "Helvetica", leading: float = 1.3
) -> None:
    """Write lines from a point in millimetres downwards."""
    canvas.setFont(font, size)
    for index, line in enumerate(text.strip("\n").split("\n")):
        canvas.drawString(x * mm, y * mm - index * size * leading, line)


def _rendered(pdf: bytes, *, dpi: int) -> list[Image.Image]:
    """Draw a PDF's pages in grey."""
    document = pypdfium2.PdfDocument(pdf)
    return [page.render(scale=dpi / 72, grayscale=True).to_pil().convert("L") for page in document]


def _noisy(image: Image.Image, strength: int) -> Image.Image:
    """Add noise."""
    noise = Image.frombytes("L", image.size, CHANCE.randbytes(image.width * image.height))
    return Image.blend(image, noise.convert(image.mode), strength / 255)


def _jpeg(image: Image.Image, quality: int) -> bytes:
    """Return a picture as a JPEG file."""
    buffer = io.BytesIO()
    image.save(buffer, format="JPEG", quality=quality, optimize=True)
    return buffer.getvalue()


if __name__ == "__main__":
    main()
