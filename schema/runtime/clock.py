"""The only place that reads time: durations here, calendar time from the database."""

import time
from typing import Protocol


class Clock(Protocol):
    """A clock for durations."""

    def monotonic(self) -> float:
        """Return seconds that never go back."""


class SystemClock:
    """The machine's monotonic clock."""

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()
