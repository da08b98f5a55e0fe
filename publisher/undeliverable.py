"""What the broker gave up by itself: issued again once per series, then the job fails as a dead letter."""

import asyncio
from collections.abc import Callable
from typing import Final

from schema.db import dead_letters, moves, stage_runs
from schema.db.engine import Database
from schema.db.locks import lock_jobs
from schema.db.reissues import Reissue, reissue
from schema.domain.errors import ErrorCode
from schema.domain.moves import LetterReason, Move, fail
from schema.domain.runs import Arrival, RunView, classify_arrival
from schema.domain.states import AttemptOutcome
from schema.runtime import failpoints, metrics
from schema.runtime.broker import BrokerSession, Delivery
from schema.runtime.failpoints import Point
from schema.runtime.logs import get_logger
from schema.wire.messages import StageMessage, UnreadableMessageError, decode
from schema.wire.queues import UNDELIVERABLE

log = get_logger()

# One, because the broker calls everything that was in hand redelivered, also what nobody had looked at.
PREFETCH: Final = 1
PAUSE_SECONDS: Final = 1.0


class UndeliverableReader:
    """Reads the queue of given-up messages, one at a time; there should be none."""

    def __init__(self, *, database: Database, recorded: Callable[[], None]) -> None:
        """Keep the ports; ``recorded`` is called after each commit."""
        self._database = database
        self._recorded = recorded

    async def work(self, session: BrokerSession) -> None:
        """Read for the life of a session, acknowledging only what is committed."""
        arrived: asyncio.Queue[Delivery] = asyncio.Queue()
        await session.consume(UNDELIVERABLE, prefetch=PREFETCH, on_delivery=arrived.put_nowait)
        while True:
            delivery = await arrived.get()
            try:
                await self._handle(delivery)
            except Exception as error:  # noqa: BLE001 - nothing was committed, so it has to come again
                log.warning("delivery_requeued", queue=UNDELIVERABLE, exception_type=type(error).__name__)
                await asyncio.sleep(PAUSE_SECONDS)
                await session.requeue(delivery)
                continue
            failpoints.hit(Point.GIVE_UP_COMMITTED)
            self._recorded()
            await session.ack(delivery)

    async def _handle(self, delivery: Delivery) -> None:
        """Write down what becomes of one message."""
        try:
            message = decode(delivery.body)
        except UnreadableMessageError as error:
            async with self._database.transaction() as conn:
                await dead_letters.record_unreadable(
                    conn, code=error.code, body=delivery.body, job_id=error.job_id, queue=delivery.queue
                )
            return
        outcome = await self._settle(message, again=delivery.redelivered)
        metrics.DELIVERIES.labels(message.stage.value, outcome).inc()
        log.warning("message_given_up", job_id=str(message.job_id), stage=message.stage.value, outcome=outcome)

    async def _settle(self, message: StageMessage, *, again: bool) -> str:
        """Decide by the run's row, under its job's lock.

        A copy that comes ``again`` may have had its answer, and the publisher died before it could say so: that
        the run was issued anew is then no sign of a second failure, and giving it up would charge it for that death.
        """
        async with self._database.transaction() as conn:
            await lock_jobs(conn, [message.job_id])
            run = (await stage_runs.read(conn, [(message.job_id, message.stage)])).get((message.job_id, message.stage))
            arrival = classify_arrival(run, series=message.series, attempt=message.attempt)
            # A run that is being worked on needs no message: its owner ends it, or its lease does.
            if run is None or arrival not in (Arrival.CLAIMABLE, Arrival.EARLY):
                return arrival.value
            if await reissue(conn, [Reissue(run)], given_up=True, again=again):
                return "reissued"
            given_up = _give_up(run)
            await moves.apply(conn, [given_up])
        metrics.count_end(given_up, run.kind)
        return "gave_up"


def _give_up(run: RunView) -> Move:
    return fail(run, ErrorCode.DELIVERY_LIMIT, closes=AttemptOutcome.WORKER_LOST, letter=LetterReason.DELIVERY_LIMIT)
