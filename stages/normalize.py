"""The normalize stage: from pages to what the client asked for, inside the killable child."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from schema.domain.errors import ErrorCode, TransientError
from schema.domain.outcomes import Completed, Warning_
from stages.sandbox.settings import Budget
from stages.work import Checkpoint, Work

OPERATION: Final = "normalize"
EXTRACT: Final = "extract"


class Parsers(Protocol):
    """Runs one named operation in a process that can be killed; ``stages.sandbox.pool.Sandbox`` does."""

    async def call(self, operation: str, request: Mapping[str, Any], *, budget: Budget) -> dict[str, Any]:
        """Return the operation's answer; raises an owned error when there is none."""


@dataclass(frozen=True, slots=True)
class NormalizeStage:
    """Clean the extracted text and read the fields of the job's kind.

    Idempotent: yes; the same pages give the same output.

    Raises:
        TransientError: ``invalid_output`` when extract left no pages, or what the sandbox raises.
    """

    parsers: Parsers
    budget: Budget

    async def run(self, work: Work, checkpoint: Checkpoint) -> Completed:  # noqa: ARG002 - one step, nothing to keep
        """Do the stage's work for one claim."""
        document = work.inputs.get(EXTRACT)
        if document is None:
            raise TransientError(ErrorCode.INVALID_OUTPUT)
        request = {"document": document, "kind": work.kind.value, "languages": list(work.options.languages)}
        output = await self.parsers.call(OPERATION, request, budget=self.budget)
        return Completed(output=output, warnings=_warnings(output))


def _warnings(output: Mapping[str, Any]) -> tuple[Warning_, ...]:
    """Return the output's warnings for the job row; what the child says is not trusted to be well-formed."""
    try:
        return tuple(Warning_(str(each["code"]), tuple(map(int, each["pages"]))) for each in output["warnings"])
    except (KeyError, TypeError, ValueError):
        raise TransientError(ErrorCode.INVALID_OUTPUT) from None
