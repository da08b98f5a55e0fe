"""The protocol as one machine: whatever happens in whatever order, no job is doubled, lost or stuck.

Hypothesis drives the real functions against PostgreSQL with messages that are doubled, stale, early, reordered or
lost, with workers that die, hang or come back late, and with people who cancel, redrive, retry and delete meanwhile.
``DOCSTAGE_STRESS=40`` makes a soak of it: other draws every time, and shrunk when it fails.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from schema.db.engine import Database
from schema.domain.outcomes import Outcome
from schema.domain.states import RunStatus, Stage
from tests.support.effort import STRESS
from tests.support.invariants import Inspection, impossible, inspect
from tests.support.protocol import BUG, DAMAGED, DONE, POLICY, STORAGE, decided, until_locks_prove_something
from tests.support.world import InHand, Worker, World

JOBS = 3
WORKERS = 2
OPEN = {"ready", "running", "retrying"}
WAITED_FOR = {RunStatus.RUNNING, RunStatus.RETRYING}
PROFILE = settings(
    max_examples=40 * STRESS,
    stateful_step_count=60,
    deadline=None,
    database=None,
    derandomize=STRESS == 1,
    phases=[Phase.generate] if STRESS == 1 else [Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)

PICK = st.integers(0, 10_000)
OUTCOMES = st.sampled_from([DONE, DONE, DONE, STORAGE, STORAGE, STORAGE, STORAGE, BUG, BUG, DAMAGED])

# How often each event happens, compared with the others: jobs have to get somewhere before they end.
WEIGHTS: Mapping[str, int] = {
    "go_on": 24,
    "finish": 24,
    "make_due": 12,
    "deliver": 10,
    "publish": 4,
    "commit_late": 6,
    "kill": 6,
    "lose_channel": 5,
    "leak": 4,
    "give_back": 2,
    "keep_page": 8,
    "renew": 2,
    "lose_messages": 1,
    "glance": 6,
    "take_over_late": 4,
    "defer_late": 5,
    "cancel_late": 1,
    "expire_lease": 5,
    "sweep": 3,
    "redrive": 6,
    "retry": 4,
    "cancel": 1,
    "delete": 1,
    "pass_deadline": 1,
    "expire": 1,
}
EVENTS = [name for name, weight in WEIGHTS.items() for _ in range(weight)]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Draw:
    """What chance decided about one event: which of those concerned, who does it, and how work ends."""

    pick: int
    whom: int
    outcome: Outcome


Event = Callable[[Draw], Coroutine[Any, Any, Any]]


def _one(among: Sequence[T], pick: int) -> T | None:
    """Choose one, if there is any."""
    return among[pick % len(among)] if among else None


class Story:
    """Every event that there can be; each asserts what it is answered, and does nothing where it cannot happen."""

    def __init__(self, world: World) -> None:
        """Keep the world."""
        self.world = world

    def _hand(self, pick: int) -> tuple[Worker, InHand] | None:
        """Choose a claim that is being worked on, with its worker."""
        return _one([(worker, hand) for worker in self.world.workers for hand in worker.hands], pick)

    async def publish(self, draw: Draw) -> None:
        """What is owed is published, once or, when the relay crashes, twice."""
        await self.world.relay(crashes=draw.whom % 3 == 0)

    async def deliver(self, draw: Draw) -> None:
        """Any message may be the next: stale, early, doubled, deferred."""
        if sent := _one(self.world.broker, draw.pick):
            await self.world.deliver(sent, self.world.workers[draw.whom % WORKERS])

    async def go_on(self, draw: Draw) -> None:
        """Mostly things go well: what is owed is published, and the newest message arrives."""
        await self.world.relay()
        if self.world.broker:
            await self.world.deliver(self.world.broker[-1], self.world.workers[draw.whom % WORKERS])

    async def finish(self, draw: Draw) -> None:
        """An outcome is written if its claim still stands, and only then."""
        if held := self._hand(draw.pick):
            stands = await self.world.is_current(held[1].claimed.claim)
            assert await self.world.finish(*held, draw.outcome) == stands

    async def give_back(self, draw: Draw) -> None:
        """A worker that shuts down releases what is its own."""
        if held := self._hand(draw.pick):
            stands = await self.world.is_current(held[1].claimed.claim)
            assert await self.world.give_back(*held) == stands

    async def commit_late(self, draw: Draw) -> None:
        """Any claim that ever was may commit now: of a dead worker, a hung one, or for the second time."""
        if claim := _one(self.world.claims, draw.pick):
            stands = await self.world.is_current(claim)
            assert await self.world.write(decided(claim, draw.outcome)) == [stands]

    async def keep_page(self, draw: Draw) -> None:
        """A page is kept by the claim that stands, and by no other."""
        if claim := _one([claim for claim in self.world.claims if claim.stage is Stage.EXTRACT], draw.pick):
            stands = await self.world.is_current(claim)
            assert await self.world.keep_page(claim, 1 + draw.whom % 2) == stands

    async def renew(self, _: Draw) -> None:
        """A heartbeat that still carries old claims gives none of them anything."""
        await self.world.renew()

    async def kill(self, draw: Draw) -> None:
        """A worker dies with what it has in hand; another starts."""
        if held := self._hand(draw.pick):
            await self.world.kill(held[0])
            await self.world.start_worker()

    async def lose_channel(self, draw: Draw) -> None:
        """Deliveries come again while their first copy is being worked on."""
        if held := self._hand(draw.pick):
            self.world.lose_channel(held[0])

    async def leak(self, draw: Draw) -> None:
        """A handler is gone without a word, its process lives."""
        if held := self._hand(draw.pick):
            self.world.leak(*held)

    async def lose_messages(self, _: Draw) -> None:
        """A broker loses its disk."""
        self.world.lose_messages()

    async def glance(self, draw: Draw) -> None:
        """Somebody reads a run and is interrupted."""
        await self.world.glance(self.world.jobs[draw.pick % JOBS])

    async def take_over_late(self, draw: Draw) -> None:
        """A takeover decided on an old look succeeds only if nothing has moved since."""
        if seen := _one([seen for seen in self.world.glances if seen.gone], draw.pick):
            still = await self.world.still(seen.run)
            assert await self.world.take_over_late(seen, self.world.workers[draw.whom % WORKERS]) == still

    async def defer_late(self, draw: Draw) -> None:
        """A deferral decided on an old look is not kept when the run has gone on, unless it is over."""
        if seen := _one([seen for seen in self.world.glances if seen.run.status in WAITED_FOR], draw.pick):
            still, done = await self.world.still(seen.run), await self.world.is_done(seen.run)
            assert not await self.world.defer_late(seen) or still or done

    async def cancel_late(self, draw: Draw) -> None:
        """A cancel decided on an old look takes no run that it did not see."""
        if seen := _one([seen for seen in self.world.glances if not seen.run.state.terminal], draw.pick):
            still = await self.world.still(seen.run)
            assert await self.world.cancel_late(seen) == still

    async def sweep(self, _: Draw) -> None:
        """The sweeper looks at what has been silent for long."""
        await self.world.sweep()

    def of_a_job(self, name: str) -> Event:
        """Return the event that something is done to one job: by its owner, by an operator, by time."""
        deed = getattr(self.world, name)
        return lambda draw: deed(self.world.jobs[draw.pick % JOBS])

    def event(self, name: str) -> Event:
        """Return an event by its name."""
        event: Event = getattr(self, name, None) or self.of_a_job(name)
        return event


class Machine(RuleBasedStateMachine):
    """One story after another, and after each event of it what must be true.

    A single rule, because with many of them Hypothesis leaves half out of each example, and most stories would
    have no deliveries, or no outcomes, in them.
    """

    url = ""

    def __init__(self) -> None:
        """Begin with jobs that are just accepted and workers that are idle."""
        super().__init__()
        self.runner = asyncio.Runner()
        self.database = Database.connect(self.url, application="docstage-test", pool_size=4)
        self.world = self.run(World.begin(self.database, jobs=JOBS, workers=WORKERS))
        self.story = Story(self.world)
        self.before = self.inspect().runs

    def run(self, step: Coroutine[Any, Any, Any]) -> Any:
        """Do something on the machine's own loop."""
        return self.runner.run(step)

    @initialize(stages=st.lists(st.integers(0, 3), min_size=JOBS, max_size=JOBS))
    def get_ahead(self, stages: list[int]) -> None:
        """Some jobs are far on when the trouble begins."""
        for job, done in zip(self.world.jobs, stages, strict=True):
            self.run(self.world.get_ahead(job, done))

    @rule(name=st.sampled_from(EVENTS), pick=PICK, whom=PICK, outcome=OUTCOMES)
    def happen(self, name: str, pick: int, whom: int, outcome: Outcome) -> None:
        """Something happens."""
        self.run(self.story.event(name)(Draw(pick, whom, outcome)))

    @invariant()
    def everything_fits(self) -> None:
        """Nothing contradicts itself, nothing impossible has happened, and nothing waits for nothing."""
        found, before = self.inspect(), self.before
        self.before = found.runs
        assert found.broken == []
        assert impossible(before, found.runs) == []
        assert self._without_a_message(found) <= self.world.forgotten

    def _without_a_message(self, found: Inspection) -> set[UUID]:
        """P2: return the jobs that no message for the very attempt that is next, or under way, exists of."""
        messages = found.owed | self.world.on_the_way()
        open_runs = {key: run for key, run in found.runs.items() if run.open and run.status in OPEN}
        saved = {key[0] for key, run in open_runs.items() if (*key, run.series, run.attempt) in messages}
        self.world.forgotten -= saved
        return {job_id for job_id, _ in open_runs} - saved

    def inspect(self) -> Inspection:
        """Look at everything."""
        found: Inspection = self.run(inspect(self.database, [job.id for job in self.world.jobs], POLICY))
        return found

    def teardown(self) -> None:
        """From everywhere all jobs come to an end: by messages alone, or else by one look of the sweeper."""
        try:
            self.run(self._come_to_an_end())
            self.everything_fits()
        finally:
            self.run(self.world.close())
            self.run(self.database.close())
            self.runner.close()

    async def _come_to_an_end(self) -> None:
        await self.world.settle()
        assert await self.world.unfinished() <= self.world.forgotten
        for job in self.world.jobs:
            await self.world.expire_lease(job)
        await self.world.sweep()
        await self.world.settle()
        assert await self.world.unfinished() == set()


@pytest.mark.timeout(180 * STRESS)
def test_no_order_of_events_doubles_loses_or_strands_a_job(database_url: str) -> None:
    """Each example is another story; after every step of it everything must fit, and in the end every job ends."""
    _until_locks_prove_something(database_url)

    class Here(Machine):
        url = database_url

    run_state_machine_as_test(Here, settings=PROFILE)


def _until_locks_prove_something(url: str) -> None:
    """Wait until the server is old enough for a free lock to mean that its worker is gone."""

    async def wait() -> None:
        database = Database.connect(url, application="docstage-test", pool_size=1)
        await until_locks_prove_something(database)
        await database.close()

    asyncio.run(wait())
