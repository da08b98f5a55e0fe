"""What a system's own metrics say about a run: memory of the parsers, parsers killed, workers taken over from."""

from collections.abc import Iterable, Mapping
from typing import Final

import httpx
from prometheus_client.parser import text_string_to_metric_families

URL_PREFIX: Final = "DOCSTAGE_METRICS_URL_"
PEAK: Final = "docstage_child_peak_memory_bytes"
_COUNTED: Final = ("docstage_child_kills_total", "docstage_takeovers_total")
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
        name: value for name, value in risen.items() if value > 0
    }


def _add(found: dict[str, float], text: str) -> None:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            label = next(iter(sample.labels.values()), "")
            name = f"{sample.name}/{label}"
            if sample.name == PEAK:
                found[name] = max(found.get(name, 0.0), sample.value)
            elif sample.name in _COUNTED and label != _WORN:
                found[name] = found.get(name, 0.0) + sample.value
