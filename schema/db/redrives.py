"""Bringing dead letters back: one transaction that closes the letter and opens the job's next series."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from schema.db import dead_letters, moves, stage_runs
from schema.db.dead_letters import LetterState
from schema.db.locks import lock_jobs
from schema.db.reissues import Reissue, reissue
from schema.domain.moves import redrive as redrive_move
from schema.domain.runs import RunView
from schema.domain.states import JobState


class RedriveAnswer(StrEnum):
    """What came of redriving one letter."""

    REDRIVEN = "redriven"
    CLOSED = "closed"
    NO_JOB = "no_job"
    GONE = "gone"
    NOT_FAILED = "not_failed"


@dataclass(frozen=True, slots=True)
class _Open:
    """An open letter under its job's lock, with the job's run and whether the document is there."""

    id: UUID
    run: RunView | None
    has_document: bool

    def answer(self) -> RedriveAnswer:
        """Say what stands in the way; a job that still runs has lost one message, which is issued again."""
        if self.run is None:
            return RedriveAnswer.NO_JOB
        if not self.has_document:
            return RedriveAnswer.GONE
        ended_otherwise = self.run.state.terminal and self.run.state is not JobState.FAILED
        return RedriveAnswer.NOT_FAILED if ended_otherwise else RedriveAnswer.REDRIVEN


_JOBS = text("SELECT job_id FROM dead_letter WHERE id = ANY(CAST(:ids AS uuid[])) AND job_id IS NOT NULL")

_OPEN = text("""
SELECT l.id, l.job_id, d.job_id IS NOT NULL AS has_document
FROM dead_letter l LEFT JOIN document d ON d.job_id = l.job_id
WHERE l.id = ANY(CAST(:ids AS uuid[])) AND l.state = 'open'
ORDER BY l.id FOR NO KEY UPDATE OF l
""")


async def redrive(
    conn: AsyncConnection, letter_ids: Sequence[UUID], *, by: str, note: str
) -> Mapping[UUID, RedriveAnswer]:
    """Close letters and let their jobs go on at the stage that failed, under the same id, in a new series.

    States: letter open -> redriven; run failed -> ready; job failed -> the state of that stage.

    Returns:
        For each letter what came of it; all but ``redriven`` changed nothing.
    """
    jobs = (await conn.execute(_JOBS, {"ids": list(letter_ids)})).scalars().all()
    await lock_jobs(conn, jobs)
    found = await _open_letters(conn, letter_ids)
    answers = dict.fromkeys(letter_ids, RedriveAnswer.CLOSED) | {one.id: one.answer() for one in found}
    runs = {one.run.job_id: one.run for one in found if one.run and answers[one.id] is RedriveAnswer.REDRIVEN}
    await _go_on(conn, runs.values(), by=by, note=note)
    done = [letter_id for letter_id, answer in answers.items() if answer is RedriveAnswer.REDRIVEN]
    await dead_letters.close(conn, ids=done, state=LetterState.REDRIVEN, by=by, note=note)
    return answers


async def _open_letters(conn: AsyncConnection, letter_ids: Sequence[UUID]) -> list[_Open]:
    """Read the letters that are still open, with their jobs' runs."""
    rows = (await conn.execute(_OPEN, {"ids": list(letter_ids)})).all()
    runs = await stage_runs.read_current(conn, [row.job_id for row in rows if row.job_id])
    return [_Open(row.id, runs.get(row.job_id), row.has_document) for row in rows]


async def _go_on(conn: AsyncConnection, runs: Iterable[RunView], *, by: str, note: str) -> None:
    """Open a failed run's next series; give one that never failed its message back."""
    wanted = list(runs)
    if failed := [redrive_move(run, by=by, note=note) for run in wanted if run.state is JobState.FAILED]:
        await moves.apply(conn, failed)
    if alive := [Reissue(run) for run in wanted if run.state is not JobState.FAILED]:
        await reissue(conn, alive)
