"""One child process: how it is started, killed with all its tools, and buried."""

import asyncio
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import stages
from schema.domain.errors import ErrorCode
from schema.domain.limits import LimitName
from stages.sandbox.channel import Channel, ChannelError
from stages.sandbox.protocol import EXIT_OUT_OF_MEMORY, FrameKind
from stages.sandbox.settings import SandboxSettings

_ROOT: Final = Path(stages.__file__).resolve().parents[1]
_OUT_OF_MEMORY_SIGNALS: Final = frozenset(
    {signal.SIGABRT, signal.SIGKILL, signal.SIGSEGV, signal.SIGTRAP, signal.SIGILL, signal.SIGBUS}
)


@dataclass(frozen=True, slots=True)
class Excess:
    """Why the watch killed a child: what it had too much of."""

    code: ErrorCode
    limit_name: LimitName
    limit: int
    actual: int


class StartError(Exception):
    """A child did not come up."""


@dataclass(frozen=True, slots=True)
class Death:
    """How a child ended: its exit code (negative for a signal) and the most memory it ever had resident.

    The peak is 0 where it cannot be told from that of the process which started the child.
    """

    exit_code: int
    peak_rss_bytes: int

    @property
    def out_of_cpu(self) -> bool:
        """Whether the kernel ended it for the processor time it used."""
        return self.exit_code == -signal.SIGXCPU

    def out_of_memory(self, limit_bytes: int) -> bool:
        """Whether want of memory ended it.

        Native code aborts where Python raises, and the child tells so where it can; another signal to a process
        that has used most of its limit is taken for that, any other for a crash.
        """
        if self.exit_code == EXIT_OUT_OF_MEMORY:
            return True
        return -self.exit_code in _OUT_OF_MEMORY_SIGNALS and self.peak_rss_bytes * 2 >= limit_bytes


class Child:
    """A started child and the group of processes it leads."""

    def __init__(self, process: "subprocess.Popen[bytes]", channel: Channel) -> None:
        """Take charge of a started process and the channel to it."""
        self.channel = channel
        self.calls = 0
        self.call_peak_bytes = 0
        self.excess: Excess | None = None
        self._process = process
        # The kernel begins a child's peak with that of its parent, whose memory it has until it executes its program.
        self._inherited_rss_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        self._burial: asyncio.Future[Death] | None = None

    @property
    def pid(self) -> int:
        """The process id, which is also that of its group and session."""
        return self._process.pid

    @classmethod
    async def start(cls, settings: SandboxSettings, operations: str) -> "Child":
        """Start a child and wait until it is ready for its first call.

        The event loop's thread must be the one that calls this: the kernel kills the child when the
        *thread* that started it ends.

        Raises:
            StartError: when it did not come up in time.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            process = _spawn(settings, operations, theirs)
        channel = await Channel.over(ours, frame_bytes=settings.frame_bytes, output_bytes=settings.output_bytes)
        child = cls(process, channel)
        try:
            async with asyncio.timeout(settings.start_seconds):
                frame = await channel.receive()
        except (ChannelError, TimeoutError):
            await child.bury()
            raise StartError from None
        except BaseException:
            await child.bury()
            raise
        if frame.kind is not FrameKind.READY:
            await child.bury()
            raise StartError
        return child

    def kill(self) -> None:
        """Kill the child and its tools at once; what is left of them is buried in the background."""
        if self._burial is None:
            # Before it is waited for, the dead leader keeps the group's number from being given away.
            _kill_group(self.pid)
            self.channel.close()
            self._burial = asyncio.ensure_future(asyncio.to_thread(_wait, self._process, self._inherited_rss_bytes))

    async def bury(self) -> Death:
        """Kill the child if need be and return how it ended; nothing of it runs any more then."""
        self.kill()
        if self._burial is None:  # pragma: no cover - kill has just set it
            raise AssertionError
        return await asyncio.shield(self._burial)


def _spawn(settings: SandboxSettings, operations: str, end: socket.socket) -> "subprocess.Popen[bytes]":
    """Start the interpreter anew (never a fork of a process with threads) as leader of its own session."""
    order = json.dumps(
        {
            "parent": os.getpid(),
            "operations": operations,
            "memory_bytes": settings.memory_bytes,
            "cpu_seconds": settings.cpu_seconds,
            "file_size_bytes": settings.scratch_bytes,
            "open_files": settings.open_files,
        }
    )
    return subprocess.Popen(  # noqa: S603 - our own interpreter and arguments
        [sys.executable, "-P", "-m", "stages.child", order],
        stdin=end.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,  # parsers quote documents in their complaints
        cwd="/",
        env=_environment(settings),
        start_new_session=True,
    )


def _environment(settings: SandboxSettings) -> dict[str, str]:
    """Return all that a child may know of the world: no credentials, no settings."""
    environment = {
        "PATH": settings.search_path,
        "LANG": "C.UTF-8",
        "OMP_THREAD_LIMIT": "1",
        # Threads and arenas of libraries cost address space, of which a child has little; it has one core anyhow.
        "OPENBLAS_NUM_THREADS": "1",
        "OPENCV_FOR_THREADS_NUM": "1",
        "MALLOC_ARENA_MAX": "1",
        "PYTHONPATH": str(_ROOT),
    }
    if settings.tessdata_dir:
        environment["TESSDATA_PREFIX"] = settings.tessdata_dir
    return environment


def _kill_group(pid: int) -> None:
    """Send SIGKILL to the whole group."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _wait(process: "subprocess.Popen[bytes]", inherited_rss_bytes: int) -> Death:
    """Wait for the process (in a thread) and read how much it had used."""
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except ChildProcessError:
        return Death(exit_code=process.wait(), peak_rss_bytes=0)
    process.returncode = os.waitstatus_to_exitcode(status)
    peak = usage.ru_maxrss * 1024
    return Death(exit_code=process.returncode, peak_rss_bytes=peak if peak > inherited_rss_bytes else 0)
