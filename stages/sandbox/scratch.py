"""Room for temporary files: one directory a call, deleted with the call, swept when its owner has died."""

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_LOCK: Final = "lock"
_PREFIX: Final = "docstage-"
_BLOCK_BYTES: Final = 512


class ScratchSpace:
    """This process's part of the scratch directory.

    Several processes may share one scratch directory. Each holds a lock in its own part, which the kernel
    gives up when the process dies, whatever way; so a part whose lock is free is a dead one's.
    """

    def __init__(self, directory: Path) -> None:
        """Remember where; nothing is made before ``open``."""
        self._directory = directory
        self._own = directory / f"{_PREFIX}{uuid.uuid4().hex}"
        self._lock: int | None = None

    def open(self) -> None:
        """Make this process's part and delete those of dead ones."""
        self._directory.mkdir(parents=True, exist_ok=True)
        with _alone(self._directory):
            self._own.mkdir(mode=0o700)
            self._lock = os.open(self._own / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            for part in self._directory.glob(f"{_PREFIX}*"):
                if part != self._own:
                    _sweep(part)

    def name(self) -> Path:
        """Return the path of a directory for one call; whoever needs it makes it."""
        return self._own / uuid.uuid4().hex

    def close(self) -> None:
        """Delete this process's part."""
        if self._lock is not None:
            _delete(self._own)
            os.close(self._lock)
            self._lock = None


def used_bytes(path: Path) -> int:
    """Add up what the files in one call's directory take, as long as it exists."""
    total, waiting = 0, [path]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
                else:
                    # Blocks and not lengths: a file may claim a size and take no room.
                    total += entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
    return total


def remove(path: Path) -> None:
    """Delete one call's directory, if it was ever made."""
    shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Keep other processes from opening or sweeping parts meanwhile: a part without its lock looks dead."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _sweep(part: Path) -> None:
    """Delete ``part`` unless its owner lives."""
    try:
        lock = os.open(part / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _delete(part)
    except BlockingIOError:
        return
    finally:
        os.close(lock)


def _delete(part: Path) -> None:
    """Delete a part; what cannot be deleted now is swept at the next start."""
    shutil.rmtree(part, ignore_errors=True)
