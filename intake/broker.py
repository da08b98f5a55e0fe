"""What the broker lacks for jobs to be worked on: told by /readyz, needed by nothing else in here."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from schema.domain.states import Lane, Stage
from schema.runtime.broker import BrokerError, BrokerSession
from schema.runtime.clock import Clock
from schema.runtime.settings import BrokerSettings
from schema.wire.queues import lane_queue

FRESH_SECONDS: Final = 5.0
TIMEOUT_SECONDS: Final = 3.0


class BrokerWatch:
    """Counts the consumers of every lane over a connection of its own."""

    def __init__(self, settings: BrokerSettings, clock: Clock) -> None:
        """Begin without a connection."""
        self._settings = settings
        self._clock = clock
        self._session: BrokerSession | None = None
        self._looking = asyncio.Lock()
        self._fresh_until = float("-inf")
        self._missing: list[str] = []

    async def missing(self) -> list[str]:
        """Return phrases such as ``broker`` or ``no consumer on extract``; at most a few seconds old."""
        async with self._looking:
            if self._clock.monotonic() >= self._fresh_until:
                self._missing = await self._look()
                self._fresh_until = self._clock.monotonic() + FRESH_SECONDS
            return self._missing

    async def close(self) -> None:
        """Close the connection."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _look(self) -> list[str]:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return phrases({lane: await self._consumers(lane) for lane in Lane})
        except (BrokerError, TimeoutError):
            await self.close()
            return ["broker"]

    async def _consumers(self, lane: Lane) -> int | None:
        """Count a queue's consumers; ``None`` when nobody has declared it."""
        if self._session is None or self._session.lost:
            self._session = await BrokerSession.open(self._settings, "docstage-intake")
        depth = await self._session.inspect(lane_queue(lane))
        return depth.consumers if depth else None


def phrases(consumers: Mapping[Lane, int | None]) -> list[str]:
    """Say what lacks: a stage none of whose lanes has a consumer by its own name, else the lane."""
    if all(count is None for count in consumers.values()):
        return ["queues"]
    lanes: defaultdict[Stage, list[Lane]] = defaultdict(list)
    for lane in consumers:
        lanes[lane.stage].append(lane)
    missing: list[str] = []
    for stage, of_stage in lanes.items():
        idle = [lane for lane in of_stage if not consumers[lane]]
        names = [stage.value] if len(idle) == len(of_stage) else [lane.value for lane in idle]
        missing += [f"no consumer on {name}" for name in names]
    return missing
