"""What is done to the system and when: drawn from a seed, so that the same seed does the same again.

Faults overlap, but there is never more harm at once than a system could get through: one service at a time, one
fault per victim, and always a worker that nobody touches.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

WORKERS: Final = ("worker-1", "worker-2")
PROCESSES: Final = (*WORKERS, "publisher", "intake")
SERVICES: Final = ("postgres", "rabbitmq", "s3")
# From whom to what; a link is cut on the one's side alone.
LINKS: Final = (
    *(f"{worker}:{service}" for worker in WORKERS for service in ("postgres", "rabbitmq")),
    "publisher:rabbitmq",
)
# What can be done to whom, and the shortest and longest it lasts, in seconds.
DEEDS: Final = {
    "process": (PROCESSES, {"kill": (0, 0), "terminate": (0, 0), "pause": (1, 10)}),
    "link": (LINKS, {"cut": (1, 8), "freeze": (1, 8), "reset": (0, 0), "slow": (2, 10)}),
    "service": (SERVICES, {"stop": (0, 4), "kill": (0, 4), "pause": (1, 6)}),
}
# How long each needs to be itself again once its fault has ended, in seconds.
RECOVERY: Final = {"process": 3.0, "link": 2.0, "postgres": 5.0, "rabbitmq": 15.0, "s3": 6.0}
AT_ONCE: Final = 3
# Cards that could not be played yet.
LONGEST_HAND: Final = 12
# What happens most often is done most often: so many more cards of a killed worker in each round.
MORE_KILLS: Final = 2
MEAN_PAUSE_SECONDS: Final = 3.0
QUIET_START_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class Fault:
    """One deed: seconds since the start, how long it lasts, what is done and to whom."""

    at: float
    seconds: float
    deed: str
    kind: str
    victim: str

    @property
    def over_at(self) -> float:
        """When its victim is itself again."""
        return self.at + self.seconds + RECOVERY.get(self.victim, RECOVERY.get(self.kind, 0.0))

    def __str__(self) -> str:
        """Say it in a line."""
        lasts = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.at:7.1f}  {self.deed} {self.victim}{lasts}"


def plan(seed: int, seconds: float) -> list[Fault]:
    """Draw the faults of a soak that lasts so long; all of them have ended by then."""
    draw = random.Random(seed)
    dealt, faults, at = _cards(draw), list[Fault](), QUIET_START_SECONDS
    waiting: list[tuple[str, str, str]] = []
    while at < seconds:
        harm = [fault for fault in faults if fault.over_at > at]
        waiting = waiting or [next(dealt)]
        fault = _fitting(draw, waiting, harm, at)
        if fault is None and len(waiting) < LONGEST_HAND:
            waiting.append(next(dealt))
            continue
        if fault is not None and fault.at + fault.seconds < seconds:
            faults.append(fault)
        at = round(at + 0.5 + draw.expovariate(1 / MEAN_PAUSE_SECONDS), 1)
    return faults


def _cards(draw: random.Random) -> Iterator[tuple[str, str, str]]:
    """Deal every deed to every victim, in a new order each round, as (kind, victim, deed)."""
    pack = [(kind, victim, deed) for kind, (victims, deeds) in DEEDS.items() for victim in victims for deed in deeds]
    pack += [("process", worker, "kill") for worker in WORKERS] * MORE_KILLS
    while True:
        yield from draw.sample(pack, len(pack))


def _fitting(
    draw: random.Random, waiting: list[tuple[str, str, str]], harm: Sequence[Fault], at: float
) -> Fault | None:
    """Take the first card that may be played now; ``None`` when there is none."""
    for card in waiting:
        kind, victim, deed = card
        if _bearable(kind, victim, harm):
            waiting.remove(card)
            shortest, longest = DEEDS[kind][1][deed]
            return Fault(at, round(draw.uniform(shortest, longest), 1), deed, kind, victim)
    return None


def _bearable(kind: str, victim: str, harm: Sequence[Fault]) -> bool:
    """Say whether one more may be harmed beside those that are."""
    if len(harm) >= AT_ONCE or victim in {fault.victim for fault in harm}:
        return False
    if kind == "service":
        return "service" not in {fault.kind for fault in harm}
    hurt = {_owner(fault.victim) for fault in harm} | {_owner(victim)}
    return not hurt.issuperset(WORKERS)


def _owner(victim: str) -> str:
    """Return the process that a fault is felt by."""
    return victim.partition(":")[0]
