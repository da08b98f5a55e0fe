"""The object store, by opaque key: every key has its form here, every S3 error ends here.

boto3 blocks, so it runs in a bounded pool of threads of its own; nothing waits for a thread that something
else holds.
"""

import asyncio
import contextlib
import errno
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar
from uuid import UUID

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from schema.domain.errors import ErrorCode, PermanentError, TransientError
from schema.runtime.settings import StoreSettings

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

PART_BYTES: Final = 8 << 20
COPY_BYTES: Final = 1 << 20
DELETE_BATCH: Final = 1000
THREADS: Final = 16
JOBS_PREFIX: Final = "jobs/"
PROBE_KEY: Final = "probe"

_MISSING: Final = frozenset({"NoSuchKey", "404", "NotFound"})
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_T = TypeVar("_T")


def job_prefix(job_id: UUID) -> str:
    """Return what all keys of a job begin with."""
    return f"{JOBS_PREFIX}{job_id}/"


def document_key(job_id: UUID) -> str:
    """Return where a job's document is."""
    return f"{job_prefix(job_id)}document"


def output_key(job_id: UUID, stage: str, token: int) -> str:
    """Return where a claim's output goes; by token, so that two owners never write the same object."""
    return f"{job_prefix(job_id)}outputs/{stage}.{token}.json"


def answer_key(job_id: UUID, digest: str, number: int) -> str:
    """Return where a model's answer is kept, the ``number``-th to what has this digest; the same for all who ask."""
    return f"{job_prefix(job_id)}answers/{digest}.{number}.json"


def job_of(key: str) -> UUID | None:
    """Return whose key it is; ``None`` when it is no job's."""
    owner, slash, _ = key.removeprefix(JOBS_PREFIX).partition("/")
    if not slash or not key.startswith(JOBS_PREFIX):
        return None
    with contextlib.suppress(ValueError):
        return UUID(owner)
    return None


@dataclass(frozen=True, slots=True)
class Stored:
    """What has been written: its size and the SHA-256 of its bytes, in hexadecimal."""

    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class BlobEntry:
    """One object as a listing shows it."""

    key: str
    size_bytes: int
    modified_at: datetime


@dataclass(slots=True)
class _Upload:
    """One streamed object on its way: what undoing it takes."""

    key: str
    upload_id: str | None = None
    parts: list["CompletedPartTypeDef"] = field(default_factory=list)
    running: asyncio.Future[Any] | None = None


class Blobs:
    """The bucket.

    Raises:
        PermanentError: ``document_gone``, when a key is not there.
        TransientError: ``storage_unavailable`` for everything else that can go wrong with the store.
    """

    def __init__(self, client: "S3Client", bucket: str, *, threads: int = THREADS) -> None:
        """Take a client that is used by at most ``threads`` threads at once."""
        self._client = client
        self._bucket = bucket
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="blobs")

    @classmethod
    def connect(cls, settings: StoreSettings, *, threads: int = THREADS) -> "Blobs":
        """Make the client; nothing is connected before the first call.

        Retries are left to the callers, who know how long they may wait: one more here covers a kept
        connection that the store has closed meanwhile.
        """
        client = boto3.client(
            "s3",
            endpoint_url=settings.s3_endpoint,
            region_name=settings.s3_region,
            aws_access_key_id=settings.s3_access_key.get_secret_value(),
            aws_secret_access_key=settings.s3_secret_key.get_secret_value(),
            config=Config(
                connect_timeout=min(settings.s3_timeout_seconds, 3),
                read_timeout=settings.s3_timeout_seconds,
                retries={"total_max_attempts": 2, "mode": "standard"},
                max_pool_connections=threads,
                s3={"addressing_style": "path"},
                # Newer checksums are sent in trailers, which not every S3 implementation reads.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )
        return cls(client, settings.s3_bucket, threads=threads)

    def close(self) -> None:
        """Close the connections; calls under way end by themselves."""
        self._pool.shutdown(wait=False)
        self._client.close()

    async def put(self, key: str, body: bytes) -> Stored:
        """Write an object whole."""
        await self._call(self._client.put_object, Bucket=self._bucket, Key=key, Body=body)
        return Stored(len(body), hashlib.sha256(body).hexdigest())

    async def put_stream(self, key: str, chunks: AsyncIterator[bytes]) -> Stored:
        """Write an object while its bytes arrive, hashing them on the way.

        Memory: the part being filled and the part being sent, whatever the size. When ``chunks`` raises or the
        caller is cancelled, nothing stays behind.
        """
        upload, digest, size = _Upload(key), hashlib.sha256(), 0
        buffer = bytearray()
        try:
            async for chunk in chunks:
                digest.update(chunk)
                size += len(chunk)
                buffer += chunk
                while len(buffer) >= PART_BYTES:
                    await self._settle(upload)
                    await self._send_part(upload, _taken(buffer, PART_BYTES))
            await self._settle(upload)
            await self._finish(upload, _taken(buffer, len(buffer)))
        except BaseException:
            await asyncio.shield(self._undo(upload))
            raise
        return Stored(size, digest.hexdigest())

    async def get(self, key: str) -> bytes:
        """Read an object whole."""
        return await self._call(self._read, key)

    async def fetch(self, storage_key: str, target: str) -> None:
        """Write the object's bytes to the file ``target``, which is not left there incomplete.

        Raises:
            TransientError: also ``scratch_full``, when the file finds no room.
        """
        await self._call(self._copy, storage_key, Path(target))

    async def exists(self, key: str) -> bool:
        """Say whether there is an object of this key."""
        try:
            await self._call(self._client.head_object, Bucket=self._bucket, Key=key)
        except PermanentError:
            return False
        return True

    async def ping(self) -> None:
        """Ask whether the bucket answers; raises when it does not."""
        try:
            await self._call(self._client.head_bucket, Bucket=self._bucket)
        except PermanentError:
            raise TransientError(ErrorCode.STORAGE_UNAVAILABLE) from None

    async def prove(self) -> None:
        """Write a small object and read it back; raises when that does not work.

        A store that comes back may know its buckets before it serves an object. There is one such object, whoever
        asks, so that nothing piles up; and it is not empty, because a store need not ask its disks for nothing.
        """
        try:
            await self.put(PROBE_KEY, b"probe")
            await self.get(PROBE_KEY)
        except PermanentError:
            raise TransientError(ErrorCode.STORAGE_UNAVAILABLE) from None

    async def list(self, prefix: str, *, after: str = "", limit: int = DELETE_BATCH) -> Sequence[BlobEntry]:
        """List up to ``limit`` objects in the order of their keys, those behind ``after`` first."""
        answer = await self._call(
            self._client.list_objects_v2, Bucket=self._bucket, Prefix=prefix, StartAfter=after, MaxKeys=limit
        )
        return [BlobEntry(e["Key"], e["Size"], e["LastModified"]) for e in answer.get("Contents", [])]

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete up to 1,000 objects; ones that are not there do not matter."""
        if keys:
            await self._call(self._delete, keys)

    async def delete_prefix(self, prefix: str) -> int:
        """Delete everything whose key begins with ``prefix``, unfinished uploads too; return how many objects."""
        count = 0
        while entries := await self.list(prefix):
            await self.delete([entry.key for entry in entries])
            count += len(entries)
        await self.abort_uploads(prefix)
        return count

    async def abort_uploads(self, prefix: str, *, before: datetime | None = None) -> int:
        """End uploads under ``prefix`` that a dead process began, those older than ``before``; return how many."""
        return await self._call(self._abort_uploads, prefix, before)

    async def _call(self, function: Callable[..., _T], *args: Any, **kwargs: Any) -> _T:  # noqa: ANN401 - passed on
        return await self._start(function, *args, **kwargs)

    def _start(self, function: Callable[..., _T], *args: Any, **kwargs: Any) -> asyncio.Future[_T]:  # noqa: ANN401 - passed on
        """Run ``function`` in the pool; what it raises is one of the two owned errors."""

        def run() -> _T:
            with _owned_errors():
                return function(*args, **kwargs)

        return asyncio.get_running_loop().run_in_executor(self._pool, run)

    async def _send_part(self, upload: _Upload, body: bytes) -> None:
        """Send a part while the next is being filled; the one before it must be through."""
        if upload.upload_id is None:
            begun = await self._call(self._client.create_multipart_upload, Bucket=self._bucket, Key=upload.key)
            upload.upload_id = begun["UploadId"]
        upload.running = self._start(self._part, upload, upload.upload_id, len(upload.parts) + 1, body)

    async def _finish(self, upload: _Upload, rest: bytes) -> None:
        """Send what is left and make it one object; a small one is a single request."""
        if upload.upload_id is None:
            upload.running = self._start(self._client.put_object, Bucket=self._bucket, Key=upload.key, Body=rest)
            await self._settle(upload)
            return
        if rest:
            await self._send_part(upload, rest)
        await self._settle(upload)
        upload.running = self._start(
            self._client.complete_multipart_upload,
            Bucket=self._bucket,
            Key=upload.key,
            UploadId=upload.upload_id,
            MultipartUpload={"Parts": upload.parts},
        )
        await self._settle(upload)

    async def _settle(self, upload: _Upload) -> None:
        """Wait for the request under way; being cancelled leaves it running, for ``_undo`` to wait for."""
        if upload.running is not None:
            await asyncio.shield(upload.running)
            upload.running = None

    async def _undo(self, upload: _Upload) -> None:
        """Take back what was sent, after the request under way: one that ends later would stay behind."""
        if upload.running is not None:
            await asyncio.wait({upload.running})
            upload.running.exception()
        with contextlib.suppress(PermanentError, TransientError):
            if upload.upload_id is not None:
                await self._call(self._abort, upload.key, upload.upload_id)
            if upload.running is not None:
                await self.delete([upload.key])

    def _part(self, upload: _Upload, upload_id: str, number: int, body: bytes) -> None:
        answer = self._client.upload_part(
            Bucket=self._bucket, Key=upload.key, UploadId=upload_id, PartNumber=number, Body=body
        )
        upload.parts.append({"ETag": answer["ETag"], "PartNumber": number})

    def _read(self, key: str) -> bytes:
        with contextlib.closing(self._client.get_object(Bucket=self._bucket, Key=key)["Body"]) as body:
            return body.read()

    def _copy(self, key: str, target: Path) -> None:
        with contextlib.closing(self._client.get_object(Bucket=self._bucket, Key=key)["Body"]) as body:
            try:
                with target.open("wb") as file:
                    for chunk in body.iter_chunks(COPY_BYTES):
                        file.write(chunk)
            except BaseException:
                target.unlink(missing_ok=True)
                raise

    def _delete(self, keys: Sequence[str]) -> None:
        answer = self._client.delete_objects(
            Bucket=self._bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
        )
        if answer.get("Errors"):
            raise TransientError(ErrorCode.STORAGE_UNAVAILABLE)

    def _abort_uploads(self, prefix: str, before: datetime | None) -> int:
        pages = self._client.get_paginator("list_multipart_uploads").paginate(Bucket=self._bucket, Prefix=prefix)
        stale = [u for page in pages for u in page.get("Uploads", []) if before is None or u["Initiated"] < before]
        for upload in stale:
            self._abort(upload["Key"], upload["UploadId"])
        return len(stale)

    def _abort(self, key: str, upload_id: str) -> None:
        try:
            self._client.abort_multipart_upload(Bucket=self._bucket, Key=key, UploadId=upload_id)
        except self._client.exceptions.NoSuchUpload:
            return


def _taken(buffer: bytearray, size: int) -> bytes:
    """Take the first bytes out of a buffer."""
    with memoryview(buffer) as view:
        taken = bytes(view[:size])
    del buffer[:size]
    return taken


@contextlib.contextmanager
def _owned_errors() -> Iterator[None]:
    """Turn what boto3 and urllib3 raise into owned errors."""
    try:
        yield
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") in _MISSING:
            raise PermanentError(ErrorCode.DOCUMENT_GONE) from None
        raise TransientError(ErrorCode.STORAGE_UNAVAILABLE) from None
    except (BotoCoreError, HTTPError):
        raise TransientError(ErrorCode.STORAGE_UNAVAILABLE) from None
    except OSError as error:
        _raise_local(error)


def _raise_local(error: OSError) -> NoReturn:
    """Tell a full disk here from a connection that broke."""
    code = ErrorCode.SCRATCH_FULL if error.errno in _FULL else ErrorCode.STORAGE_UNAVAILABLE
    raise TransientError(code) from None
