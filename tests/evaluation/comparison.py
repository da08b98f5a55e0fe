"""What has become better and worse since an earlier run, document by document."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.evaluation.fields import Verdict
from tests.evaluation.running import Record

# What differs less is noise of the recognition.
NOTABLE: Final = 0.02
_WORTH: Final[Mapping[str, int]] = {Verdict.RIGHT: 2, Verdict.MISSING: 1, Verdict.WRONG: 0}


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is not as it was."""

    id: str
    what: str
    before: str
    after: str
    is_better: bool


def compare(earlier: Sequence[Mapping[str, Any]], now: Sequence[Record]) -> list[Change]:
    """Return every change in the documents that both runs had."""
    old = {record["id"]: record for record in earlier}
    return [change for record in now if record.id in old for change in _changes(old[record.id], record)]


def _changes(before: Mapping[str, Any], after: Record) -> Iterator[Change]:
    if before["outcome"] != after.outcome and (before["fits"] != after.fits or not after.fits):
        yield Change(after.id, "outcome", before["outcome"], after.outcome, is_better=after.fits)
    for name, sign in (("recall", 1), ("character_error", -1)):
        if before["text"] and after.text:
            risen = (after.text[name] - before["text"][name]) * sign
            if abs(risen) >= NOTABLE:
                yield Change(
                    after.id, name, f"{before['text'][name]:.3f}", f"{after.text[name]:.3f}", is_better=risen > 0
                )
    for name, verdict in after.fields.items():
        was = before["fields"].get(name)
        if was is not None and was != verdict:
            yield Change(after.id, name, was, verdict, is_better=_WORTH[verdict] > _WORTH[was])
