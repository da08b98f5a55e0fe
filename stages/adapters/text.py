"""Plain text."""

from schema.domain.errors import ErrorCode, PermanentError
from schema.domain.limits import DocumentLimits
from schema.domain.sniff import text_encoding
from schema.wire.results import PageSource
from stages.adapters.clean import clean
from stages.adapters.pages import PageText
from stages.adapters.source import Source


class TextReader:
    """A plain text; form feeds part its pages, and so does excessive length."""

    def __init__(self, source: Source, limits: DocumentLimits) -> None:
        """Read and decode the whole text."""
        text = decode(source.read())
        if not text.strip():
            raise PermanentError(ErrorCode.EMPTY_DOCUMENT)
        self._pages = [
            part for page in text.removesuffix("\f").split("\f") for part in split_long(page, limits.max_page_chars)
        ]

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return len(self._pages)

    def read(self, number: int) -> PageText:
        """Return one page as it is."""
        return PageText(PageSource.TEXT, clean(self._pages[number - 1]))

    def attachments(self) -> list[dict[str, str]]:
        """Return nothing: a text has no attachments."""
        return []

    def close(self) -> None:
        """Let go of the text."""
        self._pages = []


def decode(data: bytes) -> str:
    """Decode text of any of the accepted encodings; a byte that is none of it becomes the mark of what is unknown."""
    return data.decode(text_encoding(data) or "latin-1", "replace")


def split_long(page: str, max_chars: int) -> list[str]:
    """Cut a page that is too long for one piece, at line ends where there are any."""
    parts: list[str] = []
    while len(page) > max_chars:
        cut = page.rfind("\n", 0, max_chars) + 1 or max_chars
        parts.append(page[:cut])
        page = page[cut:]
    return [*parts, page]
