"""From a delivery to a claim, or to the certainty that there is nothing to do for it."""

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final
from uuid import UUID

from schema.db.deferrals import Deferral
from schema.db.stage_runs import Claimed
from schema.domain import moves
from schema.domain.backoff import deferral_delay
from schema.domain.runs import Arrival, RunView, classify_arrival
from schema.runtime import metrics
from schema.runtime.clock import Clock
from schema.runtime.logs import get_logger
from schema.wire.messages import StageMessage
from stages.ledger import Ledger, Record

log = get_logger()

# A dead owner's lock comes free some milliseconds after the redelivery in a third of all cases.
OWNER_GRACE_SECONDS: Final = 0.25
OWNER_PROBE_SECONDS: Final = 0.02
# A retry that is due this soon is waited for: the ladder has no shorter step.
SHORT_WAIT: Final = timedelta(milliseconds=250)


@dataclass(frozen=True, slots=True)
class Copy:
    """One delivered copy of a message: its stable id, and how often it was deferred."""

    event_id: UUID
    deferrals: int


class Reception:
    """Finds out what a message means, by the database's row and clock alone.

    A claim or takeover that gets no row is not an answer: the run is read and classified again. Only what is
    classified as stale, or safely deferred, may be acknowledged without work.
    """

    def __init__(self, ledger: Ledger, clock: Clock, lost_claims: int) -> None:
        """Keep the ports."""
        self._ledger = ledger
        self._clock = clock
        self._lost_claims = lost_claims

    async def admit(self, message: StageMessage, copy: Copy) -> Claimed | None:
        """Claim the run that ``message`` points to.

        Returns:
            ``None`` when the copy may be acknowledged without work.
        """
        wanted, patience_ends = message, self._clock.monotonic() + OWNER_GRACE_SECONDS
        while True:
            claimed = await self._ledger.claim(wanted)
            if claimed is not None:
                self._count(message, "claimed")
                return claimed
            run = await self._ledger.read(message.job_id, message.stage)
            meaning = classify_arrival(run, series=message.series, attempt=message.attempt)
            if run is None or meaning in (Arrival.STALE, Arrival.UNKNOWN_JOB):
                self._count(message, meaning.value)
                return None
            if meaning is Arrival.CLAIMABLE:
                wanted = replace(message, series=run.series, attempt=run.attempt)
                continue
            if meaning is Arrival.EARLY:
                settled = await self._wait_until_due(message, run, copy)
            else:
                taken, settled = await self._face_owner(message, run, copy, patience_ends)
                if taken is not None:
                    return taken
            if settled:
                return None

    async def postpone(self, message: StageMessage, copy: Copy) -> None:
        """Put a copy back on the ladder unclaimed, at no cost of an attempt; returns when it may be acknowledged."""
        settled = False
        while not settled:
            run = await self._ledger.read(message.job_id, message.stage)
            meaning = classify_arrival(run, series=message.series, attempt=message.attempt)
            if run is None or meaning in (Arrival.STALE, Arrival.UNKNOWN_JOB):
                self._count(message, meaning.value)
                return
            settled = await self._defer(message, run, copy, deferral_delay(copy.deferrals), "paused")

    async def _wait_until_due(self, message: StageMessage, run: RunView, copy: Copy) -> bool:
        """Wait out a moment, or defer by the remainder; ``True`` when the copy is settled."""
        if run.due_in <= SHORT_WAIT:
            await asyncio.sleep(max(0.001, run.due_in.total_seconds()))
            return False
        return await self._defer(message, run, copy, run.due_in, "early")

    async def _face_owner(
        self, message: StageMessage, run: RunView, copy: Copy, patience_ends: float
    ) -> tuple[Claimed | None, bool]:
        """Take the run over when its owner is gone; otherwise look again for a moment, then defer.

        Returns:
            The claim, and whether the copy is settled without one.
        """
        reason = await self._why_gone(run)
        if reason is not None:
            return await self._succeed(message, run, reason)
        if self._clock.monotonic() < patience_ends:
            await asyncio.sleep(OWNER_PROBE_SECONDS)
            return None, False
        return None, await self._defer(message, run, copy, deferral_delay(copy.deferrals), "owner_live")

    async def _why_gone(self, run: RunView) -> str | None:
        """Say how it is known that the owner is gone; ``None`` while it counts as live."""
        if run.lease_expired:
            return "lease_expired"
        if run.worker_id is not None and await self._ledger.is_gone(run.worker_id):
            return "lock_free"
        return None

    async def _succeed(self, message: StageMessage, run: RunView, reason: str) -> tuple[Claimed | None, bool]:
        """Take over, or give the run up when it has cost too many workers."""
        if run.lost + 1 > self._lost_claims:
            given_up = moves.lose(run, lost_claims=self._lost_claims)
            written = await self._ledger.record(Record(given_up))
            if written:
                self._count(message, "given_up")
                metrics.count_end(given_up, run.kind)
            return None, written
        claimed = await self._ledger.take_over(run)
        if claimed is None:
            return None, False
        self._count(message, "taken_over")
        metrics.TAKEOVERS.labels(stage=run.stage.value, reason=reason).inc()
        log.info("run_taken_over", job_id=str(run.job_id), stage=run.stage.value, reason=reason)
        return claimed, True

    async def _defer(self, message: StageMessage, run: RunView, copy: Copy, delay: timedelta, why: str) -> bool:
        """Defer the copy; one that is refused because another is kept is settled as well.

        Returns:
            ``False`` when the run has moved: classify it again.
        """
        wish = Deferral(run, copy.event_id, delay, copy.deferrals + 1)
        if await self._ledger.defer(wish):
            self._count(message, f"deferred_{why}")
            return True
        now = await self._ledger.read(run.job_id, run.stage)
        unmoved = now is not None and (now.series, now.attempt, now.token) == (run.series, run.attempt, run.token)
        if now is not None and unmoved and now.deferred_event not in (None, copy.event_id):
            self._count(message, "deferred_elsewhere")
            return True
        return False

    def _count(self, message: StageMessage, outcome: str) -> None:
        metrics.DELIVERIES.labels(stage=message.stage.value, outcome=outcome).inc()
