"""The pool of killable children in which documents are parsed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from schema.domain.errors import ErrorCode, PermanentError, StageError, TransientError
from stages.sandbox import scratch as scratch_files
from stages.sandbox.channel import ChannelError
from stages.sandbox.conversation import BudgetSpentError, OnEvent, converse
from stages.sandbox.failures import ProtocolViolationError, out_of_memory, verdict
from stages.sandbox.memory import (
    address_space_bytes,
    forget_peak_resident,
    peak_address_space_bytes,
    peak_resident_bytes,
)
from stages.sandbox.process import Child, Death, StartError
from stages.sandbox.protocol import FrameKind, dump, pack
from stages.sandbox.scratch import ScratchSpace
from stages.sandbox.settings import Budget, SandboxSettings
from stages.sandbox.watch import Watch

OPERATIONS: Final = "stages.child.operations"
"""The module whose table ``OPERATIONS`` names what a child can do; tests pass their own."""

OnKill = Callable[[str], None]
OnMemory = Callable[[int], None]

_LONG_CALL_SECONDS: Final = 0.25
# Reasons of an end that comes in the middle of a call.
_CUT_SHORT: Final = frozenset({"timeout", "silence", "crash", "memory"})


class Sandbox:
    """Runs operations in warm children, one call a child at a time, and kills a child that misbehaves.

    A child is started when there is none to spare and kept for the next call. When a call raises, nothing
    of it runs any more: a child that was killed has been waited for, with its tools dead.

    Args:
        settings: limits and places.
        on_kill: told why whenever a child was killed or found dead: ``timeout``, ``silence``, ``memory``,
            ``scratch``, ``crash``, ``cancelled`` or ``recycled``.
        on_memory: told how many bytes a child and its tools had resident, at each look and at its end.
        on_call: told the most that one call took of them, unless it was over before anybody looked.
        operations: the module with the table of operations.
    """

    def __init__(
        self,
        settings: SandboxSettings,
        *,
        on_kill: OnKill = lambda _: None,
        on_memory: OnMemory = lambda _: None,
        on_call: OnMemory = lambda _: None,
        operations: str = OPERATIONS,
    ) -> None:
        """Make a pool without children."""
        self._settings = settings
        self._on_kill = on_kill
        self._on_memory = on_memory
        self._on_call = on_call
        self._operations = operations
        self._scratch = ScratchSpace(settings.scratch_dir)
        self._watch = Watch(
            memory_bytes=settings.memory_bytes, scratch_bytes=settings.scratch_bytes, on_memory=on_memory
        )
        self._slots = asyncio.Semaphore(settings.children)
        self._idle: list[Child] = []
        self._children: set[Child] = set()

    async def start(self) -> None:
        """Make room for temporary files and delete what dead processes left there."""
        await asyncio.to_thread(self._scratch.open)

    async def close(self) -> None:
        """Kill all children and delete their files."""
        await asyncio.gather(*(child.bury() for child in tuple(self._children)))
        self._children.clear()
        self._idle.clear()
        await asyncio.to_thread(self._scratch.close)

    @asynccontextmanager
    async def scratch(self) -> AsyncIterator[Path]:
        """Offer a directory for one call, to be passed to it as ``scratch``."""
        path = self._scratch.name()
        path.mkdir(mode=0o700)
        try:
            yield path
        finally:
            await asyncio.to_thread(scratch_files.remove, path)

    async def call(
        self,
        operation: str,
        request: Mapping[str, Any],
        *,
        budget: Budget,
        on_event: OnEvent | None = None,
        blob: bytes | None = None,
        scratch: Path | None = None,
    ) -> dict[str, Any]:
        """Run ``operation`` in a child.

        The budget begins when a child is there to take the call. Whatever ``on_event`` raises, and a
        cancellation, ends the child and goes on to the caller.

        Args:
            operation: a name in the table of operations.
            request: its JSON argument.
            budget: how long it may take.
            on_event: awaited for each event, in order; the child is not read meanwhile.
            blob: the document, when it is small.
            scratch: what ``scratch()`` gave, when the document lies there.

        Raises:
            PermanentError: what the child raised, ``memory_limit`` or ``scratch_limit``.
            TransientError: what the child raised, ``parser_crashed``, ``parser_timeout`` or
                ``scratch_full``.
            ChildExceptionError: whatever else the child raised, under its type's name.
        """
        place = scratch or self._scratch.name()
        message = _message(operation, request, place, blob)
        try:
            async with self._slots:
                answer = await self._run(message, place, on_event, budget)
        finally:
            if scratch is None and place.exists():
                await asyncio.to_thread(scratch_files.remove, place)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _run(
        self, message: bytes, place: Path, on_event: OnEvent | None, budget: Budget
    ) -> dict[str, Any] | Exception:
        """Give the call to a child, and the child back or to its grave."""
        child = await self._borrow()
        began = asyncio.get_running_loop().time()
        try:
            with self._watch.over(child, place):
                answer = await converse(child.channel, message, on_event, budget)
        except ChannelError:
            return await self._find_dead(child)
        except ProtocolViolationError:
            await self._end(child, "crash")
            return TransientError(ErrorCode.PARSER_CRASHED)
        except BudgetSpentError as spent:
            await self._end(child, spent.reason)
            return TransientError(ErrorCode.PARSER_TIMEOUT)
        except BaseException:
            await self._end(child, "cancelled")
            raise
        if isinstance(answer, PermanentError) and answer.code is ErrorCode.MEMORY_LIMIT:
            held = peak_address_space_bytes(child.pid)
            await self._end(child, "memory")
            return out_of_memory(self._settings.memory_bytes, held)
        await self._give_back(child, asyncio.get_running_loop().time() - began)
        return answer

    async def _borrow(self) -> Child:
        """Take the child that worked last, or start one.

        Raises:
            TransientError: ``parser_crashed``, when no child comes up.
        """
        while self._idle:
            child = self._idle.pop()
            if not child.channel.closed:
                return child
            await self._find_dead(child)
        try:
            child = await Child.start(self._settings, self._operations)
        except StartError:
            self._on_kill("crash")
            raise TransientError(ErrorCode.PARSER_CRASHED) from None
        self._children.add(child)
        return child

    async def _give_back(self, child: Child, call_seconds: float) -> None:
        """Keep the child for the next call, unless it is worn out.

        One that a large document has bloated would be short of memory for the next.
        """
        child.calls += 1
        worn = child.calls >= self._settings.documents_per_child
        if not worn and call_seconds >= _LONG_CALL_SECONDS:
            self._tell_peak(child)
            worn = address_space_bytes(child.pid) * 2 > self._settings.memory_bytes
        if worn:
            await self._end(child, "recycled")
        else:
            self._idle.append(child)

    def _tell_peak(self, child: Child) -> None:
        """Tell what a call took, while the child still lives; the next call's is counted anew."""
        own = peak_resident_bytes(child.pid)
        self._on_memory(own)
        self._on_call(max(own, child.call_peak_bytes))
        forget_peak_resident(child.pid)

    async def _end(self, child: Child, reason: str) -> Death:
        """Kill the child and wait until it is gone."""
        if reason in _CUT_SHORT:
            self._tell_peak(child)
        child.kill()
        self._on_kill(reason)
        return await self._bury(child)

    async def _bury(self, child: Child) -> Death:
        death = await child.bury()
        self._children.discard(child)
        self._on_memory(death.peak_rss_bytes)
        return death

    async def _find_dead(self, child: Child) -> StageError:
        """Bury a child that went by itself or by the memory watch, and say what that means for the call."""
        death = await self._bury(child)
        if peak := child.call_peak_bytes or death.peak_rss_bytes:
            self._on_call(peak)
        reason, error = verdict(death, excess=child.excess, memory_bytes=self._settings.memory_bytes)
        self._on_kill(reason)
        return error


def _message(operation: str, request: Mapping[str, Any], place: Path, blob: bytes | None) -> bytes:
    """Return the frames of one call."""
    head = {"operation": operation, "request": request, "scratch": str(place), "blob": blob is not None}
    message = pack(FrameKind.REQUEST, dump(head))
    return message if blob is None else message + pack(FrameKind.BLOB, blob)
