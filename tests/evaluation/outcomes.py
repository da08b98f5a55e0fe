"""What became of a document, as one of the outcome classes that a manifest expects."""

from collections.abc import Mapping
from typing import Any, Final

from tests.evaluation.manifest import Entry

UNFINISHED: Final = "unfinished"
_BY_CODE: Final[Mapping[str, str]] = {
    "password_required": "encrypted",
    "corrupt_document": "corrupt",
    "unsupported_type": "unsupported",
    "type_mismatch": "rejected-mismatch",
    "too_many_pages": "too-many-pages",
    "image_too_large": "page-too-large",
    "archive_bomb": "bomb",
    "memory_limit": "bomb",
    "parser_timeout": "timeout",
    "stage_timeout": "timeout",
    "deadline_exceeded": "timeout",
}
_BY_SOURCE: Final[Mapping[str, str]] = {"text_layer": "ok-text-layer", "ocr": "ok-ocr", "docx": "ok-docx"}


def of_error(code: str, *, size: int) -> str:
    """Return the class of a refusal or failure; a code that no class is for stands for itself."""
    if code == "empty_document":
        return "zero-pages" if size else "empty-file"
    return _BY_CODE.get(code, code)


def of_result(result: Mapping[str, Any]) -> str:
    """Return the class of a result by where its text came from."""
    pages = result["pages"]
    sources = {page["source"] for page in pages if (page.get("text") or "").strip()}
    if not sources:
        return "no-text" if any(page["source"] == "ocr" for page in pages) else "ok-empty"
    if len(sources) > 1:
        return "ok-mixed"
    return _BY_SOURCE.get(*sources, "ok-text")


def fits(entry: Entry, outcome: str) -> bool:
    """Say whether a document may end so.

    Nothing to read is one outcome, whether it was looked for in a picture or not.
    """
    allowed = {entry.expected, *entry.also_ok}
    if allowed & {"no-text", "ok-empty"}:
        allowed |= {"no-text", "ok-empty"}
    return outcome in allowed
