"""Outbox rows as messages, and how long a row waits that could not be sent."""

from datetime import UTC, datetime, timedelta

import pytest

from publisher.publications import NoRouteError, publication
from publisher.relay import LAST_DELAY_SECONDS, delay_after, failure_code
from schema.db.outbox import OutboxRow
from schema.domain.ids import new_id
from schema.domain.states import Lane
from schema.runtime.broker import BrokerUnavailableError, NackedError, UnroutableError
from schema.wire.messages import HEADER_DEFERRALS, HEADER_EVENT_ID, HEADER_TRACEPARENT, decode, decode_letter
from schema.wire.queues import DLX, WORK

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STAGE = {"job_id": str(new_id()), "stage": "extract", "series": 2, "attempt": 3}


def _row(**changes):
    values = {
        "id": 1,
        "event_id": new_id(),
        "kind": "stage",
        "lane": Lane.EXTRACT_OCR,
        "payload": STAGE,
        "not_before": None,
        "delay": timedelta(0),
        "deferrals": 0,
        "traceparent": None,
        "attempts": 0,
        "waited": timedelta(0),
    }
    return OutboxRow(**values | changes)


def test_a_stage_row_says_what_its_run_is_at():
    """The message is made from the row and from nothing else."""
    row = _row(deferrals=4, traceparent="00-a-b-01")

    sent = publication(row)

    message = decode(sent.body)
    assert (str(message.job_id), message.stage, message.series, message.attempt) == (STAGE["job_id"], "extract", 2, 3)
    assert (sent.route.exchange, sent.route.key) == (WORK, "extract.ocr")
    assert sent.headers == {
        HEADER_EVENT_ID: str(row.event_id),
        HEADER_DEFERRALS: 4,
        HEADER_TRACEPARENT: "00-a-b-01",
    }


def test_a_row_that_must_not_arrive_yet_takes_the_ladder_by_what_the_database_says_is_left():
    """Its own clock plays no part: the message carries the time, the route the remainder."""
    sent = publication(_row(not_before=NOON, delay=timedelta(seconds=3)))

    assert decode(sent.body).not_before == NOON
    assert sent.route.exchange == "docstage.v1.delay.03"


def test_the_same_row_twice_has_one_event_id_and_two_message_ids():
    """The event is the same, the message is not."""
    row = _row()

    first, second = publication(row), publication(row)

    assert first.headers == second.headers
    assert first.message_id != second.message_id


@pytest.mark.parametrize("job_id", [None, str(new_id())], ids=["no job", "a job"])
def test_a_dead_letter_row_goes_to_the_operators_queue_with_ids_and_code_only(job_id):
    """Letters of messages that nobody can read have no job."""
    letter_id = new_id()
    payload = {"dead_letter_id": str(letter_id), "job_id": job_id, "stage": None, "series": 1, "code": "worker_lost"}

    sent = publication(_row(kind="dead_letter", lane=None, payload=payload))

    assert sent.route.exchange == DLX
    assert decode_letter(sent.body) == letter_id


def test_an_unknown_kind_has_no_route():
    """It is put off and told, not dropped."""
    with pytest.raises(NoRouteError):
        publication(_row(kind="news"))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UnroutableError("x"), "unroutable"),
        (NackedError("x"), "nacked"),
        (BrokerUnavailableError("x"), "broker_unavailable"),
        (NoRouteError("x"), "no_route"),
        (KeyError("x"), "unwritable"),
    ],
)
def test_every_way_to_fail_has_a_code(error, code):
    """The runbook is organised by them."""
    assert failure_code(error) == code


def test_a_row_waits_longer_each_time_but_never_longer_than_the_bound():
    """A row that cannot be sent must neither spin nor be forgotten."""
    for attempts in range(100):
        bound = min(LAST_DELAY_SECONDS, 0.25 * 2**attempts)
        assert bound / 2 <= delay_after(attempts).total_seconds() <= bound


def test_a_dead_letter_message_that_is_none_is_told_by_none():
    """Somebody may have published to the queue by hand."""
    for body in (b"", b"[]", b'{"v":1}', b'{"v":1,"dead_letter_id":7}'):
        assert decode_letter(body) is None
