"""Messages and routes: the contract with whoever reads the wire."""

import contextlib
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.domain.errors import ErrorCode
from schema.domain.ids import new_id
from schema.domain.states import Lane, Stage
from schema.wire.messages import StageMessage, UnreadableMessageError, decode, encode
from schema.wire.queues import LEVELS, LONGEST, UNIT, delay_name, route

JOB = UUID("01890000-0000-7000-8000-000000000001")
GOLDEN = (
    b'{"v":1,"job_id":"01890000-0000-7000-8000-000000000001","stage":"extract","series":1,"attempt":2,'
    b'"not_before":"2026-01-01T00:00:00Z"}'
)
MESSAGE = StageMessage(JOB, Stage.EXTRACT, 1, 2, datetime(2026, 1, 1, tzinfo=UTC))


def test_version_one_is_what_it_was_on_its_first_day():
    """Messages outlive releases: what an old publisher wrote, a new consumer reads, and the reverse."""
    assert encode(MESSAGE) == GOLDEN
    assert decode(GOLDEN) == MESSAGE


def test_extra_keys_are_allowed():
    """A newer release may add some."""
    assert decode(GOLDEN[:-1] + b',"colour":"blue"}') == MESSAGE


@given(st.binary(max_size=200))
def test_whatever_arrives_is_read_or_refused_by_code(body):
    """No bytes make the reader raise anything else."""
    with contextlib.suppress(UnreadableMessageError):
        decode(body)


@pytest.mark.parametrize(
    ("body", "code", "job_id"),
    [
        (b"", ErrorCode.UNREADABLE_MESSAGE, None),
        (b"[]", ErrorCode.UNREADABLE_MESSAGE, None),
        (b"{}", ErrorCode.UNREADABLE_MESSAGE, None),
        (b"[" * 2000, ErrorCode.UNREADABLE_MESSAGE, None),
        (GOLDEN.replace(b'"v":1', b'"v":2'), ErrorCode.UNKNOWN_MESSAGE_VERSION, JOB),
        (GOLDEN.replace(b'"attempt":2', b'"attempt":0'), ErrorCode.UNREADABLE_MESSAGE, JOB),
        (GOLDEN.replace(b'"attempt":2', b'"attempt":true'), ErrorCode.UNREADABLE_MESSAGE, JOB),
        (GOLDEN.replace(b"extract", b"destroy"), ErrorCode.UNREADABLE_MESSAGE, JOB),
        (GOLDEN.replace(b"00Z", b"00"), ErrorCode.UNREADABLE_MESSAGE, JOB),
    ],
)
def test_an_unreadable_message_is_told_by_code_and_its_job_where_it_can_be(body, code, job_id):
    """An operator wants to know which job waits for a message that nobody could read."""
    with pytest.raises(UnreadableMessageError) as caught:
        decode(body)

    assert (caught.value.code, caught.value.job_id) == (code, job_id)


def test_what_is_due_goes_straight_to_its_stage():
    """The ladder is for waiting only."""
    assert route(Lane.EXTRACT_OCR, timedelta(0)).exchange == "docstage.v1.work"
    assert route(Lane.EXTRACT_OCR, timedelta(seconds=-1)).key == "extract.ocr"


@given(st.floats(0.0001, LONGEST.total_seconds()))
def test_the_levels_of_a_route_add_up_to_its_delay_and_never_to_less(seconds):
    """A retry never comes early, and late by less than one unit."""
    chosen = route(Lane.VALIDATE, timedelta(seconds=seconds))
    bits, _, lane = chosen.key.rpartition(".")
    steps = int(bits.replace(".", ""), 2)

    assert lane == "validate"
    assert len(bits.split(".")) == LEVELS
    assert timedelta(0) <= UNIT * steps - timedelta(seconds=seconds) < UNIT
    assert chosen.exchange == delay_name(steps.bit_length() - 1)


def test_a_delay_longer_than_the_ladder_gets_its_full_length():
    """The remainder is deferred when it comes out."""
    chosen = route(Lane.VALIDATE, timedelta(days=2))

    assert chosen.key == ".".join("1" * LEVELS) + ".validate"


def test_ids_sort_by_time_and_are_version_seven():
    """New rows land at the end of the index, and ids can't be guessed."""
    ids = [new_id() for _ in range(100)]

    assert len(set(ids)) == 100
    assert {one.version for one in ids} == {7}
    assert [one.int >> 80 for one in ids] == sorted(one.int >> 80 for one in ids)
