"""The pictures on a PDF page: how much of it they cover, and whether they can be drawn at all."""

import ctypes
from collections.abc import Iterator
from typing import Final

import pypdfium2
import pypdfium2.raw as pdfium

from schema.domain.errors import ErrorCode
from schema.domain.limits import DocumentLimits, LimitName
from stages.adapters.pages import PageError

_COVERING_SHARE: Final = 0.5
_MAX_DEPTH: Final = 3


def covered(page: pypdfium2.PdfPage) -> bool:
    """Say whether pictures cover most of the page."""
    width, height = page.get_size()
    share = 0.0
    for item in _pictures(page):
        left, bottom, right, top = item.get_bounds()
        share += max(0.0, right - left) * max(0.0, top - bottom)
    return bool(share > width * height * _COVERING_SHARE)


def check_drawable(page: pypdfium2.PdfPage, limits: DocumentLimits) -> None:
    """Tell a page that shows nothing from one whose pictures PDFium passes over in silence.

    Raises:
        PageError: when there are pictures, and none that can be decoded.
    """
    failures = [_failure(item, limits) for item in _pictures(page)]
    if failures and all(failures):
        raise failures[0] or PageError


def _pictures(page: pypdfium2.PdfPage) -> Iterator[pypdfium2.PdfObject]:
    """Yield the page's pictures, also those inside of forms."""
    yield from page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=_MAX_DEPTH)


def _failure(item: pypdfium2.PdfObject, limits: DocumentLimits) -> PageError | None:
    """Return why a picture cannot be decoded, if so."""
    bitmap = pdfium.FPDFImageObj_GetBitmap(item)
    if bitmap:
        pdfium.FPDFBitmap_Destroy(bitmap)
        return None
    width, height = ctypes.c_uint(), ctypes.c_uint()
    pdfium.FPDFImageObj_GetImagePixelSize(item, width, height)
    pixels = width.value * height.value
    if pixels <= limits.max_pixels:
        return PageError()
    return PageError(ErrorCode.IMAGE_TOO_LARGE, limit=limits.max_pixels, actual=pixels, limit_name=LimitName.PIXELS)
