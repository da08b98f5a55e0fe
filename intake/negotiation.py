"""Which of several forms of an answer a client wants most."""

from collections.abc import Sequence


def preferred(accept: str | None, offers: Sequence[str]) -> str | None:
    """Choose among ``offers``, ours first where the client does not care.

    Returns:
        ``None`` when the client takes none of them.

    Source: RFC 9110, section 12.5.1.
    """
    ranges = [_weighted(part) for part in (accept or "*/*").split(",") if part.strip()]
    weighted = [(_weight(offer, ranges), offer) for offer in offers]
    best = max(weighted, key=lambda pair: pair[0])
    return best[1] if best[0] > 0 else None


def _weighted(part: str) -> tuple[str, float]:
    """Read ``text/csv;q=0.5``."""
    media_range, *parameters = (piece.strip().lower() for piece in part.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return media_range, min(1.0, max(0.0, float(value)))
            except ValueError:
                return media_range, 0.0
    return media_range, 1.0


def _weight(offer: str, ranges: Sequence[tuple[str, float]]) -> float:
    """Return the weight of the most specific range that covers the offer."""
    for covering in (offer, offer.partition("/")[0] + "/*", "*/*"):
        weights = [weight for media_range, weight in ranges if media_range == covering]
        if weights:
            return max(weights)
    return 0.0
