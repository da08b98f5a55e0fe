"""One call as an operation sees it."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages.adapters.source import Source

Emit = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Call:
    """A request, the document that came with it, and the way to tell the parent what is done so far."""

    request: Mapping[str, Any]
    emit: Emit
    place: Path
    blob: bytes | None = None

    def document(self) -> Source:
        """Return the document: the bytes that came along, or the file that the request names."""
        if self.blob is not None:
            return Source(data=self.blob)
        return Source(path=Path(self.request["path"]))

    def scratch(self) -> Path:
        """Return a directory for temporary files, libraries' own among them; the parent deletes it."""
        self.place.mkdir(mode=0o700, exist_ok=True)
        tempfile.tempdir = str(self.place)
        return self.place


Operation = Callable[[Call], Mapping[str, Any]]
