"""Bulk redrive: a canary first, then the rest at a rate, watched, and stopped when what came back fails again.

Nothing is kept but in the rows: a letter that was redriven is closed, so the same command after a kill goes on
with those that are left.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final

from schema.db import stage_runs
from schema.db.dead_letters import Letter
from schema.db.engine import Database
from schema.db.redrives import RedriveAnswer, redrive
from schema.domain.states import JobState, Stage
from schema.runtime import failpoints
from schema.runtime.clock import Clock
from schema.runtime.failpoints import Point

POLL_SECONDS: Final = 0.5
# A share of fewer outcomes than this says nothing.
ENOUGH: Final = 5
# What one transaction may hold locked, whatever the rate.
BATCH: Final = 200
# Letters are released in steps as small as this allows: a second's worth at once would be a queue before fresh jobs.
STEP_SECONDS: Final = 0.1
LOOK_SECONDS: Final = 1.0


class Ending(StrEnum):
    """Why a bulk redrive ended: ``done`` is what was asked for, and the others are exceptions from it."""

    DONE = "done"
    FAILED_AGAIN = "failed_again"
    CANARY_UNDECIDED = "canary_undecided"
    UNDECIDED = "undecided"
    INTERRUPTED = "interrupted"


class _Stopped(Exception):  # noqa: N818 - an ending, not an error
    """The run ends here."""

    def __init__(self, ending: Ending) -> None:
        """Say why."""
        self.ending = ending


@dataclass(frozen=True, slots=True)
class Plan:
    """How to go about it.

    ``stop_at`` is the share of outcomes that may be failures, ``patience`` how long the canary's are waited for, and
    ``wait`` how long those that are still out after the last letter; nobody waits for these unless asked to.
    """

    by: str
    reason: str
    rate: float
    canary: int
    stop_at: float
    patience: timedelta
    wait: timedelta = timedelta(0)


@dataclass(slots=True)
class Progress:
    """What came of the letters so far."""

    answers: dict[RedriveAnswer, int] = field(default_factory=dict)
    passed: int = 0
    failed: int = 0
    watched: list[Letter] = field(default_factory=list)

    @property
    def redriven(self) -> int:
        """How many letters came back."""
        return self.answers.get(RedriveAnswer.REDRIVEN, 0)

    @property
    def refused(self) -> Mapping[RedriveAnswer, int]:
        """How many letters did not come back, by what stood in the way."""
        return {answer: count for answer, count in self.answers.items() if answer is not RedriveAnswer.REDRIVEN}

    @property
    def failing_share(self) -> float:
        """The share of failures among the outcomes that are known."""
        decided = self.passed + self.failed
        return self.failed / decided if decided else 0.0

    def told(self, ending: Ending, *, of: int) -> Mapping[str, str | int]:
        """Return all of it for a program, ``of`` so many letters."""
        return {
            "ending": ending.value,
            RedriveAnswer.REDRIVEN.value: self.redriven,
            **{answer.value: count for answer, count in self.refused.items()},
            "passed": self.passed,
            "failed_again": self.failed,
            "undecided": len(self.watched),
            "left": of - sum(self.answers.values()),
        }


class BulkRedrive:
    """One run over a list of letters."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        plan: Plan,
        redriven: Callable[[], None],
        told: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        """Keep the ports; ``redriven`` is called after each commit, ``told`` whenever more is known."""
        self._database = database
        self._clock = clock
        self._plan = plan
        self._redriven = redriven
        self._told = told
        self._interrupted = asyncio.Event()
        self.progress = Progress()

    def interrupt(self) -> None:
        """End the run after the transaction that is under way, so that the account of it stays true."""
        self._interrupted.set()

    async def run(self, letters: Sequence[Letter]) -> Ending:
        """Redrive the letters in their order, as long as all is well."""
        try:
            await self._run(letters)
        except _Stopped as stopped:
            return stopped.ending
        return Ending.DONE

    async def _run(self, letters: Sequence[Letter]) -> None:
        ahead = self._plan.canary if self._plan.canary < len(letters) else 0
        if ahead:
            await self._redrive(letters[:ahead])
            await self._settle(self._plan.patience, otherwise=Ending.CANARY_UNDECIDED)
        await self._release(letters[ahead:])
        if self._plan.wait:
            await self._settle(self._plan.wait, otherwise=Ending.UNDECIDED)

    async def _release(self, letters: Sequence[Letter]) -> None:
        """Redrive at the rate, in small steps, and stop when too many fail again."""
        size = min(BATCH, max(1, round(self._plan.rate * STEP_SECONDS)))
        looked = self._clock.monotonic()
        for start in range(0, len(letters), size):
            began, last = self._clock.monotonic(), start + size >= len(letters)
            await self._redrive(letters[start : start + size])
            if last or began - looked >= LOOK_SECONDS:
                looked = began
                await self._look()
                self._judge(enough=ENOUGH)
            if not last:
                await self._pause(size / self._plan.rate - (self._clock.monotonic() - began))

    def _judge(self, *, enough: int) -> None:
        """Stop when too many of the outcomes are failures, if there are ``enough`` to say so."""
        known = self.progress.passed + self.progress.failed
        if known >= enough and self.progress.failing_share > self._plan.stop_at:
            raise _Stopped(Ending.FAILED_AGAIN)

    async def _pause(self, seconds: float) -> None:
        """Wait, unless the run is interrupted."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._interrupted.wait()
        if self._interrupted.is_set():
            raise _Stopped(Ending.INTERRUPTED)

    async def _redrive(self, letters: Sequence[Letter]) -> None:
        """Redrive some letters in one transaction."""
        async with self._database.transaction() as conn:
            answers = await redrive(conn, [letter.id for letter in letters], by=self._plan.by, note=self._plan.reason)
        failpoints.hit(Point.REDRIVE_COMMITTED)
        self._redriven()
        for letter in letters:
            answer = answers[letter.id]
            self.progress.answers[answer] = self.progress.answers.get(answer, 0) + 1
            if answer is RedriveAnswer.REDRIVEN and letter.stage:
                self.progress.watched.append(letter)

    async def _settle(self, patience: timedelta, *, otherwise: Ending) -> None:
        """Wait until every outcome is known; what is not known when patience ends has the ending ``otherwise``."""
        ends = self._clock.monotonic() + patience.total_seconds()
        while self.progress.watched:
            if self._clock.monotonic() > ends:
                raise _Stopped(otherwise)
            await self._pause(POLL_SECONDS)
            await self._look()
        self._judge(enough=1)

    async def _look(self) -> None:
        """See which of the redriven jobs have ended meanwhile, and how.

        Not the stage that is done again counts but the job: whatever broke it may break it one stage later.
        """
        wanted = [
            (letter.job_id, Stage(letter.stage), letter)
            for letter in self.progress.watched
            if letter.job_id and letter.stage
        ]
        if not wanted:
            return
        async with self._database.transaction() as conn:
            runs = await stage_runs.read(conn, [(job_id, stage) for job_id, stage, _ in wanted])
        self.progress.watched.clear()
        for job_id, stage, letter in wanted:
            run = runs.get((job_id, stage))
            if run is not None and run.state is JobState.FAILED:
                self.progress.failed += 1
            elif run is None or run.state.terminal:
                self.progress.passed += 1
            else:
                self.progress.watched.append(letter)
        self._told(self.progress)
