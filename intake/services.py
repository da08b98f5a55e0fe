"""What a running intake process consists of."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

from intake.accept import Acceptance, Desk
from intake.admission import Admission
from intake.broker import BrokerWatch
from intake.form import Bounds
from intake.idempotency import Reservations
from intake.keys import KeyRing
from intake.watcher import Watcher
from schema.db.engine import Database
from schema.db.wake import Waker
from schema.domain.options import parse_languages
from schema.runtime.blobs import Blobs
from schema.runtime.clock import SystemClock
from schema.runtime.lifecycle import supervise
from schema.runtime.settings import IntakeSettings
from schema.runtime.vault import Vault


@dataclass(frozen=True, slots=True)
class Services:
    """Everything a route may ask."""

    settings: IntakeSettings
    database: Database
    blobs: Blobs
    waker: Waker
    keys: KeyRing
    admission: Admission
    desk: Desk
    watcher: Watcher
    broker: BrokerWatch
    acceptance: Acceptance
    vault: Vault


@contextlib.asynccontextmanager
async def opened(settings: IntakeSettings) -> AsyncIterator[Services]:
    """Make the parts and keep them running while the block runs; nothing is connected before it is needed."""
    clock = SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        database = Database.connect(
            settings.database_url.get_secret_value(),
            application="docstage-intake",
            pool_size=settings.database_connections,
        )
        stack.push_async_callback(database.close)
        blobs = Blobs.connect(settings)
        stack.callback(blobs.close)
        waker = Waker(database)
        stack.push_async_callback(waker.close)
        broker = BrokerWatch(settings, clock)
        stack.push_async_callback(broker.close)
        watcher = Watcher(database)
        watching = asyncio.create_task(supervise("watcher", watcher.run))
        stack.callback(watching.cancel)
        admission = Admission(
            database,
            clock,
            max_backlog=settings.max_backlog,
            max_tenant_jobs=settings.max_tenant_jobs,
            slots=settings.max_uploads,
            tenant_slots=settings.max_tenant_uploads,
        )
        acceptance = acceptance_of(settings)
        desk = Desk(database, blobs, waker, admission, reservations_of(database, settings), acceptance)
        keys = KeyRing(database, clock)
        vault = Vault(settings.keys())
        yield Services(settings, database, blobs, waker, keys, admission, desk, watcher, broker, acceptance, vault)


def acceptance_of(settings: IntakeSettings) -> Acceptance:
    """Read from the settings what every job has in common."""
    bounds = Bounds(
        default_deadline_seconds=settings.default_deadline_seconds,
        max_deadline_seconds=settings.max_deadline_seconds,
        languages=frozenset(parse_languages(settings.languages)),
    )
    return Acceptance(
        bounds=bounds,
        retention=timedelta(days=settings.retention_days),
        max_upload_bytes=settings.max_upload_bytes,
        upload_silence_seconds=settings.upload_silence_seconds,
    )


def reservations_of(database: Database, settings: IntakeSettings) -> Reservations:
    """Read from the settings how long keys are held and kept."""
    return Reservations(
        database,
        lease=timedelta(seconds=settings.reservation_seconds),
        keep=timedelta(hours=settings.idempotency_hours),
    )
