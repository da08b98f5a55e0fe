"""What is sent: every document as it is, and some once more: invoices without their XML, texts for a summary."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import pypdfium2
import pypdfium2.raw

from tests.evaluation.manifest import Entry

# Prose is summed up; what must be recognized is not recognized twice for it.
SINGLE: Final = frozenset({"invoice", "receipt", "hostile"})
READ_AT_ONCE: Final = frozenset({"ok-text-layer", "ok-docx", "ok-text"})


class Variant(StrEnum):
    """How a document is sent."""

    AS_IT_IS = "as_it_is"
    WITHOUT_XML = "without_xml"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Case:
    """One document to send, and under which heading its fields count."""

    entry: Entry
    path: Path
    variant: Variant
    group: str

    @property
    def job_kind(self) -> str:
        """What is asked of the system."""
        return "summary" if self.variant is Variant.SUMMARY else self.entry.job_kind

    @property
    def key(self) -> str:
        """Its name in reports."""
        return self.entry.id if self.variant is Variant.AS_IT_IS else f"{self.entry.id}/{self.variant.value}"


def cases(entries: Iterable[Entry], folder: Path) -> list[Case]:
    """Return the cases of a corpus; what is made for them lies in ``folder``."""
    found = []
    for entry in entries:
        stripped = _without_xml(entry.path, folder / f"{entry.id}.pdf") if _may_carry_xml(entry) else None
        found.append(Case(entry, entry.path, Variant.AS_IT_IS, _group(entry, carries_xml=stripped is not None)))
        if stripped is not None:
            found.append(Case(entry, stripped, Variant.WITHOUT_XML, "invoice without xml"))
        if entry.reference is not None and entry.kind not in SINGLE and entry.expected in READ_AT_ONCE:
            found.append(Case(entry, entry.path, Variant.SUMMARY, "summary"))
    return found


def _group(entry: Entry, *, carries_xml: bool) -> str:
    if entry.kind == "invoice":
        if carries_xml:
            return "invoice with xml"
        return "invoice without xml" if entry.expected == "ok-text-layer" else "invoice picture"
    return "template" if entry.is_template else entry.kind


def _may_carry_xml(entry: Entry) -> bool:
    return entry.kind == "invoice" and entry.expected.startswith("ok") and entry.path.suffix.lower() == ".pdf"


def _without_xml(path: Path, target: Path) -> Path | None:
    """Save a PDF without what is attached to it; nothing when there is nothing attached."""
    document = pypdfium2.PdfDocument(path)
    try:
        count = document.count_attachments()
        if not count:
            return None
        for index in reversed(range(count)):
            pypdfium2.raw.FPDFDoc_DeleteAttachment(document, index)
        document.save(target)
    finally:
        document.close()
    return target
