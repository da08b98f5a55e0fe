"""The relay: takes due outbox rows, publishes them with confirms, deletes the confirmed ones.

No transaction is open while the broker is waited for: a broker in alarm would otherwise hold the database's
connections until none is left.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from publisher.publications import NoRouteError, publication
from publisher.sessions import hold_session
from schema.db import outbox
from schema.db.engine import Database, is_unavailable
from schema.db.outbox import OutboxRow, Postponed
from schema.runtime import failpoints, metrics
from schema.runtime.broker import BrokerError, BrokerSession, BrokerUnavailableError, NackedError, UnroutableError
from schema.runtime.clock import Clock
from schema.runtime.failpoints import Point
from schema.runtime.lifecycle import backoff_seconds
from schema.runtime.logs import get_logger
from schema.runtime.settings import PublisherSettings

log = get_logger()

# One batch is on its way while the next is being taken; more only waits longer at the broker.
BATCHES_IN_FLIGHT: Final = 2
GROWTH: Final = 4
FIRST_DELAY_SECONDS: Final = 0.25
LAST_DELAY_SECONDS: Final = 30.0

PUBLISHED: Final = "published"


@dataclass(frozen=True, slots=True)
class Sent:
    """A row and what came of publishing it: ``published`` or a failure's code."""

    row: OutboxRow
    outcome: str


class Relay:
    """Empties the outbox into the broker, as one of any number that do."""

    def __init__(self, *, settings: PublisherSettings, database: Database, clock: Clock) -> None:
        """Keep the ports; nothing runs before ``run``."""
        self._settings = settings
        self._database = database
        self._clock = clock
        self._woken = asyncio.Event()
        self._sending: set[asyncio.Task[None]] = set()
        self.session: BrokerSession | None = None

    def wake(self) -> None:
        """Look at the outbox now rather than at the next poll."""
        self._woken.set()

    def missing(self) -> list[str]:
        """Say so when there is nobody to publish to."""
        alive = self.session is not None and not self.session.lost
        return [] if alive else ["no broker session"]

    async def run(self) -> None:
        """Relay for the life of one broker session.

        Raises:
            BrokerUnavailableError: the session broke.
        """
        await hold_session(self._settings, "docstage-relay", self._relay, publish_channels=1)

    async def _relay(self, session: BrokerSession) -> None:
        """Drain and wait, over and over; what is on its way when this is cancelled is still written down."""
        self.session = session
        limit, failures = 1, 0
        try:
            while not session.lost:
                try:
                    limit = await self._drain(session, limit)
                    failures = 0
                except Exception as error:
                    if not is_unavailable(error):
                        raise
                    failures += 1
                    log.warning("outbox_unavailable", exception_type=type(error).__name__)
                    await asyncio.sleep(backoff_seconds(failures))
        finally:
            if self._sending:
                await asyncio.wait(self._sending, timeout=2 * self._settings.publish_timeout_seconds)

    async def _drain(self, session: BrokerSession, limit: int) -> int:
        """Take a batch, send it off, wait for room or for something to do; return the next batch's limit.

        A new session begins with a single row: what made the last one break, if it was a row, then breaks this
        one without the company of others, and a broker in alarm is not handed a whole batch at every try.
        """
        await session.unblocked()
        self._woken.clear()
        async with self._database.transaction() as conn:
            rows = await outbox.take(conn, limit=limit, lock=self._settings.row_lock)
        if rows:
            failpoints.hit(Point.ROWS_TAKEN)
            self._send(session, rows)
        await self._pause(full=len(rows) == limit, first=limit == 1)
        return min(limit * GROWTH, self._settings.relay_batch) if rows else limit

    def _send(self, session: BrokerSession, rows: Sequence[OutboxRow]) -> None:
        task = asyncio.create_task(self._send_all(session, rows))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _pause(self, *, full: bool, first: bool) -> None:
        """After a full batch wait only for room, else for a call or the next poll."""
        room = 1 if first else BATCHES_IN_FLIGHT
        while len(self._sending) >= room:
            await asyncio.wait(self._sending, return_when=asyncio.FIRST_COMPLETED)
        if not full:
            seconds = self._settings.relay_poll_seconds * random.uniform(0.5, 1)  # noqa: S311 - spreading
            try:
                async with asyncio.timeout(seconds):
                    await self._woken.wait()
            except TimeoutError:
                return

    async def _send_all(self, session: BrokerSession, rows: Sequence[OutboxRow]) -> None:
        """Publish a batch and write down what came of it."""
        sent = await asyncio.gather(*(self._publish(session, row) for row in rows))
        for (kind, outcome), count in Counter((one.row.kind, one.outcome) for one in sent).items():
            metrics.PUBLISHED.labels(kind, outcome).inc(count)
            if outcome != PUBLISHED:
                log.warning("publish_failed", kind=kind, code=outcome, count=count)
        failpoints.hit(Point.CONFIRMED)
        try:
            await self._record(sent)
        except Exception as error:  # noqa: BLE001 - nobody waits for this task
            # The rows come back when their lock runs out, and are published once more.
            log.warning("outbox_unavailable", exception_type=type(error).__name__)

    async def _record(self, sent: Sequence[Sent]) -> None:
        """Delete what the broker has, give back what it has not."""
        confirmed = [one.row.id for one in sent if one.outcome == PUBLISHED]
        failed = [
            Postponed(one.row.id, one.outcome, delay_after(one.row.attempts))
            for one in sent
            if one.outcome != PUBLISHED
        ]
        async with self._database.transaction() as conn:
            if confirmed:
                await outbox.delete_published(conn, confirmed)
            if failed:
                await outbox.postpone(conn, failed)

    async def _publish(self, session: BrokerSession, row: OutboxRow) -> Sent:
        """Publish one row; whatever goes wrong is an outcome."""
        began = self._clock.monotonic()
        try:
            message = publication(row)
            await session.publish(
                message.route.exchange,
                message.route.key,
                message.body,
                message_id=message.message_id,
                message_type=message.message_type,
                headers=message.headers,
            )
        except (BrokerError, NoRouteError, KeyError, ValueError, TypeError) as error:
            return Sent(row, failure_code(error))
        # The broker has it, and nothing here says so yet; other rows of the batch may still be on their way.
        failpoints.hit(Point.PUBLISHED)
        if row.kind == "dead_letter":
            metrics.DEAD_LETTER_ARRIVALS.labels(row.payload["stage"] or "none", row.payload["code"]).inc()
        metrics.PUBLISH_SECONDS.observe(self._clock.monotonic() - began)
        metrics.RELAY_LAG_SECONDS.observe(max(0.0, row.waited.total_seconds()))
        return Sent(row, PUBLISHED)


def failure_code(error: Exception) -> str:
    """Name why a row could not be published."""
    match error:
        case UnroutableError():
            return "unroutable"
        case NackedError():
            return "nacked"
        case BrokerUnavailableError():
            return "broker_unavailable"
        case NoRouteError():
            return "no_route"
        case _:
            return "unwritable"


def delay_after(attempts: int) -> timedelta:
    """Draw how long a row waits that could not be published for the ``attempts + 1``-th time."""
    bound = min(LAST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2 ** min(attempts, 16))
    return timedelta(seconds=random.uniform(bound / 2, bound))  # noqa: S311 - spreading, not secrecy
