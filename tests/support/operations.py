"""What a child under test can be asked to do: behave, and misbehave in every way a parser may."""

import ctypes
import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from PIL import Image
from pytesseract import pytesseract

from schema.domain.errors import ErrorCode, PermanentError, TransientError
from stages.sandbox.protocol import HEADER

_FOREVER = 10_000
_HUNGRY_TOOL = "import time; held = bytearray({size}); time.sleep(10_000)"


def echo(call):
    """Return the request and what came with it."""
    return {"request": call.request, "blob": None if call.blob is None else call.blob.decode()}


def whoami(_):
    """Return this child's process id and all it knows of its environment."""
    return {"pid": os.getpid(), "environment": _environment(), "files": _open_files()}


def count(call):
    """Send events, then end."""
    for number in range(call.request["events"]):
        call.emit({"number": number})
    return {}


def hang(call):
    """Say who this is, then nothing."""
    call.emit({"pid": os.getpid()})
    time.sleep(_FOREVER)


def drip(call):
    """Say something every now and then, and never end."""
    while True:
        call.emit({})
        time.sleep(0.05)


def spin(_):
    """Use the processor without end."""
    while True:
        pass


def die(call):
    """End by the signal asked for."""
    os.kill(os.getpid(), call.request["signal"])
    signal.pause()


def hold(call):
    """Use memory for as long as it takes to be seen, and give it back."""
    held = bytearray(call.request["size"])
    held[::4096] = b"x" * len(held[::4096])
    time.sleep(0.5)
    return {"pid": os.getpid()}


def eat(_):
    """Ask for ever more memory."""
    held = []
    while True:
        held.append(bytearray(16 << 20))


def eat_and_abort(call):
    """Use much memory, then abort as native code does when there is no more."""
    held = bytearray(call.request["size"])
    held[::4096] = b"x" * len(held[::4096])
    os.abort()


def ask_for_much_and_abort(call):
    """Have one large request refused while little is in use, then abort as native code does."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    if libc.malloc(ctypes.c_size_t(call.request["size"])) is None:
        libc.abort()


def feed_tools(call):
    """Start tools that are each within their limit, and together beyond it."""
    program = _HUNGRY_TOOL.format(size=call.request["size"])
    tools = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(call.request["tools"])]  # noqa: S603
    tools[0].wait()


def fail(call):
    """Raise the owned error that the request describes."""
    kind = PermanentError if call.request["permanent"] else TransientError
    numbers = {"limit": 10, "actual": 11, "pages": (3,)} if call.request["permanent"] else {}
    raise kind(ErrorCode(call.request["code"]), **numbers)


def stumble(_):
    """Raise what nobody owns, with words that must not travel."""
    message = "the secret content of the document"
    raise LookupError(message)


def find_no_room(_):
    """Fail as a full disk does."""
    raise OSError(errno.ENOSPC, "no room")


def write_files(call):
    """Write so many files of that size, then wait."""
    for number in range(call.request["files"]):
        (call.scratch() / f"{number}").write_bytes(bytes(call.request["size"]))
    time.sleep(_FOREVER)


def keep_file(call):
    """Leave a file in the scratch directory and tell where that is."""
    (call.scratch() / "left").write_bytes(bytes(call.request.get("size", 1)))
    return {"place": str(call.scratch())}


def leave_temporary_file(call):
    """Make a file where libraries make theirs, then hang."""
    call.scratch()
    with tempfile.NamedTemporaryFile(prefix="docstage-left-"):
        time.sleep(_FOREVER)


def rave(call):
    """Write bytes of the child's own choice to the parent."""
    _line().sendall(bytes.fromhex(call.request["bytes"]))
    time.sleep(_FOREVER)


def boast(call):
    """Announce a frame that is larger than any may be."""
    _line().sendall(HEADER.pack(call.request["kind"], 0xFFFFFFFF))
    time.sleep(_FOREVER)


def flood(call):
    """Send answers without end."""
    while True:
        call.emit({"text": "x" * 10_000})


def say_nul(_):
    """Answer with text that PostgreSQL cannot store."""
    return {"text": "a\0b"}


def use_tool(call):
    """Run Tesseract, or the program that stands in for it, on a picture."""
    pytesseract.tesseract_cmd = call.request["program"]
    picture = call.scratch() / "picture.png"
    Image.new("L", (8, 8)).save(picture)
    call.emit({"pid": os.getpid()})
    pytesseract.run_tesseract(str(picture), str(call.scratch() / "out"), "txt", "eng")
    return {}


def _environment():
    """Return the variables that this process was started with, as the kernel has them."""
    pairs = Path("/proc/self/environ").read_text().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if pair)


def _open_files():
    """Return the numbers of this process's open files."""
    return sorted(int(entry.name) for entry in Path("/proc/self/fd").iterdir())


def _line():
    """Find the socket to the parent."""
    for number in _open_files():
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                return socket.socket(fileno=os.dup(number))
    raise AssertionError


OPERATIONS = {
    operation.__name__: operation
    for operation in (
        echo,
        whoami,
        count,
        hang,
        drip,
        spin,
        die,
        hold,
        eat,
        eat_and_abort,
        ask_for_much_and_abort,
        feed_tools,
        fail,
        stumble,
        find_no_room,
        write_files,
        keep_file,
        leave_temporary_file,
        rave,
        boast,
        flood,
        say_nul,
        use_tool,
    )
}
