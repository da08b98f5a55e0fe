"""The sweeper's rule about the dead-letter queue."""

from typing import Final

from publisher.rules import Rule
from schema.db.engine import Database
from schema.runtime.broker import BrokerUnavailableError
from schema.runtime.clock import Clock
from schema.runtime.reconcile import numbers_agree, reconcile
from schema.runtime.settings import PublisherSettings

PAUSE_SECONDS: Final = 60.0
LONGEST_PAUSE_SECONDS: Final = 3600.0


def letter_queue_rule(settings: PublisherSettings, database: Database, clock: Clock) -> Rule:
    """Return a rule that reconciles the queue with the rows now and then, where their numbers differ.

    A look takes and gives back thousands of messages, so it is not repeated for what it cannot change: messages
    that are not ours are taken into account, and after a look that found nothing to do the next comes later.
    """
    due_at, pause, foreign = clock.monotonic(), PAUSE_SECONDS, 0

    async def look() -> int:
        nonlocal pause, foreign
        if await numbers_agree(settings, database, foreign=foreign):
            pause = PAUSE_SECONDS
            return 0
        done = await reconcile(settings, database)
        foreign, healed = done.foreign, done.dropped + done.issued
        pause = PAUSE_SECONDS if healed else min(2 * pause, LONGEST_PAUSE_SECONDS)
        return healed

    async def rule() -> int:
        nonlocal due_at
        if clock.monotonic() < due_at:
            return 0
        try:
            return await look()
        except BrokerUnavailableError:
            # The relay says so already; what the database needs swept must not look unswept for it.
            return 0
        finally:
            due_at = clock.monotonic() + pause

    return rule
