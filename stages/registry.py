"""Which handler does which lane's work, with which limits."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from schema.domain.states import Lane, Stage
from schema.runtime import metrics
from schema.runtime.blobs import Blobs
from schema.runtime.settings import StagesSettings
from stages.extract import ExtractStage
from stages.lanes import LanePlan
from stages.model.asking import Model
from stages.model.provider import Provider
from stages.normalize import NormalizeStage
from stages.persist import PersistStage
from stages.sandbox.pool import Sandbox
from stages.sandbox.settings import SandboxSettings
from stages.validate import ValidateStage
from stages.work import Handler


@dataclass(slots=True)
class Workshop:
    """The handlers of one process, the parser pools behind them, and the model's provider where there is one."""

    handlers: dict[Lane, Handler] = field(default_factory=dict)
    sandboxes: list[Sandbox] = field(default_factory=list)
    provider: Provider | None = None

    async def start(self) -> None:
        """Make the pools ready."""
        for sandbox in self.sandboxes:
            await sandbox.start()

    async def close(self) -> None:
        """Kill every parser and hang up."""
        for sandbox in self.sandboxes:
            await sandbox.close()
        if self.provider is not None:
            await self.provider.close()


def equip(plans: Mapping[Lane, LanePlan], *, settings: StagesSettings, blobs: Blobs) -> Workshop:
    """Make the handlers; each lane has parsers of its own, so that scans never block documents with text."""
    workshop, limits, model = Workshop(), settings.document_limits(), None

    def sandbox(lane: Lane) -> Sandbox:
        made = Sandbox(
            _sandbox_settings(settings, lane, plans[lane]),
            on_kill=_count_kill,
            on_memory=_peak_keeper(lane),
            on_call=metrics.CHILD_CALL_BYTES.labels(lane=lane.value).observe,
        )
        workshop.sandboxes.append(made)
        return made

    if settings.model_url and Lane.NORMALIZE in plans:
        workshop.provider = Provider(settings)
        model = Model(settings, workshop.provider, blobs, attempts=settings.retry_attempts)

    makers: dict[Stage, Callable[[Lane], Handler]] = {
        Stage.VALIDATE: lambda lane: ValidateStage(blobs, sandbox(lane), limits, plans[lane].budget),
        Stage.EXTRACT: lambda lane: ExtractStage(blobs, sandbox(lane), limits, plans[lane].budget),
        Stage.NORMALIZE: lambda lane: NormalizeStage(sandbox(lane), plans[lane].budget, model),
        Stage.PERSIST: lambda _: PersistStage(),
    }
    for lane in plans:
        workshop.handlers[lane] = makers[lane.stage](lane)
    return workshop


def _sandbox_settings(settings: StagesSettings, lane: Lane, plan: LanePlan) -> SandboxSettings:
    """Return a lane's limits; its temporary files are apart, because each pool cleans up at its start."""
    return SandboxSettings(
        scratch_dir=settings.scratch_dir / lane.value,
        children=settings.child_processes,
        memory_bytes=settings.child_memory_bytes,
        scratch_bytes=settings.child_scratch_bytes,
        cpu_seconds=math.ceil(plan.budget.total_seconds),
        documents_per_child=settings.child_documents,
    )


def _count_kill(reason: str) -> None:
    metrics.CHILD_KILLS.labels(reason=reason).inc()


def _peak_keeper(lane: Lane) -> Callable[[int], None]:
    """Return what keeps the highest of the values it is told as the lane's peak."""
    gauge, peak = metrics.CHILD_PEAK_BYTES.labels(lane=lane.value), 0

    def keep(held: int) -> None:
        nonlocal peak
        peak = max(peak, held)
        gauge.set(peak)

    return keep
