"""What can be asked of a document, and in which form documents come."""

from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """What the client wants to know."""

    TEXT = "text"
    SUMMARY = "summary"
    INVOICE = "invoice"
    CONTRACT = "contract"


class MediaType(StrEnum):
    """The accepted types, as decided by a file's bytes."""

    PDF = "application/pdf"
    DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    PNG = "image/png"
    JPEG = "image/jpeg"
    TIFF = "image/tiff"
    WEBP = "image/webp"
    HEIC = "image/heic"
    TEXT = "text/plain"

    @property
    def is_image(self) -> bool:
        """Whether its pages are pictures."""
        return self.value.startswith("image/")


ACCEPTED: Final = "PDF, DOCX, PNG, JPEG, TIFF, WebP, HEIC or plain text"
"""The accepted types as people call them."""
