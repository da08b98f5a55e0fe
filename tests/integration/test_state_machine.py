"""The protocol as one machine: whatever happens in whatever order, no job is doubled, lost or stuck.

Hypothesis drives the real functions against PostgreSQL with messages that are doubled, stale, early, reordered or
lost, with workers that die, hang or come back late, and with people who cancel, redrive, retry and delete meanwhile.
``DOCSTAGE_STRESS=40`` makes a soak of it: other draws every time, and shrunk when it fails.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from schema.db.engine import Database
from schema.domain.outcomes import Outcome
from schema.domain.states import RunStatus, Stage
from tests.support.effort import STRESS
from tests.support.eventually import eventually
from tests.support.factories import rows
from tests.support.invariants import Inspection, impossible, inspect
from tests.support.protocol import BUG, DAMAGED, DONE, POLICY, STORAGE, decided
from tests.support.world import World

JOBS = 2
WORKERS = 2
OPEN = {"ready", "running", "retrying"}
PROFILE = settings(
    max_examples=40 * STRESS,
    stateful_step_count=40,
    deadline=None,
    database=None,
    derandomize=STRESS == 1,
    phases=[Phase.generate] if STRESS == 1 else [Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)

PICK = st.integers(0, 10_000)
# What is likely stands more than once, so that jobs get somewhere.
OUTCOMES = st.sampled_from([DONE, DONE, DONE, DONE, STORAGE, STORAGE, BUG, DAMAGED])


class Machine(RuleBasedStateMachine):
    """Every move that somebody can make, and after each of them what must be true."""

    url = ""

    def __init__(self) -> None:
        """Begin with jobs that are just accepted and workers that are idle."""
        super().__init__()
        self.runner = asyncio.Runner()
        self.database = Database.connect(self.url, application="docstage-test", pool_size=4)
        self.world = self.run(World.begin(self.database, jobs=JOBS, workers=WORKERS))
        self.before = self.inspect().runs

    def run(self, step: Coroutine[Any, Any, Any]) -> Any:
        """Do something on the machine's own loop."""
        return self.runner.run(step)

    def job(self, pick: int) -> Any:
        """Choose a job."""
        return self.world.jobs[pick % JOBS]

    def hand(self, pick: int) -> Any:
        """Choose a claim that is being worked on, with its worker."""
        hands = [(worker, hand) for worker in self.world.workers for hand in worker.hands]
        return hands[pick % len(hands)]

    def any_hand(self) -> bool:
        """Say whether anything is being worked on."""
        return any(worker.hands for worker in self.world.workers)

    @rule(crashes=st.sampled_from([False, False, False, True]))
    def relay(self, crashes: bool) -> None:  # noqa: FBT001 - hypothesis names it
        """Messages come in order or not, once or twice."""
        self.run(self.world.relay(crashes=crashes))

    @rule(pick=PICK, whom=PICK)
    @precondition(lambda self: self.world.broker)
    def deliver(self, pick: int, whom: int) -> None:
        """Any message may be the next: stale, early, doubled, deferred."""
        broker, workers = self.world.broker, self.world.workers
        self.run(self.world.deliver(broker[pick % len(broker)], workers[whom % len(workers)]))

    @rule(pick=PICK, outcome=OUTCOMES)
    @precondition(any_hand)
    def finish(self, pick: int, outcome: Outcome) -> None:
        """An outcome is written if its claim still stands, and only then."""
        worker, hand = self.hand(pick)
        stands = self.run(self.world.is_current(hand.claimed.claim))

        assert self.run(self.world.finish(worker, hand, outcome)) == stands

    @rule(pick=PICK)
    @precondition(any_hand)
    def give_back(self, pick: int) -> None:
        """A worker that shuts down releases what is its own."""
        worker, hand = self.hand(pick)
        stands = self.run(self.world.is_current(hand.claimed.claim))

        assert self.run(self.world.give_back(worker, hand)) == stands

    @rule(pick=PICK, outcome=OUTCOMES)
    @precondition(lambda self: self.world.claims)
    def commit_late(self, pick: int, outcome: Outcome) -> None:
        """Any claim that ever was may commit now: of a dead worker, a hung one, or for the second time."""
        claim = self.world.claims[pick % len(self.world.claims)]
        stands = self.run(self.world.is_current(claim))

        assert self.run(self.world.write(decided(claim, outcome))) == [stands]

    @rule(pick=PICK, page=st.integers(1, 2))
    @precondition(lambda self: any(claim.stage is Stage.EXTRACT for claim in self.world.claims))
    def keep_page(self, pick: int, page: int) -> None:
        """A page is kept by the claim that stands, and by no other."""
        claims = [claim for claim in self.world.claims if claim.stage is Stage.EXTRACT]
        claim = claims[pick % len(claims)]
        stands = self.run(self.world.is_current(claim))

        assert self.run(self.world.keep_page(claim, page)) == stands

    @rule()
    def renew(self) -> None:
        """A heartbeat that still carries old claims gives none of them anything."""
        self.run(self.world.renew())

    @rule(pick=PICK)
    @precondition(any_hand)
    def kill(self, pick: int) -> None:
        """A worker dies with what it has in hand; another starts."""
        worker, _ = self.hand(pick)
        self.run(self.world.kill(worker))
        self.run(self.world.start_worker())

    @rule(pick=PICK)
    @precondition(any_hand)
    def lose_channel(self, pick: int) -> None:
        """Deliveries come again while their first copy is being worked on."""
        self.world.lose_channel(self.hand(pick)[0])

    @rule(pick=PICK)
    @precondition(any_hand)
    def leak(self, pick: int) -> None:
        """A handler is gone, its process lives."""
        self.world.leak(*self.hand(pick))

    @rule(luck=st.integers(1, 8))
    @precondition(lambda self: self.world.broker or self.any_hand())
    def lose_messages(self, luck: int) -> None:
        """A broker loses its disk; seldom, because what follows is the sweeper's work alone."""
        if luck == 1:
            self.world.lose_messages()

    @rule(pick=PICK)
    def glance(self, pick: int) -> None:
        """Somebody reads a run and is interrupted."""
        self.run(self.world.glance(self.job(pick)))

    @rule(pick=PICK, whom=PICK)
    @precondition(lambda self: any(seen.gone for seen in self.world.glances))
    def take_over_late(self, pick: int, whom: int) -> None:
        """A takeover decided on an old look succeeds only if nothing has moved since."""
        glances = [seen for seen in self.world.glances if seen.gone and seen.run.status is RunStatus.RUNNING]
        if glances:
            seen, worker = glances[pick % len(glances)], self.world.workers[whom % WORKERS]
            still = self.run(self.world.still(seen.run))
            assert self.run(self.world.take_over_late(seen, worker)) == still

    @rule(pick=PICK)
    @precondition(lambda self: self.world.glances)
    def defer_late(self, pick: int) -> None:
        """A deferral decided on an old look is kept only if the run has not gone on."""
        waiting = (RunStatus.RUNNING, RunStatus.RETRYING)
        glances = [seen for seen in self.world.glances if seen.run.status in waiting]
        if glances:
            seen = glances[pick % len(glances)]
            still = self.run(self.world.still(seen.run))
            kept = self.run(self.world.defer_late(seen))
            assert still or not kept or not self.run(self.world.unfinished()) & {seen.run.job_id}

    @rule(pick=PICK)
    @precondition(lambda self: any(not seen.run.state.terminal for seen in self.world.glances))
    def cancel_late(self, pick: int) -> None:
        """A cancel decided on an old look takes no run that it did not see."""
        glances = [seen for seen in self.world.glances if not seen.run.state.terminal]
        seen = glances[pick % len(glances)]
        fits = self.run(self.world.still(seen.run))
        written = self.run(self.world.cancel_late(seen))
        assert written == fits

    @rule(pick=PICK, luck=st.integers(1, 3))
    def cancel(self, pick: int, luck: int) -> None:
        """The owner cancels."""
        if luck == 1:
            self.run(self.world.cancel(self.job(pick)))

    @rule(pick=PICK, luck=st.integers(1, 4))
    def delete(self, pick: int, luck: int) -> None:
        """The owner deletes."""
        if luck == 1:
            self.run(self.world.delete(self.job(pick)))

    @rule(pick=PICK)
    def retry(self, pick: int) -> None:
        """The owner retries, whatever the state."""
        self.run(self.world.retry(self.job(pick)))

    @rule(pick=PICK)
    def redrive(self, pick: int) -> None:
        """The operator redrives, whatever the state."""
        self.run(self.world.redrive(self.job(pick)))

    @rule(pick=PICK)
    def expire_lease(self, pick: int) -> None:
        """An owner is silent for too long."""
        self.run(self.world.expire_lease(self.job(pick)))

    @rule(pick=PICK)
    def make_due(self, pick: int) -> None:
        """A retry's time comes."""
        self.run(self.world.make_due(self.job(pick)))

    @rule(pick=PICK, luck=st.integers(1, 6))
    def pass_deadline(self, pick: int, luck: int) -> None:
        """A job is too late."""
        if luck == 1:
            self.run(self.world.pass_deadline(self.job(pick)))

    @rule(pick=PICK, luck=st.integers(1, 4))
    def expire(self, pick: int, luck: int) -> None:
        """A finished job is kept no longer."""
        if luck == 1:
            self.run(self.world.expire(self.job(pick)))

    @rule()
    def sweep(self) -> None:
        """The sweeper looks."""
        self.run(self.world.sweep())

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
        question = "SELECT 1 WHERE now() - pg_postmaster_start_time() > interval '10 seconds'"
        await eventually(lambda: rows(database, question))
        await database.close()

    asyncio.run(wait())
