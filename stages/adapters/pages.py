"""Pages as readers make them, and how a page fails."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from schema.domain.errors import ErrorCode, PermanentError, StageError, TransientError
from schema.domain.limits import LimitName
from schema.wire.results import PageSource

Word = tuple[str, float, float, float, float, float, int]


class PageError(Exception):
    """One page cannot be read; the others may be.

    Args:
        code: what the job fails with when all its pages are like this one.
        limit: the limit that the page exceeds, when there is one.
        actual: what it has instead.
        limit_name: which limit it is.
    """

    def __init__(
        self,
        code: ErrorCode = ErrorCode.CORRUPT_DOCUMENT,
        *,
        limit: int | None = None,
        actual: int | None = None,
        limit_name: LimitName | None = None,
    ) -> None:
        """Keep the code and the numbers."""
        super().__init__(code.value)
        self.code = code
        self.limit = limit
        self.actual = actual
        self.limit_name = limit_name

    def as_failure(self) -> StageError:
        """Return the error of a document without a single page that can be read."""
        if self.code is ErrorCode.PARSER_TIMEOUT:
            return TransientError(self.code)
        return PermanentError(self.code, limit=self.limit, actual=self.actual, limit_name=self.limit_name)


@dataclass(frozen=True, slots=True)
class PageText:
    """What was read on one page; boxes and ``rotation`` as in ``schema.wire.pages``."""

    source: PageSource
    text: str
    confidence: float | None = None
    rotation: int = 0
    words: Sequence[Word] = ()

    def as_json(self, number: int) -> dict[str, Any]:
        """Return an ``ExtractedPage`` as JSON."""
        return {
            "number": number,
            "source": self.source.value,
            "text": self.text,
            "confidence": self.confidence,
            "rotation": self.rotation,
            "words": self.words,
        }


class PageReader(Protocol):
    """A document opened for reading page by page."""

    @property
    def pages(self) -> int:
        """How many pages there are."""

    def read(self, number: int) -> PageText:
        """Read one page, counted from 1; raises ``PageError`` when it cannot be read."""

    def attachments(self) -> list[dict[str, str]]:
        """Return embedded invoices as JSON (``schema.wire.pages.Attachment``)."""

    def close(self) -> None:
        """Let go of the document."""
