"""How long somebody who turned us away wishes us to wait."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime


def read_wish(value: str | None, now: datetime) -> timedelta | None:
    """Read a ``Retry-After``, in seconds or as a date; ``None`` when it is absent or neither."""
    if value is None:
        return None
    try:
        if value.strip().isdecimal():
            return timedelta(seconds=int(value))
        at = parsedate_to_datetime(value)
        return max(timedelta(0), (at if at.tzinfo else at.replace(tzinfo=UTC)) - now)
    except (ValueError, OverflowError):
        return None
