"""From a notice's message to its recorded attempt: read, send, judge, record. Only then may it be acked."""

import random
from collections.abc import Sequence
from datetime import timedelta

from schema.db import webhook_deliveries
from schema.db.engine import Database
from schema.db.wake import Waker
from schema.db.webhook_deliveries import Attempt, Errand
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
        waker: Waker,
        vault: Vault,
        transport: Transport,
        schedule: Sequence[timedelta],
        clock: Clock,
    ) -> None:
        """Keep the ports."""
        self._database = database
        self._waker = waker
        self._vault = vault
        self._transport = transport
        self._schedule = schedule
        self._clock = clock

    async def deliver(self, message: NoticeMessage, traceparent: str | None = None) -> None:
        """Make the attempt that a message asks for; returns when the message may be acknowledged."""
        async with self._database.transaction() as conn:
            errand = await webhook_deliveries.read(conn, message)
        if errand is None or not _is_due(errand, message):
            metrics.WEBHOOK_DELIVERIES.labels("stale", "").inc()
            return
        began = self._clock.monotonic()
        answer = await self._attempt(errand)
        failpoints.hit(Point.WEBHOOK_SENT)
        seconds = self._clock.monotonic() - began
        verdict = judge(answer, attempt=message.attempt, schedule=self._schedule, uniform=random.uniform)
        attempt = Attempt(message, answer, verdict, seconds, traceparent)
        if await until_answered(self._record, attempt):
            _tell(errand, attempt)
        if verdict.retry_in is not None:
            self._waker.wake()

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
