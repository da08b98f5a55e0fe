"""The extract stage: the text of a document, page by page, kept as it comes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from schema.domain.errors import ErrorCode, TransientError
from schema.domain.limits import DocumentLimits
from schema.domain.options import JobOptions
from schema.domain.outcomes import Completed, Warning_
from schema.runtime import metrics
from schema.wire.pages import Attachment, ExtractedPage
from schema.wire.results import PageSource
from stages.sandbox.settings import Budget
from stages.supply import Parsers, supplied
from stages.validate import read_facts
from stages.work import Checkpoint, Documents, Work

OPERATION: Final = "extract"
VALIDATE: Final = "validate"
PAGE_FAILED: Final = "page_failed"
NO_TEXT: Final = "no_text"

# A page may take three runs of the tool and one of the accurate engine, so that a hung tool is a failed page and
# not a silent child.
_TOOL_SHARE_OF_SILENCE: Final = 0.2
# Reading this many text layers again costs less than one write to the database.
_PAGES_BETWEEN_WRITES: Final = 25


class _Ending(BaseModel):
    """The child's last word."""

    model_config = ConfigDict(extra="forbid")

    failed: list[int]
    attachments: list[Attachment]


@dataclass(frozen=True, slots=True)
class ExtractStage:
    """Read the pages of a document in a child.

    Idempotent: yes; pages kept by an earlier claim are not read again.

    Raises:
        PermanentError: ``page_failed`` when the job is strict, or the code of a document without a page that
            can be read.
        TransientError: what the store or the sandbox raises, or ``invalid_output``.
    """

    documents: Documents
    parsers: Parsers
    limits: DocumentLimits
    budget: Budget

    async def run(self, work: Work, checkpoint: Checkpoint) -> Completed:
        """Do the stage's work for one claim."""
        facts = read_facts(work.inputs.get(VALIDATE))
        pages = Pages(checkpoint, work.options, facts.pages_wanted, self.limits.max_pages)
        if facts.pages_wanted > 1:
            pages.resume(await checkpoint.done())
        async with supplied(work.document, self.documents, self.parsers) as supply:
            request = {
                "media_type": facts.media_type,
                "limits": self.limits.as_json(),
                "options": work.options.as_json(),
                "skip": pages.numbers(),
                "tool_seconds": self.budget.silence_seconds * _TOOL_SHARE_OF_SILENCE,
                **supply.request,
            }
            answer = await self.parsers.call(
                OPERATION,
                request,
                budget=self.budget,
                on_event=pages.take,
                blob=supply.blob,
                scratch=supply.scratch,
            )
        return pages.completed(answer)


@dataclass(slots=True)
class Pages:
    """The pages of one claim: checked as they come, kept where losing them would cost something.

    A recognized page is kept at once. Pages of text are kept in groups, and the one page of a short document
    not at all: its outcome follows in the same instant.
    """

    checkpoint: Checkpoint
    options: JobOptions
    wanted: int
    max_pages: int
    _pages: dict[int, dict[str, Any]] = field(default_factory=dict)
    _unkept: list[ExtractedPage] = field(default_factory=list)

    def resume(self, kept: Sequence[ExtractedPage]) -> None:
        """Take over the pages that an earlier claim finished."""
        self._pages.update((page.number, page.model_dump(mode="json")) for page in kept)

    def numbers(self) -> list[int]:
        """Return the numbers of the pages that are done."""
        return sorted(self._pages)

    async def take(self, event: dict[str, Any]) -> None:
        """Take one event of the child.

        Raises:
            TransientError: ``invalid_output``, for a page that is malformed, unasked for, or there already.
        """
        if "page" not in event:
            await self._count(event)
            return
        try:
            page = ExtractedPage.model_validate(event["page"])
        except ValidationError:
            raise TransientError(ErrorCode.INVALID_OUTPUT) from None
        number = page.number
        if number in self._pages or not 1 <= number <= self.max_pages or not self.options.wants(number):
            raise TransientError(ErrorCode.INVALID_OUTPUT)
        self._pages[number] = event["page"]
        metrics.PAGES.labels(outcome=page.source.value).inc()
        await self._keep(page)

    def completed(self, answer: dict[str, Any]) -> Completed:
        """Return the stage's output.

        Raises:
            TransientError: ``invalid_output``, when the child's last word is malformed or pages are missing.
        """
        try:
            ending = _Ending.model_validate(answer)
        except ValidationError:
            raise TransientError(ErrorCode.INVALID_OUTPUT) from None
        if not self._pages or len(self._pages.keys() | set(ending.failed)) != self.wanted:
            raise TransientError(ErrorCode.INVALID_OUTPUT)
        metrics.PAGES.labels(outcome="failed").inc(len(ending.failed))
        pages = [self._pages[number] for number in self.numbers()]
        empty = tuple(page["number"] for page in pages if not page["text"].strip())
        warnings = ((PAGE_FAILED, tuple(ending.failed)), (NO_TEXT, empty))
        return Completed(
            output={"pages": pages, "attachments": [found.model_dump(mode="json") for found in ending.attachments]},
            warnings=tuple(Warning_(code, numbers) for code, numbers in warnings if numbers),
        )

    async def _count(self, event: dict[str, Any]) -> None:
        """Learn how many pages there are to do, and tell where that is not what validate counted."""
        wanted = event.get("pages_wanted")
        if not isinstance(wanted, int) or not 1 <= wanted <= self.max_pages:
            raise TransientError(ErrorCode.INVALID_OUTPUT)
        if wanted != self.wanted:
            self.wanted = wanted
            await self.checkpoint.pages_total(wanted)

    async def _keep(self, page: ExtractedPage) -> None:
        """Keep what would be a loss."""
        if self.wanted == 1:
            return
        self._unkept.append(page)
        if page.source is PageSource.OCR or len(self._unkept) >= _PAGES_BETWEEN_WRITES:
            for finished in self._unkept:
                await self.checkpoint.page(finished)
            self._unkept.clear()
