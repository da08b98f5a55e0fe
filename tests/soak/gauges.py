"""What the processes counted while they lived: their metrics, added up over restarts."""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from tests.soak.fleet import Fleet

PAUSE_SECONDS: Final = 1.0
# The names under which a report shows counters; a process that is killed takes its last second with it.
SHOWN: Final = {
    "takeovers": "docstage_takeovers_total",
    "fenced writes": "docstage_fenced_writes_total",
    "retries scheduled": "docstage_retries_scheduled_total",
    "claims released": "docstage_claims_released_total",
    "rows swept": "docstage_sweeper_actions_total",
    "jobs refused": "docstage_admission_refused_total",
}
_LABEL: Final = re.compile(r"^(reason|rule|code)$")


class Gauges:
    """Adds up counters of all processes; a counter that fell began anew."""

    def __init__(self, fleet: Fleet) -> None:
        """Begin with nothing."""
        self.totals: Counter[str] = Counter()
        self._fleet = fleet
        self._last: dict[tuple[str, str, str], float] = {}

    async def run(self) -> None:
        """Look at every process now and then."""
        while True:
            await self.look()
            await asyncio.sleep(PAUSE_SECONDS)

    async def look(self) -> None:
        """Look once."""
        for name, process in self._fleet.processes.items():
            with suppress(Exception):
                async with asyncio.timeout(PAUSE_SECONDS):
                    self._add(name, await process.metrics())

    def _add(self, process: str, exposition: str) -> None:
        """Add what has been counted since the last look."""
        for family in text_string_to_metric_families(exposition):
            for sample in family.samples:
                for shown, wanted in SHOWN.items():
                    if sample.name == wanted:
                        self._count(process, shown, sample.labels, sample.value)

    def _count(self, process: str, shown: str, labels: Mapping[str, str], value: float) -> None:
        told = next((labels[label] for label in labels if _LABEL.match(label)), "")
        key = (process, shown, "/".join(labels.values()))
        before = self._last.get(key, 0.0)
        self._last[key] = value
        if grown := int(value - before if value >= before else value):
            self.totals[f"{shown}: {told}" if told else shown] += grown
