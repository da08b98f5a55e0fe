"""Opaque ids that sort by time, so that new rows land at the end of an index."""

import os
import time
from uuid import UUID

_VERSION_7 = 0x7 << 76
_VARIANT = 0b10 << 62


def new_id() -> UUID:
    """Return a UUIDv7: 48 bits of milliseconds, then 74 random bits.

    The time only orders index pages; nothing decides by it.

    Source: RFC 9562, section 5.7.
    """
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    high = random >> 68
    low = random & ((1 << 62) - 1)
    return UUID(int=(milliseconds << 80) | _VERSION_7 | (high << 64) | _VARIANT | low)
