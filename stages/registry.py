"""Which handler does which lane's work, with which limits."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from schema.domain.limits import DocumentLimits
from schema.domain.states import Lane, Stage
from schema.runtime import metrics
from schema.runtime.blobs import Blobs
from schema.runtime.settings import StagesSettings
from stages.extract import ExtractStage
from stages.normalize import NormalizeStage
from stages.persist import PersistStage
from stages.sandbox.pool import Sandbox
from stages.sandbox.settings import Budget, SandboxSettings
from stages.validate import ValidateStage
from stages.work import Handler

# Deliveries in flight per lane. Quick lanes take many, because their batches are what makes them quick; a scan
# occupies a parser for minutes, so its lane takes no more than it has parsers.
IN_FLIGHT: Final[Mapping[Lane, int]] = {
    Lane.VALIDATE: 32,
    Lane.EXTRACT_TEXT: 16,
    Lane.EXTRACT_OCR: 0,
    Lane.NORMALIZE: 32,
    Lane.PERSIST: 64,
}
QUICK_SECONDS: Final = 120.0


@dataclass(slots=True)
class Workshop:
    """The handlers of one process and the parser pools behind them."""

    handlers: dict[Lane, Handler] = field(default_factory=dict)
    sandboxes: list[Sandbox] = field(default_factory=list)

    async def start(self) -> None:
        """Make the pools ready."""
        for sandbox in self.sandboxes:
            await sandbox.start()

    async def close(self) -> None:
        """Kill every parser."""
        for sandbox in self.sandboxes:
            await sandbox.close()


def lanes(stages: Iterable[Stage], settings: StagesSettings) -> dict[Lane, int]:
    """Return the lanes that feed ``stages``, with how many deliveries of each may be in flight."""
    wanted = [lane for lane in Lane if lane.stage in set(stages)]
    return {lane: settings.concurrency or IN_FLIGHT[lane] or settings.child_processes for lane in wanted}


def equip(lanes: Iterable[Lane], *, settings: StagesSettings, limits: DocumentLimits, blobs: Blobs) -> Workshop:
    """Make the handlers; each lane has parsers of its own, so that scans never block documents with text."""
    workshop = Workshop()

    def sandbox(lane: Lane) -> Sandbox:
        made = Sandbox(_sandbox_settings(settings, lane), on_kill=_count_kill)
        workshop.sandboxes.append(made)
        return made

    quick = Budget(min(QUICK_SECONDS, settings.hard_limit_seconds), settings.silence_seconds)
    long = Budget(settings.hard_limit_seconds, settings.silence_seconds)
    makers: dict[Stage, Callable[[Lane], Handler]] = {
        Stage.VALIDATE: lambda lane: ValidateStage(blobs, sandbox(lane), limits, quick),
        Stage.EXTRACT: lambda lane: ExtractStage(blobs, sandbox(lane), limits, long),
        Stage.NORMALIZE: lambda lane: NormalizeStage(sandbox(lane), quick),
        Stage.PERSIST: lambda _: PersistStage(),
    }
    for lane in lanes:
        workshop.handlers[lane] = makers[lane.stage](lane)
    return workshop


def _sandbox_settings(settings: StagesSettings, lane: Lane) -> SandboxSettings:
    """Return a lane's limits; its temporary files are apart, because each pool cleans up at its start."""
    return SandboxSettings(
        scratch_dir=settings.scratch_dir / lane.value,
        children=settings.child_processes,
        memory_bytes=settings.child_memory_bytes,
        cpu_seconds=int(settings.hard_limit_seconds),
        documents_per_child=settings.child_documents,
    )


def _count_kill(reason: str) -> None:
    metrics.CHILD_KILLS.labels(reason=reason).inc()
