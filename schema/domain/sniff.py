"""What a file is, judged by its first bytes alone."""

import codecs
import re
from collections.abc import Iterator
from typing import Final

from schema.domain.kinds import MediaType

ZIP: Final = b"PK\x03\x04"
OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
PDF_WINDOW: Final = 1024

# At the very beginning the mark is enough. Further on it may be a text's words about it, unless it begins a line,
# stands behind binary junk, or has behind it the line of binary characters that PDFs have there.
_PDF = re.compile(rb"\A\s*%PDF-|[^\x20-\x7e\t]%PDF-\d|%PDF-\d\.\d\s{1,4}%[\x80-\xff]")
# The first box of a picture from a phone: its length, its brand, a version, and the brands that it is compatible with.
_HEIC: Final = re.compile(rb"ftyp(?:hei|hev)[cxms]")
_PICTURES: Final = (b"ftypmif1", b"ftypmsf1")
_HEVC_BRAND: Final = re.compile(rb"(?:hei|hev)[cxms]")
_BRANDS_BEGIN: Final = 16
# The headers of four TIFF flavours: little and big endian, classic and BigTIFF.
_MAGIC: Final[tuple[tuple[bytes, MediaType], ...]] = (
    (b"\x89PNG\r\n\x1a\n", MediaType.PNG),
    (b"\xff\xd8\xff", MediaType.JPEG),
    (b"II*\x00", MediaType.TIFF),
    (b"MM\x00*", MediaType.TIFF),
    (b"II+\x00", MediaType.TIFF),
    (b"MM\x00+", MediaType.TIFF),
    (ZIP, MediaType.DOCX),
    (OLE, MediaType.DOCX),
)
# Text by its bytes, but written for a machine: shown as text it would be noise.
# Comments may come first; they are passed over for good, as trying them again takes exponential time.
_MARKUP = re.compile(
    r"\s*(?:<!--(?>.*?-->)\s*)*+(?:\{\\rtf|%!PS|<!doctype html|<html\b|<svg\b|<\?xml\b)", re.IGNORECASE | re.DOTALL
)
_BOM_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MAX_CONTROL_SHARE: Final = 0.01
_MIN_ZERO_SHARE: Final = 0.5
_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]")


def sniff(head: bytes) -> MediaType | None:
    """Say what a file that begins with ``head`` claims to be.

    Conservative in what it refuses: any zip may be a DOCX, and so may an OLE file, which is what Word makes
    of a DOCX with a password. Whether it really is one takes the whole file.

    Args:
        head: the first bytes, at least ``PDF_WINDOW`` of them where the file has as many.

    Returns:
        ``None`` when it cannot be any of the accepted types.
    """
    for magic, media_type in _MAGIC:
        if head.startswith(magic):
            return media_type
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return MediaType.WEBP
    if _HEIC.match(head, 4) or _is_general_heic(head):
        return MediaType.HEIC
    if _PDF.search(head, 0, PDF_WINDOW):
        return MediaType.PDF
    return MediaType.TEXT if text_encoding(head) else None


def _is_general_heic(head: bytes) -> bool:
    """Say whether a picture of the general brand is one for phones; AVIF and others have that brand, too."""
    end = min(len(head), int.from_bytes(head[:4], "big"))
    brands = (head[place : place + 4] for place in range(_BRANDS_BEGIN, end, 4))
    return head[4:12] in _PICTURES and any(map(_HEVC_BRAND.fullmatch, brands))


def text_encoding(head: bytes) -> str | None:
    """Say how ``head`` encodes plain text.

    A character cut off at the end does not count against it, nor do a few bytes that are none in UTF-8.

    Returns:
        ``utf-8-sig``, ``utf-16``, ``utf-16-le``, ``utf-16-be`` or ``cp1252``; ``None`` when ``head`` is empty or is
        not plain text.
    """
    for encoding, text in _readings(head):
        if text and _MARKUP.match(text):
            return None
        if text and len(_CONTROLS.findall(text)) <= len(text) * _MAX_CONTROL_SHARE and "\0" not in text:
            return encoding
    return None


def _readings(head: bytes) -> Iterator[tuple[str, str | None]]:
    """Yield the encodings that ``head`` may have, likely ones first, each with the text that it would be."""
    utf16 = "utf-16" if head.startswith(_BOM_UTF16) else _utf16_by_zeros(head)
    if utf16:
        yield utf16, _decoded(head, utf16)
        return
    yield "utf-8-sig", _decoded(head, "utf-8-sig") or _mostly_utf8(head)
    yield "cp1252", _decoded(head, "cp1252")


def _utf16_by_zeros(head: bytes) -> str | None:
    """Say in which half of each pair the zeros stand that Latin letters have in UTF-16."""
    pairs = len(head) // 2
    if pairs and head[1::2].count(0) > pairs * _MIN_ZERO_SHARE:
        return "utf-16-le"
    return "utf-16-be" if pairs and head[::2].count(0) > pairs * _MIN_ZERO_SHARE else None


def _mostly_utf8(head: bytes) -> str | None:
    """Decode what has more characters of several bytes than bytes that are none: other encodings have no such."""
    text = head.decode("utf-8-sig", "replace")
    odd = text.count("\ufffd")
    letters = sum(map(str.isalpha, _BEYOND_ASCII.findall(text)))
    return text if letters > odd else None


def _decoded(head: bytes, encoding: str) -> str | None:
    """Decode all but a cut-off last character; ``None`` when it is not of that encoding."""
    try:
        return codecs.getincrementaldecoder(encoding)("strict").decode(head)
    except UnicodeDecodeError:
        return None
