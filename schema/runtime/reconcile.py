"""Making the dead-letter queue say what the rows say; the rows are the truth, the queue is the alarm.

Both the sweeper and ``docstage-dlq`` do it, which is why it is here.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from schema.db import dead_letters
from schema.db.dead_letters import LetterFilter, LetterState
from schema.db.engine import Database
from schema.runtime.broker import BrokerSession, Delivery
from schema.runtime.settings import BrokerSettings
from schema.wire.messages import decode_letter
from schema.wire.queues import DLQ, DLQ_MAX_LENGTH

LIMIT: Final = 20_000
QUIET_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Reconciled:
    """Messages dropped because their letter is closed or shown twice, kept, not ours, and messages owed anew."""

    dropped: int
    kept: int
    foreign: int
    issued: int


async def numbers_agree(settings: BrokerSettings, database: Database, *, foreign: int) -> bool:
    """Compare numbers, which is cheap and finds nearly everything.

    Args:
        settings: where the broker is.
        database: where the letters are.
        foreign: how many messages are known to be in the queue that stand for no letter.

    Raises:
        BrokerUnavailableError: nobody answers.
    """
    async with await BrokerSession.open(settings, "docstage-reconcile") as session:
        depth = await session.inspect(DLQ)
    async with database.transaction() as conn:
        letters = await dead_letters.count(conn, LetterFilter(state=LetterState.OPEN))
    return depth is None or depth.messages == letters + foreign


async def reconcile(settings: BrokerSettings, database: Database) -> Reconciled:
    """Take the queue's messages, acknowledge those that have no open letter, give back the rest in their order.

    Bounded: at most ``LIMIT`` messages; only when that was the whole queue are missing ones issued, through the
    outbox, for what was not seen may still be there. Messages that are not ours go back too: a newer release or
    a person may have put them there, and unlike ours they could not be made anew.

    Raises:
        BrokerUnavailableError: nobody answers; nothing is lost by it.
    """
    # A session of its own: closing it is what gives the rest back.
    async with await BrokerSession.open(settings, "docstage-reconcile") as session:
        depth = await session.inspect(DLQ)
        wanted = min(depth.messages, LIMIT) if depth else 0
        deliveries = await _collect(session, wanted)
        letters = [(delivery, decode_letter(delivery.body)) for delivery in deliveries]
        known = {letter_id for _, letter_id in letters if letter_id is not None}
        async with database.transaction() as conn:
            states = await dead_letters.read_states(conn, sorted(known))
        open_ids = {letter_id for letter_id in known if states.get(letter_id) is LetterState.OPEN}
        dropped = await _drop(session, letters, open_ids)
        foreign = sum(letter_id is None for _, letter_id in letters)
    whole = depth is not None and wanted == depth.messages == len(deliveries) and wanted < DLQ_MAX_LENGTH // 2
    issued = await _issue(database, open_ids) if whole else 0
    return Reconciled(dropped, len(letters) - dropped - foreign, foreign, issued)


async def _collect(session: BrokerSession, wanted: int) -> list[Delivery]:
    """Hold up to ``wanted`` messages unacknowledged; fewer when no more come for a while."""
    arrived: asyncio.Queue[Delivery] = asyncio.Queue()
    deliveries: list[Delivery] = []
    if not wanted:
        return deliveries
    consumer = await session.consume(DLQ, prefetch=wanted, on_delivery=arrived.put_nowait)
    while len(deliveries) < wanted:
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                deliveries.append(await arrived.get())
        except TimeoutError:
            break
    await consumer.stop()
    return deliveries


async def _drop(session: BrokerSession, letters: Iterable[tuple[Delivery, UUID | None]], open_ids: set[UUID]) -> int:
    """Acknowledge messages of closed letters, and all but the first of each open one; return how many."""
    dropped, shown = 0, set[UUID]()
    for delivery, letter_id in letters:
        if letter_id is None:
            continue
        if letter_id in open_ids and letter_id not in shown:
            shown.add(letter_id)
        elif await session.ack(delivery):
            dropped += 1
    return dropped


async def _issue(database: Database, seen: Iterable[UUID]) -> int:
    async with database.transaction() as conn:
        return await dead_letters.owe_missing(conn, seen=sorted(seen), limit=LIMIT)
