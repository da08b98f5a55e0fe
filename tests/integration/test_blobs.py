"""The object store through its port: what is written whole stays, what is broken off leaves nothing."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from schema.domain.errors import ErrorCode, PermanentError, TransientError
from schema.domain.ids import new_id
from schema.runtime.blobs import PART_BYTES, Blobs, document_key, job_of, job_prefix, output_key
from schema.runtime.settings import StoreSettings
from tests.support.services import Services

PIECE = 64 * 1024


def store_settings(services: Services, bucket: str, *, endpoint: str | None = None) -> StoreSettings:
    """Return settings that reach one bucket."""
    return StoreSettings(
        s3_endpoint=endpoint or services.s3_endpoint,
        s3_region=services.s3_region,
        s3_bucket=bucket,
        s3_access_key=services.s3_access_key,
        s3_secret_key=services.s3_secret_key,
        s3_timeout_seconds=5,
    )


@pytest.fixture
def blobs(services: Services, bucket: str) -> Iterator[Blobs]:
    """A bucket of this test's own, through the port."""
    made = Blobs.connect(store_settings(services, bucket))
    yield made
    made.close()


async def pieces(body: bytes) -> AsyncIterator[bytes]:
    """Yield a body as an upload brings it."""
    for start in range(0, len(body), PIECE):
        yield body[start : start + PIECE]


async def broken_off(body: bytes) -> AsyncIterator[bytes]:
    """Yield a body whose sender goes away at its end."""
    async for piece in pieces(body):
        yield piece
    raise ConnectionResetError


@pytest.mark.parametrize("size", [1, PIECE, PART_BYTES - 1, PART_BYTES, 2 * PART_BYTES + 7])
async def test_a_stream_of_any_size_is_read_back_as_it_was_written(blobs: Blobs, size: int):
    """Around the size of a part the object is made in different ways; the bytes must not show it."""
    body = os.urandom(size)

    stored = await blobs.put_stream("jobs/a/document", pieces(body))

    assert stored.size_bytes == size
    assert stored.sha256 == hashlib.sha256(body).hexdigest()
    assert await blobs.get("jobs/a/document") == body


@pytest.mark.parametrize("size", [PIECE, 2 * PART_BYTES])
async def test_a_stream_that_breaks_off_leaves_nothing(blobs: Blobs, services: Services, bucket: str, size: int):
    """Half a document must never look like one, and parts of none must not fill the disk."""
    with pytest.raises(ConnectionResetError):
        await blobs.put_stream("jobs/a/document", broken_off(os.urandom(size)))

    assert not await blobs.exists("jobs/a/document")
    uploads = services.s3_client().list_multipart_uploads(Bucket=bucket)
    assert uploads.get("Uploads", []) == []


async def test_a_cancelled_upload_leaves_nothing(blobs: Blobs, services: Services, bucket: str):
    """A process that shuts down in the middle of an upload takes it back."""
    begun = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(2 * PART_BYTES // PIECE + 1):
            yield bytes(PIECE)
        begun.set()
        await asyncio.Event().wait()

    writing = asyncio.create_task(blobs.put_stream("jobs/a/document", endless()))
    await begun.wait()
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing

    assert not await blobs.exists("jobs/a/document")
    assert services.s3_client().list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []


async def test_a_missing_object_is_a_permanent_error(blobs: Blobs, tmp_path: Path):
    """No retry brings a deleted document back."""
    for reading in (blobs.get("jobs/a/document"), blobs.fetch("jobs/a/document", str(tmp_path / "copy"))):
        with pytest.raises(PermanentError) as raised:
            await reading
        assert raised.value.code is ErrorCode.DOCUMENT_GONE
    assert not (tmp_path / "copy").exists()


async def test_a_store_that_does_not_answer_is_a_transient_error(services: Services, bucket: str):
    """An outage must be retried, not told to the client as its document's fault."""
    blobs = Blobs.connect(store_settings(services, bucket, endpoint="http://127.0.0.1:9"))

    for asking in (blobs.ping(), blobs.prove(), blobs.get("jobs/a/document"), blobs.put("jobs/a/document", b"x")):
        with pytest.raises(TransientError) as raised:
            await asking
        assert raised.value.code is ErrorCode.STORAGE_UNAVAILABLE
    blobs.close()


async def test_a_bucket_that_is_not_there_is_not_ready(services: Services):
    """A misspelt bucket must show in readiness, not as a missing document."""
    blobs = Blobs.connect(store_settings(services, "no-such-bucket"))

    with pytest.raises(TransientError):
        await blobs.ping()
    blobs.close()


class _Waking(BaseHTTPRequestHandler):
    """A store that knows its buckets and cannot reach its disks yet, as one that has just started."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_GET(self) -> None:
        self.send_error(500)

    def do_PUT(self) -> None:
        self.send_error(500)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


async def test_a_store_that_serves_no_object_yet_is_not_taken_for_up(services: Services, bucket: str):
    """A stage that goes on as soon as the buckets are listed burns the attempts of every job that waited."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Waking) as server:
        serving = asyncio.create_task(asyncio.to_thread(server.serve_forever, 0.01))
        address = f"http://127.0.0.1:{server.server_address[1]}"
        blobs = Blobs.connect(store_settings(services, bucket, endpoint=address))
        try:
            await blobs.ping()
            with pytest.raises(TransientError) as raised:
                await blobs.prove()
        finally:
            blobs.close()
            server.shutdown()
            await serving

    assert raised.value.code is ErrorCode.STORAGE_UNAVAILABLE


async def test_a_store_that_serves_objects_is_up(blobs: Blobs):
    """Asked as often as one likes, it keeps one small object and no job's prefix has it."""
    await blobs.prove()
    await blobs.prove()

    assert await blobs.list("jobs/") == []
    assert len(await blobs.list("")) == 1


async def test_fetching_writes_the_file_that_a_parser_reads(blobs: Blobs, tmp_path: Path):
    """Stages hand parsers a path, never bytes."""
    body = os.urandom(3 * PIECE + 1)
    await blobs.put("jobs/a/document", body)

    await blobs.fetch("jobs/a/document", str(tmp_path / "copy"))

    assert (tmp_path / "copy").read_bytes() == body


async def test_deleting_by_prefix_takes_one_job_and_no_other(blobs: Blobs):
    """What a client deletes is gone, outputs of lost workers too, and its neighbour's is not."""
    mine, other = new_id(), new_id()
    for job_id in (mine, other):
        await blobs.put(document_key(job_id), b"document")
        await blobs.put(output_key(job_id, "extract", 3), b"{}")

    deleted = await blobs.delete_prefix(job_prefix(mine))

    assert deleted == 2
    assert await blobs.list(job_prefix(mine)) == []
    assert [job_of(entry.key) for entry in await blobs.list("jobs/")] == [other, other]
    assert await blobs.delete_prefix(job_prefix(mine)) == 0


async def test_uploads_of_dead_processes_are_ended(blobs: Blobs, services: Services, bucket: str):
    """A process killed in the middle of an upload leaves parts that no listing of objects shows."""
    services.s3_client().create_multipart_upload(Bucket=bucket, Key="jobs/a/document")

    assert await blobs.abort_uploads("jobs/") == 1
    assert services.s3_client().list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []


def test_only_keys_of_jobs_have_an_owner():
    """The sweeper deletes by owner, so it must not take a stranger's object for a job's."""
    job_id = new_id()

    assert job_of(document_key(job_id)) == job_id
    assert job_of(output_key(job_id, "extract", 1)) == job_id
    assert job_of("jobs/readme") is None
    assert job_of("jobs/not-an-id/document") is None
    assert job_of(f"other/{job_id}/document") is None
