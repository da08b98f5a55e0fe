"""A short soak with a seed that does a little of everything; ``make soak`` does it for as long as one likes."""

import pytest

from tests.soak.run import Wish, soak

# Faults of every kind and on every kind of victim within half a minute.
WISH = Wish(seed=11, seconds=25, clients=3)


@pytest.mark.timeout(900)
async def test_a_short_soak_leaves_every_number_right(services, own_system):
    """P1 to P8 at once, under a load that nobody chose for them."""
    report = await soak(WISH, services, own_system, print)

    assert [number for number in report.numbers if not number.right] == [], (report.notes, report.stuck)
    assert dict(report.counted["documents by their end"])["doomed: completed"] >= WISH.clients
