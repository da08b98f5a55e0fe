"""Clients that submit and do not give up: the same request under the same key until it is answered for good."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import httpx

from tests.soak.papers import Paper, pack

# What a client may be told to come back for; anything else ends its request, for good or ill.
AGAIN: Final = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.SERVICE_UNAVAILABLE,
}
IN_FLIGHT: Final = "idempotency_in_flight"
REQUEST_SECONDS: Final = 10.0
# A person's patience with Retry-After, in a run of minutes.
LONGEST_PAUSE_SECONDS: Final = 5.0
LONGEST_BACKOFF_SECONDS: Final = 2.0
THINKING_SECONDS: Final = 0.3
# How often a job is cancelled, a request repeated, and a request sent twice at once.
CANCELLED: Final = 0.06
REPEATED: Final = 0.06
TWICE: Final = 0.04


@dataclass(slots=True)
class Ticket:
    """One document that was submitted, and all that its client was told.

    ``jobs`` are the ids that the same request was answered with, one unless something is wrong; ``cancelled`` says
    whether a cancel won, ``None`` where there was none; ``refusal`` is the code of a refusal for good.
    """

    key: str
    paper: Paper
    word: str
    body: bytes = field(repr=False)
    answers: list[str] = field(default_factory=list)
    cancelled: bool | None = None
    refusal: str = ""

    @property
    def jobs(self) -> set[str]:
        """The jobs that the request made, as far as its client knows."""
        return set(self.answers)


@dataclass(slots=True)
class Office:
    """All clients of one soak, what they hold and what they met with.

    ``answers`` counts every answer by its status, or what came instead of one; ``surprises`` are those that no client
    should ever get.
    """

    url: str
    key: str
    seed: int
    tickets: list[Ticket] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    surprises: list[str] = field(default_factory=list)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def accepted(self) -> list[Ticket]:
        """Those whose document was taken in."""
        return [ticket for ticket in self.tickets if ticket.answers]

    async def run(self, clients: int) -> None:
        """Let so many clients submit until the office is closed; each sees its last document through."""
        headers = {"Authorization": f"Bearer {self.key}"}
        async with (
            httpx.AsyncClient(base_url=self.url, headers=headers, timeout=REQUEST_SECONDS, trust_env=False) as http,
            asyncio.TaskGroup() as group,
        ):
            for number in range(clients):
                group.create_task(self._client(http, number))

    async def _client(self, http: httpx.AsyncClient, number: int) -> None:
        """Submit one document after the other."""
        draw = random.Random(f"{self.seed}-{number}")
        papers = pack(draw)
        while not self.closed.is_set():
            paper, word = next(papers), f"w{number}x{len(self.tickets)}x{draw.getrandbits(40)}"
            ticket = Ticket(f"key-{word}", paper, word, await asyncio.to_thread(paper.make, word))
            self.tickets.append(ticket)
            await self._see_through(http, ticket, draw)
            await self._wait(draw.uniform(0, THINKING_SECONDS))

    async def _see_through(self, http: httpx.AsyncClient, ticket: Ticket, draw: random.Random) -> None:
        """Submit, and sometimes do what clients do besides."""
        chance = draw.random()
        await asyncio.gather(*(self._submit(http, ticket, draw) for _ in range(2 if chance < TWICE else 1)))
        if not ticket.answers:
            return
        if TWICE < chance < TWICE + REPEATED:
            await self._submit(http, ticket, draw)
        elif chance > 1 - CANCELLED and not ticket.paper.doomed:
            await self._wait(draw.uniform(0, 2 * THINKING_SECONDS))
            ticket.cancelled = await self._cancel(http, ticket.answers[0], draw)

    async def _submit(self, http: httpx.AsyncClient, ticket: Ticket, draw: random.Random) -> None:
        """Submit a document until it is taken in, or refused for what it is."""
        answer = await self._until_answered(
            lambda: http.post(
                "/v1/jobs",
                data={"kind": ticket.paper.kind, **ticket.paper.options},
                files={"file": ("document", ticket.body)},
                headers={"Idempotency-Key": ticket.key},
            ),
            draw,
        )
        if answer.status_code == HTTPStatus.ACCEPTED:
            ticket.answers.append(str(answer.json()["id"]))
        else:
            ticket.refusal = _code(answer)

    async def _cancel(self, http: httpx.AsyncClient, job_id: str, draw: random.Random) -> bool:
        """Cancel a job; say whether that came in time."""
        answer = await self._until_answered(lambda: http.post(f"/v1/jobs/{job_id}/cancel"), draw)
        if answer.status_code != HTTPStatus.OK and _code(answer) != "already_finished":
            self.surprises.append(f"cancel: {answer.status_code} {_code(answer)}")
        return answer.status_code == HTTPStatus.OK

    async def _until_answered(
        self, request: Callable[[], Awaitable[httpx.Response]], draw: random.Random
    ) -> httpx.Response:
        """Repeat a request, with backoff or as told by Retry-After, until there is an answer for good."""
        failures = 0
        while True:
            pause = draw.uniform(0.05, min(LONGEST_BACKOFF_SECONDS, 0.1 * 2**failures))
            failures += 1
            try:
                answer = await request()
            except httpx.HTTPError as error:
                self.answers[type(error).__name__] += 1
            else:
                self.answers[f"{answer.status_code} {_code(answer)}".strip()] += 1
                if not self._is_to_be_repeated(answer):
                    return answer
                told = float(answer.headers.get("Retry-After", "0"))
                pause += min(told, LONGEST_PAUSE_SECONDS)
            await asyncio.sleep(pause)

    def _is_to_be_repeated(self, answer: httpx.Response) -> bool:
        """Say whether the client should come back; a server's error is repeated too, but nobody should see one."""
        status = HTTPStatus(answer.status_code)
        if status in AGAIN or _code(answer) == IN_FLIGHT:
            if "Retry-After" not in answer.headers and status is not HTTPStatus.REQUEST_TIMEOUT:
                self.surprises.append(f"{status.value} {_code(answer)} without Retry-After")
            return True
        broken = status >= HTTPStatus.INTERNAL_SERVER_ERROR
        if broken:
            self.surprises.append(f"{status.value} {_code(answer)}")
        return broken

    async def _wait(self, seconds: float) -> None:
        """Think, unless the office closes."""
        try:
            async with asyncio.timeout(seconds):
                await self.closed.wait()
        except TimeoutError:
            return


def _code(answer: httpx.Response) -> str:
    """Return the code of a refusal; empty for other answers."""
    if answer.headers.get("Content-Type", "").startswith("application/problem+json"):
        return str(answer.json().get("code", ""))
    return ""
