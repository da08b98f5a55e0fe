"""What a corpus says about its documents: what to send, what should come of it, and what is true of it.

Shape: ``manifest.jsonl``, one JSON object a line, with ``id``, ``path``, ``kind``, ``upload`` {filename, content_type},
``expected`` and ``also_ok`` (outcome classes), and where known ``truth`` with ``truth_checks``, and ``ref`` {path}.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

MANIFEST: Final = "manifest.jsonl"
HELD_OUT_ONE_IN: Final = 3
JOB_KINDS: Final[Mapping[str, str]] = {"receipt": "invoice", "invoice": "invoice", "contract": "contract"}


class Part(StrEnum):
    """Which documents rules may be made with, and which only tell whether they hold for others."""

    OPEN = "open"
    HELD_OUT = "held_out"


@dataclass(frozen=True, slots=True)
class Entry:
    """One document of a corpus."""

    id: str
    path: Path
    kind: str
    filename: str
    content_type: str
    expected: str
    also_ok: Sequence[str] = ()
    reference: Path | None = None
    truth: Mapping[str, Any] = field(default_factory=dict)
    truth_checks: Mapping[str, bool] | None = None
    is_template: bool = False
    language: str | None = None

    @property
    def part(self) -> Part:
        """Whether it is held out; decided by its id, so that it stays so whatever is added."""
        number = int.from_bytes(hashlib.sha256(self.id.encode()).digest()[:8], "big")
        return Part.HELD_OUT if number % HELD_OUT_ONE_IN == 0 else Part.OPEN

    @property
    def job_kind(self) -> str:
        """What is asked of the system for it."""
        return JOB_KINDS.get(self.kind, "text")


def load(corpus: Path) -> list[Entry]:
    """Read a corpus: the folder of a manifest, or the manifest.

    Raises:
        FileNotFoundError: when there is no manifest, or a document that it names is missing.
    """
    manifest = corpus if corpus.is_file() else corpus / MANIFEST
    lines = manifest.read_text(encoding="utf-8").splitlines()
    return [_entry(json.loads(line), manifest.parent) for line in lines if line.strip()]


def _entry(row: Mapping[str, Any], folder: Path) -> Entry:
    reference = (row.get("ref") or {}).get("path")
    return Entry(
        id=row["id"],
        path=_found(folder, row["path"]),
        kind=row["kind"],
        filename=row["upload"]["filename"],
        content_type=row["upload"]["content_type"],
        expected=row["expected"],
        also_ok=tuple(row.get("also_ok") or ()),
        reference=_found(folder, reference) if reference else None,
        truth=row.get("truth") or {},
        truth_checks=row.get("truth_checks"),
        is_template=row.get("truth_source") == "template",
        language=row.get("language"),
    )


def _found(folder: Path, path: str) -> Path:
    """Resolve a path of the manifest; some have the name of the manifest's folder in them."""
    for base in (folder, folder.parent):
        if (base / path).is_file():
            return base / path
    raise FileNotFoundError(folder / path)
