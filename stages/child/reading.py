"""Opens a document with the adapter of its type."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from schema.domain.kinds import MediaType
from schema.domain.limits import DocumentLimits
from stages.adapters.docx import DocxReader
from stages.adapters.image import ImageReader
from stages.adapters.ocr import TextRecognizer
from stages.adapters.pages import PageReader
from stages.adapters.pdf import PdfReader
from stages.adapters.source import Source
from stages.adapters.text import TextReader


@contextmanager
def opened(
    media_type: MediaType, source: Source, limits: DocumentLimits, recognizer: TextRecognizer
) -> Iterator[PageReader]:
    """Open the document for as long as the context lasts."""
    with closing(_reader(media_type, source, limits, recognizer)) as reader:
        yield reader


def _reader(media_type: MediaType, source: Source, limits: DocumentLimits, recognizer: TextRecognizer) -> PageReader:
    """Choose the adapter."""
    match media_type:
        case MediaType.PDF:
            return PdfReader(source, limits, recognizer)
        case MediaType.DOCX:
            return DocxReader(source, limits)
        case MediaType.TEXT:
            return TextReader(source, limits)
        case _:
            return ImageReader(source, limits, recognizer)
