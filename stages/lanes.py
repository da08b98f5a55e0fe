"""How much of each lane one process takes on at once, and how long a claim on it may last."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from schema.domain.states import Lane, Stage
from schema.runtime.settings import StagesSettings
from stages.sandbox.settings import Budget

# Deliveries in flight per parser process. Quick lanes take several, because claims and outcomes are cheaper in
# company; a scan occupies its parser for minutes, so its lane takes no more than it has parsers.
WAVES: Final = {Lane.VALIDATE: 8, Lane.EXTRACT_TEXT: 8, Lane.EXTRACT_OCR: 1, Lane.NORMALIZE: 8}
WITHOUT_PARSER: Final = 64
MARGIN_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class LanePlan:
    """One lane's share of this process.

    ``in_flight`` deliveries are taken at once, ``budget`` is one document's time in a parser, and ``limit`` the
    longest time that a claim may last: a model's answer where one is asked, all documents before it in the parsers'
    queue, then its own.
    """

    in_flight: int
    budget: Budget
    limit: timedelta


def plan(stages: Iterable[Stage], settings: StagesSettings) -> dict[Lane, LanePlan]:
    """Plan the lanes that feed ``stages``.

    Raises:
        ValueError: when a claim could last longer than RabbitMQ waits for an acknowledgement.
    """
    wanted = set(stages)
    plans = {lane: _plan(lane, settings) for lane in Lane if lane.stage in wanted}
    for lane, made in plans.items():
        longest = made.limit.total_seconds() + settings.lease_seconds
        if longest >= settings.consumer_timeout_seconds:
            message = (
                f"{lane.value}: a claim may last {longest:.0f} s, but consumer_timeout_seconds is "
                f"{settings.consumer_timeout_seconds:.0f}; lower the stage's limit or raise RabbitMQ's timeout"
            )
            raise ValueError(message)
    return plans


def _plan(lane: Lane, settings: StagesSettings) -> LanePlan:
    seconds = {
        Lane.EXTRACT_TEXT: settings.text_limit_seconds,
        Lane.EXTRACT_OCR: settings.scan_limit_seconds,
    }.get(lane, settings.quick_limit_seconds)
    waves = WAVES.get(lane, 1)
    answer = settings.model_timeout_seconds if lane is Lane.NORMALIZE and settings.model_url else 0.0
    return LanePlan(
        in_flight=waves * settings.child_processes if lane in WAVES else WITHOUT_PARSER,
        budget=Budget(seconds, min(seconds, settings.silence_seconds)),
        limit=timedelta(seconds=answer + waves * seconds + MARGIN_SECONDS),
    )
