"""The operation ``inspect``: what a document is, whether it can be read, and by which lane."""

from collections.abc import Sequence
from typing import Any, Final

from schema.domain.errors import ErrorCode, PermanentError
from schema.domain.kinds import MediaType
from schema.domain.limits import limits_from_json
from schema.domain.options import JobOptions, options_from_json
from stages.adapters.image import ImageReader
from stages.adapters.pages import PageError, PageReader
from stages.adapters.pdf import PdfReader
from stages.adapters.sniff import identify
from stages.adapters.tesseract import Tesseract, usable_languages
from stages.child.call import Call
from stages.child.reading import opened

_LOOKED_AT: Final = 8


def inspect(call: Call) -> dict[str, Any]:
    """Look at a document without reading it.

    Shape: the request has ``limits``, ``options`` and, when no bytes came along, ``path``; the answer
    ``media_type``, ``pages_total`` (of the document), ``pages_wanted`` (as asked), ``recognition``: whether pages
    have to be recognized, and ``animation``: whether only the first of several pictures is a page.

    Raises:
        PermanentError: with the code for what is wrong with the document.
    """
    limits = limits_from_json(call.request["limits"])
    options = options_from_json(call.request["options"])
    source = call.document()
    media_type = identify(source)
    if options.languages and (media_type.is_image or media_type is MediaType.PDF):
        usable_languages(options.languages)
    recognizer = Tesseract(options.languages, tool_seconds=0, scratch=call.scratch)
    with opened(media_type, source, limits, recognizer) as reader:
        wanted = wanted_pages(reader, options)
        return {
            "media_type": media_type,
            "pages_total": reader.pages,
            "pages_wanted": len(wanted),
            "recognition": media_type.is_image
            or (isinstance(reader, PdfReader) and _wants_recognition(reader, wanted)),
            "animation": isinstance(reader, ImageReader) and reader.is_animation,
        }


def wanted_pages(reader: PageReader, options: JobOptions) -> list[int]:
    """Return the numbers of the pages that were asked for and exist.

    Raises:
        PermanentError: ``page_out_of_range``, when there is none.
    """
    wanted = [number for number in range(1, reader.pages + 1) if options.wants(number)]
    if not wanted:
        first = min((low for low, _ in options.pages), default=1)
        raise PermanentError(ErrorCode.PAGE_OUT_OF_RANGE, limit=reader.pages, actual=first)
    return wanted


def _wants_recognition(reader: PdfReader, wanted: Sequence[int]) -> bool:
    """Look at a few pages, evenly spread, until one has no usable text layer.

    Raises:
        PermanentError: when there are no more pages than looked at and none can be read.
    """
    step = max(1, -(-len(wanted) // _LOOKED_AT))
    looked_at = wanted[::step]
    failures: list[PageError] = []
    for number in looked_at:
        try:
            if reader.wants_recognition(number):
                return True
        except PageError as error:
            failures.append(error)
    if len(failures) == len(wanted):
        raise failures[0].as_failure()
    return False
