"""How much a child may use, and how long a call may take."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from schema.domain.limits import MIB

INLINE_BYTES: Final = 64 * 1024
"""Documents up to this size travel to the child in a frame; larger ones lie in a scratch file."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How long one call may take in all, and how long the child may say nothing."""

    total_seconds: float
    silence_seconds: float


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """Limits of each child and of what the parent takes from it.

    ``memory_bytes`` bounds each process's address space and, watched by the parent, the resident memory of
    the child and its tools together. ``cpu_seconds`` and ``documents_per_child`` count per call and per
    child; ``scratch_bytes`` is what a call's temporary files may take together, the document among them, and the
    largest file that a child may write anywhere. ``frame_bytes`` and ``output_bytes``
    bound what the parent reads: one answer, and all answers to one call. ``search_path`` is where the
    child finds its tools, ``tessdata_dir`` where Tesseract finds its languages, when not in its own place.
    """

    scratch_dir: Path
    children: int = 2
    memory_bytes: int = 2048 * MIB
    cpu_seconds: int = 600
    scratch_bytes: int = 1024 * MIB
    open_files: int = 256
    documents_per_child: int = 1_000
    frame_bytes: int = 64 * MIB
    output_bytes: int = 512 * MIB
    start_seconds: float = 30.0
    search_path: str = "/usr/local/bin:/usr/bin:/bin"
    tessdata_dir: str | None = None
