"""How hard the tests try that look for races: a little in every run, as long as one likes for a soak."""

import os

# Multiplies the examples of the state machine and the rounds of each race.
STRESS = max(1, int(os.environ.get("DOCSTAGE_STRESS", "1")))  # noqa: TID251 - chosen outside, before any settings exist

# For how long the lock order is tried; without it a fixed number of operations.
CONCURRENCY_SECONDS = float(
    os.environ.get("DOCSTAGE_CONCURRENCY_SECONDS", "0")  # noqa: TID251 - chosen outside, as above
)
