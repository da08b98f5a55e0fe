"""Idempotency-Keys at work: reserved before the upload, renewed while it lasts, completed with the job."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from intake.problems import Problem, ProblemCode
from schema.db import idempotency
from schema.db.engine import Database, is_unavailable
from schema.db.idempotency import InFlight, Replayed, Reservation
from schema.runtime.logs import get_logger

MAX_KEY: Final = 255
RENEWALS_PER_LEASE: Final = 3

log = get_logger()


def checked_key(header: str | None) -> str | None:
    """Read the header; quotes, which the IETF draft asks for, are no part of the key.

    Raises:
        Problem: ``invalid_idempotency_key``.
    """
    if header is None:
        return None
    key = header.strip()
    if len(key) > 1 and key[0] == key[-1] == '"':
        key = key[1:-1]
    if not 1 <= len(key) <= MAX_KEY or not key.isascii() or not key.isprintable():
        raise Problem(ProblemCode.INVALID_IDEMPOTENCY_KEY)
    return key


@dataclass(frozen=True, slots=True)
class Reservations:
    """The keys of all tenants, by the database's clock."""

    database: Database
    lease: timedelta
    keep: timedelta

    async def reserve(self, tenant_id: UUID, key: str) -> Reservation | Replayed:
        """Reserve a key, or return what it was used for.

        Raises:
            Problem: ``idempotency_in_flight``, while another request has it.
        """
        async with self.database.transaction() as conn:
            held = await idempotency.reserve(conn, tenant_id=tenant_id, key=key, lease=self.lease, keep=self.keep)
        if isinstance(held, InFlight):
            raise in_flight(held.lapses_in)
        return held

    async def replayed(self, tenant_id: UUID, key: str) -> Replayed | None:
        """Return what a key was used for, without reserving it."""
        async with self.database.transaction() as conn:
            found = await idempotency.find(conn, tenant_id=tenant_id, key=key)
        return found if isinstance(found, Replayed) else None

    @contextlib.asynccontextmanager
    async def held(self, reservation: Reservation | None) -> AsyncIterator[None]:
        """Keep a reservation alive while the block runs; let it go when the block fails."""
        if reservation is None:
            yield
            return
        renewing = asyncio.create_task(self._renew(reservation))
        try:
            yield
        except BaseException:
            await asyncio.shield(self._release(reservation))
            raise
        finally:
            renewing.cancel()

    async def _renew(self, reservation: Reservation) -> None:
        """Renew until stopped; a renewal that fails is tried again at the next turn."""
        while True:
            await asyncio.sleep(self.lease.total_seconds() / RENEWALS_PER_LEASE)
            try:
                async with self.database.transaction() as conn:
                    await idempotency.renew(conn, reservation, lease=self.lease)
            except Exception as error:
                if not is_unavailable(error):
                    raise
                log.warning("reservation_not_renewed", exception_type=type(error).__name__)

    async def _release(self, reservation: Reservation) -> None:
        """Let a key go; where that fails it lapses by itself."""
        try:
            async with self.database.transaction() as conn:
                await idempotency.release(conn, reservation)
        except Exception as error:  # noqa: BLE001 - the request has failed already, for the reason it is told
            log.warning("reservation_not_released", exception_type=type(error).__name__)


def in_flight(lapses_in: timedelta) -> Problem:
    """Say that another request has the key, and when to ask again: it may be done long before it could lapse."""
    seconds = max(1.0, min(lapses_in.total_seconds(), 5.0))
    return Problem(ProblemCode.IDEMPOTENCY_IN_FLIGHT, retry_after=seconds)
