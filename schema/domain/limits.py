"""How large a document may be, in every dimension in which one can be too large."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, Final

MIB: Final = 1 << 20


class LimitName(StrEnum):
    """Names of limits in errors, which are those of their settings and of ``GET /v1/limits``."""

    PAGES = "max_pages"
    FRAMES = "max_frames"
    PIXELS = "max_pixels"
    SIDE = "max_side"
    ENTRIES = "max_entries"
    RATIO = "max_ratio"
    DEPTH = "max_depth"
    INFLATED_BYTES = "max_inflated_bytes"
    PART_BYTES = "max_part_bytes"
    PAGE_CHARS = "max_page_chars"
    MODEL_CHARS = "model_max_chars"
    MEMORY_BYTES = "child_memory_bytes"
    SCRATCH_BYTES = "child_scratch_bytes"


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """What is accepted; a document that exceeds a limit fails with a named code, its limit and its size.

    Units: ``max_pixels`` is per picture or rendered page, ``max_side`` its longer side in pixels; ``max_frames`` the
    pages of a TIFF; ``max_entries``, ``max_ratio`` (inflated to packed bytes), ``max_inflated_bytes``,
    ``max_part_bytes`` (one XML part) and ``max_depth`` (of its elements) are about the archive that a DOCX is;
    ``max_page_chars`` is one page's text and ``max_attachment_bytes`` one invoice XML inside a PDF.
    """

    max_bytes: int = 100 * MIB
    max_pages: int = 1_000
    max_pixels: int = 100_000_000
    max_side: int = 32_767
    max_frames: int = 1_000
    max_entries: int = 10_000
    max_ratio: int = 150
    max_depth: int = 200
    max_inflated_bytes: int = 512 * MIB
    max_part_bytes: int = 64 * MIB
    max_page_chars: int = 1_000_000
    max_attachment_bytes: int = 10 * MIB

    def as_json(self) -> dict[str, int]:
        """Return the limits as JSON."""
        return asdict(self)


def limits_from_json(data: Mapping[str, Any]) -> DocumentLimits:
    """Read limits back from the JSON that ``as_json`` made; what is missing has its default."""
    known = {field.name for field in fields(DocumentLimits)}
    return DocumentLimits(**{name: int(value) for name, value in data.items() if name in known})
