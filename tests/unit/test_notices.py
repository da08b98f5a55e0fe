"""What follows from a receiver's answer, and what a message looks like on the wire."""

import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from schema.domain.errors import ErrorCode
from schema.domain.ids import new_id
from schema.domain.notices import Answer, DeliveryCode, DeliveryStatus, Verdict, judge
from schema.runtime.settings import DeliverSettings
from schema.runtime.vault import SealedError, Vault
from schema.wire.messages import NoticeMessage, UnreadableMessageError, decode_notice, encode_notice
from schema.wire.webhooks import payload, shown_secret, signed_headers
from stages.wishes import read_wish

SCHEDULE = [timedelta(seconds=5), timedelta(minutes=5)]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EVENT = UUID("01890000-0000-7000-8000-000000000002")
GOLDEN = (
    b'{"v":1,"endpoint_id":"01890000-0000-7000-8000-000000000001",'
    b'"event_id":"01890000-0000-7000-8000-000000000002","series":1,"attempt":2}'
)


def _judge(answer, attempt=1):
    return judge(answer, attempt=attempt, schedule=SCHEDULE, uniform=lambda low, _: low)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_delivered(status):
    """The receiver has it."""
    assert _judge(Answer(status=status)) == Verdict(DeliveryStatus.DELIVERED)


@pytest.mark.parametrize(
    ("status", "code"),
    [(301, "redirect"), (304, "redirect"), (400, "http_status"), (404, "http_status"), (500, "http_status")],
)
def test_anything_else_comes_again(status, code):
    """Also a 404: a receiver that is being deployed says so."""
    verdict = _judge(Answer(status=status))

    assert (verdict.status, verdict.code) == (DeliveryStatus.PENDING, code)
    assert verdict.retry_in == timedelta(seconds=4)


@pytest.mark.parametrize("code", [DeliveryCode.GONE, DeliveryCode.ENDPOINT_DISABLED])
def test_some_answers_are_final(code):
    """Nothing about them changes by itself."""
    assert _judge(Answer(code=code)) == Verdict(DeliveryStatus.FAILED, code)
    assert _judge(Answer(status=410)) == Verdict(DeliveryStatus.FAILED, DeliveryCode.GONE)


def test_the_schedule_ends():
    """One attempt more than there are pauses, then it has failed."""
    assert _judge(Answer(status=500), attempt=2).retry_in == timedelta(minutes=4)
    assert _judge(Answer(status=500), attempt=3) == Verdict(DeliveryStatus.FAILED, DeliveryCode.HTTP_STATUS)


@given(st.floats(0, 1), st.integers(1, 2), st.integers(0, 10**9))
def test_a_pause_is_spread_and_never_shorter_than_wished_nor_longer_than_a_day_for_it(draw, attempt, wish):
    """What failed together does not come back together."""
    verdict = judge(
        Answer(status=503, retry_after=timedelta(seconds=wish)),
        attempt=attempt,
        schedule=SCHEDULE,
        uniform=lambda low, high: low + draw * (high - low),
    )

    planned, bound = SCHEDULE[attempt - 1], min(timedelta(seconds=wish), timedelta(days=1))
    assert verdict.retry_in is not None
    assert verdict.retry_in >= bound
    assert 0.799 * planned <= verdict.retry_in <= max(1.201 * planned, bound)


def test_the_default_schedule_is_the_specifications():
    """Ten attempts over some three days."""
    settings = DeliverSettings(database_url="postgresql://x", amqp_url="amqp://x")
    hours = [pause.total_seconds() / 3600 for pause in settings.schedule()]

    assert settings.schedule()[:3] == [timedelta(seconds=5), timedelta(minutes=5), timedelta(minutes=30)]
    assert hours[3:] == [2, 5, 10, 14, 20, 24]


@pytest.mark.parametrize(
    ("value", "wish"),
    [
        (None, None), ("120", timedelta(seconds=120)), ("0", timedelta(0)), ("soon", None), ("-5", None), ("", None),
        ("Thu, 01 Jan 2026 12:01:00 GMT", timedelta(minutes=1)), ("Thu, 01 Jan 2026 11:00:00 GMT", timedelta(0)),
        ("9" * 40, None),
    ],
)  # fmt: skip
def test_a_wish_is_read_in_both_its_forms(value, wish):
    """Seconds or a date; what is neither is no wish."""
    assert read_wish(value, NOON) == wish


def test_version_one_of_the_message_is_what_it_was_on_its_first_day():
    """Messages outlive releases."""
    message = NoticeMessage(UUID("01890000-0000-7000-8000-000000000001"), EVENT, 1, 2)

    assert encode_notice(message) == GOLDEN
    assert decode_notice(GOLDEN) == message
    assert decode_notice(GOLDEN[:-1] + b',"colour":"blue"}') == message


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", ErrorCode.UNREADABLE_MESSAGE),
        (GOLDEN.replace(b'"v":1', b'"v":2'), ErrorCode.UNKNOWN_MESSAGE_VERSION),
        (GOLDEN.replace(b'"attempt":2', b'"attempt":0'), ErrorCode.UNREADABLE_MESSAGE),
        (GOLDEN.replace(b"0002", b"none"), ErrorCode.UNREADABLE_MESSAGE),
    ],
)
def test_an_unreadable_message_is_told_by_code(body, code):
    """It becomes a dead letter, like any other."""
    with pytest.raises(UnreadableMessageError) as caught:
        decode_notice(body)

    assert caught.value.code is code


def test_a_payload_tells_which_job_ended_how_and_nothing_else():
    """What is stored under a name that is not known here stays here."""
    data = {"id": "x", "kind": "text", "status": "completed", "client_tag": "ü", "result": "never", "error": None}

    body = payload(notice_type="job.completed", at=NOON, data=data)

    assert json.loads(body) == {
        "type": "job.completed",
        "timestamp": "2026-01-01T12:00:00Z",
        "data": {"id": "x", "kind": "text", "status": "completed", "client_tag": "ü", "error": None},
    }


@given(st.binary(min_size=24, max_size=64), st.binary(min_size=24, max_size=64), st.text())
def test_whatever_is_signed_is_verified_by_an_implementation_that_is_not_ours(key, older, text):
    """With either of two secrets, as during a rotation."""
    body = json.dumps({"text": text}).encode()
    timestamp = int(datetime.now(UTC).timestamp())  # noqa: TID251 - the verifier compares with the time of day

    headers = signed_headers(event_id=EVENT, timestamp=timestamp, body=body, keys=[key, older])

    assert headers["webhook-id"] == str(EVENT)
    for secret in (key, older):
        assert Webhook(shown_secret(secret)).verify(body, headers) == {"text": text}


def test_a_sealed_secret_opens_for_its_owner_and_by_any_key_in_use():
    """So that a key can be replaced, and no row's secret be put in another's place."""
    owner, other = new_id().bytes, new_id().bytes
    old, new = Vault([b"1" * 32]), Vault([b"2" * 32, b"1" * 32])
    sealed = old.seal(b"secret", owner=owner)

    assert new.open(sealed, owner=owner) == b"secret"
    for vault, whose, what in ((new, other, sealed), (Vault([b"2" * 32]), owner, sealed), (new, owner, sealed[:-1])):
        with pytest.raises(SealedError):
            vault.open(what, owner=whose)
    with pytest.raises(SealedError):
        new.open(b"", owner=owner)
