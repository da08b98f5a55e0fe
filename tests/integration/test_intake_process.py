"""A real intake process: flat memory, live streams, several replicas, and a shutdown that loses nothing."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from schema.runtime.blobs import Blobs, document_key
from schema.runtime.settings import StoreSettings
from tests.support.api import PDF, form
from tests.support.eventually import eventually
from tests.support.services import Services
from tests.support.system import System

BOUNDARY = "xyzzy"
MULTIPART = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
MIB = 1 << 20
HEAD = (
    f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="kind"\r\n\r\ntext\r\n'
    f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
).encode() + PDF
END = f"\r\n--{BOUNDARY}--\r\n".encode()


@pytest.fixture
async def system(own_system: System) -> System:
    """A system with one intake process."""
    await own_system.start(own_system.process("intake", "intake"))
    return own_system


def peak_bytes(pid: int) -> int:
    """Return the most memory that a process has ever had resident."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError


async def test_an_upload_of_100_mb_needs_no_more_memory_than_one_of_30(system: System, environment: dict[str, str]):
    """A few large files at once must not take the process down with every other client's upload."""
    digest = hashlib.sha256(PDF)

    async def body(pieces: int) -> AsyncIterator[bytes]:
        yield HEAD
        for number in range(pieces):
            piece = number.to_bytes(4, "big") * (MIB // 4)
            digest.update(piece)
            yield piece
        yield END

    pid = system.processes["intake"].pid
    async with system.client() as client:
        await client.post("/v1/jobs", content=body(30), headers=MULTIPART)
        small = peak_bytes(pid)
        digest = hashlib.sha256(PDF)

        answer = await client.post("/v1/jobs", content=body(99), headers=MULTIPART)

    assert answer.status_code == 202, answer.text
    assert peak_bytes(pid) - small < 10 * MIB
    values = {name.removeprefix("DOCSTAGE_").lower(): value for name, value in environment.items()}
    blobs = Blobs.connect(StoreSettings(**values))
    stored = await blobs.get(document_key(UUID(answer.json()["id"])))
    blobs.close()
    assert hashlib.sha256(stored).digest() == digest.digest()


async def test_a_client_that_goes_away_leaves_nothing(system: System, environment: dict[str, str]):
    """Half an upload is no document, and its key is free again."""

    async def body() -> AsyncIterator[bytes]:
        yield HEAD
        for _ in range(20):
            yield bytes(MIB)
        raise ConnectionAbortedError

    headers = {**MULTIPART, "Idempotency-Key": "k"}
    async with system.client() as client:
        with pytest.raises(ConnectionAbortedError):
            await client.post("/v1/jobs", content=body(), headers=headers)

        async def accepted() -> bool:
            answer = await client.post("/v1/jobs", **form(), headers={"Idempotency-Key": "k"})
            return answer.status_code == 202

        await eventually(accepted)
    values = {name.removeprefix("DOCSTAGE_").lower(): value for name, value in environment.items()}
    blobs = Blobs.connect(StoreSettings(**values))
    assert len(await blobs.list("jobs/")) == 1
    blobs.close()
    assert '"status":499' in system.logs().replace(" ", "")


async def test_a_stream_shows_events_as_they_happen_and_ends_with_the_job(system: System):
    """A page shows the cancel the moment it is there, without asking again."""
    job_id = await system.submit(PDF)
    seen: list[str] = []
    async with system.client() as client, client.stream("GET", f"/v1/jobs/{job_id}/events") as stream:
        async for line in stream.aiter_lines():
            if line.startswith("event: "):
                seen.append(line.removeprefix("event: "))
                if seen == ["accepted"]:
                    async with system.client() as other:
                        await other.post(f"/v1/jobs/{job_id}/cancel")

    assert seen == ["accepted", "cancelled"]


async def test_any_replica_answers_for_any_job(system: System):
    """P1: a load balancer may send each request anywhere."""
    second = system.process("second", "intake")
    await system.start(second)
    job_id = await system.submit(PDF)
    headers = {"Authorization": f"Bearer {system.key}"}

    async with httpx.AsyncClient(base_url=second.url, headers=headers, timeout=60) as client:
        waiting = asyncio.create_task(client.get(f"/v1/jobs/{job_id}", params={"wait": 30}))
        async with system.client() as first:
            await first.post(f"/v1/jobs/{job_id}/cancel")
        answer = await waiting

    assert answer.json()["status"] == "cancelled"


async def test_a_shutdown_answers_those_who_wait_and_finishes_uploads(system: System):
    """A deployment must not look like an outage."""
    job_id = await system.submit(PDF)
    process, begun, go_on = system.processes["intake"], asyncio.Event(), asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield HEAD
        begun.set()
        await go_on.wait()
        yield END

    async def streamed() -> list[str]:
        async with system.client() as client, client.stream("GET", f"/v1/jobs/{job_id}/events") as stream:
            return [line async for line in stream.aiter_lines() if line.startswith("event: ")]

    async with system.client() as client, system.client() as uploader:
        waiting = asyncio.create_task(client.get(f"/v1/jobs/{job_id}", params={"wait": 60}))
        streaming = asyncio.create_task(streamed())
        uploading = asyncio.create_task(uploader.post("/v1/jobs", content=body(), headers=MULTIPART))
        await begun.wait()
        await eventually(lambda: "request_answered" in system.logs())
        process.terminate()

        assert (await waiting).json()["status"] == "accepted"
        assert await streaming == ["event: accepted"]
        go_on.set()
        assert (await uploading).status_code == 202
    assert await process.wait() == 0


async def test_the_log_has_one_line_per_request_and_no_content(system: System):
    """P10: the log is read by people who must not see what documents are called."""
    async with system.client() as client:
        await client.post("/v1/jobs", **form(name="severance.pdf"), headers={"X-Request-Id": "r-1"})
        await client.get("/v1/jobs", params={"client_tag": "severance"})

    def lines() -> list[str]:
        return [line for line in system.logs().splitlines() if "request_answered" in line]

    await eventually(lambda: len(lines()) == 2)
    assert '"request_id": "r-1"' in lines()[0]
    assert '"route": "/v1/jobs"' in lines()[0]
    assert '"status": 202' in lines()[0]
    for secret in ("severance", system.key, os.fsdecode(b"Bearer")):
        assert secret not in system.logs()


async def test_a_database_restart_costs_only_the_requests_of_that_moment(system: System, services: Services):
    """W16: 503 while it is gone, and the first request after it is served again, with every kept connection dead."""
    async with system.client() as client:
        await asyncio.gather(*(client.get("/v1/jobs") for _ in range(8)))
        services.postgres.stop()
        during = await client.post("/v1/jobs", **form())
        services.postgres.start()

        async def accepted() -> bool:
            return (await client.post("/v1/jobs", **form())).status_code == 202

        await eventually(accepted)
        after = await asyncio.gather(*(client.get("/v1/jobs") for _ in range(8)))

    assert (during.status_code, during.json()["code"]) == (503, "dependency_unavailable")
    assert [answer.status_code for answer in after] == [200] * 8


async def test_a_store_that_hangs_is_503_and_takes_no_job(system: System, services: Services):
    """W17: a frozen store must not freeze the API, nor make a job without its document."""
    process = system.process("impatient", "intake", DOCSTAGE_S3_TIMEOUT_SECONDS="1")
    await system.start(process)
    headers = {"Authorization": f"Bearer {system.key}"}
    async with httpx.AsyncClient(base_url=process.url, headers=headers, timeout=60) as client:
        services.s3.pause()
        try:
            during = await client.post("/v1/jobs", **form())
            listed = await client.get("/v1/jobs")
            ready = await client.get("/readyz")
        finally:
            services.s3.resume()

    assert (during.status_code, during.json()["code"]) == (503, "dependency_unavailable")
    assert listed.json()["jobs"] == []
    assert (ready.status_code, "missing: object store" in ready.text) == (503, True)
