"""The cells of the crash matrix as data: who is killed where, and what the history must then say."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from schema.runtime.failpoints import Point
from tests.support.oracle import STAGES

COMPLETED = ("completed",)
LOST = ("worker_lost", "completed")
# A handler that raises what nobody classifies; its outcome is a retry, or the give-up where one attempt is all.
FAILS = f"{Point.WORK_BEGUN}=raise"


@dataclass(frozen=True, slots=True)
class WorkerCell:
    """A worker that meets its end at a point, and how the attempts of its stage must have ended.

    ``before`` is armed along with it, ``action`` is what happens there, ``settings`` are the worker's own.
    """

    point: Point
    attempts: tuple[str, ...]
    stages: tuple[str, ...] = STAGES
    before: str = ""
    action: str = "kill"
    settings: Mapping[str, str] = field(default_factory=dict)
    pages: bool = False

    @property
    def name(self) -> str:
        """How the cell is called among the tests."""
        return f"{self.point}-{self.action}"

    @property
    def armed(self) -> str:
        """The setting that arms it."""
        return ",".join(filter(None, (self.before, f"{self.point}={self.action}")))


WORKER_CELLS = (
    WorkerCell(Point.DELIVERED, COMPLETED),
    WorkerCell(Point.CLAIMED, LOST),
    WorkerCell(Point.WORK_BEGUN, LOST),
    WorkerCell(Point.PAGE_KEPT, LOST, stages=("extract",), pages=True),
    WorkerCell(Point.WORKED, LOST),
    # Outputs of any size in the object store, so that there is one between storing and committing.
    WorkerCell(Point.OUTPUT_STORED, LOST, settings={"DOCSTAGE_INLINE_BYTES": "0"}),
    WorkerCell(Point.BATCH_WRITTEN, LOST),
    WorkerCell(Point.BATCH_COMMITTED, COMPLETED),
    WorkerCell(Point.OUTCOME_COMMITTED, COMPLETED),
    WorkerCell(Point.RETRY_COMMITTED, ("unknown", "completed"), before=FAILS),
    WorkerCell(Point.LETTER_COMMITTED, ("unknown",), before=FAILS, settings={"DOCSTAGE_UNKNOWN_ATTEMPTS": "1"}),
    WorkerCell(Point.BATCH_WRITTEN, COMPLETED, action="cut"),
    WorkerCell(Point.BATCH_COMMITTED, COMPLETED, action="cut"),
    # Refused alone, not for want of an answer: the output is taken for the document's fault, once.
    WorkerCell(Point.BATCH_WRITTEN, ("unknown", "completed"), action="raise"),
)
INTAKE_POINTS = (Point.OBJECT_STORED, Point.JOB_COMMITTED)
RELAY_POINTS = (Point.ROWS_TAKEN, Point.PUBLISHED, Point.CONFIRMED)
# What the outbox owes when the publisher dies; notices have a module of their own.
RELAY_ROWS = ("first", "retry", "letter")
NOTICE_ROWS = ("notice",)
REDRIVE_PASSES = (1, 2)
SENDER_POINTS = (Point.WEBHOOK_SENT,)
MODEL_POINTS = (Point.ANSWER_KEPT,)
GIVEN_UP = ("reissued", "given_up")


def worker_cells() -> Iterator[tuple[WorkerCell, str]]:
    """Yield every window of a worker with every stage that it applies to."""
    return ((cell, stage) for cell in WORKER_CELLS for stage in cell.stages)


def points_of_cells() -> set[Point]:
    """Return the points at which something is killed."""
    workers = {cell.point for cell in WORKER_CELLS}
    others = {*INTAKE_POINTS, *RELAY_POINTS, *SENDER_POINTS, *MODEL_POINTS}
    return workers | others | {Point.REDRIVE_COMMITTED, Point.GIVE_UP_COMMITTED}


def count_cells(action: str = "") -> int:
    """Return how many cells the matrix has, or how many of one action."""
    workers = [cell for cell, _ in worker_cells() if action in {"", cell.action}]
    killed = len(INTAKE_POINTS) + len(RELAY_POINTS) * len(RELAY_ROWS + NOTICE_ROWS) + len(REDRIVE_PASSES)
    killed += len(GIVEN_UP) + len(SENDER_POINTS) + len(MODEL_POINTS)
    return len(workers) + (killed if action in {"", "kill"} else 0)
