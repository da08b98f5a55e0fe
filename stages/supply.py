"""How a stored document gets to a child: in a frame when it is small, else in a scratch file."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from stages.sandbox.conversation import OnEvent
from stages.sandbox.settings import INLINE_BYTES, Budget
from stages.work import Documents, StoredDocument


class Parsers(Protocol):
    """Runs named operations in a process that can be killed; ``stages.sandbox.pool.Sandbox`` does."""

    def scratch(self) -> AbstractAsyncContextManager[Path]:
        """Offer a directory for one call."""

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
        """Return the operation's answer; raises an owned error when there is none."""


@dataclass(frozen=True, slots=True)
class Supply:
    """What to pass to ``Parsers.call``: something for the request, and ``blob`` or ``scratch``."""

    request: Mapping[str, Any]
    blob: bytes | None = None
    scratch: Path | None = None


@asynccontextmanager
async def supplied(document: StoredDocument, documents: Documents, parsers: Parsers) -> AsyncIterator[Supply]:
    """Bring the document within a child's reach for as long as the context lasts."""
    if document.size_bytes <= INLINE_BYTES:
        content = document.content
        yield Supply({}, blob=await documents.get(document.storage_key) if content is None else content)
        return
    async with parsers.scratch() as scratch:
        file = scratch / "document"
        await documents.fetch(document.storage_key, str(file))
        yield Supply({"path": str(file)}, scratch=scratch)
