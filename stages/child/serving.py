"""Reads calls from the parent and answers them, one after another."""

import errno
import json
import os
import resource
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from schema.domain.errors import ErrorCode, PermanentError, StageError
from schema.domain.limits import LimitName
from stages.child.call import Call, Operation
from stages.child.limits import allow_processor_time, forget_refused_memory
from stages.sandbox.protocol import HEADER, FrameKind, dump, pack

_STANDARD_INPUT: Final = 0
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_WANT_OF_MEMORY: Final = {"code": ErrorCode.MEMORY_LIMIT, "permanent": True}
# Made beforehand, as there may be no memory to make it when it is needed.
_OUT_OF_MEMORY: Final = pack(FrameKind.FAILURE, dump(_WANT_OF_MEMORY))


class Line:
    """The child's end of the socket."""

    def __init__(self, end: socket.socket) -> None:
        """Speak through ``end``."""
        self._socket = end
        self._incoming: BinaryIO = end.makefile("rb")

    @classmethod
    def on_standard_input(cls) -> "Line":
        """Take the socket that the parent passed as standard input, and keep libraries and tools off it."""
        end = socket.socket(fileno=os.dup(_STANDARD_INPUT))
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, _STANDARD_INPUT)
        os.close(nothing)
        return cls(end)

    def send(self, kind: FrameKind, value: Mapping[str, Any]) -> None:
        """Send one frame; blocks while the parent is busy."""
        self._socket.sendall(pack(kind, dump(value)))

    def give_up(self) -> None:
        """Tell that memory was refused and wait for the end: the parent looks how much there is, and kills."""
        self._socket.sendall(_OUT_OF_MEMORY)
        while True:
            signal.pause()

    def receive(self) -> bytes | None:
        """Return the next frame's payload; ``None`` when the parent has hung up."""
        header = self._incoming.read(HEADER.size)
        if len(header) < HEADER.size:
            return None
        _, length = HEADER.unpack(header)
        return self._incoming.read(length)


def serve(line: Line, operations: Mapping[str, Operation], cpu_seconds: int) -> None:
    """Answer calls until the parent hangs up."""
    line.send(FrameKind.READY, {})
    while (payload := line.receive()) is not None:
        head = json.loads(payload)
        blob = line.receive() if head["blob"] else None
        allow_processor_time(cpu_seconds)
        forget_refused_memory()
        call = Call(
            request=head["request"],
            emit=lambda event: line.send(FrameKind.EVENT, event),
            place=Path(head["scratch"]),
            blob=blob,
        )
        try:
            line.send(FrameKind.RESULT, operations[head["operation"]](call))
        except Exception as error:  # noqa: BLE001 - every failure is an answer; the parent judges it
            line.send(FrameKind.FAILURE, describe(error))


def describe(error: Exception) -> Mapping[str, Any]:
    """Say what went wrong by code, or by the exception type's name; never in the exception's words."""
    if isinstance(error, MemoryError):
        return _WANT_OF_MEMORY
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        error = _beyond_file_size()
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return {"code": ErrorCode.SCRATCH_FULL, "permanent": False}
    if isinstance(error, StageError):
        return {
            "code": error.code,
            "permanent": isinstance(error, PermanentError),
            "limit": error.limit,
            "actual": error.actual,
            "pages": error.pages,
            "limit_name": error.limit_name,
        }
    return {"type": type(error).__name__}


def _beyond_file_size() -> PermanentError:
    """Return the error of a file that the kernel let grow no further."""
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return PermanentError(ErrorCode.SCRATCH_LIMIT, limit=limit, actual=limit + 1, limit_name=LimitName.SCRATCH_BYTES)
