"""A circuit breaker: while what a stage depends on is down, the stage pauses instead of burning attempts.

Whether a failure is the dependency's or the job's own is not guessed from a count of failures: the dependency
is asked. One question at a time, shared by all who failed meanwhile, so a store that is down hears one small
request per interval and no job pays for the news that it is up again.
"""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Iterable

from schema.domain.errors import ErrorCode, StageError
from schema.runtime import metrics
from schema.runtime.clock import Clock
from schema.runtime.logs import get_logger

log = get_logger()


class Breaker:
    """One dependency of this process, known by the ``code`` that its failures carry.

    States: closed (work passes) -> open (nothing is claimed) on a failure that its probe confirms; open -> closed
    on the first probe that is answered.
    """

    def __init__(
        self, code: ErrorCode, ping: Callable[[], Awaitable[None]], *, clock: Clock, probe_seconds: float
    ) -> None:
        """Begin closed; ``ping`` raises an owned error when the dependency does not answer."""
        self._code = code
        self._ping = ping
        self._clock = clock
        self._probe_seconds = probe_seconds
        self._passing = asyncio.Event()
        self._passing.set()
        self._open = False
        self._ended = False
        self._closed_at = clock.monotonic()
        self._asking: asyncio.Task[bool] | None = None
        self._probing: asyncio.Task[None] | None = None
        metrics.PAUSED.labels(code=code.value).set(0)

    @property
    def is_open(self) -> bool:
        """Whether the dependency is taken for down."""
        return self._open

    def missing(self) -> Iterable[str]:
        """Say in words for /readyz that this process pauses."""
        return [f"paused: {self._code.value}"] if self._open else []

    async def blames(self, code: ErrorCode | None, began: float) -> bool:
        """Say whether a failure was the dependency's and not the job's own.

        Work that began before the end of an outage may fail after it: that is the outage's as well.

        Args:
            code: what the work failed with.
            began: when the work began, on the monotonic clock.
        """
        if code is not self._code:
            return False
        if self._open or began < self._closed_at:
            return True
        if await self._answers():
            return False
        self._trip()
        return True

    async def passes(self, patience_seconds: float) -> bool:
        """Wait until work may begin; ``False`` when it may not yet, or this process is ending."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_seconds):
                await self._passing.wait()
        return not self._open

    async def end(self) -> None:
        """Let nobody wait any longer, and ask no more."""
        self._ended = True
        self._passing.set()
        for task in (self._probing, self._asking):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def _answers(self) -> bool:
        """Ask, or share the answer of the question that is under way."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        asking = self._asking
        # Waited for and not awaited: one handler that is cancelled must not take the answer from the others, and a
        # question given up at the end of this process is no answer, but must not look like the handler's own end.
        await asyncio.wait({asking})
        return not asking.cancelled() and asking.result()

    async def _ask(self) -> bool:
        try:
            await self._ping()
        except StageError:
            metrics.PROBES.labels(code=self._code.value, outcome="failed").inc()
            return False
        metrics.PROBES.labels(code=self._code.value, outcome="answered").inc()
        return True

    def _trip(self) -> None:
        if self._open or self._ended:
            return
        self._open = True
        self._passing.clear()
        metrics.PAUSED.labels(code=self._code.value).set(1)
        log.warning("dependency_down", code=self._code.value)
        self._probing = asyncio.create_task(self._probe())

    async def _probe(self) -> None:
        """Ask at intervals until there is an answer; spread, because every worker of the fleet does this."""
        began = self._clock.monotonic()
        while True:
            await asyncio.sleep(self._probe_seconds * random.uniform(0.75, 1.25))  # noqa: S311 - spreading, not secrecy
            if await self._answers():
                break
        self._open = False
        self._closed_at = self._clock.monotonic()
        self._passing.set()
        metrics.PAUSED.labels(code=self._code.value).set(0)
        log.info("dependency_up", code=self._code.value, seconds=round(self._closed_at - began, 3))
