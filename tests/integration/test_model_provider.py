"""What a provider's answers mean, over a real connection."""

import json

import pytest

from schema.domain.errors import ErrorCode, PermanentError, TransientError
from schema.runtime.settings import ModelSettings
from stages.model import provider as provider_module
from stages.model.provider import Provider
from tests.support.provider import MODEL, answered
from tests.support.receiver import answer, receiving

KEY = "0" * 64


@pytest.fixture
async def receiver():
    """Who is asked."""
    async with receiving() as made:
        yield made


async def _ask(receiver, **settings):
    url = f"http://{receiver.host}:{receiver.port}/v1/"
    provider = Provider(ModelSettings(model_url=url, model_key="sk-test", model_name=MODEL, **settings))
    try:
        return await provider.ask(b'{"model":"m"}', idempotency_key=KEY)
    finally:
        await provider.close()


def _error(status, code=None, **headers):
    return answer(status, body=json.dumps({"error": {"code": code, "message": "told"}}).encode(), **headers)


async def test_a_question_goes_to_the_chat_completions_with_key_and_idempotency_key(receiver):
    """The form that every compatible server takes."""
    receiver.answering = lambda _: answered("{}")

    body = await _ask(receiver)

    (asked,) = receiver.requests
    assert (asked.method, asked.path, asked.json) == ("POST", "/v1/chat/completions", {"model": "m"})
    assert asked.headers["authorization"] == "Bearer sk-test"
    assert asked.headers["idempotency-key"] == KEY
    assert json.loads(body)["choices"][0]["message"]["content"] == "{}"


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
async def test_what_passes_is_transient(receiver, status):
    """Another attempt may find it over."""
    receiver.answering = lambda _: _error(status)

    with pytest.raises(TransientError) as caught:
        await _ask(receiver)

    assert (caught.value.code, caught.value.retry_after_seconds) == (ErrorCode.MODEL_UNAVAILABLE, None)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry_After": "17"}, 17),
        ({"Date": "Thu, 01 Jan 2026 12:00:00 GMT", "Retry_After": "Thu, 01 Jan 2026 12:00:30 GMT"}, 30),
        ({"Retry_After": "soon"}, None),
    ],
)
async def test_a_wish_is_passed_on(receiver, headers, seconds):
    """In seconds, or as a date by the provider's own clock."""
    receiver.answering = lambda _: _error(429, **headers)

    with pytest.raises(TransientError) as caught:
        await _ask(receiver)

    assert caught.value.retry_after_seconds == seconds


@pytest.mark.parametrize("status", [301, 307, 400, 401, 403, 404, 422])
async def test_what_an_operator_has_to_look_at_is_rejected(receiver, status):
    """A wrong key or name fails every job: it must end in dead letters that can be brought back."""
    receiver.answering = lambda _: _error(status, Location="http://127.0.0.1:1/elsewhere")

    with pytest.raises(TransientError) as caught:
        await _ask(receiver)

    assert caught.value.code is ErrorCode.MODEL_REJECTED
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (400, "context_length_exceeded", ErrorCode.DOCUMENT_TOO_LONG),
        (413, None, ErrorCode.DOCUMENT_TOO_LONG),
        (400, "content_filter", ErrorCode.MODEL_REFUSED),
    ],
)
async def test_what_is_said_of_the_document_is_permanent(receiver, status, code, expected):
    """The same document gets the same answer."""
    receiver.answering = lambda _: _error(status, code)

    with pytest.raises(PermanentError) as caught:
        await _ask(receiver)

    assert caught.value.code is expected


@pytest.mark.parametrize("silent", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"])
async def test_silence_has_an_end(receiver, silent):
    """Before an answer, and in the middle of one that was promised to be longer."""
    receiver.answering = lambda _: silent

    with pytest.raises(TransientError) as caught:
        await _ask(receiver, model_timeout_seconds=0.2)

    assert caught.value.code is ErrorCode.MODEL_UNAVAILABLE


async def test_nobody_there_is_transient():
    """A provider that is restarted refuses connections."""
    async with receiving() as gone:
        pass

    with pytest.raises(TransientError) as caught:
        await _ask(gone)

    assert caught.value.code is ErrorCode.MODEL_UNAVAILABLE


async def test_an_endless_answer_is_none(receiver, monkeypatch):
    """It must not fill the worker's memory; empty, it is kept and counted as unusable."""
    monkeypatch.setattr(provider_module, "MAX_ANSWER_BYTES", 10)
    receiver.answering = lambda _: answered("{}")

    assert await _ask(receiver) == b""
