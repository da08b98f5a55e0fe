"""What the consumers ask of the database, batched over all deliveries in flight."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from schema.db import deferrals, moves, stage_runs, workers
from schema.db.deferrals import Deferral
from schema.db.engine import Database
from schema.db.moves import StoredOutput
from schema.db.stage_runs import Claimed
from schema.db.wake import Waker
from schema.domain.moves import Move
from schema.domain.runs import Claim, RunView
from schema.domain.states import Stage
from schema.runtime import failpoints
from schema.runtime.failpoints import Point
from schema.wire.messages import StageMessage
from stages.batching import Batcher
from stages.liveness import Liveness

BATCH: Final = 128


@dataclass(frozen=True, slots=True)
class Record:
    """A move to write, with the place of its output where that was stored before."""

    move: Move
    stored: StoredOutput | None = None


class Ledger:
    """One method per question; each call joins a batch with others of its kind."""

    def __init__(self, database: Database, liveness: Liveness, waker: Waker, *, lease: timedelta) -> None:
        """Make the batchers."""
        self._database = database
        self._liveness = liveness
        self._waker = waker
        self._lease = lease
        self._claims: Batcher[StageMessage, Claimed | None] = Batcher(self._claim_many, limit=BATCH)
        self._takeovers: Batcher[RunView, Claimed | None] = Batcher(self._take_many, limit=BATCH)
        self._reads: Batcher[tuple[UUID, Stage], RunView | None] = Batcher(self._read_many, limit=BATCH)
        self._records: Batcher[Record, bool] = Batcher(self._record_many, limit=BATCH)
        self._deferrals: Batcher[Deferral, bool] = Batcher(self._defer_many, limit=BATCH)
        self._owners: Batcher[int, bool] = Batcher(self._gone_many, limit=BATCH)

    async def claim(self, message: StageMessage) -> Claimed | None:
        """Claim the run that a message points to; ``None`` is no answer, read the run."""
        await self._liveness.ready()
        return await self._claims.submit(message)

    async def take_over(self, run: RunView) -> Claimed | None:
        """Take a run from an owner that is gone; ``None`` is no answer, read the run."""
        await self._liveness.ready()
        return await self._takeovers.submit(run)

    async def read(self, job_id: UUID, stage: Stage) -> RunView | None:
        """Read a run as it is; ``None`` when there is none."""
        return await self._reads.submit((job_id, stage))

    async def record(self, record: Record) -> bool:
        """Write a move; ``False`` when the run has gone on since it was decided."""
        return await self._records.submit(record)

    async def defer(self, wish: Deferral) -> bool:
        """Owe one copy to the broker again; ``False`` when the run has moved or keeps another copy."""
        return await self._deferrals.submit(wish)

    async def is_gone(self, worker_id: int) -> bool:
        """Say whether a worker is provably gone."""
        return await self._owners.submit(worker_id)

    async def closed_as(self, claim: Claim) -> str | None:
        """Return how a claim's attempt was closed."""
        async with self._database.transaction() as conn:
            return await stage_runs.closed_as(conn, claim)

    async def _claim_many(self, messages: Sequence[StageMessage]) -> Sequence[Claimed | None]:
        async with self._database.transaction() as conn:
            return await stage_runs.claim(conn, messages, worker_id=self._liveness.worker_id, lease=self._lease)

    async def _take_many(self, runs: Sequence[RunView]) -> Sequence[Claimed | None]:
        async with self._database.transaction() as conn:
            return await stage_runs.take_over(conn, runs, worker_id=self._liveness.worker_id, lease=self._lease)

    async def _read_many(self, wanted: Sequence[tuple[UUID, Stage]]) -> Sequence[RunView | None]:
        async with self._database.transaction() as conn:
            found = await stage_runs.read(conn, wanted)
        return [found.get(key) for key in wanted]

    async def _record_many(self, records: Sequence[Record]) -> Sequence[bool]:
        decided, outputs = [record.move for record in records], [record.stored for record in records]
        async with self._database.transaction() as conn:
            written = await moves.lock_and_apply(conn, decided, outputs=outputs)
            failpoints.hit(Point.BATCH_WRITTEN)
        failpoints.hit(Point.BATCH_COMMITTED)
        self._waker.wake()
        return written

    async def _defer_many(self, wishes: Sequence[Deferral]) -> Sequence[bool]:
        async with self._database.transaction() as conn:
            kept = await deferrals.defer(conn, wishes)
        self._waker.wake()
        return kept

    async def _gone_many(self, worker_ids: Sequence[int]) -> Sequence[bool]:
        async with self._database.transaction() as conn:
            gone = await workers.gone(conn, sorted(set(worker_ids)))
        return [worker_id in gone for worker_id in worker_ids]
