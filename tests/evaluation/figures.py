"""From single records to the figures of a report: by kind, and by field."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from tests.evaluation.cases import Variant
from tests.evaluation.fields import Verdict
from tests.evaluation.manifest import Part
from tests.evaluation.running import Record


@dataclass(frozen=True, slots=True)
class KindFigures:
    """The documents of one kind; text figures are means over the documents that have a reference."""

    documents: int
    fitting: int
    recall: float | None
    precision: float | None
    character_error: float | None
    pages: int
    seconds: float

    @property
    def pages_per_second(self) -> float | None:
        """Pages per second of work, the waiting left out."""
        return self.pages / self.seconds if self.seconds else None


@dataclass(slots=True)
class FieldFigures:
    """How often one field was right, wrong and missing."""

    counts: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """How many documents have a truth for it."""
        return self.counts.total()

    def rate(self, verdict: Verdict) -> float:
        """Return the share of a verdict."""
        return self.counts[verdict] / self.total if self.total else 0.0


def by_kind(records: Iterable[Record]) -> dict[str, KindFigures]:
    """Return the figures of each kind of document, sent as they are."""
    kinds: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record.variant == Variant.AS_IT_IS:
            kinds[record.kind].append(record)
    return {kind: _kind(kinds[kind]) for kind in sorted(kinds)}


def by_field(records: Iterable[Record], part: Part | None = None) -> dict[tuple[str, str], FieldFigures]:
    """Return the figures of each field under its group, for one part of the corpus or all of it."""
    found: dict[tuple[str, str], FieldFigures] = defaultdict(FieldFigures)
    for record in records:
        if part is None or record.part == part:
            for name, verdict in record.fields.items():
                found[record.group, name].counts[verdict] += 1
    return dict(sorted(found.items(), key=lambda item: item[0][0]))


def _kind(records: Sequence[Record]) -> KindFigures:
    texts = [record.text for record in records if record.text is not None]
    return KindFigures(
        documents=len(records),
        fitting=sum(record.fits for record in records),
        recall=fmean(text["recall"] for text in texts) if texts else None,
        precision=fmean(text["precision"] for text in texts) if texts else None,
        character_error=fmean(text["character_error"] for text in texts) if texts else None,
        pages=sum(record.pages for record in records),
        seconds=sum(record.seconds for record in records),
    )
