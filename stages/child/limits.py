"""What the child lays upon itself before it sees a document."""

import ctypes
import errno
import os
import resource
import signal
import time
from collections.abc import Callable
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NO_NEW_PRIVS: Final = 38
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
# Where the calling thread's error number is; ctypes' own is a copy, and of its own calls only.
_ERROR_NUMBER: Final = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_int))(("__errno_location", _LIBC))
_Handler: Final = ctypes.CFUNCTYPE(None, ctypes.c_int)
# The C library has the address of the handler and no reference to it.
_kept: Final[list[object]] = []


def die_with(parent: int) -> None:
    """Have the kernel kill this process when ``parent`` ends, in whatever way.

    The kernel forgets the wish at every fork, so a child's tools each need their own.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # The parent was gone before the line above.
        os.kill(os.getpid(), signal.SIGKILL)


def confine(*, memory_bytes: int, file_size_bytes: int, open_files: int) -> None:
    """Set the limits that hold for this process and, each for itself, for its tools."""
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for limit, value in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, file_size_bytes),
        (resource.RLIMIT_NOFILE, open_files),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(limit)
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (bound, bound))


def allow_processor_time(seconds: int) -> None:
    """Let this process use ``seconds`` of processor time from now on; beyond them the kernel ends it."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = int(time.process_time()) + seconds + 1
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def on_refused_memory(act: Callable[[], None]) -> None:
    """Call ``act`` when native code aborts because it was refused memory; any other abort goes its way.

    The peak does not tell: one request for most of the limit is refused while little is in use. The C library's
    error number does. Python's own handlers would run after the abort, and that is too late.
    """

    def handle(_: int) -> None:
        if _ERROR_NUMBER().contents.value == errno.ENOMEM:
            act()
        # Held back while this runs, it comes when this returns.
        _LIBC.signal(signal.SIGABRT, ctypes.c_void_p(signal.SIG_DFL))
        os.kill(os.getpid(), signal.SIGABRT)

    native = _Handler(handle)
    _kept.append(native)
    _LIBC.signal(signal.SIGABRT, ctypes.cast(native, ctypes.c_void_p))


def forget_refused_memory() -> None:
    """Clear the error number: what an earlier document was refused is no reason of the next one's abort."""
    _ERROR_NUMBER().contents.value = 0
