"""Uploads: multipart/form-data read as it arrives, the file handed on in pieces and never kept whole.

FastAPI's own form parser spools every file to disk before a route sees it; here the first bytes decide whether
the rest is read at all.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Final

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header

from intake.form import Form
from intake.problems import Problem, ProblemCode
from schema.domain.kinds import MediaType
from schema.domain.sniff import sniff
from schema.runtime import metrics

FILE_FIELD: Final = "file"
HEAD_BYTES: Final = 4096
MAX_FIELD_BYTES: Final = 4096
# What fields, boundaries and part headers may add to the file.
MAX_FRAMING_BYTES: Final = 64 * 1024
MAX_DECLARED_TYPE: Final = 255


def boundary_of(content_type: str | None) -> bytes:
    """Return the boundary that a multipart/form-data content type names.

    Raises:
        Problem: ``not_multipart``.
    """
    kind, options = parse_options_header(content_type)
    boundary = options.get(b"boundary")
    if kind != b"multipart/form-data" or not boundary:
        raise Problem(ProblemCode.NOT_MULTIPART)
    return boundary


@dataclass(slots=True)
class _Part:
    """One part of the form while it is read."""

    headers: dict[bytes, bytes] = field(default_factory=dict)
    header_name: bytearray = field(default_factory=bytearray)
    header_value: bytearray = field(default_factory=bytearray)
    name: str = ""
    text: bytearray = field(default_factory=bytearray)


class Upload:
    """One submission's body: iterate ``pieces`` to the end, then all of it is known.

    Raises:
        Problem: whatever is wrong with the body, as soon as it shows.
    """

    def __init__(
        self, body: AsyncGenerator[bytes, None], boundary: bytes, form: Form, *, max_bytes: int, silence_seconds: float
    ) -> None:
        """Take the request's body; nothing of it is read before the first piece is asked for."""
        self.form = form
        self.declared_type: str | None = None
        self.media_type = MediaType.TEXT
        self.size_bytes = 0
        self._body = body
        self._max_bytes = max_bytes
        self._silence_seconds = silence_seconds
        self._part = _Part()
        self._has_file = False
        self._ended = False
        self._pending: list[bytes] = []
        self._parser = self._parser_of(boundary)

    def _parser_of(self, boundary: bytes) -> MultipartParser:
        """Make the parser, which calls back for all that it finds."""
        try:
            return MultipartParser(
                boundary,
                {
                    "on_part_begin": self._on_part_begin,
                    "on_header_field": self._on_header_field,
                    "on_header_value": self._on_header_value,
                    "on_header_end": self._on_header_end,
                    "on_headers_finished": self._on_headers_finished,
                    "on_part_data": self._on_part_data,
                    "on_part_end": self._on_part_end,
                    "on_end": self._on_end,
                },
            )
        except FormParserError:
            raise Problem(ProblemCode.MALFORMED_REQUEST, "The form's boundary is too long.") from None

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the file's bytes; the first piece is long enough to tell what the file is."""
        head, recognized = bytearray(), False
        async for piece in self._file():
            if recognized:
                yield piece
                continue
            head += piece
            if len(head) >= HEAD_BYTES:
                recognized = True
                yield self._recognized(head)
        if not recognized:
            yield self._recognized(head)

    async def _file(self) -> AsyncGenerator[bytes, None]:
        """Yield the file's bytes as they come out of the parser, and see the form to its end."""
        read = 0
        async for data in self._received():
            read += len(data)
            if read > self._max_bytes + MAX_FRAMING_BYTES:
                raise self._too_large(read)
            self._feed(data)
            pending, self._pending = self._pending, []
            for piece in pending:
                self._count(piece)
                yield piece
        if not self._ended:
            raise Problem(ProblemCode.MALFORMED_REQUEST, "The form ends before its last boundary.")
        if not self._has_file:
            raise Problem(ProblemCode.MALFORMED_REQUEST, "The form has no part named file.")
        self.form.wishes()

    async def _received(self) -> AsyncGenerator[bytes, None]:
        """Yield the body, as long as it goes on coming."""
        while True:
            try:
                async with asyncio.timeout(self._silence_seconds):
                    data = await anext(self._body, None)
            except TimeoutError:
                raise Problem(ProblemCode.UPLOAD_STALLED) from None
            if data is None:
                return
            yield data

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.write(data)
        except FormParserError:
            raise Problem(ProblemCode.MALFORMED_REQUEST, "The form is not valid multipart/form-data.") from None

    def _count(self, piece: bytes) -> None:
        self.size_bytes += len(piece)
        metrics.UPLOAD_BYTES.inc(len(piece))
        if self.size_bytes > self._max_bytes:
            raise self._too_large(self.size_bytes)

    def _too_large(self, actual: int) -> Problem:
        """Refuse with the size that was reached: how much more would have come is not known."""
        return Problem(ProblemCode.DOCUMENT_TOO_LARGE, limit=self._max_bytes, actual=actual)

    def _recognized(self, head: bytearray) -> bytes:
        """Find out what the file is, or refuse it at once; return its first bytes."""
        first = bytes(head)
        if not first:
            raise Problem(ProblemCode.EMPTY_DOCUMENT)
        media_type = sniff(first)
        if media_type is None:
            raise Problem(ProblemCode.UNSUPPORTED_TYPE)
        self.media_type = media_type
        return first

    def _on_part_begin(self) -> None:
        self._part = _Part()

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._part.header_name += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._part.header_value += data[start:end]

    def _on_header_end(self) -> None:
        part = self._part
        part.headers[bytes(part.header_name).lower()] = bytes(part.header_value)
        part.header_name.clear()
        part.header_value.clear()

    def _on_headers_finished(self) -> None:
        """Find out which field the part is; a file's name is not even looked at."""
        _, options = parse_options_header(self._part.headers.get(b"content-disposition"))
        self._part.name = options.get(b"name", b"").decode("utf-8", "replace")
        if self._part.name != FILE_FIELD:
            return
        if self._has_file:
            raise Problem(ProblemCode.MALFORMED_REQUEST, "The form has more than one file.")
        self._has_file = True
        declared = self._part.headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
        # What is not printable is no type, and a NUL is nothing that PostgreSQL takes.
        self.declared_type = declared[:MAX_DECLARED_TYPE] if declared.isprintable() and declared else None

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._part.name == FILE_FIELD:
            self._pending.append(data[start:end])
            return
        if len(self._part.text) + end - start > MAX_FIELD_BYTES:
            raise Problem(ProblemCode.MALFORMED_REQUEST, "A field is too long.", limit=MAX_FIELD_BYTES)
        self._part.text += data[start:end]

    def _on_part_end(self) -> None:
        if self._part.name == FILE_FIELD:
            return
        try:
            text = self._part.text.decode()
        except UnicodeDecodeError:
            raise Problem(ProblemCode.MALFORMED_REQUEST, "A field is not UTF-8.") from None
        self.form.add(self._part.name, text)

    def _on_end(self) -> None:
        self._ended = True
