"""Accepting a document: stored first, then one transaction that makes it a job, and only then the answer."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Final
from uuid import UUID

from intake.admission import Admission
from intake.form import Bounds, Form, Wishes
from intake.idempotency import Reservations, in_flight
from intake.problems import Problem, ProblemCode
from intake.uploads import MAX_FRAMING_BYTES, Upload
from schema.db import job_records, jobs
from schema.db.engine import Database
from schema.db.idempotency import Replayed, Reservation
from schema.db.job_records import JobRecord
from schema.db.jobs import NewDocument, NewJob
from schema.db.wake import Waker
from schema.domain.errors import PermanentError, TransientError
from schema.domain.ids import new_id
from schema.runtime import metrics
from schema.runtime.blobs import Blobs, Stored, document_key
from schema.runtime.failpoints import Point, hit

# Small enough for PostgreSQL to keep in the row itself or close by.
SMALL_BYTES: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class Submission:
    """A request to process a document, of which nothing but the head has been read."""

    tenant_id: UUID
    body: AsyncGenerator[bytes, None]
    boundary: bytes
    length: int | None
    idempotency_key: str | None
    traceparent: str | None


@dataclass(frozen=True, slots=True)
class Accepted:
    """The job, and whether an earlier request had made it."""

    job: JobRecord
    replayed: bool


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What every job has in common: its bounds and how long it is kept."""

    bounds: Bounds
    retention: timedelta
    max_upload_bytes: int
    upload_silence_seconds: float


class SmallCopy:
    """Keeps the bytes of a small document that passes by, so that workers need not fetch it; forgets a larger one.

    Two reads of the object store cost a small job more than all the rest of its work.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self.content: bytes | None = b""

    async def of(self, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """Pass the pieces on."""
        async for piece in pieces:
            if self.content is not None:
                kept = self.content + piece
                self.content = kept if len(kept) <= SMALL_BYTES else None
            yield piece


@dataclass(frozen=True, slots=True)
class Desk:
    """Where submissions are taken in."""

    database: Database
    blobs: Blobs
    waker: Waker
    admission: Admission
    reservations: Reservations
    acceptance: Acceptance

    async def submit(self, submission: Submission) -> Accepted:
        """Take a document in, once per Idempotency-Key.

        Raises:
            Problem: whatever stands against it, before the body is read where that can be told before.
        """
        self._check_length(submission)
        refusal = await self.admission.refusal(submission.tenant_id)
        held = await self._reserve(submission, refusal)
        if isinstance(held, Replayed):
            return await self._replay(submission, held)
        async with self.reservations.held(held):
            return await self._accept(submission, held)

    def _check_length(self, submission: Submission) -> None:
        """Refuse what announces itself as too large."""
        limit = self.acceptance.max_upload_bytes
        if submission.length is not None and submission.length > limit + MAX_FRAMING_BYTES:
            metrics.REFUSALS.labels(ProblemCode.DOCUMENT_TOO_LARGE.value).inc()
            raise Problem(ProblemCode.DOCUMENT_TOO_LARGE, limit=limit, actual=submission.length)

    async def _reserve(self, submission: Submission, refusal: Problem | None) -> Reservation | Replayed | None:
        """Reserve the request's key, if it has one; a replay adds no work and is answered in any case."""
        key = submission.idempotency_key
        if refusal is None:
            return await self.reservations.reserve(submission.tenant_id, key) if key else None
        replayed = await self.reservations.replayed(submission.tenant_id, key) if key else None
        if replayed is None:
            raise refusal
        return replayed

    async def _replay(self, submission: Submission, made: Replayed) -> Accepted:
        """Answer a repeated request with its job, after seeing that it is the same; nothing is stored."""
        upload, digest = self._upload(submission), sha256()
        async with self.admission.slot(submission.tenant_id), aclosing(upload.pieces()) as pieces:
            async for piece in pieces:
                digest.update(piece)
        if upload.form.wishes().fingerprint(digest.hexdigest()) != made.fingerprint:
            raise Problem(ProblemCode.IDEMPOTENCY_KEY_REUSED)
        async with self.database.transaction() as conn:
            job = await job_records.find(conn, job_id=made.job_id, tenant_id=submission.tenant_id)
        if job is None or job.deleted:
            raise Problem(ProblemCode.DELETED)
        return Accepted(job, replayed=True)

    async def _accept(self, submission: Submission, reservation: Reservation | None) -> Accepted:
        """Store the bytes, then commit the job."""
        job_id, upload, small = new_id(), self._upload(submission), SmallCopy()
        async with (
            self.admission.slot(submission.tenant_id),
            aclosing(upload.pieces()) as pieces,
            aclosing(small.of(pieces)) as copied,
        ):
            stored = await self.blobs.put_stream(document_key(job_id), copied)
        hit(Point.OBJECT_STORED)
        wishes = upload.form.wishes()
        fingerprint = wishes.fingerprint(stored.sha256) if reservation else None
        new = self._new_job(job_id, submission, wishes, _new_document(job_id, upload, stored, small.content))
        job = await self._commit(new, reservation, fingerprint)
        hit(Point.JOB_COMMITTED)
        self.waker.wake()
        self.admission.accepted(submission.tenant_id)
        metrics.ARRIVALS.labels(job.kind.value).inc()
        return Accepted(job, replayed=False)

    async def _commit(self, new: NewJob, reservation: Reservation | None, fingerprint: str | None) -> JobRecord:
        """Make the job one, or take its object back.

        The object stays when the commit itself failed: then nobody knows whether it came to pass, and a job
        without a document would be worse than a document without a job, which the sweeper finds.
        """
        written = False
        try:
            async with self.database.transaction() as conn:
                job = await jobs.accept(conn, new, reservation=reservation, fingerprint=fingerprint)
                if job is None:
                    raise in_flight(self.reservations.lease)
                written = True
        finally:
            if not written:
                await asyncio.shield(self._take_back(new.document.storage_key))
        return job

    async def _take_back(self, key: str) -> None:
        """Delete an object that no job came to have; one that stays is found by the sweeper."""
        with suppress(PermanentError, TransientError):
            await self.blobs.delete([key])

    def _upload(self, submission: Submission) -> Upload:
        """Begin to read the submission's body."""
        return Upload(
            submission.body,
            submission.boundary,
            Form(self.acceptance.bounds),
            max_bytes=self.acceptance.max_upload_bytes,
            silence_seconds=self.acceptance.upload_silence_seconds,
        )

    def _new_job(self, job_id: UUID, submission: Submission, wishes: Wishes, document: NewDocument) -> NewJob:
        """Put together what the database is told."""
        seconds = wishes.deadline_seconds or self.acceptance.bounds.default_deadline_seconds
        return NewJob(
            id=job_id,
            tenant_id=submission.tenant_id,
            kind=wishes.kind,
            options=wishes.options.as_json(),
            client_tag=wishes.options.client_tag,
            traceparent=submission.traceparent,
            deadline=timedelta(seconds=seconds),
            retention=self.acceptance.retention,
            document=document,
        )


def _new_document(job_id: UUID, upload: Upload, stored: Stored, content: bytes | None) -> NewDocument:
    """Describe the stored bytes: what their client said they are, and what they are."""
    return NewDocument(
        storage_key=document_key(job_id),
        size_bytes=stored.size_bytes,
        sha256=stored.sha256,
        declared_type=upload.declared_type,
        media_type=upload.media_type.value,
        content=content,
    )
