"""PDFs by PDFium: opening, text layers, rendering for OCR, embedded invoices."""

import ctypes
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pypdfium2
import pypdfium2.raw as pdfium

from schema.domain.errors import ErrorCode, PermanentError
from schema.domain.limits import DocumentLimits, LimitName
from schema.wire.results import PageSource
from stages.adapters.clean import clean
from stages.adapters.ocr import Picture, TextRecognizer, is_blank
from stages.adapters.pages import PageError, PageText
from stages.adapters.pictures import check_drawable, covered
from stages.adapters.source import Source
from stages.adapters.textlayer import Survey, read_layer, survey

_POINTS_PER_INCH: Final = 72
_RENDER_DPI: Final = 300
_MIN_RENDER_DPI: Final = 100
_FEW_CHARS: Final = 100
_MAX_ATTACHMENTS: Final = 50
_MAX_TOLD: Final = (1 << 53) - 1
_INVOICE_NAMES: Final = frozenset(
    {"factur-x.xml", "zugferd-invoice.xml", "xrechnung.xml", "order-x.xml", "cii.xml", "ubl.xml"}
)
_INVOICE_ROOT = re.compile(r"<(?:[\w.-]{1,40}:)?(?:CrossIndustryInvoice|CrossIndustryDocument|Invoice|CreditNote)[\s>]")
_XML_DECLARATION = re.compile(r"\s*<\?xml[^>]*\?>")
_ENCODING = re.compile(rb"""encoding=["']([A-Za-z0-9._-]{1,40})["']""")


class PdfReader:
    """A PDF opened for reading."""

    def __init__(self, source: Source, limits: DocumentLimits, recognizer: TextRecognizer) -> None:
        """Open the file.

        Raises:
            PermanentError: ``password_required``, ``corrupt_document``, ``empty_document`` or
                ``too_many_pages``.
        """
        self._limits = limits
        self._recognizer = recognizer
        self._document = _open(source)
        self.pages = len(self._document)
        if self.pages > limits.max_pages:
            self.close()
            raise PermanentError(
                ErrorCode.TOO_MANY_PAGES, limit=limits.max_pages, actual=self.pages, limit_name=LimitName.PAGES
            )
        self._has_form = self._document.get_formtype() != pdfium.FORMTYPE_NONE

    def read(self, number: int) -> PageText:
        """Take the page's text layer where it is real text, else recognize the page's picture."""
        with self._page(number) as page:
            found = survey(page)
            if not needs_recognition(page, found):
                return self._from_layer(page)
            recognized = self._recognizer.recognize(self._render(page))
            if found.garbage or not found.visible:
                return recognized
            layer = self._from_layer(page)
        return recognized if len(recognized.text) >= len(layer.text) else layer

    def wants_recognition(self, number: int) -> bool:
        """Say whether a page has to be rendered and recognized.

        Raises:
            PageError: when the page cannot be read, or would be too large a picture.
        """
        with self._page(number) as page:
            wanted = needs_recognition(page, survey(page))
            if wanted:
                render_dpi(page, self._limits)
            return wanted

    def attachments(self) -> list[dict[str, str]]:
        """Return the invoices embedded as XML."""
        with _pdfium_errors():
            count = min(self._document.count_attachments(), _MAX_ATTACHMENTS)
        found = []
        for index in range(count):
            # A damaged attachment is no reason to lose the pages.
            try:
                with _pdfium_errors():
                    attachment = self._document.get_attachment(index)
                    name, data = attachment.get_name(), self._content(attachment)
            except PageError:
                continue
            if data and (xml := invoice_xml(name, data)):
                found.append({"name": clean(name), "xml": xml})
        return found

    def close(self) -> None:
        """Let go of the document."""
        self._document.close()

    def _from_layer(self, page: pypdfium2.PdfPage) -> PageText:
        """Return the page as its text layer has it."""
        layer = read_layer(page, self._limits.max_page_chars)
        return PageText(PageSource.TEXT_LAYER, layer.text, words=layer.words)

    def _content(self, attachment: pypdfium2.PdfAttachment) -> bytes | None:
        """Return the attachment's bytes; ``None`` when they are too many."""
        size = ctypes.c_ulong()
        told = pdfium.FPDFAttachment_GetFile(attachment, None, 0, ctypes.byref(size))
        if not told or not 0 < size.value <= self._limits.max_attachment_bytes:
            return None
        return bytes(attachment.get_data())

    @contextmanager
    def _page(self, number: int) -> Iterator[pypdfium2.PdfPage]:
        """Open a page, with what its form fields show drawn into it."""
        with _pdfium_errors():
            page = self._document[number - 1]
            try:
                if self._has_form and pdfium.FPDFPage_Flatten(page, pdfium.FLAT_NORMALDISPLAY) == 1:
                    page.close()
                    page = self._document[number - 1]
                yield page
            finally:
                page.close()

    def _render(self, page: pypdfium2.PdfPage) -> Picture:
        """Draw the page in grey."""
        dpi = render_dpi(page, self._limits)
        bitmap = page.render(scale=dpi / _POINTS_PER_INCH, grayscale=True, may_draw_forms=False)
        try:
            picture = Picture(bitmap.to_pil().convert("L").copy(), dpi)
        finally:
            bitmap.close()
        if is_blank(picture):
            check_drawable(page, self._limits)
        return picture


def needs_recognition(page: pypdfium2.PdfPage, layer: Survey) -> bool:
    """Say whether the page may show text that its text layer does not have."""
    if layer.garbage:
        return True
    if not layer.visible:
        return bool(pdfium.FPDFPage_CountObjects(page) > 0)
    return layer.visible < _FEW_CHARS and covered(page)


def render_dpi(page: pypdfium2.PdfPage, limits: DocumentLimits) -> int:
    """Return the resolution at which the page has no more pixels than allowed.

    Raises:
        PageError: ``image_too_large``, when that would be too coarse to read.
    """
    width, height = page.get_size()
    square_points = width * height
    if not math.isfinite(square_points) or square_points <= 0:
        raise PageError
    by_pixels = math.sqrt(limits.max_pixels / square_points) * _POINTS_PER_INCH
    by_side = limits.max_side / max(width, height) * _POINTS_PER_INCH
    coarse = _MIN_RENDER_DPI / _POINTS_PER_INCH
    if by_pixels < _MIN_RENDER_DPI:
        raise _too_large(LimitName.PIXELS, limits.max_pixels, square_points * coarse**2)
    if by_side < _MIN_RENDER_DPI:
        raise _too_large(LimitName.SIDE, limits.max_side, max(width, height) * coarse)
    return min(_RENDER_DPI, int(by_pixels), int(by_side))


def _too_large(name: LimitName, limit: int, actual: float) -> PageError:
    """Return the error of a page that is too large at the coarsest resolution that can be read."""
    return PageError(ErrorCode.IMAGE_TOO_LARGE, limit=limit, actual=min(int(actual), _MAX_TOLD), limit_name=name)


def invoice_xml(name: str, data: bytes) -> str | None:
    """Return an embedded invoice as text without its XML declaration; ``None`` for any other attachment."""
    if not name.lower().endswith(".xml"):
        return None
    declared = _ENCODING.search(data[:200])
    encoding = declared.group(1).decode() if declared else "utf-8"
    try:
        xml = data.decode("utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else encoding)
    except (UnicodeDecodeError, LookupError):
        return None
    xml = clean(_XML_DECLARATION.sub("", xml.removeprefix("\ufeff"), count=1))
    return xml if name.lower() in _INVOICE_NAMES or _INVOICE_ROOT.search(xml[:4096]) else None


def _open(source: Source) -> pypdfium2.PdfDocument:
    """Open the file without a password."""
    # PDFium keeps the last error of any file, and some failures set none: this sets a known one first.
    pdfium.FPDF_LoadDocument(b"/dev/null/absent", None)
    try:
        return pypdfium2.PdfDocument(source.handle())
    except pypdfium2.PdfiumError as error:
        match error.err_code:
            case pdfium.FPDF_ERR_PASSWORD | pdfium.FPDF_ERR_SECURITY:
                code = ErrorCode.PASSWORD_REQUIRED
            case pdfium.FPDF_ERR_FILE:
                # Our own: the file's structure is sound, but there is no page in it.
                code = ErrorCode.EMPTY_DOCUMENT
            case _:
                code = ErrorCode.CORRUPT_DOCUMENT
        raise PermanentError(code) from None


@contextmanager
def _pdfium_errors() -> Iterator[None]:
    """Turn what pypdfium2 raises about a damaged page into ``PageError``."""
    try:
        yield
    except (pypdfium2.PdfiumError, AssertionError, OverflowError, ctypes.ArgumentError):
        raise PageError from None
