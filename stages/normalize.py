"""The normalize stage: from pages to what the client asked for, inside the killable child.

Where a model is to read the document, its answer is got first; what is believed of it is decided in the child.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from schema.domain.errors import ErrorCode, StageError, TransientError
from schema.domain.outcomes import Completed, Warning_
from schema.runtime import metrics
from stages.model.asking import Model
from stages.sandbox.settings import Budget
from stages.work import Checkpoint, Work

OPERATION: Final = "normalize"
EXTRACT: Final = "extract"
FALLBACK: Final = "model_fallback"


class Parsers(Protocol):
    """Runs one named operation in a process that can be killed; ``stages.sandbox.pool.Sandbox`` does."""

    async def call(self, operation: str, request: Mapping[str, Any], *, budget: Budget) -> dict[str, Any]:
        """Return the operation's answer; raises an owned error when there is none."""


@dataclass(frozen=True, slots=True)
class NormalizeStage:
    """Clean the extracted text and read the fields of the job's kind.

    Idempotent: yes; the same pages give the same output, and a model's answer is asked for once.

    Raises:
        TransientError: ``invalid_output`` when extract left no pages, or what sandbox, model or store raise.
        PermanentError: what the model raises, unless the rules take over.
    """

    parsers: Parsers
    budget: Budget
    model: Model | None = None

    async def run(self, work: Work, checkpoint: Checkpoint) -> Completed:  # noqa: ARG002 - nothing to keep but an answer, which the model keeps
        """Do the stage's work for one claim."""
        document = work.inputs.get(EXTRACT)
        if document is None:
            raise TransientError(ErrorCode.INVALID_OUTPUT)
        request = {
            "document": document,
            "kind": work.kind.value,
            "languages": list(work.options.languages),
            "sentences": work.options.sentences,
        }
        report, warnings = await self._ask(work, document)
        output = await self.parsers.call(OPERATION, {**request, **report}, budget=self.budget)
        found = _warnings(output)
        if warnings:
            output = {**output, "warnings": [*output["warnings"], *(each.as_json() for each in warnings)]}
        return Completed(output=output, warnings=(*found, *warnings))

    async def _ask(self, work: Work, document: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Warning_, ...]]:
        """Return what the child is told of a model's answer, nothing where the rules read; and a warning about that."""
        if self.model is None or not self.model.reads(work.kind, document):
            return {}, ()
        try:
            answer = await self.model.answer(work, document)
        except StageError as error:
            if not self.model.gives_way(error, work.attempt):
                raise
            metrics.MODEL_FALLBACKS.labels(code=error.code.value).inc()
            return {}, (Warning_(FALLBACK),)
        return {"answer": answer, "engine": self.model.name}, ()


def _warnings(output: Mapping[str, Any]) -> tuple[Warning_, ...]:
    """Return the output's warnings for the job row; what the child says is not trusted to be well-formed."""
    try:
        return tuple(Warning_(str(each["code"]), tuple(map(int, each["pages"]))) for each in output["warnings"])
    except (KeyError, TypeError, ValueError):
        raise TransientError(ErrorCode.INVALID_OUTPUT) from None
