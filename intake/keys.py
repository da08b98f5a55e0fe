"""API keys: 256 random bits behind a prefix by which a leaked one is recognized."""

import hashlib
import secrets
from collections import OrderedDict
from typing import Final
from uuid import UUID

from schema.db import tenants
from schema.db.engine import Database
from schema.runtime.clock import Clock

PREFIX: Final = "ds_"
REMEMBER_SECONDS: Final = 5.0
REMEMBER_KEYS: Final = 10_000


def new_key() -> str:
    """Make a key; it is shown once, here."""
    return PREFIX + secrets.token_urlsafe(32)


def key_hash(key: str) -> bytes:
    """Return what is stored of a key; 256 random bits need no slow hash."""
    return hashlib.sha256(key.encode()).digest()


class KeyRing:
    """Whose key it is; known keys are remembered for a few seconds, so that a revoked one ends soon."""

    def __init__(self, database: Database, clock: Clock) -> None:
        """Begin with nothing remembered."""
        self._database = database
        self._clock = clock
        self._known: OrderedDict[bytes, tuple[UUID, float]] = OrderedDict()

    async def tenant(self, key: str) -> UUID | None:
        """Return the key's tenant; ``None`` when the key is not valid."""
        if not key.startswith(PREFIX):
            return None
        hashed = key_hash(key)
        known = self._known.get(hashed)
        if known is not None and known[1] > self._clock.monotonic():
            return known[0]
        async with self._database.transaction() as conn:
            found = await tenants.tenant_of_key(conn, key_hash=hashed)
        self._remember(hashed, found)
        return found

    def _remember(self, hashed: bytes, tenant_id: UUID | None) -> None:
        """Keep a valid key; the oldest goes when there are too many."""
        self._known.pop(hashed, None)
        if tenant_id is None:
            return
        self._known[hashed] = (tenant_id, self._clock.monotonic() + REMEMBER_SECONDS)
        if len(self._known) > REMEMBER_KEYS:
            self._known.popitem(last=False)
