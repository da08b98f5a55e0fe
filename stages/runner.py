"""From a claim to its recorded outcome: claim, commit, run, decide, record, commit. Only then may be acked."""

import asyncio
import contextlib
import hashlib
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from schema.db.engine import Database
from schema.db.moves import StoredOutput, serialize, stored_inline
from schema.db.stage_runs import Claimed
from schema.domain import moves
from schema.domain.backoff import RetryPolicy
from schema.domain.decisions import decide
from schema.domain.errors import ErrorCode, PermanentError, StageError, TransientError
from schema.domain.kinds import Kind, MediaType
from schema.domain.moves import Move
from schema.domain.options import options_from_json
from schema.domain.outcomes import Completed, Outcome, Transient, Unknown, classify
from schema.domain.runs import Claim
from schema.domain.states import Lane, Stage
from schema.runtime import failpoints, metrics
from schema.runtime.blobs import output_key
from schema.runtime.clock import Clock
from schema.runtime.failpoints import Point
from schema.runtime.logs import get_logger
from stages.breaker import Breaker
from stages.checkpoints import FencedError, RunCheckpoint
from stages.ledger import Ledger, Record
from stages.liveness import Liveness
from stages.patience import until_answered
from stages.work import Handler, StoredDocument, Work

log = get_logger()


class OutputStore(Protocol):
    """Where outputs too large for a row are kept."""

    async def get(self, key: str) -> bytes:
        """Return an object's bytes; raises an owned error when it cannot."""

    async def put(self, key: str, body: bytes) -> object:
        """Store an object; raises an owned error when it cannot."""


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """The runner's limits."""

    lease: timedelta
    limits: Mapping[Lane, timedelta]
    inline_bytes: int
    policy: Callable[[Stage], RetryPolicy]


class Runner:
    """Does one claim's work and records what came of it."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        liveness: Liveness,
        database: Database,
        outputs: OutputStore,
        handlers: Mapping[Lane, Handler],
        settings: RunnerSettings,
        clock: Clock,
        breaker: Breaker,
    ) -> None:
        """Keep the ports."""
        self._ledger = ledger
        self._liveness = liveness
        self._database = database
        self._outputs = outputs
        self._handlers = handlers
        self._settings = settings
        self._clock = clock
        self._breaker = breaker
        self._releasing = asyncio.Event()

    def release(self) -> None:
        """Give back what is still running: the handlers stop and their claims return to the queue."""
        self._releasing.set()

    async def work(self, claimed: Claimed) -> None:
        """Run the claim's handler and record its outcome; returns when the delivery may be acknowledged."""
        claim = claimed.claim
        metrics.QUEUE_WAIT_SECONDS.labels(lane=claim.lane.value).observe(max(0.0, claimed.waited.total_seconds()))
        in_flight = metrics.IN_FLIGHT.labels(stage=claim.stage.value)
        with self._liveness.holding(claim, self._settings.limits[claim.lane]) as lost, in_flight.track_inprogress():
            began = self._clock.monotonic()
            outcome = await self._run(claimed, lost)
            seconds = self._clock.monotonic() - began
            if outcome is None and not lost.is_set():
                await self._give_back(claim)
            elif outcome is None:
                self._fenced(claim)
            else:
                await self._record(claimed, outcome, began, seconds)

    async def _run(self, claimed: Claimed, lost: asyncio.Event) -> Outcome | None:
        """Run the handler until it ends, its claim is lost, its time is up, or the worker shuts down.

        Returns:
            ``None`` when there is no outcome: the claim was lost, or is to be given back.
        """
        handling = asyncio.create_task(self._handle(claimed))
        watching = [asyncio.create_task(lost.wait()), asyncio.create_task(self._releasing.wait())]
        try:
            limit = self._settings.limits[claimed.claim.lane].total_seconds()
            await asyncio.wait({handling, *watching}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if handling.done():
                return await handling
            interrupted = any(watch.done() for watch in watching)
            await _cancel(handling)
            return None if interrupted else Transient(ErrorCode.STAGE_TIMEOUT)
        finally:
            for watch in watching:
                watch.cancel()
            await _cancel(handling)

    async def _handle(self, claimed: Claimed) -> Outcome | None:
        """Call the handler; whatever it raises becomes an owned failure here and nowhere else."""
        claim = claimed.claim
        checkpoint = RunCheckpoint(self._database, claim, lease=self._settings.lease)
        try:
            work = await self._prepare(claimed)
            failpoints.hit(Point.WORK_BEGUN)
            return await self._handlers[claim.lane].run(work, checkpoint)
        except FencedError:
            return None
        except Exception as error:  # noqa: BLE001 - classification is this layer's task
            return classify(error)

    async def _prepare(self, claimed: Claimed) -> Work:
        """Gather what the handler needs, the previous stage's output among it."""
        claim, stored = claimed.claim, claimed.document
        if stored is None:
            raise PermanentError(ErrorCode.DOCUMENT_GONE)
        document = StoredDocument(
            storage_key=stored.storage_key,
            size_bytes=stored.size_bytes,
            sha256=stored.sha256,
            declared_type=stored.declared_type,
            media_type=MediaType(stored.media_type),
            content=stored.content,
        )
        return Work(
            job_id=claim.job_id,
            attempt=claim.attempt,
            kind=Kind(claimed.kind),
            options=options_from_json(claimed.options),
            document=document,
            inputs=await self._inputs(claimed),
        )

    async def _inputs(self, claimed: Claimed) -> dict[str, Mapping[str, Any]]:
        """Return the previous stage's output under its name; large ones are read from the object store."""
        stages = list(Stage)
        position = stages.index(claimed.claim.stage)
        if position == 0:
            return {}
        content = claimed.input_content
        if claimed.input_blob_key is not None:
            body = await self._outputs.get(claimed.input_blob_key)
            if hashlib.sha256(body).hexdigest() != claimed.input_sha256:
                raise TransientError(ErrorCode.STORAGE_UNAVAILABLE)
            content = await asyncio.to_thread(json.loads, body)
        return {stages[position - 1].value: content} if content is not None else {}

    async def _record(self, claimed: Claimed, outcome: Outcome, began: float, seconds: float) -> None:
        """Decide what follows and write it, again and again with the same token until that is certain."""
        claim = claimed.claim
        failpoints.hit(Point.WORKED)
        outcome, stored = await self._store(claim, outcome)
        failpoints.hit(Point.OUTPUT_STORED)
        if isinstance(outcome, Transient) and await self._breaker.blames(outcome.code, began):
            await self._give_back(claim)
            return
        move = self._decide(claim, outcome, seconds)
        try:
            written = await self._insist(Record(move, stored))
        except Exception as error:  # noqa: BLE001 - PostgreSQL refuses this output, not the job's recording
            outcome = Unknown(type(error).__name__, ErrorCode.INVALID_OUTPUT)
            move = self._decide(claim, outcome, seconds)
            written = await self._insist(Record(move))
        if not written and await self._closed_by_us(claim, move):
            written = True
        failpoints.hit(_committed(move))
        if written:
            self._tell(claimed, move, seconds)
        else:
            self._fenced(claim)

    def _decide(self, claim: Claim, outcome: Outcome, seconds: float) -> Move:
        """Ask the pure rules what follows from an outcome."""
        decision = decide(
            outcome,
            attempt=claim.attempt,
            policy=self._settings.policy(claim.stage),
            time_left=claim.time_left - timedelta(seconds=seconds),
            uniform=random.uniform,
        )
        return moves.of_outcome(claim, outcome, decision)

    async def _store(self, claim: Claim, outcome: Outcome) -> tuple[Outcome, StoredOutput | None]:
        """Put a large output into the object store, under a key of this claim's token alone."""
        if not isinstance(outcome, Completed):
            return outcome, None
        try:
            body = serialize(outcome.output)
            if len(body) <= self._settings.inline_bytes:
                return outcome, stored_inline(outcome.output)
            key = output_key(claim.job_id, claim.stage.value, claim.token)
            await self._outputs.put(key, body)
        except StageError as error:
            return classify(error), None
        except ValueError as error:
            return Unknown(type(error).__name__, ErrorCode.INVALID_OUTPUT), None
        return outcome, StoredOutput(hashlib.sha256(body).hexdigest(), len(body), blob_key=key)

    async def _insist(self, record: Record) -> bool:
        """Write a move; while the database does not answer, try again with the same token."""
        return await until_answered(self._ledger.record, record)

    async def _closed_by_us(self, claim: Claim, move: Move) -> bool:
        """Say whether the attempt is closed just as we wanted: a commit whose answer was lost."""
        closed = await until_answered(self._ledger.closed_as, claim)
        return move.closes is not None and closed == move.closes.value

    async def _give_back(self, claim: Claim) -> None:
        """Release the claim, on shutdown or in an outage: it counts neither as an attempt nor as a lost worker."""
        if await self._insist(Record(moves.release(claim))):
            metrics.RELEASES.labels(stage=claim.stage.value).inc()
            log.info("claim_released", job_id=str(claim.job_id), stage=claim.stage.value)
        else:
            self._fenced(claim)

    def _fenced(self, claim: Claim) -> None:
        metrics.FENCED.labels(stage=claim.stage.value).inc()
        log.info("claim_lost", job_id=str(claim.job_id), stage=claim.stage.value, token=claim.token)

    def _tell(self, claimed: Claimed, move: Move, seconds: float) -> None:
        """Write the attempt's canonical line and count it."""
        claim = claimed.claim
        outcome = move.closes.value if move.closes else ""
        code = move.code.value if move.code else ""
        metrics.ATTEMPTS.labels(stage=claim.stage.value, outcome=outcome, code=code).inc()
        metrics.STAGE_SECONDS.labels(stage=claim.stage.value, outcome=outcome).observe(seconds)
        if move.retry_in is not None:
            metrics.RETRIES.labels(stage=claim.stage.value, code=code).inc()
        metrics.count_end(move, Kind(claimed.kind))
        log.info(
            "attempt_ended",
            job_id=str(claim.job_id),
            stage=claim.stage.value,
            series=claim.series,
            attempt=claim.attempt,
            outcome=outcome,
            code=code or None,
            exception_type=move.detail.get("exception_type"),
            seconds=round(seconds, 3),
            state=move.state.value,
        )


def _committed(move: Move) -> Point:
    """Name the window between this commit and its acknowledgement."""
    if move.letter is not None:
        return Point.LETTER_COMMITTED
    return Point.OUTCOME_COMMITTED if move.retry_in is None else Point.RETRY_COMMITTED


async def _cancel(task: "asyncio.Task[Any]") -> None:
    """Cancel a task and wait until it is over, whatever it came to."""
    if task.done():
        return
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await task
