"""A worker's parts put together as in production, with a stub where the handlers go and no broker."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from schema.db.engine import Database
from schema.domain.errors import ErrorCode
from schema.domain.ids import new_id
from schema.domain.outcomes import Completed
from schema.domain.states import Lane, Stage
from schema.runtime.clock import SystemClock
from schema.wire.messages import StageMessage
from stages.breaker import Breaker
from stages.ledger import Ledger
from stages.liveness import Liveness
from stages.reception import Copy, Reception
from stages.runner import Runner, RunnerSettings
from stages.work import Checkpoint, Work
from tests.support.factories import LEASE
from tests.support.protocol import POLICY, Quiet

LIMIT = timedelta(minutes=5)


class Still:
    """A clock that stands until it is set forward: nobody's patience ends by itself."""

    def __init__(self) -> None:
        """Begin at zero."""
        self.seconds = 0.0

    def monotonic(self) -> float:
        """Return the time that was set."""
        return self.seconds


@dataclass(slots=True)
class Stub:
    """A handler that waits at a gate, if it is closed, and then says what it was told to."""

    answer: Callable[[Work], Completed] = lambda _: Completed({})
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    begun: list[UUID] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin with the gate open."""
        self.gate.set()

    async def run(self, work: Work, _: Checkpoint) -> Completed:
        """Do as told."""
        self.begun.append(work.job_id)
        await self.gate.wait()
        return self.answer(work)


class NoStore:
    """A store for large outputs, of which there are none."""

    async def get(self, key: str) -> bytes:
        """Have nothing."""
        raise KeyError(key)

    async def put(self, key: str, body: bytes) -> object:
        """Take nothing."""
        raise KeyError(key, len(body))


class Wavering:
    """A database whose transactions end otherwise than they should, as often as told.

    ``lost_answers`` are committed and the answer does not arrive; ``lost_commits`` are rolled back.
    """

    def __init__(self, database: Database, *, lost_answers: int = 0, lost_commits: int = 0) -> None:
        """Keep the real one."""
        self._database = database
        self.lost_answers = lost_answers
        self.lost_commits = lost_commits

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """Begin as the real one does; end as told."""
        async with self._database.transaction() as conn:
            yield conn
            if self.lost_commits:
                self.lost_commits -= 1
                raise ConnectionResetError
        if self.lost_answers:
            self.lost_answers -= 1
            raise ConnectionResetError


class Interrupted:
    """A ledger that lets something happen right after one of its methods has answered, once.

    What is between a statement and the next is where other processes do their work.
    """

    def __init__(self, ledger: Ledger, after: str, happens: Callable[[], Awaitable[Any]]) -> None:
        """Keep the real ledger, the method's name, and what happens."""
        self._ledger = ledger
        self._after = after
        self._happens: Callable[[], Awaitable[Any]] | None = happens
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """Return the real method, followed by what happens."""
        method = getattr(self._ledger, name)

        async def ask(*args: Any) -> Any:
            answer = await method(*args)
            self.calls.append(name)
            if name == self._after and self._happens is not None:
                happens, self._happens = self._happens, None
                await happens()
            return answer

        return ask


@dataclass(slots=True)
class Crew:
    """One worker."""

    liveness: Liveness
    ledger: Ledger
    reception: Reception
    runner: Runner
    clock: Still
    stub: Stub

    async def admit(self, message: StageMessage, *, copy: Copy | None = None, ledger: Any = None) -> Any:
        """Receive a message; with ``ledger`` through another one than the worker's own."""
        reception = Reception(ledger, self.clock, POLICY.lost_claims) if ledger else self.reception
        return await reception.admit(message, copy or Copy(new_id(), 0))

    async def work(self, message: StageMessage) -> None:
        """Receive a message and do what it points to."""
        claimed = await self.admit(message)
        assert claimed is not None
        await self.runner.work(claimed)


async def _up() -> None:
    """Answer as a store that is up."""


@asynccontextmanager
async def crew(
    database: Database, *, lease: timedelta = LEASE, limit: timedelta = LIMIT, through: Any = None
) -> AsyncIterator[Crew]:
    """Run a worker; ``through`` is the database as its ledger sees it."""
    liveness = Liveness(database.url, stages=list(Stage), lease=lease, clock=SystemClock())
    liveness.start()
    ledger = Ledger(through or database, liveness, Quiet(), lease=lease)  # type: ignore[arg-type] # nothing to wake
    stub, clock = Stub(), Still()
    settings = RunnerSettings(
        lease=lease, limits=dict.fromkeys(Lane, limit), inline_bytes=1 << 20, policy=lambda _: POLICY
    )
    handlers: Mapping[Lane, Any] = dict.fromkeys(Lane, stub)
    runner = Runner(
        ledger=ledger,
        liveness=liveness,
        database=database,
        outputs=NoStore(),
        handlers=handlers,
        settings=settings,
        clock=SystemClock(),
        breaker=Breaker(ErrorCode.STORAGE_UNAVAILABLE, _up, clock=SystemClock(), probe_seconds=1),
    )
    await liveness.ready()
    try:
        yield Crew(liveness, ledger, Reception(ledger, clock, POLICY.lost_claims), runner, clock, stub)
    finally:
        await liveness.stop()
