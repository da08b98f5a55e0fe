"""The killable child: whatever a parser does, the parent lives, knows why, and nothing is left over."""

import asyncio
import os
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from schema.domain.errors import ErrorCode, PermanentError, TransientError
from schema.domain.outcomes import Unknown, classify
from stages.sandbox.pool import Sandbox
from stages.sandbox.protocol import FrameKind, pack
from stages.sandbox.settings import Budget, SandboxSettings
from tests.support.eventually import eventually

MIB = 1 << 20
ROOT = Path(__file__).parents[2]
PATIENT = Budget(total_seconds=60, silence_seconds=60)
STOP_SECONDS = 1.0  # the promise of a cancel; on an idle machine it takes a few milliseconds


class Pool:
    """A sandbox of test operations and the reasons for which its children were killed."""

    def __init__(self, settings):
        """Make a pool that is not started yet."""
        self.reasons = []
        self.settings = settings
        self.sandbox = Sandbox(settings, on_kill=self.reasons.append, operations="tests.support.operations")

    async def call(self, operation, *, budget=PATIENT, on_event=None, blob=None, scratch=None, **request):
        """Call an operation."""
        return await self.sandbox.call(operation, request, budget=budget, on_event=on_event, blob=blob, scratch=scratch)

    async def pid(self):
        """Return the process id of the child that takes the next call."""
        return (await self.call("whoami"))["pid"]

    def begin(self, operation, **request):
        """Start a call; return it with a future of the child's process id."""
        told = asyncio.get_running_loop().create_future()

        async def tell(event):
            told.set_result(event["pid"])

        return asyncio.create_task(self.call(operation, on_event=tell, **request)), told


@pytest.fixture
def settings(tmp_path):
    """Small limits, so that reaching them is quick."""
    return SandboxSettings(scratch_dir=tmp_path / "scratch", children=2, memory_bytes=768 * MIB)


@pytest.fixture
async def make_pool(settings):
    """Start pools that end with the test."""
    pools = []

    async def make(**changes):
        pool = Pool(replace(settings, **changes))
        await pool.sandbox.start()
        pools.append(pool)
        return pool

    yield make
    for pool in pools:
        await pool.sandbox.close()


@pytest.fixture
async def pool(make_pool):
    """A pool with the small limits."""
    return await make_pool()


def _alive(pid):
    """Say whether a process still runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return False
    return state != b"Z"


def _group_members(pid):
    """Return the living processes of a child's group."""
    members = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and _alive(entry.name):
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[2]) == pid:
                members.append(int(entry.name))
    return members


def _left_elsewhere():
    """Return what test operations left in the system's own place for temporary files."""
    return list(Path(tempfile.gettempdir()).glob("docstage-left-*"))


async def test_a_call_returns_what_the_operation_returns(pool):
    """The plain case: request and document go in, a JSON object comes out."""
    answer = await pool.call("echo", blob="Grüße".encode(), number=1.5)

    assert answer == {"request": {"number": 1.5}, "blob": "Grüße"}


async def test_a_child_is_kept_for_the_next_call(pool):
    """Starting an interpreter costs a hundred times what a short text costs."""
    assert await pool.pid() == await pool.pid()
    assert pool.reasons == []


async def test_no_more_children_than_allowed_work_at_once(pool):
    """Memory is planned for so many children; the rest of the calls wait."""
    pids = await asyncio.gather(*(pool.pid() for _ in range(20)))

    assert len(set(pids)) <= pool.settings.children


async def test_events_arrive_in_order_before_the_result(pool):
    """A page checkpoint that came late or twice would break the page count."""
    seen = []

    async def take(event):
        await asyncio.sleep(0)
        seen.append(event["number"])

    await pool.call("count", on_event=take, events=500)

    assert seen == list(range(500))


async def test_a_child_knows_no_credentials_and_no_files_of_its_parent(pool, monkeypatch):
    """P10: a document that takes the child over finds nothing there worth taking."""
    monkeypatch.setenv("DOCSTAGE_DATABASE_URL", "postgresql://user:secret@host/db")

    child = await pool.call("whoami")

    # Where programs and words are found, and how many threads and arenas libraries may have; nothing else.
    limits = {"OMP_THREAD_LIMIT", "OPENBLAS_NUM_THREADS", "OPENCV_FOR_THREADS_NUM", "MALLOC_ARENA_MAX"}
    assert set(child["environment"]) <= {"PATH", "LANG", "LC_CTYPE", "PYTHONPATH", *limits}
    # Standard input, output and error, the socket, and the directory being listed.
    assert len(child["files"]) == 5


@pytest.mark.parametrize(
    ("operation", "budget", "reason"),
    [
        ("hang", Budget(total_seconds=60, silence_seconds=0.3), "silence"),
        ("drip", Budget(total_seconds=0.5, silence_seconds=60), "timeout"),
    ],
)
async def test_a_child_that_takes_too_long_is_killed(pool, operation, budget, reason):
    """P12: a document that never ends costs its budget and nothing more."""

    async def ignore(_):
        return

    with pytest.raises(TransientError) as caught:
        await pool.call(operation, budget=budget, on_event=ignore)

    assert caught.value.code is ErrorCode.PARSER_TIMEOUT
    assert pool.reasons == [reason]
    assert await pool.call("echo") == {"request": {}, "blob": None}


async def test_a_child_that_uses_too_much_processor_time_is_ended(make_pool):
    """The kernel counts too, should the parent be too busy to."""
    pool = await make_pool(cpu_seconds=1)

    with pytest.raises(TransientError) as caught:
        await pool.call("spin")

    assert caught.value.code is ErrorCode.PARSER_TIMEOUT
    assert pool.reasons == ["timeout"]


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
async def test_a_child_that_dies_is_a_crash_worth_another_attempt(pool, number):
    """W18: the worker lives, and says what happened."""
    with pytest.raises(TransientError) as caught:
        await pool.call("die", signal=int(number))

    assert caught.value.code is ErrorCode.PARSER_CRASHED
    assert pool.reasons == ["crash"]
    assert await pool.pid()


async def test_the_memory_of_a_large_worker_is_not_taken_for_its_childs(make_pool):
    """The kernel counts what the parent had when it started the child, and a crash must stay worth another attempt."""
    ballast = b"x" * (256 * MIB)
    pool = await make_pool(memory_bytes=len(ballast))

    with pytest.raises(TransientError) as caught:
        await pool.call("die", signal=int(signal.SIGSEGV))

    assert caught.value.code is ErrorCode.PARSER_CRASHED
    assert pool.reasons == ["crash"]


async def test_a_child_that_died_between_calls_is_replaced(pool):
    """What happens while nobody asks must not fail the next document."""
    first = await pool.pid()
    os.kill(first, signal.SIGKILL)
    await eventually(lambda: not _alive(first))

    assert await pool.pid() != first


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("eat", {}),
        ("eat_and_abort", {"size": 2500 * MIB}),
        ("ask_for_much_and_abort", {"size": 1024 * MIB}),
        ("feed_tools", {"size": 400 * MIB, "tools": 3}),
    ],
)
async def test_want_of_memory_is_the_documents_failure(make_pool, operation, request_):
    """P12: Python's exception, a native abort and tools that add up are one and the same named failure."""
    # What a child had is told from what this process has, when it is more: so the limit is well above that.
    pool = await make_pool(memory_bytes=4096 * MIB if operation == "eat_and_abort" else 768 * MIB)
    with pytest.raises(PermanentError) as caught:
        await pool.call(operation, **request_)

    assert caught.value.code is ErrorCode.MEMORY_LIMIT
    assert (caught.value.limit_name, caught.value.limit) == ("child_memory_bytes", pool.settings.memory_bytes)
    assert caught.value.actual
    assert pool.reasons == ["memory"]


async def test_the_memory_of_a_child_with_its_tools_is_told(make_pool, settings):
    """An operator sizes the limit and the container by it, before a document is refused."""
    pool, told = await make_pool(), []
    pool.sandbox = Sandbox(settings, on_memory=told.append, operations="tests.support.operations")
    await pool.sandbox.start()

    with pytest.raises(PermanentError):
        await pool.call("feed_tools", size=400 * MIB, tools=3)

    await pool.sandbox.close()
    assert max(told) > settings.memory_bytes


async def test_the_memory_of_each_call_is_told_by_itself(make_pool, settings):
    """What one document took must not be laid to the next one in the same child."""
    pool, told = await make_pool(), []
    pool.sandbox = Sandbox(settings, on_call=told.append, operations="tests.support.operations")
    await pool.sandbox.start()

    first = await pool.call("hold", size=200 * MIB)
    second = await pool.call("hold", size=1 * MIB)

    await pool.sandbox.close()
    assert first == second
    assert told[0] > 200 * MIB > told[1] > 0


async def test_want_of_room_is_not_the_documents_failure(pool):
    """A full disk passes; the document must not fail for good."""
    with pytest.raises(TransientError) as caught:
        await pool.call("find_no_room")

    assert caught.value.code is ErrorCode.SCRATCH_FULL


@pytest.mark.parametrize("files", [1, 1000])
async def test_a_document_that_wants_too_much_room_fails_by_name(make_pool, files):
    """P12: one document must not fill the disk for all others, neither by one file nor by many small ones."""
    pool = await make_pool(scratch_bytes=4 * MIB)

    with pytest.raises(PermanentError) as caught:
        await pool.call("write_files", size=8 * MIB // files, files=files)

    error = caught.value
    assert (error.code, error.limit_name, error.limit) == (ErrorCode.SCRATCH_LIMIT, "child_scratch_bytes", 4 * MIB)
    assert error.actual > error.limit
    assert [file.name for file in pool.settings.scratch_dir.rglob("*") if file.is_file()] == ["lock"]


async def test_the_room_of_one_call_is_not_held_against_the_next(make_pool):
    """The limit is a document's, not a worker's."""
    pool = await make_pool(scratch_bytes=4 * MIB)

    for _ in range(3):
        assert await pool.call("keep_file", size=3 * MIB)


async def test_a_librarys_temporary_files_are_deleted_with_the_call(pool):
    """What a killed tool leaves in the system's own place would stay there for good."""
    with pytest.raises(TransientError):
        await pool.call("leave_temporary_file", budget=Budget(total_seconds=30, silence_seconds=0.5))

    assert [file.name for file in pool.settings.scratch_dir.rglob("*") if file.is_file()] == ["lock"]
    assert _left_elsewhere() == []


async def test_an_owned_error_crosses_with_its_numbers(pool):
    """The client is told the limit and what the document has instead."""
    with pytest.raises(PermanentError) as caught:
        await pool.call("fail", permanent=True, code="too_many_pages")

    error = caught.value
    assert (error.code, error.limit, error.actual, error.pages) == (ErrorCode.TOO_MANY_PAGES, 10, 11, (3,))
    assert pool.reasons == []


async def test_a_transient_error_crosses_as_transient(pool):
    """Whether to try again is the child's to say."""
    with pytest.raises(TransientError) as caught:
        await pool.call("fail", permanent=False, code="parser_crashed")

    assert caught.value.code is ErrorCode.PARSER_CRASHED


async def test_of_a_foreign_exception_only_its_types_name_crosses(pool):
    """P10: an exception's words may quote the document."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - that it is of no known type is the point
        await pool.call("stumble")

    assert classify(caught.value) == Unknown("LookupError")
    assert "secret" not in f"{caught.value!r}{caught.value.__cause__!r}"


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("rave", {"bytes": "ff" * 64}),
        ("rave", {"bytes": pack(FrameKind.RESULT, b"not JSON").hex()}),
        ("rave", {"bytes": pack(FrameKind.RESULT, b'{"x":' * 5000).hex()}),
        ("rave", {"bytes": pack(FrameKind.RESULT, b"[1]").hex()}),
        ("rave", {"bytes": pack(FrameKind.RESULT, b'{"x": NaN}').hex()}),
        ("rave", {"bytes": pack(FrameKind.RESULT, b'{"x": [1e999]}').hex()}),
        ("rave", {"bytes": pack(FrameKind.RESULT, b'{"x": "\\ud800"}').hex()}),
        ("rave", {"bytes": pack(FrameKind.FAILURE, b'{"code": "no_such_code"}').hex()}),
        ("rave", {"bytes": pack(FrameKind.FAILURE, b'{"code": 5}').hex()}),
        ("rave", {"bytes": pack(FrameKind.REQUEST, b"{}").hex()}),
        ("rave", {"bytes": pack(FrameKind.READY, b"{}").hex()}),
        ("boast", {"kind": int(FrameKind.RESULT)}),
        ("say_nul", {}),
    ],
)
async def test_a_child_that_breaks_the_protocol_is_killed(pool, operation, request_):
    """P12: a document may own the child; the parent takes nothing it says on trust."""
    with pytest.raises(TransientError) as caught:
        await pool.call(operation, **request_)

    assert caught.value.code is ErrorCode.PARSER_CRASHED
    assert pool.reasons == ["crash"]


async def test_a_child_that_talks_without_end_is_cut_off(make_pool):
    """P12: neither the parent's memory nor the database is there to be filled."""
    pool = await make_pool(output_bytes=8 * MIB)
    taken = []

    async def take(event):
        taken.append(len(event["text"]))

    with pytest.raises(TransientError) as caught:
        await pool.call("flood", on_event=take)

    assert caught.value.code is ErrorCode.PARSER_CRASHED
    assert sum(taken) <= 8 * MIB


async def test_a_cancelled_call_kills_its_child_at_once(pool):
    """A cancelled job must not go on burning a processor."""
    call, told = pool.begin("hang")
    pid = await told
    loop = asyncio.get_running_loop()

    call.cancel()
    began = loop.time()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert loop.time() - began < STOP_SECONDS
    assert not _alive(pid)
    assert pool.reasons == ["cancelled"]


async def test_what_the_receiver_of_events_raises_ends_the_child(pool):
    """A worker that has lost its run must stop the work, and its error must be seen."""
    seen = []

    async def refuse(event):
        seen.append(event["pid"])
        raise KeyError

    with pytest.raises(KeyError):
        await pool.call("hang", on_event=refuse)

    assert not _alive(seen[0])
    assert pool.reasons == ["cancelled"]


async def test_a_killed_child_takes_its_tools_along(pool, tmp_path):
    """A tool that outlives its child keeps its memory and its processor."""
    program = _endless_tool(tmp_path)
    call, told = pool.begin("use_tool", program=str(program))
    pid = await told
    tool = await eventually(lambda: _told_pid(tmp_path))
    assert tool in _group_members(pid)

    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    await eventually(lambda: _group_members(pid) == [])


async def test_nothing_survives_a_worker_that_is_killed(tmp_path):
    """P5 and P12: SIGKILL runs no handler, so the kernel itself must end child and tool."""
    program = _endless_tool(tmp_path)
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.orphans", str(tmp_path / "scratch"), str(program),
        stdout=asyncio.subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    child = int(await worker.stdout.readline())
    tool = await eventually(lambda: _told_pid(tmp_path))
    assert _alive(child)
    assert _alive(tool)

    worker.kill()
    await worker.wait()

    await eventually(lambda: not _alive(child))
    await eventually(lambda: not _alive(tool))


async def test_a_child_is_recycled_after_so_many_documents(make_pool):
    """Parsers leak; a child does not live long enough for it to matter."""
    pool = await make_pool(documents_per_child=2)

    pids = [await pool.pid() for _ in range(4)]

    assert pids[0] == pids[1] != pids[2] == pids[3]
    assert pool.reasons == ["recycled", "recycled"]


async def test_a_calls_files_are_deleted_with_it(pool):
    """P10: what a document left on disk is content."""
    told = await pool.call("keep_file")
    assert _entries(Path(told["place"])) == []

    async with pool.sandbox.scratch() as place:
        assert (await pool.call("keep_file", scratch=place))["place"] == str(place)
        assert _entries(place) == [place / "left"]
    assert place not in _entries(place.parent)


async def test_a_start_deletes_what_a_dead_worker_left(make_pool, settings):
    """P10: a killed worker cannot clean up; the next one does, and leaves the living alone."""
    living = await make_pool()
    abandoned = _leavings(settings.scratch_dir)

    async with living.sandbox.scratch() as place:
        await make_pool()

        assert _entries(settings.scratch_dir / abandoned.name) == []
        assert place in _entries(place.parent)


async def test_closing_the_pool_leaves_no_process_and_no_file(make_pool, settings):
    """A worker that ends in order leaves nothing for anyone to sweep."""
    pool = await make_pool()
    pid = await pool.pid()

    await pool.sandbox.close()

    assert not _alive(pid)
    assert _entries(settings.scratch_dir) == []


def _endless_tool(folder):
    """Make a program that stands in for Tesseract, tells its process id and never ends."""
    program = folder / "tool"
    program.write_text(f"#!/bin/sh\necho $$ > {folder}/tool.pid\nexec sleep 10000\n")
    program.chmod(0o700)
    return program


def _told_pid(folder):
    """Return the tool's process id once it has told it."""
    file = folder / "tool.pid"
    return int(file.read_text()) if file.exists() and file.read_text().strip() else None


def _leavings(folder):
    """Leave what a killed worker leaves: a directory whose lock nobody holds."""
    abandoned = folder / "docstage-abandoned"
    (abandoned / "call").mkdir(parents=True)
    (abandoned / "call" / "document").write_bytes(b"content")
    return abandoned


def _entries(folder):
    """Return what is in a directory."""
    return list(folder.iterdir()) if folder.exists() else []
