"""The broker's topology as data: names, arguments and bindings. One module declares it, others only look.

Names carry a version, because the arguments of a live queue cannot be changed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from schema.domain.states import Lane

PREFIX: Final = "docstage.v1"
WORK: Final = f"{PREFIX}.work"
DELIVER: Final = f"{PREFIX}.deliver"
PARKING: Final = f"{PREFIX}.parking"
UNDELIVERABLE: Final = f"{PREFIX}.undeliverable"
# Not a lane: notices belong to no stage, and wait in the outbox rather than on the ladder.
NOTICES_KEY: Final = "deliver"
NOTICES: Final = f"{PREFIX}.q.{NOTICES_KEY}"
DLX: Final = f"{PREFIX}.dlx"
DLQ: Final = f"{PREFIX}.dlq"

UNIT: Final = timedelta(milliseconds=250)
LEVELS: Final = 14
TOP: Final = LEVELS - 1
LONGEST: Final = UNIT * ((1 << LEVELS) - 1)

DELIVERY_LIMIT: Final = 200
# For queues without a dead-letter exchange, where a limit means loss. Leaving it out means 20 from 4.0 on, and -1
# is accepted by 3.10 but drops a message on its first return (tried on 3.10.8).
NO_LIMIT: Final = 1_000_000_000
DLQ_MAX_LENGTH: Final = 100_000
DLQ_TTL: Final = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A durable exchange."""

    name: str
    kind: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Queue:
    """A durable quorum queue; ``x-queue-type`` is among the arguments."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Binding:
    """From an exchange to a queue, or to another exchange."""

    source: str
    target: str
    key: str
    to_exchange: bool = False


@dataclass(frozen=True, slots=True)
class Topology:
    """Everything that is declared, in an order in which it can be."""

    exchanges: tuple[Exchange, ...]
    queues: tuple[Queue, ...]
    bindings: tuple[Binding, ...]


@dataclass(frozen=True, slots=True)
class Route:
    """Where a message is published to."""

    exchange: str
    key: str


def lane_queue(lane: Lane) -> str:
    """Return the name of the queue that feeds ``lane``."""
    return f"{PREFIX}.q.{lane.value}"


def work_of(queue: str) -> str:
    """Return what a queue of work is for: the lane that it feeds, or ``deliver``."""
    return queue.removeprefix(f"{PREFIX}.q.")


def stage_of(queue: str) -> str:
    """Return the stage that a queue of work feeds, or ``deliver``."""
    return work_of(queue).partition(".")[0]


def delay_name(level: int) -> str:
    """Return the name of a ladder level's exchange and queue."""
    return f"{PREFIX}.delay.{level:02d}"


def route(lane: Lane, delay: timedelta) -> Route:
    """Say where a message for ``lane`` goes that must not arrive before ``delay`` has passed.

    The delay is rounded up to the ladder's unit, never down; one longer than the ladder gets its full length
    and is deferred by the remainder when it comes out.
    """
    if delay <= timedelta(0):
        return Route(WORK, lane.value)
    steps = min(math.ceil(delay / UNIT), (1 << LEVELS) - 1)
    bits = f"{steps:0{LEVELS}b}"
    return Route(delay_name(steps.bit_length() - 1), f"{'.'.join(bits)}.{lane.value}")


def _quorum(**arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - AMQP arguments
    return {"x-queue-type": "quorum"} | {name.replace("_", "-"): value for name, value in arguments.items()}


def _reliable(dead_letter_exchange: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
    """Arguments of a queue whose dead-lettering is confirmed: at-least-once needs all four together."""
    return _quorum(
        x_dead_letter_exchange=dead_letter_exchange,
        x_dead_letter_strategy="at-least-once",
        x_overflow="reject-publish",
        **arguments,
    )


def _ladder() -> Topology:
    """Declare the levels: a set bit goes through the level's queue, an unset one straight to the next."""
    exchanges, queues, bindings = [], [], []
    for level in range(LEVELS):
        name = delay_name(level)
        below = delay_name(level - 1) if level else DELIVER
        milliseconds = int(UNIT.total_seconds() * 1000) << level
        exchanges.append(Exchange(name, "topic"))
        queues.append(Queue(name, _reliable(below, x_message_ttl=milliseconds)))
        higher = "*." * (TOP - level)
        bindings.append(Binding(name, name, f"{higher}1.#"))
        bindings.append(Binding(name, below, f"{higher}0.#", to_exchange=True))
    return Topology(tuple(exchanges), tuple(queues), tuple(bindings))


def topology() -> Topology:
    """Return the whole topology."""
    ladder = _ladder()
    exchanges = (
        Exchange(PARKING, "fanout"),
        Exchange(UNDELIVERABLE, "fanout"),
        Exchange(DLX, "fanout"),
        Exchange(WORK, "direct"),
        # Without an alternate exchange 32 unroutable retries would stop a level for every stage.
        Exchange(DELIVER, "topic", {"alternate-exchange": PARKING}),
    )
    lanes = tuple(Queue(lane_queue(lane), _reliable(UNDELIVERABLE, x_delivery_limit=DELIVERY_LIMIT)) for lane in Lane)
    letters = Queue(
        DLQ,
        _quorum(
            x_delivery_limit=NO_LIMIT,
            x_max_length=DLQ_MAX_LENGTH,
            x_message_ttl=int(DLQ_TTL.total_seconds() * 1000),
            x_overflow="drop-head",
        ),
    )
    bindings = (
        *(Binding(WORK, lane_queue(lane), lane.value) for lane in Lane),
        *(Binding(DELIVER, lane_queue(lane), f"#.{lane.value}") for lane in Lane),
        Binding(WORK, NOTICES, NOTICES_KEY),
        Binding(PARKING, PARKING, ""),
        Binding(UNDELIVERABLE, UNDELIVERABLE, ""),
        Binding(DLX, DLQ, ""),
    )
    kept = _quorum(x_delivery_limit=NO_LIMIT)
    plain = (Queue(NOTICES, kept), Queue(PARKING, kept), Queue(UNDELIVERABLE, kept), letters)
    return Topology(exchanges + ladder.exchanges, lanes + plain + ladder.queues, bindings + ladder.bindings)
