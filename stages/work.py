"""What a handler gets to do its work, and the ports it does it through."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from schema.domain.kinds import Kind, MediaType
from schema.domain.options import JobOptions
from schema.domain.outcomes import Completed
from schema.wire.pages import ExtractedPage


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """The stored bytes: where they are and what is known about them.

    ``media_type`` is what the bytes said at intake; ``declared_type`` what the client said; ``content`` the bytes
    themselves where they are so few that the database keeps them too.
    """

    storage_key: str
    size_bytes: int
    sha256: str
    declared_type: str | None
    media_type: MediaType
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """One claimed stage run: ids for logs, options, the document, and the outputs of the stages before."""

    job_id: UUID
    attempt: int
    kind: Kind
    options: JobOptions
    document: StoredDocument
    inputs: Mapping[str, Mapping[str, Any]]


class Checkpoint(Protocol):
    """Where extract keeps pages that are done, so that a crash costs one page."""

    async def pages_total(self, total: int) -> None:
        """Tell how many pages there are to do."""

    async def done(self) -> list[ExtractedPage]:
        """Return the pages that an earlier claim of this run finished."""

    async def page(self, page: ExtractedPage) -> None:
        """Keep one finished page; raises ``FencedError`` when the run is no longer this worker's."""


class Documents(Protocol):
    """The stored bytes."""

    async def get(self, key: str, /) -> bytes:
        """Return the object's bytes, for small ones; raises an owned error when it cannot."""

    async def fetch(self, storage_key: str, target: str) -> None:
        """Write the object's bytes to the file ``target``; raises an owned error when it cannot."""


class Handler(Protocol):
    """One stage's work for one claim."""

    async def run(self, work: Work, checkpoint: Checkpoint) -> Completed:
        """Do the work; raise ``PermanentError`` or ``TransientError`` where it cannot be done."""
