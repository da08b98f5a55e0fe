"""Ports of the document stages, in memory."""

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from schema.domain.kinds import Kind, MediaType
from schema.domain.options import JobOptions
from schema.domain.sniff import sniff
from schema.wire.pages import ExtractedPage
from stages.work import StoredDocument, Work


@dataclass
class FakeParsers:
    """Answers a call with what the test gives it, and keeps what it was asked."""

    answer: Any = None
    events: tuple[dict[str, Any], ...] = ()
    folder: Path | None = None
    calls: list[dict[str, Any]] = field(default_factory=list)

    @asynccontextmanager
    async def scratch(self):
        """Offer the test's folder."""
        yield self.folder

    async def call(self, operation, request, *, budget, on_event=None, blob=None, scratch=None):
        """Send the events, then answer."""
        self.calls.append({
            "operation": operation, "request": request, "budget": budget, "blob": blob, "scratch": scratch,
        })  # fmt: skip
        for event in self.events:
            await on_event(event)
        return self.answer


@dataclass
class MemoryDocuments:
    """Stored bytes by key."""

    data: dict[str, bytes]

    async def get(self, key, /):
        """Return the bytes."""
        return self.data[key]

    async def fetch(self, storage_key, target):
        """Write the bytes to a file."""
        Path(target).write_bytes(self.data[storage_key])  # noqa: ASYNC240 - a test's own file


@dataclass
class MemoryCheckpoint:
    """Pages kept by an earlier claim and by this one, in the order of keeping."""

    earlier: list[ExtractedPage] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    totals: list[int] = field(default_factory=list)
    asked: int = 0

    async def pages_total(self, total):
        """Keep the number."""
        self.totals.append(total)

    async def done(self):
        """Return the earlier pages."""
        self.asked += 1
        return self.earlier

    async def page(self, page):
        """Keep the page's number."""
        self.kept.append(page.number)


def work_on(data: bytes, *, declared: str | None = None, inputs=None, kind=Kind.TEXT, **options: Any) -> Work:
    """Return a claim of a job whose document is ``data``, stored under the key ``document``."""
    media_type = sniff(data[:4096]) or MediaType.TEXT
    return Work(
        job_id=UUID(int=1),
        attempt=1,
        kind=kind,
        options=JobOptions(**options),
        document=StoredDocument("document", len(data), "", declared, media_type),
        inputs=inputs or {},
    )
