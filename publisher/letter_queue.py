"""The sweeper's rule about the dead-letter queue."""

from typing import Final

from publisher.rules import Rule
from schema.db.engine import Database
from schema.runtime.broker import BrokerUnavailableError
from schema.runtime.clock import Clock
from schema.runtime.reconcile import reconcile
from schema.runtime.settings import PublisherSettings

PAUSE_SECONDS: Final = 60.0


def letter_queue_rule(settings: PublisherSettings, database: Database, clock: Clock) -> Rule:
    """Return a rule that reconciles the queue with the rows now and then, where their numbers differ."""
    due_at = clock.monotonic()

    async def rule() -> int:
        nonlocal due_at
        if clock.monotonic() < due_at:
            return 0
        due_at = clock.monotonic() + PAUSE_SECONDS
        try:
            done = await reconcile(settings, database, always=False)
        except BrokerUnavailableError:
            # The relay says so already; what the database needs swept must not look unswept for it.
            return 0
        return done.dropped + done.issued

    return rule
