"""Reservations of Idempotency-Keys: the same key gives the same job, and nobody waits to hear so.

A reservation is committed before the upload begins. In one transaction with the job, the second request of a
key would block on the first one's row until its upload has ended, instead of being answered.
"""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection


@dataclass(frozen=True, slots=True)
class Reservation:
    """The right to complete a key, good as long as ``token`` is the row's."""

    tenant_id: UUID
    key: str
    token: int


@dataclass(frozen=True, slots=True)
class Replayed:
    """The key has its job; the same ``fingerprint`` means the same request."""

    job_id: UUID
    fingerprint: str


@dataclass(frozen=True, slots=True)
class InFlight:
    """Another request has the key; ``lapses_in`` says how long at most if it never comes back."""

    lapses_in: timedelta


# A row is taken over when its uploader went silent, or when the key is older than keys are remembered.
_RESERVE = text("""
INSERT INTO idempotency_key AS k (tenant_id, key, lease_expires_at, expires_at)
VALUES (:tenant_id, :key, now() + :lease, now() + :keep)
ON CONFLICT (tenant_id, key) DO UPDATE SET
    token = k.token + 1, job_id = NULL, fingerprint = NULL, created_at = now(),
    lease_expires_at = excluded.lease_expires_at, expires_at = excluded.expires_at
WHERE (k.job_id IS NULL AND k.lease_expires_at <= now()) OR k.expires_at <= now()
RETURNING token
""")

_FIND = text("""
SELECT job_id, fingerprint, greatest(lease_expires_at - now(), interval '0') AS lapses_in
FROM idempotency_key WHERE tenant_id = :tenant_id AND key = :key AND expires_at > now()
""")

_RENEW = text("""
UPDATE idempotency_key SET lease_expires_at = now() + :lease
WHERE tenant_id = :tenant_id AND key = :key AND token = :token AND job_id IS NULL
""")

# Not deleted: a row made anew would begin with an old token, which a slow first uploader may still hold.
_RELEASE = text("""
UPDATE idempotency_key SET lease_expires_at = now()
WHERE tenant_id = :tenant_id AND key = :key AND token = :token AND job_id IS NULL
""")


async def reserve(
    conn: AsyncConnection, *, tenant_id: UUID, key: str, lease: timedelta, keep: timedelta
) -> Reservation | Replayed | InFlight:
    """Reserve a key, or say who has it; commit before the upload begins."""
    wanted = {"tenant_id": tenant_id, "key": key}
    token = (await conn.execute(_RESERVE, wanted | {"lease": lease, "keep": keep})).scalar_one_or_none()
    if token is not None:
        return Reservation(tenant_id, key, token)
    # Forgotten between the two statements: the next request gets it.
    return await find(conn, tenant_id=tenant_id, key=key) or InFlight(timedelta(0))


async def find(conn: AsyncConnection, *, tenant_id: UUID, key: str) -> Replayed | InFlight | None:
    """Look a key up without reserving it; ``None`` when it is free."""
    row = (await conn.execute(_FIND, {"tenant_id": tenant_id, "key": key})).one_or_none()
    if row is None:
        return None
    return Replayed(row.job_id, row.fingerprint) if row.job_id else InFlight(row.lapses_in)


async def renew(conn: AsyncConnection, reservation: Reservation, *, lease: timedelta) -> bool:
    """Extend a reservation; ``False`` when another request has taken it over."""
    return (await conn.execute(_RENEW, _row(reservation) | {"lease": lease})).rowcount == 1


async def release(conn: AsyncConnection, reservation: Reservation) -> None:
    """Let the key go after an upload that came to nothing."""
    await conn.execute(_RELEASE, _row(reservation))


def _row(reservation: Reservation) -> dict[str, object]:
    return {"tenant_id": reservation.tenant_id, "key": reservation.key, "token": reservation.token}
