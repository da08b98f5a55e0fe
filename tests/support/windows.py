"""The crash windows: what dies between what, what saves the job, and who proves it; ``docs/reliability.md`` shows them.

``python -m tests.support.windows`` writes the table there anew; unit tests see that page, points and tests agree.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from schema.runtime.failpoints import Point
from tests.support.crashes import count_cells

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
BEGIN: Final = "<!-- windows: written by python -m tests.support.windows -->"
END: Final = "<!-- end of windows -->"
LAST: Final = 22

_WORKER: Final = "test_a_worker_that_dies_costs_nothing"
_RELAY: Final = "test_a_relay_that_dies_owes_nothing_and_sends_nothing_that_counts_twice"
_INTAKE: Final = "test_an_intake_that_dies_answers_the_repeated_request_with_one_job"
_REDRIVE: Final = "test_a_redrive_whose_tool_dies_is_taken_up_by_the_next"
_GIVEN_UP: Final = "test_a_publisher_that_dies_over_a_given_up_message_has_settled_it_once"


@dataclass(frozen=True, slots=True)
class Window:
    """One window; ``points`` are where a process is killed in it, none when it is an outage of something else."""

    number: int
    what: str
    saved_by: str
    points: tuple[Point, ...]
    tests: tuple[str, ...]

    def row(self) -> str:
        """Return the window as a row of the table."""
        points = ", ".join(f"`{point}`" for point in self.points) or "an outage"
        tests = ", ".join(f"`{test}`" for test in self.tests)
        what = self.what.replace(" - ", " \N{EN DASH} ")
        return f"| W{self.number} | {what} | {self.saved_by} | {points} | {tests} |"


WINDOWS: Final = (
    Window(
        1,
        "object stored - job committed",
        "the client's repeated request; the object is swept",
        (Point.OBJECT_STORED,),
        (_INTAKE, "test_objects_without_a_job_are_deleted_once_they_are_old_enough"),
    ),
    Window(
        2,
        "job and outbox row committed - answer sent",
        "the Idempotency-Key returns the same job",
        (Point.JOB_COMMITTED,),
        (_INTAKE, "test_the_same_key_and_request_give_the_same_job"),
    ),
    Window(
        3,
        "outbox row committed - published",
        "the relay; a taken row is due again when its lock runs out",
        (Point.ROWS_TAKEN,),
        (_RELAY,),
    ),
    Window(4, "published - confirm seen", "published again; the copy changes nothing", (Point.PUBLISHED,), (_RELAY,)),
    Window(5, "confirm seen - row deleted", "the same", (Point.CONFIRMED,), (_RELAY,)),
    Window(6, "delivered - claimed", "redelivery", (Point.DELIVERED,), (_WORKER,)),
    Window(
        7,
        "claimed - work begun, in the middle, ended",
        "takeover by the liveness lock; kept pages are not read again",
        (Point.CLAIMED, Point.WORK_BEGUN, Point.PAGE_KEPT, Point.WORKED),
        (
            _WORKER,
            "test_a_scan_goes_on_where_the_killed_worker_left_it",
            "test_a_worker_that_waits_takes_over_at_once",
        ),
    ),
    Window(
        8,
        "output stored - outcome committed",
        "takeover; the output's key has the token in it",
        (Point.OUTPUT_STORED, Point.BATCH_WRITTEN),
        (_WORKER,),
    ),
    Window(
        9,
        "outcome committed - acknowledged",
        "the redelivery is stale",
        (Point.BATCH_COMMITTED, Point.OUTCOME_COMMITTED),
        (_WORKER, "test_an_acknowledgement_follows_its_commit"),
    ),
    Window(
        10,
        "retry committed - acknowledged",
        "an older attempt is stale: no second retry",
        (Point.RETRY_COMMITTED,),
        (_WORKER,),
    ),
    Window(
        11,
        "dead letter committed - published, acknowledged",
        "the relay, then reconcile; one letter per series",
        (Point.LETTER_COMMITTED, Point.ROWS_TAKEN, Point.PUBLISHED, Point.CONFIRMED),
        (_WORKER, _RELAY),
    ),
    Window(
        12,
        "redrive committed - its message dropped from the dead-letter queue",
        "the row is closed; reconcile drops the message; the same command goes on with what is left",
        (Point.REDRIVE_COMMITTED,),
        (_REDRIVE, "test_reconcile_drops_messages_of_closed_letters_and_issues_missing_ones"),
    ),
    Window(
        13,
        "result committed - its end told",
        "the notice is in the outcome's transaction, and the relay's to send; one event id",
        (Point.OUTCOME_COMMITTED, Point.ROWS_TAKEN, Point.PUBLISHED, Point.CONFIRMED),
        (
            "test_a_relay_killed_over_a_notice_tells_it_under_one_id",
            "test_a_worker_killed_after_the_last_commit_has_told_its_end",
            "test_a_cancel_whose_intake_is_killed_is_told_all_the_same",
        ),
    ),
    Window(
        14,
        "webhook sent - attempt recorded",
        "sent again under the same `webhook-id`",
        (Point.WEBHOOK_SENT,),
        ("test_a_sender_killed_after_the_post_sends_again_under_the_same_id",),
    ),
    Window(
        15,
        "the broker restarts, loses its messages, or freezes",
        "confirms; the sweeper issues again",
        (),
        (
            "test_a_service_killed_right_after_the_answer_has_lost_nothing",
            "test_rows_owed_while_the_broker_is_down_go_out_when_it_is_back",
            "test_a_frozen_broker_holds_no_database_connection",
            "test_a_broker_that_lost_its_disk_is_filled_anew",
            "test_a_ready_run_that_others_went_past_is_issued_again",
            "test_a_retry_whose_message_was_lost_is_issued_again",
        ),
    ),
    Window(
        16,
        "the database restarts",
        "redelivery; the fence; patience",
        (),
        (
            "test_a_service_killed_right_after_the_answer_has_lost_nothing",
            "test_a_database_restart_costs_only_the_requests_of_that_moment",
            "test_a_page_is_kept_once_the_database_is_back",
            "test_a_broken_connection_to_the_database_costs_nothing",
        ),
    ),
    Window(
        17,
        "the object store is down or hangs",
        "503 and nothing stored; in a stage a transient failure",
        (),
        (
            "test_a_store_that_hangs_is_503_and_takes_no_job",
            "test_a_store_that_is_down_is_503_and_leaves_nothing",
            "test_a_store_that_does_not_answer_is_a_transient_error",
        ),
    ),
    Window(
        18,
        "a parser dies, hangs or eats memory",
        "a recorded outcome; the worker lives",
        (),
        (
            "test_a_child_that_dies_is_a_crash_worth_another_attempt",
            "test_a_child_that_takes_too_long_is_killed",
            "test_want_of_memory_is_the_documents_failure",
        ),
    ),
    Window(
        19,
        "the broker gives a message up; its end committed - acknowledged",
        "issued again once per series, then a dead letter; a copy that comes again is not held against the job",
        (Point.GIVE_UP_COMMITTED,),
        (_GIVEN_UP, "test_an_open_run_is_issued_again_once_and_then_becomes_a_dead_letter"),
    ),
    Window(
        20,
        "the commit of an outcome fails, or its answer is lost",
        "the same token again; closed by this token is success",
        (Point.BATCH_WRITTEN, Point.BATCH_COMMITTED),
        (_WORKER, "test_an_outcome_whose_commit_was_lost_is_written_with_its_token_and_counts_as_success"),
    ),
    Window(
        21,
        "one bad output in a batch",
        "the batch is split, and only that job's attempt is unknown",
        (Point.BATCH_WRITTEN,),
        (_WORKER, "test_one_refused_output_fails_its_job_alone"),
    ),
    Window(
        22,
        "a model's answer kept - outcome committed",
        "takeover; the answer's key is made from what was asked",
        (Point.ANSWER_KEPT,),
        ("test_a_model_is_asked_once_though_its_worker_dies_with_the_answer",),
    ),
)
# Windows whose kill is not tried yet. Adding one is a ``Window`` above and one entry less here.
PENDING: Final[frozenset[int]] = frozenset()
PENDING_POINTS: Final[frozenset[Point]] = frozenset()


def table() -> str:
    """Return the table and the number of cells."""
    pending = "".join(f" Not tried yet: W{number}." for number in sorted(PENDING))
    killed = count_cells(action="kill")
    cells = f"The matrix has **{count_cells()} cells**; in {killed} a real process dies by SIGKILL, in the others its"
    lines = [
        f"{cells} batch is refused or its connection cut.{pending}",
        "",
        "| # | Death after … and before … | Saved by | Failpoints | Tested by |",
        "|---|---|---|---|---|",
        *(window.row() for window in WINDOWS),
    ]
    return "\n".join(lines)


def written(page: str) -> str:
    """Return the page with the table as it should be."""
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{table()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
