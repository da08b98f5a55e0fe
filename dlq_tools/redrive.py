"""Bulk redrive: a canary first, then the rest at a rate, watched, and stopped when what came back fails again.

Nothing is kept but in the rows: a letter that was redriven is closed, so the same command after a kill goes on
with those that are left.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final

from schema.db import stage_runs
from schema.db.dead_letters import Letter
from schema.db.engine import Database
from schema.db.redrives import RedriveAnswer, redrive
from schema.domain.states import RunStatus, Stage
from schema.runtime import failpoints
from schema.runtime.clock import Clock
from schema.runtime.failpoints import Point

POLL_SECONDS: Final = 0.5
# A share of fewer outcomes than this says nothing.
ENOUGH: Final = 5


class Ending(StrEnum):
    """Why a bulk redrive ended: ``done`` is what was asked for, and the others are exceptions from it."""

    DONE = "done"
    FAILED_AGAIN = "failed_again"
    CANARY_UNDECIDED = "canary_undecided"
    UNDECIDED = "undecided"


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

    def __init__(self, *, database: Database, clock: Clock, plan: Plan, redriven: Callable[[], None]) -> None:
        """Keep the ports; ``redriven`` is called after each commit."""
        self._database = database
        self._clock = clock
        self._plan = plan
        self._redriven = redriven
        self.progress = Progress()

    async def run(self, letters: Sequence[Letter]) -> Ending:
        """Redrive the letters in their order, as long as all is well."""
        canary, rest = letters[: self._plan.canary], letters[self._plan.canary :]
        if canary and rest:
            await self._redrive(canary)
            if not await self._settled(self._plan.patience):
                return Ending.CANARY_UNDECIDED
            if self.progress.failing_share > self._plan.stop_at:
                return Ending.FAILED_AGAIN
        else:
            rest = letters
        if not await self._release(rest):
            return Ending.FAILED_AGAIN
        return await self._conclude()

    async def _conclude(self) -> Ending:
        """Wait for the outcomes that are still out, if that was asked for."""
        if not self._plan.wait:
            return Ending.DONE
        if not await self._settled(self._plan.wait):
            return Ending.UNDECIDED
        return Ending.FAILED_AGAIN if self.progress.failing_share > self._plan.stop_at else Ending.DONE

    async def _release(self, letters: Sequence[Letter]) -> bool:
        """Redrive at the rate, a second's worth at a time; ``False`` when too many fail again."""
        size = max(1, round(self._plan.rate))
        for start in range(0, len(letters), size):
            began = self._clock.monotonic()
            await self._redrive(letters[start : start + size])
            await self._look()
            if self._failing():
                return False
            if start + size < len(letters):
                await asyncio.sleep(max(0.0, size / self._plan.rate - (self._clock.monotonic() - began)))
        return True

    def _failing(self) -> bool:
        known = self.progress.passed + self.progress.failed
        return known >= ENOUGH and self.progress.failing_share > self._plan.stop_at

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

    async def _settled(self, patience: timedelta) -> bool:
        """Wait until every outcome is known; ``False`` when patience ends before."""
        ends = self._clock.monotonic() + patience.total_seconds()
        while self.progress.watched:
            if self._clock.monotonic() > ends:
                return False
            await asyncio.sleep(POLL_SECONDS)
            await self._look()
        return True

    async def _look(self) -> None:
        """See which of the redriven stages have ended meanwhile, and how."""
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
            if run is not None and run.status is RunStatus.FAILED:
                self.progress.failed += 1
            elif run is None or run.status in (RunStatus.DONE, RunStatus.CANCELLED):
                self.progress.passed += 1
            else:
                self.progress.watched.append(letter)
