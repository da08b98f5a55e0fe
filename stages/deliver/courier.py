"""From a notice's message to its recorded attempt: read, send, judge, record. Only then may it be acked."""

import random
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from schema.db import webhook_deliveries
from schema.db.engine import Database
from schema.db.webhook_deliveries import Attempt, Copy, Errand
from schema.domain.backoff import turn_delay
from schema.domain.notices import Answer, DeliveryCode, DeliveryStatus, judge
from schema.runtime import failpoints, metrics
from schema.runtime.clock import Clock
from schema.runtime.failpoints import Point
from schema.runtime.logs import get_logger
from schema.runtime.vault import SealedError, Vault
from schema.wire.messages import NoticeMessage
from schema.wire.webhooks import payload, signed_headers
from stages.deliver.transport import Transport
from stages.patience import until_answered

log = get_logger()

OUTCOMES = {
    DeliveryStatus.PENDING: "retrying",
    DeliveryStatus.DELIVERED: "delivered",
    DeliveryStatus.FAILED: "failed",
}


class Courier:
    """Tells endpoints what they are owed, at least once and each time under the same id."""

    def __init__(
        self,
        *,
        database: Database,
        vault: Vault,
        transport: Transport,
        schedule: Sequence[timedelta],
        share: int,
        clock: Clock,
    ) -> None:
        """Keep the ports; ``share`` is how many messages one endpoint may be sent at once."""
        self._database = database
        self._vault = vault
        self._transport = transport
        self._schedule = schedule
        self._share = share
        self._clock = clock
        self._sending = Counter[UUID]()

    async def deliver(self, copy: Copy) -> None:
        """Make the attempt that a message asks for; returns when the message may be acknowledged."""
        async with self._database.transaction() as conn:
            errand = await webhook_deliveries.read(conn, copy.message)
        if errand is None or not _is_due(errand, copy.message):
            metrics.WEBHOOK_DELIVERIES.labels("stale", "").inc()
            return
        if self._sending[errand.endpoint_id] >= self._share:
            await self._defer(copy)
            return
        self._sending[errand.endpoint_id] += 1
        try:
            await self._send(errand, copy)
        finally:
            self._sending[errand.endpoint_id] -= 1
            if not self._sending[errand.endpoint_id]:
                del self._sending[errand.endpoint_id]

    async def _defer(self, copy: Copy) -> None:
        """Let a message wait whose endpoint has its share: a slow one must not hold up all others."""
        async with self._database.transaction() as conn:
            await webhook_deliveries.defer(conn, copy, delay=turn_delay(copy.deferrals, random.uniform))
        metrics.WEBHOOK_DELIVERIES.labels("deferred", "").inc()

    async def _send(self, errand: Errand, copy: Copy) -> None:
        """Send, judge and record."""
        began = self._clock.monotonic()
        answer = await self._attempt(errand)
        failpoints.hit(Point.WEBHOOK_SENT)
        seconds = self._clock.monotonic() - began
        verdict = judge(answer, attempt=copy.message.attempt, schedule=self._schedule, uniform=random.uniform)
        attempt = Attempt(copy, answer, verdict, seconds)
        if await until_answered(self._record, attempt):
            _tell(errand, attempt)

    async def _attempt(self, errand: Errand) -> Answer:
        """Sign and send, unless nothing is to be sent."""
        if errand.disabled:
            return Answer(code=DeliveryCode.ENDPOINT_DISABLED)
        try:
            owner = errand.endpoint_id.bytes
            keys = [self._vault.open(secret, owner=owner) for secret in errand.secrets]
        except SealedError:
            return Answer(code=DeliveryCode.SECRET_UNREADABLE)
        body = payload(notice_type=errand.type, at=errand.at, data=errand.data)
        timestamp = int(errand.now.timestamp())
        headers = signed_headers(event_id=errand.event_id, timestamp=timestamp, body=body, keys=keys)
        return await self._transport.post(errand.url, body=body, headers=headers, now=errand.now)

    async def _record(self, attempt: Attempt) -> bool:
        async with self._database.transaction() as conn:
            return await webhook_deliveries.record(conn, attempt)


def _is_due(errand: Errand, message: NoticeMessage) -> bool:
    """Say whether this attempt is the telling's next one; a copy of an earlier message is not."""
    following = (errand.series, errand.attempt + 1)
    return errand.status is DeliveryStatus.PENDING and following == (message.series, message.attempt)


def _tell(errand: Errand, attempt: Attempt) -> None:
    """Write the attempt's canonical line and count it."""
    outcome = OUTCOMES[attempt.verdict.status]
    code = attempt.verdict.code.value if attempt.verdict.code else ""
    metrics.WEBHOOK_DELIVERIES.labels(outcome, code).inc()
    metrics.WEBHOOK_SECONDS.labels(outcome).observe(attempt.seconds)
    log.info(
        "webhook_attempted",
        endpoint_id=str(errand.endpoint_id),
        event_id=str(errand.event_id),
        job_id=str(errand.job_id),
        attempt=attempt.message.attempt,
        outcome=outcome,
        code=code or None,
        status=attempt.answer.status,
        seconds=round(attempt.seconds, 3),
    )
