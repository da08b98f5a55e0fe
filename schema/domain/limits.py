"""How large a document may be, in every dimension in which one can be too large."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """What is accepted; a document that exceeds a limit fails with a named code, its limit and its size.

    Units: ``max_pixels`` is per picture or rendered page; ``max_frames`` the pages of a TIFF;
    ``max_entries``, ``max_ratio`` (inflated to packed bytes), ``max_inflated_bytes`` and ``max_part_bytes``
    (one XML part) are about the archive that a DOCX is; ``max_page_chars`` is one page's text and
    ``max_attachment_bytes`` one invoice XML inside a PDF.
    """

    max_bytes: int = 100 * MIB
    max_pages: int = 1_000
    max_pixels: int = 100_000_000
    max_frames: int = 1_000
    max_entries: int = 10_000
    max_ratio: int = 150
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
