"""What a system's own metrics say about a run: memory of the parsers, parsers killed, workers taken over from."""

from collections.abc import Iterable, Mapping
from typing import Final

import httpx
from prometheus_client.parser import text_string_to_metric_families

URL_PREFIX: Final = "DOCSTAGE_METRICS_URL_"
PEAK: Final = "docstage_child_peak_memory_bytes"
CALL: Final = "docstage_child_call_memory_bytes"
_COUNTED: Final = ("docstage_child_kills_total", "docstage_takeovers_total", f"{CALL}_sum", f"{CALL}_count")
_WORN: Final = "recycled"

Reading = Mapping[str, float]


def read(urls: Iterable[str]) -> dict[str, float]:
    """Read what all processes tell; one that does not answer tells nothing."""
    found: dict[str, float] = {}
    for url in urls:
        try:
            text = httpx.get(url, timeout=10).raise_for_status().text
        except httpx.HTTPError:
            continue
        _add(found, text)
    return found


def changes(before: Reading, after: Reading) -> dict[str, float]:
    """Return the peak of each lane as it is after a run, and how much each count has risen."""
    risen = {name: value - before.get(name, 0.0) for name, value in after.items() if not name.startswith(PEAK)}
    return {name: value for name, value in after.items() if name.startswith(PEAK)} | {
        name: value for name, value in risen.items() if value > 0 and not name.startswith(CALL)
    }


def peak_of_one(before: Reading, after: Reading) -> int | None:
    """Return the most that a parser took for the one job between two readings; ``None`` when no call was measured.

    A lane that called more than once for it, because of retries, counts with the mean of its calls.
    """
    peaks = []
    for name, total in after.items():
        metric, _, lane = name.partition("/")
        counted = f"{CALL}_count/{lane}"
        if metric == f"{CALL}_sum" and (calls := after[counted] - before.get(counted, 0.0)) > 0:
            peaks.append((total - before.get(name, 0.0)) / calls)
    return round(max(peaks)) if peaks else None


def _add(found: dict[str, float], text: str) -> None:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            label = next(iter(sample.labels.values()), "")
            name = f"{sample.name}/{label}"
            if sample.name == PEAK:
                found[name] = max(found.get(name, 0.0), sample.value)
            elif sample.name in _COUNTED and label != _WORN:
                found[name] = found.get(name, 0.0) + sample.value
