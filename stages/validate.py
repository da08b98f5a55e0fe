"""The validate stage: what a document is, whether it can be read, and by which lane."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from schema.domain.errors import ErrorCode, PermanentError, TransientError
from schema.domain.kinds import MediaType
from schema.domain.limits import DocumentLimits
from schema.domain.outcomes import Completed, Warning_
from schema.domain.states import Lane
from stages.sandbox.settings import Budget
from stages.supply import Parsers, supplied
from stages.work import Checkpoint, Documents, Work

OPERATION: Final = "inspect"
TYPE_MISMATCH: Final = "type_mismatch"
FIRST_PICTURE_ONLY: Final = "first_picture_only"

# Says nothing about the content, so nothing can contradict it.
_NEUTRAL: Final = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/zip"})
_ALIASES: Final[Mapping[str, MediaType]] = {
    "image/jpg": MediaType.JPEG,
    "image/pjpeg": MediaType.JPEG,
    "image/tif": MediaType.TIFF,
    "application/x-pdf": MediaType.PDF,
    "image/heif": MediaType.HEIC,
}


class Facts(BaseModel):
    """What validate found out; its output, and extract's input.

    Shape: ``pages_total`` counts the document's pages, ``pages_wanted`` those that the client asked for;
    ``recognition`` says whether pages have to be recognized from their picture, ``animation`` whether there are
    pictures beyond the first, which is the page.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    media_type: MediaType
    pages_total: int = Field(ge=1)
    pages_wanted: int = Field(ge=1)
    recognition: bool
    animation: bool = False


@dataclass(frozen=True, slots=True)
class ValidateStage:
    """Look at a document in a child and decide whether it can be processed.

    Idempotent: yes; reads the document, writes nothing.

    Raises:
        PermanentError: the code of what is wrong with the document.
        TransientError: what the store or the sandbox raises, or ``invalid_output``.
    """

    documents: Documents
    parsers: Parsers
    limits: DocumentLimits
    budget: Budget

    async def run(self, work: Work, checkpoint: Checkpoint) -> Completed:  # noqa: ARG002 - one step, nothing to keep
        """Do the stage's work for one claim."""
        if work.document.size_bytes == 0:
            raise PermanentError(ErrorCode.EMPTY_DOCUMENT)
        async with supplied(work.document, self.documents, self.parsers) as supply:
            request = {"limits": self.limits.as_json(), "options": work.options.as_json(), **supply.request}
            answer = await self.parsers.call(
                OPERATION, request, budget=self.budget, blob=supply.blob, scratch=supply.scratch
            )
        facts = read_facts(answer)
        told = (
            (TYPE_MISMATCH, contradicts(work.document.declared_type, facts.media_type)),
            (FIRST_PICTURE_ONLY, facts.animation),
        )
        return Completed(
            output=facts.model_dump(mode="json"),
            warnings=tuple(Warning_(code) for code, applies in told if applies),
            lane=Lane.EXTRACT_OCR if facts.recognition else Lane.EXTRACT_TEXT,
            media_type=facts.media_type.value,
            pages_total=facts.pages_wanted,
        )


def read_facts(answer: Mapping[str, Any] | None) -> Facts:
    """Check what validate found out; the child, or an older release, may have said anything.

    Raises:
        TransientError: ``invalid_output``.
    """
    try:
        return Facts.model_validate(answer)
    except ValidationError:
        raise TransientError(ErrorCode.INVALID_OUTPUT) from None


def contradicts(declared: str | None, found: MediaType) -> bool:
    """Say whether the client declared another type than the bytes are; the bytes decide all the same."""
    name = (declared or "").partition(";")[0].strip().lower()
    if name in _NEUTRAL or (found is MediaType.TEXT and name.startswith("text/")):
        return False
    return _ALIASES.get(name, name) != found.value
