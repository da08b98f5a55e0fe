"""The sweeper: one at a time over all machines, it heals what nobody else is going to touch."""

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Final

from publisher.rules import Rule
from schema.db.engine import Database
from schema.db.sweeps import sweeping_alone
from schema.runtime import metrics
from schema.runtime.logs import get_logger
from schema.runtime.settings import PublisherSettings

log = get_logger()

BUSY_SECONDS: Final = 0.2


class Sweeper:
    """Runs its rules in order, each on its own: one that fails keeps no other from running."""

    def __init__(
        self,
        *,
        settings: PublisherSettings,
        database: Database,
        rules: Mapping[str, Rule],
        healed: Callable[[], None],
    ) -> None:
        """Keep the ports; ``healed`` is called when a sweep has changed something."""
        self._settings = settings
        self._database = database
        self._rules = rules
        self._healed = healed
        for name in rules:
            metrics.SWEPT.labels(name)  # a rate over a series that does not exist yet shows nothing

    async def run(self) -> None:
        """Sweep for ever, at once again where a rule found more than it may heal at a time."""
        while True:
            counts = await self.sweep()
            busy = any(count >= self._settings.sweep_batch for count in counts.values())
            pause = BUSY_SECONDS if busy else self._settings.sweep_seconds
            await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - spreading, not secrecy

    async def sweep(self) -> Mapping[str, int]:
        """Run every rule once.

        Returns:
            How many rows each rule healed; nothing when another process sweeps.
        """
        counts: dict[str, int] = {}
        async with sweeping_alone(self._database) as alone:
            if not alone:
                return counts
            with metrics.SWEEP_SECONDS.time():
                for name, rule in self._rules.items():
                    await self._apply(name, rule, counts)
        if len(counts) == len(self._rules):
            metrics.SWEEP_TIMESTAMP.set_to_current_time()
        if any(counts.values()):
            self._healed()
        return counts

    async def _apply(self, name: str, rule: Rule, counts: dict[str, int]) -> None:
        """Run one rule; it is left out of the counts when it failed."""
        try:
            counts[name] = await rule()
        except Exception as error:  # noqa: BLE001 - the other rules must run all the same
            log.warning("rule_failed", rule=name, exception_type=type(error).__name__)
            return
        metrics.SWEPT.labels(name).inc(counts[name])
        if counts[name]:
            log.info("rule_healed", rule=name, count=counts[name])
