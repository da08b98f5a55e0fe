"""What waits where, told as gauges by every publisher: whichever is scraped tells the same."""

import asyncio
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Final

from prometheus_client import Gauge

from schema.db.engine import Database
from schema.db.gauges import Count, Measures, measure
from schema.domain.states import JobState, Lane, RunStatus
from schema.runtime import metrics
from schema.runtime.broker import BrokerSession
from schema.runtime.logs import get_logger
from schema.runtime.topology import declare_topology
from schema.wire.queues import topology

log = get_logger()

PAUSE_SECONDS: Final = 5.0
OUTBOX_KINDS: Final = (("stage",), ("dead_letter",), ("notice",))
OPEN_STATES: Final = tuple((state.value,) for state in JobState if not state.terminal)
OPEN_RUNS: Final = tuple(
    (lane.value, status.value)
    for lane, status in product(Lane, (RunStatus.READY, RunStatus.RUNNING, RunStatus.RETRYING))
)


class Gauges:
    """Measures the database and the queues every few seconds."""

    def __init__(self, database: Database) -> None:
        """Nothing is measured before ``run``."""
        self._database = database
        self._answers = False

    def missing(self) -> list[str]:
        """Say so when the database did not answer the last time."""
        return [] if self._answers else ["no database"]

    async def run(self) -> None:
        """Measure the database for ever; it raises when that does not answer."""
        while True:
            try:
                async with self._database.transaction() as conn:
                    measured = await measure(conn)
            except BaseException:
                self._answers = False
                raise
            self._answers = True
            show(measured)
            await asyncio.sleep(PAUSE_SECONDS)

    async def work(self, session: BrokerSession) -> None:
        """Look at every queue for the life of a session; what somebody has deleted is declared anew.

        The session notices nothing of that by itself: publishing is answered with "unroutable", and the workers
        that the broker has cancelled wait for the queue.
        """
        while True:
            depths = {queue.name: await session.inspect(queue.name) for queue in topology().queues}
            for name, depth in depths.items():
                metrics.QUEUE_MESSAGES.labels(name).set(depth.messages if depth else 0)
                metrics.QUEUE_CONSUMERS.labels(name).set(depth.consumers if depth else 0)
            missing = [name for name, depth in depths.items() if depth is None]
            if missing:
                log.warning("queues_missing", count=len(missing), queue=missing[0])
                await declare_topology(session)
            await asyncio.sleep(PAUSE_SECONDS)


def show(measured: Measures) -> None:
    """Set the gauges; no other coroutine runs in between, so no scrape sees half of it."""
    _replace(metrics.OUTBOX_ROWS, measured.outbox, zero=OUTBOX_KINDS)
    _replace(metrics.JOBS, measured.jobs, zero=OPEN_STATES)
    _replace(metrics.RUNS, measured.runs, zero=OPEN_RUNS)
    _replace(metrics.DEAD_LETTERS, measured.letters, zero=())
    metrics.OUTBOX_OLDEST_SECONDS.set(measured.outbox_oldest_seconds)
    metrics.DEAD_LETTER_OLDEST_SECONDS.set(measured.letter_oldest_seconds)
    metrics.WEBHOOKS_PENDING.set(measured.webhooks_pending)
    metrics.WEBHOOKS_OVERDUE_SECONDS.set(measured.webhook_overdue_seconds)
    for lane, seconds in measured.oldest_ready_seconds:
        metrics.OLDEST_READY_SECONDS.labels(lane).set(seconds)


def _replace(gauge: Gauge, counts: Sequence[Count], *, zero: Iterable[tuple[str, ...]]) -> None:
    """Set what there is, zero where it is known what there could be, and drop what there is no longer."""
    gauge.clear()
    for labels in zero:
        gauge.labels(*labels).set(0)
    for count in counts:
        gauge.labels(*count.labels).set(count.rows)
