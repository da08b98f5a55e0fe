"""A stage's deliveries: read, admitted, worked on; what cannot be read becomes a dead letter."""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from schema.db import dead_letters
from schema.db.engine import Database
from schema.db.wake import Waker
from schema.domain.errors import ErrorCode
from schema.domain.ids import new_id
from schema.domain.states import Lane
from schema.runtime import failpoints
from schema.runtime.broker import BrokerSession, Delivery
from schema.runtime.failpoints import Point
from schema.runtime.lifecycle import Health
from schema.runtime.logs import get_logger
from schema.runtime.settings import BrokerSettings
from schema.wire.messages import (
    HEADER_DEFERRALS,
    HEADER_EVENT_ID,
    StageMessage,
    UnreadableMessageError,
    decode,
)
from schema.wire.queues import lane_queue, stage_of
from stages.breaker import Breaker
from stages.deliveries import WATCH_SECONDS, Deliveries
from stages.lanes import LanePlan
from stages.liveness import Liveness
from stages.reception import Copy, Reception
from stages.runner import Runner

log = get_logger()

# A restart of the database within this time costs no session.
UNABLE_SECONDS: Final = 5.0
# How long a delivery is kept in hand during a pause: long enough to go on at once after a short one, and far below
# the time after which RabbitMQ closes the channel of a consumer that does not acknowledge.
HOLD_SECONDS: Final = 30.0
# Time to end the children and write the releases down. Whoever starts this process must grant it the grace time, this,
# and a little for its connections, before SIGKILL: a claim that is cut off instead counts as a lost worker.
RELEASE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Desk:
    """Where unreadable messages are written down."""

    database: Database
    waker: Waker

    async def record(self, delivery: Delivery, error: UnreadableMessageError) -> None:
        """Make a dead letter of a message that nobody can read: its hash, never its body."""
        async with self.database.transaction() as conn:
            await dead_letters.record_unreadable(
                conn, code=error.code, body=delivery.body, job_id=error.job_id, queue=delivery.queue
            )
        self.waker.wake()
        log.warning("message_unreadable", code=error.code.value, queue=delivery.queue)


class StageConsumer:
    """Consumes the queues of one process's lanes, over as many broker sessions as it takes."""

    def __init__(
        self,
        *,
        settings: BrokerSettings,
        lanes: Mapping[Lane, LanePlan],
        liveness: Liveness,
        reception: Reception,
        runner: Runner,
        desk: Desk,
        breaker: Breaker,
        health: Health,
    ) -> None:
        """Keep the ports; ``lanes`` says how much of each is taken on."""
        self._name = f"docstage-stages-{'+'.join(lanes)}"
        self._liveness = liveness
        self._reception = reception
        self._runner = runner
        self._desk = desk
        self._breaker = breaker
        queues = {lane_queue(lane): plan.in_flight for lane, plan in lanes.items()}
        self._deliveries = Deliveries(settings, queues, handle=self._handle, health=health)
        health.checks.append(breaker.missing)

    async def run(self) -> None:
        """Consume until the session breaks, or claims can not be made; the caller starts it again with backoff.

        A worker that the database cannot see must not sit on deliveries that others could work on: they go
        back with its session, and it takes no more until it can claim again.

        Raises:
            BrokerUnavailableError: with a code that says what broke.
        """
        await self._liveness.ready()
        async with self._deliveries.session(self._name) as session:
            unable = asyncio.create_task(self._unable(session))
            try:
                await session.watch(WATCH_SECONDS)
            finally:
                unable.cancel()

    async def _unable(self, session: BrokerSession) -> None:
        """End the session when this worker has been unable to claim for a while."""
        while True:
            await self._liveness.lost()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(UNABLE_SECONDS):
                    await self._liveness.ready()
            if not self._liveness.is_ready:
                session.give_up("liveness_lost")
                return

    async def drain(self, grace_seconds: float) -> None:
        """Take nothing more, finish what ends within the grace time, give back the rest."""
        await self._deliveries.stop()
        await self._breaker.end()
        await self._deliveries.settled(grace_seconds)
        self._runner.release()
        await self._deliveries.settled(RELEASE_SECONDS)

    async def _handle(self, delivery: Delivery) -> None:
        try:
            message = _read(delivery)
        except UnreadableMessageError as error:
            await self._desk.record(delivery, error)
            return
        failpoints.hit(Point.DELIVERED)
        if not await self._breaker.passes(HOLD_SECONDS):
            await self._reception.postpone(message, _copy(delivery))
            return
        claimed = await self._reception.admit(message, _copy(delivery))
        if claimed is not None:
            failpoints.hit(Point.CLAIMED)
            await self._runner.work(claimed)


def _read(delivery: Delivery) -> StageMessage:
    """Read the body; a message in another stage's queue shows a producer's fault and is as good as unreadable."""
    message = decode(delivery.body)
    if message.stage.value != stage_of(delivery.queue):
        raise UnreadableMessageError(ErrorCode.UNREADABLE_MESSAGE, message.job_id)
    return message


def _copy(delivery: Delivery) -> Copy:
    """Read the copy's headers; a message that was published by hand has none."""
    event_id, deferrals = delivery.headers.get(HEADER_EVENT_ID), delivery.headers.get(HEADER_DEFERRALS)
    try:
        known = UUID(str(event_id))
    except ValueError:
        known = new_id()
    return Copy(known, deferrals if isinstance(deferrals, int) else 0)
