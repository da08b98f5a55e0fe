"""The persist stage: the last look at a result before it becomes the one result of its job."""

from collections.abc import Mapping
from typing import Final

from pydantic import ValidationError

from schema.domain.errors import ErrorCode, TransientError
from schema.domain.kinds import Kind
from schema.domain.outcomes import Completed
from schema.wire.results import Result
from stages.work import Checkpoint, Work

NORMALIZE: Final = "normalize"

_SECTIONS: Final[Mapping[Kind, str]] = {
    Kind.INVOICE: "invoice",
    Kind.CONTRACT: "contract",
    Kind.SUMMARY: "summary",
}


class PersistStage:
    """Validate the normalized document and make the job's result of it.

    The output came from a process that read a hostile document, so nothing of it is believed before the
    models have seen it. It is validated once, as a ``Result``, which is a ``NormalizedDocument`` with an id.

    Idempotent: yes; the same input gives the same result.

    Raises:
        TransientError: ``invalid_output``, when the document is not what the contract says.
    """

    async def run(self, work: Work, checkpoint: Checkpoint) -> Completed:  # noqa: ARG002 - one step, no checkpoint
        """Do the stage's work for one claim."""
        result = _validated(work)
        return Completed(output=result.model_dump(mode="json"))


def _validated(work: Work) -> Result:
    normalized = work.inputs.get(NORMALIZE)
    if normalized is None or "job_id" in normalized or "version" in normalized:
        raise TransientError(ErrorCode.INVALID_OUTPUT)
    try:
        result = Result.model_validate({**normalized, "job_id": work.job_id})
    except ValidationError:
        raise TransientError(ErrorCode.INVALID_OUTPUT) from None
    if not _answers(result, work.kind):
        raise TransientError(ErrorCode.INVALID_OUTPUT)
    return result


def _answers(result: Result, kind: Kind) -> bool:
    """Say whether ``result`` has the section that was asked for, and no other, and each page once."""
    filled = {name for name in _SECTIONS.values() if getattr(result, name) is not None}
    wanted = {_SECTIONS[kind]} if kind in _SECTIONS else set()
    numbers = [page.number for page in result.pages]
    return result.kind is kind and filled == wanted and len(numbers) == len(set(numbers))
