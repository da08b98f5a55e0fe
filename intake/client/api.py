"""The HTTP API from a client's side, with the patience that an unreliable network asks for."""

import asyncio
import email.utils
import mimetypes
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx

LONG_POLL_SECONDS: Final = 30
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 30.0
IN_FLIGHT: Final = "idempotency_in_flight"
FORMATS: Final[Mapping[str, str]] = {
    "json": "application/json",
    "text": "text/plain",
    "markdown": "text/markdown",
    "csv": "text/csv",
}
TRY_AGAIN: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})

Json = dict[str, Any]
Send = Callable[[], Awaitable[httpx.Response]]


class ApiError(Exception):
    """A refusal, or no answer at all; ``str`` is a sentence for people."""

    def __init__(self, code: str, sentence: str) -> None:
        """Keep the stable code and the sentence."""
        super().__init__(f"{sentence} ({code})")
        self.code = code


@dataclass(slots=True)
class ApiClient:
    """One user's connection to the API.

    What is safe to repeat is repeated for ``patience_seconds``: reads, cancels, and submissions, which carry an
    Idempotency-Key for that.
    """

    http: httpx.AsyncClient
    patience_seconds: float = 600.0

    @classmethod
    def connect(cls, url: str, key: str, *, connections: int = 8) -> Self:
        """Make a client; nothing is connected yet."""
        return cls(
            httpx.AsyncClient(
                base_url=url,
                headers={"Authorization": f"Bearer {key}", "User-Agent": "docstage-cli"},
                timeout=httpx.Timeout(10, read=LONG_POLL_SECONDS + 30, write=60),
                limits=httpx.Limits(max_connections=connections),
            )
        )

    async def __aenter__(self) -> Self:
        """Return the client."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        await self.http.aclose()

    async def submit(
        self, path: Path, fields: Mapping[str, str], *, idempotency_key: str, upload: tuple[str, str] | None = None
    ) -> Json:
        """Submit a file and return its job; repeated with the same key, it is the same job.

        Args:
            path: the file.
            fields: the submission's other fields.
            idempotency_key: stands for this submission.
            upload: the name and type to send it under; without, the name stays here, because the service has no
                use for it.
        """
        name, declared = upload or ("document", mimetypes.guess_type(path.name)[0] or "application/octet-stream")

        async def send() -> httpx.Response:
            with path.open("rb") as file:
                return await self.http.post(
                    "/v1/jobs",
                    data=dict(fields),
                    files={"file": (name, file, declared)},
                    headers={"Idempotency-Key": idempotency_key},
                )

        return _json(await self._patiently(send))

    async def job(self, job_id: str, *, etag: str | None = None, wait: int = 0) -> tuple[Json | None, str | None]:
        """Return a job and its validator; no job when it still is what ``etag`` stands for."""
        headers = {"If-None-Match": etag} if etag else {}
        answer = await self._patiently(
            lambda: self.http.get(f"/v1/jobs/{job_id}", params={"wait": wait}, headers=headers)
        )
        if answer.status_code == HTTPStatus.NOT_MODIFIED:
            return None, etag
        return _json(answer), answer.headers.get("etag")

    async def result(self, job_id: str, form: str = "json", *, with_text: bool = False) -> str:
        """Return a job's result in one of ``FORMATS``."""
        params = {"include": "text"} if with_text else {}
        answer = await self._patiently(
            lambda: self.http.get(f"/v1/jobs/{job_id}/result", params=params, headers={"Accept": FORMATS[form]})
        )
        return answer.text

    async def attempts(self, job_id: str) -> list[Json]:
        """Return every claim on a job and what came of it."""
        answer = await self._patiently(lambda: self.http.get(f"/v1/jobs/{job_id}/attempts"))
        attempts: list[Json] = _json(answer)["attempts"]
        return attempts

    async def cancel(self, job_id: str) -> Json:
        """Cancel a job and return it."""
        return _json(await self._patiently(lambda: self.http.post(f"/v1/jobs/{job_id}/cancel")))

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Json | None = None,
        params: Mapping[str, str] | None = None,
        repeat: bool = True,
    ) -> Json:
        """Make a call; one that does something each time it is made is not repeated."""

        async def send() -> httpx.Response:
            return await self.http.request(method, path, json=body, params=params)

        answer = await (self._patiently(send) if repeat else _once(send))
        return _json(answer) if answer.content else {}

    async def _patiently(self, send: Send) -> httpx.Response:
        """Send until there is an answer that counts.

        Raises:
            ApiError: a refusal, or what stood in the way when patience ran out.
        """
        loop = asyncio.get_running_loop()
        ends, pause = loop.time() + self.patience_seconds, FIRST_PAUSE_SECONDS
        while True:
            try:
                answer = await send()
            except httpx.TransportError as error:
                failure, wish = ApiError("no_answer", f"The service does not answer: {type(error).__name__}"), None
            else:
                if answer.is_success or answer.status_code == HTTPStatus.NOT_MODIFIED:
                    return answer
                failure, wish = refusal(answer), retry_after(answer)
                if answer.status_code not in TRY_AGAIN and failure.code != IN_FLIGHT:
                    raise failure
            rest = wish if wish is not None else pause
            if loop.time() + rest > ends:
                raise failure
            await asyncio.sleep(rest)
            pause = min(LONGEST_PAUSE_SECONDS, pause * 2)


async def _once(send: Send) -> httpx.Response:
    """Send once.

    Raises:
        ApiError: a refusal, or no answer; then it may have been done all the same.
    """
    try:
        answer = await send()
    except httpx.TransportError as error:
        code, sentence = "no_answer", f"The service does not answer: {type(error).__name__}"
        raise ApiError(code, sentence) from None
    if not answer.is_success:
        raise refusal(answer)
    return answer


def refusal(answer: httpx.Response) -> ApiError:
    """Read a problem; anything else, such as a proxy's page, is told by its status."""
    try:
        problem = answer.json()
        sentence = " ".join(str(problem[part]) for part in ("title", "detail") if problem.get(part))
        return ApiError(str(problem["code"]), sentence)
    except (ValueError, KeyError, TypeError, AttributeError):
        return ApiError(f"http_{answer.status_code}", f"The answer was {answer.status_code}.")


def retry_after(answer: httpx.Response) -> float | None:
    """Read how long the service wants to be left alone; a proxy may say it as a date."""
    header = answer.headers.get("retry-after")
    if header is None:
        return None
    if header.isascii() and header.isdecimal():
        return float(header)
    try:
        named = email.utils.parsedate_to_datetime(header)
        sent = email.utils.parsedate_to_datetime(answer.headers["date"])
    except (ValueError, KeyError):
        return None
    return max(0.0, (named - sent).total_seconds())


def _json(answer: httpx.Response) -> Json:
    content: Json = answer.json()
    return content
