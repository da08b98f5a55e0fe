"""A document's bytes, in memory or in a file."""

import errno
import io
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO


def is_damage(error: OSError) -> bool:
    """Say whether a library's ``OSError`` is about the document and not about this machine.

    Libraries raise it without a number for damage that they notice, and the kernel with ``EINVAL`` when
    damage sends them to a place before the file's beginning.
    """
    return error.errno in {None, errno.EINVAL}


@dataclass(frozen=True, slots=True)
class Source:
    """Exactly one of ``data`` and ``path``."""

    data: bytes | None = None
    path: Path | None = None

    def open(self) -> BinaryIO:
        """Return a seekable stream from the first byte; the caller closes it."""
        return self._file().open("rb") if self.data is None else io.BytesIO(self.data)

    def read(self) -> bytes:
        """Return all bytes."""
        return self._file().read_bytes() if self.data is None else self.data

    def head(self, size: int) -> bytes:
        """Return the first ``size`` bytes, or fewer when there are no more."""
        with self.open() as stream:
            return stream.read(size)

    def handle(self) -> bytes | str:
        """Return what a library can open by itself: the bytes or the file's path."""
        return str(self._file()) if self.data is None else self.data

    def _file(self) -> Path:
        """Return the path of a document that is not in memory."""
        if self.path is None:
            msg = "a source has data or a path"
            raise ValueError(msg)
        return self.path
