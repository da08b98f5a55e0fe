"""One POST to the provider that the operator has named, and what its status means."""

import asyncio
import json
import ssl
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final, NoReturn

import httpx

from schema.domain.errors import ErrorCode, PermanentError, TransientError
from schema.runtime import metrics
from schema.runtime.settings import ModelSettings
from stages.wishes import read_wish

MAX_ANSWER_BYTES: Final = 2 << 20
_PASSING: Final = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
)
_TOO_LONG: Final = frozenset({"context_length_exceeded", "string_above_max_length"})
_FILTERED: Final = frozenset({"content_filter", "content_policy_violation"})


class Provider:
    """An OpenAI-compatible API.

    Raises:
        TransientError: ``model_unavailable`` when there is no answer now, with the provider's wish when it told one;
            ``model_rejected`` when it does not take such requests from us, which an operator has to look at.
        PermanentError: ``document_too_long`` or ``model_refused``, when it says that of this document.
    """

    def __init__(self, settings: ModelSettings) -> None:
        """Make the client; it follows no redirect, since that would send a document where nobody said."""
        key = settings.model_key.get_secret_value()
        self._url = f"{settings.model_url.rstrip('/')}/chat/completions"
        self._timeout = settings.model_timeout_seconds
        self._http = httpx.AsyncClient(
            verify=ssl.create_default_context(cafile=settings.model_ca_file) if settings.model_ca_file else True,
            trust_env=False,
            follow_redirects=False,
            timeout=None,  # noqa: S113 - one outer limit holds for connection and answer together
            headers={
                "User-Agent": "docstage/1",
                "Content-Type": "application/json",
                **({"Authorization": f"Bearer {key}"} if key else {}),
            },
        )

    async def close(self) -> None:
        """Close what is open."""
        await self._http.aclose()

    async def ask(self, body: bytes, *, idempotency_key: str) -> bytes:
        """Send a request and return the answer's body; an endless one comes back empty, and so as no answer."""
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(self._timeout):
                return await self._exchange(body, idempotency_key)
        except TimeoutError:
            _unavailable("timeout")
        except (httpx.HTTPError, httpx.StreamError):
            _unavailable("connection_failed")
        finally:
            metrics.MODEL_SECONDS.observe(asyncio.get_running_loop().time() - began)

    async def _exchange(self, body: bytes, idempotency_key: str) -> bytes:
        headers = {"Idempotency-Key": idempotency_key}
        async with self._http.stream("POST", self._url, content=body, headers=headers) as response:
            answer = await _take_in(response)
            if response.status_code != HTTPStatus.OK:
                _refuse(response, answer)
            return answer


async def _take_in(response: httpx.Response) -> bytes:
    parts, size = [], 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > MAX_ANSWER_BYTES:
            return b""
        parts.append(chunk)
    return b"".join(parts)


def _refuse(response: httpx.Response, body: bytes) -> NoReturn:
    """Raise what a status other than 200 means; of the body, only codes that are known count."""
    status, code = response.status_code, _code(body)
    if status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        outcome = "rate_limited" if status == HTTPStatus.TOO_MANY_REQUESTS else "unavailable"
        _unavailable(outcome, read_wish(response.headers.get("retry-after"), _date(response)))
    if code in _TOO_LONG or status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        metrics.MODEL_REQUESTS.labels(outcome="too_long").inc()
        raise PermanentError(ErrorCode.DOCUMENT_TOO_LONG)
    if code in _FILTERED:
        metrics.MODEL_REQUESTS.labels(outcome="refused").inc()
        raise PermanentError(ErrorCode.MODEL_REFUSED)
    metrics.MODEL_REQUESTS.labels(outcome="rejected").inc()
    raise TransientError(ErrorCode.MODEL_REJECTED)


def _unavailable(outcome: str, wish: timedelta | None = None) -> NoReturn:
    metrics.MODEL_REQUESTS.labels(outcome=outcome).inc()
    seconds = None if wish is None else wish.total_seconds()
    raise TransientError(ErrorCode.MODEL_UNAVAILABLE, retry_after_seconds=seconds)


def _code(body: bytes) -> str | None:
    """Return the error's code, where the body has one in the usual place."""
    try:
        code = json.loads(body)["error"]["code"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return code if isinstance(code, str) else None


def _date(response: httpx.Response) -> datetime:
    """Return the provider's own time, which is what a wish given as a date is counted from."""
    try:
        at = parsedate_to_datetime(response.headers.get("date", ""))
    except ValueError:
        # Without it such a wish comes to nothing and the retry's own pause holds.
        return datetime.max.replace(tzinfo=UTC)
    return at if at.tzinfo else at.replace(tzinfo=UTC)
