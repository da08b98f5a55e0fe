"""Owned errors: every way a job can go wrong has a stable code, a category and a sentence for people."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from schema.domain.kinds import ACCEPTED
from schema.domain.limits import LimitName


class Category(StrEnum):
    """What kind of thing went wrong, and so whose turn it is."""

    DOCUMENT = "document"
    LIMIT = "limit"
    DEPENDENCY = "dependency"
    TIMEOUT = "timeout"
    WORKER = "worker"
    MESSAGE = "message"
    INTERNAL = "internal"


class ErrorCode(StrEnum):
    """Stable codes of failed attempts and jobs; they are part of the API and never change meaning."""

    UNSUPPORTED_TYPE = "unsupported_type"
    PASSWORD_REQUIRED = "password_required"  # noqa: S105 - a code, not a password
    CORRUPT_DOCUMENT = "corrupt_document"
    EMPTY_DOCUMENT = "empty_document"
    TOO_MANY_PAGES = "too_many_pages"
    IMAGE_TOO_LARGE = "image_too_large"
    ARCHIVE_BOMB = "archive_bomb"
    LANGUAGE_UNAVAILABLE = "language_unavailable"
    PAGE_FAILED = "page_failed"
    PAGE_OUT_OF_RANGE = "page_out_of_range"
    PAGE_TOO_LONG = "page_too_long"
    MEMORY_LIMIT = "memory_limit"
    SCRATCH_LIMIT = "scratch_limit"
    DOCUMENT_TOO_LONG = "document_too_long"
    DOCUMENT_GONE = "document_gone"
    PARSER_CRASHED = "parser_crashed"
    PARSER_TIMEOUT = "parser_timeout"
    STAGE_TIMEOUT = "stage_timeout"
    STORAGE_UNAVAILABLE = "storage_unavailable"
    SCRATCH_FULL = "scratch_full"
    MODEL_UNAVAILABLE = "model_unavailable"
    MODEL_REJECTED = "model_rejected"
    MODEL_REFUSED = "model_refused"
    MODEL_ANSWER_INVALID = "model_answer_invalid"
    INVALID_OUTPUT = "invalid_output"
    INTERNAL_ERROR = "internal_error"
    WORKER_LOST = "worker_lost"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    DELIVERY_LIMIT = "delivery_limit"
    UNREADABLE_MESSAGE = "unreadable_message"
    UNKNOWN_MESSAGE_VERSION = "unknown_message_version"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a code says to people: its category, one plain sentence, and whether trying again can help."""

    category: Category
    sentence: str
    retryable: bool = False


MEANINGS: dict[ErrorCode, Meaning] = {
    ErrorCode.UNSUPPORTED_TYPE: Meaning(
        Category.DOCUMENT,
        f"The file is of a type that is not accepted; send {ACCEPTED}.",
    ),
    ErrorCode.PASSWORD_REQUIRED: Meaning(
        Category.DOCUMENT, "The file needs a password to be opened; send it without one."
    ),
    ErrorCode.CORRUPT_DOCUMENT: Meaning(Category.DOCUMENT, "The file is damaged: no page could be read."),
    ErrorCode.EMPTY_DOCUMENT: Meaning(Category.DOCUMENT, "The file has no pages."),
    ErrorCode.TOO_MANY_PAGES: Meaning(Category.LIMIT, "The document has more pages than allowed; send it in parts."),
    ErrorCode.IMAGE_TOO_LARGE: Meaning(
        Category.LIMIT, "A picture or page has more pixels than allowed; send it in a lower resolution."
    ),
    ErrorCode.ARCHIVE_BOMB: Meaning(
        Category.LIMIT, "The file unpacks to more data than allowed for its size or its type."
    ),
    ErrorCode.LANGUAGE_UNAVAILABLE: Meaning(
        Category.DOCUMENT, "A requested language is not installed for text recognition; see the limits page."
    ),
    ErrorCode.PAGE_FAILED: Meaning(
        Category.DOCUMENT, "A page could not be read, and the job was strict about every page."
    ),
    ErrorCode.PAGE_OUT_OF_RANGE: Meaning(Category.DOCUMENT, "The requested pages are not in the document."),
    ErrorCode.MEMORY_LIMIT: Meaning(
        Category.LIMIT, "Reading the document needs more memory than allowed; send it in parts."
    ),
    ErrorCode.PAGE_TOO_LONG: Meaning(Category.LIMIT, "A page has more text than allowed."),
    ErrorCode.SCRATCH_LIMIT: Meaning(
        Category.LIMIT, "Reading the document needs more room for temporary files than allowed; send it in parts."
    ),
    ErrorCode.DOCUMENT_TOO_LONG: Meaning(
        Category.LIMIT, "The document has more text than the language model takes; send it in parts."
    ),
    ErrorCode.DOCUMENT_GONE: Meaning(Category.DOCUMENT, "The stored document is no longer there."),
    ErrorCode.PARSER_CRASHED: Meaning(Category.WORKER, "The process reading the document crashed.", retryable=True),
    ErrorCode.PARSER_TIMEOUT: Meaning(
        Category.TIMEOUT, "Reading the document made no progress in the time allowed.", retryable=True
    ),
    ErrorCode.STAGE_TIMEOUT: Meaning(Category.TIMEOUT, "The stage did not end in the time allowed.", retryable=True),
    ErrorCode.STORAGE_UNAVAILABLE: Meaning(
        Category.DEPENDENCY, "The object store could not be reached.", retryable=True
    ),
    ErrorCode.SCRATCH_FULL: Meaning(Category.DEPENDENCY, "There was no room for temporary files.", retryable=True),
    ErrorCode.MODEL_UNAVAILABLE: Meaning(Category.DEPENDENCY, "The language model did not answer.", retryable=True),
    ErrorCode.MODEL_REJECTED: Meaning(
        Category.DEPENDENCY, "The language model's provider does not take the operator's requests.", retryable=True
    ),
    ErrorCode.MODEL_REFUSED: Meaning(
        Category.DOCUMENT, "The language model, or a filter before it, would not answer about this document."
    ),
    ErrorCode.MODEL_ANSWER_INVALID: Meaning(
        Category.DEPENDENCY, "The language model's answers were cut off or not of the form asked for.", retryable=True
    ),
    ErrorCode.INVALID_OUTPUT: Meaning(
        Category.INTERNAL, "A stage produced a result that does not fit its own contract.", retryable=True
    ),
    ErrorCode.INTERNAL_ERROR: Meaning(
        Category.INTERNAL, "Something unexpected went wrong; the operator has been told.", retryable=True
    ),
    ErrorCode.WORKER_LOST: Meaning(
        Category.WORKER, "The workers that took this job died several times in a row.", retryable=True
    ),
    ErrorCode.DEADLINE_EXCEEDED: Meaning(
        Category.TIMEOUT, "The job's deadline passed before it was finished.", retryable=True
    ),
    ErrorCode.DELIVERY_LIMIT: Meaning(
        Category.MESSAGE, "The broker gave the job's message up after too many deliveries.", retryable=True
    ),
    ErrorCode.UNREADABLE_MESSAGE: Meaning(Category.MESSAGE, "A message could not be read."),
    ErrorCode.UNKNOWN_MESSAGE_VERSION: Meaning(
        Category.MESSAGE, "A message is of a version that this release does not know."
    ),
}


MODEL_CODES: Final = frozenset(
    {
        ErrorCode.MODEL_UNAVAILABLE,
        ErrorCode.MODEL_REJECTED,
        ErrorCode.MODEL_REFUSED,
        ErrorCode.MODEL_ANSWER_INVALID,
        ErrorCode.DOCUMENT_TOO_LONG,
    }
)
"""Failures of the language model, which the rules can make good."""


class StageError(Exception):
    """A failure that a stage understands; only its code and numbers travel on, never a library's text.

    Args:
        code: the stable code.
        limit: the limit that was hit, in the unit of its name, when there is one.
        actual: what the document has instead, or had when it was stopped.
        pages: page numbers (from 1) that are concerned.
        limit_name: which limit it was, where it is a setting.
    """

    def __init__(
        self,
        code: ErrorCode,
        *,
        limit: int | None = None,
        actual: int | None = None,
        pages: tuple[int, ...] = (),
        limit_name: LimitName | None = None,
    ) -> None:
        """Keep the code and the numbers."""
        super().__init__(code.value)
        self.code = code
        self.limit = limit
        self.actual = actual
        self.pages = pages
        self.limit_name = limit_name


class PermanentError(StageError):
    """The document is the reason: the same bytes fail the same way again."""


class TransientError(StageError):
    """Circumstances are the reason: the same attempt may succeed later.

    Args:
        code: the stable code.
        retry_after_seconds: the dependency's own wish, when it told one.
    """

    def __init__(self, code: ErrorCode, *, retry_after_seconds: float | None = None) -> None:
        """Keep the code and the wish."""
        super().__init__(code)
        self.retry_after_seconds = retry_after_seconds
