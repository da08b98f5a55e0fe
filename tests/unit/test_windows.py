"""The catalogue of crash windows: no window without a proof, no failpoint without a window, a hit and a test."""

import re

from schema.runtime.failpoints import Point
from tests.support.crashes import points_of_cells
from tests.support.windows import LAST, PAGE, PENDING, PENDING_POINTS, WINDOWS, written

ROOT = PAGE.parents[1]
PACKAGES = ("intake", "publisher", "stages", "dlq_tools")


def test_every_window_has_a_failpoint_or_is_an_outage_with_a_test() -> None:
    """A window that nobody tries is a promise that nobody keeps."""
    numbers = [window.number for window in WINDOWS]

    assert sorted([*numbers, *PENDING]) == list(range(1, LAST + 1))
    assert {window.number for window in WINDOWS if not window.points} == {15, 16, 17, 18}
    assert all(window.tests for window in WINDOWS)


def test_every_failpoint_has_a_window_and_a_cell() -> None:
    """A point that no test arms is a line that only looks like care."""
    placed = {point for window in WINDOWS for point in window.points}

    assert placed | PENDING_POINTS == set(Point)
    assert points_of_cells() | PENDING_POINTS == set(Point)


def test_every_failpoint_is_passed_somewhere() -> None:
    """A point that is declared and passed nowhere can be armed, and nothing dies."""
    source = "\n".join(
        path.read_text(encoding="utf-8") for package in PACKAGES for path in (ROOT / package).rglob("*.py")
    )

    assert {point for point in Point if not re.search(rf"\bPoint\.{point.name}\b", source)} == set()


def test_every_test_of_a_window_exists() -> None:
    """Renaming a test must not leave a window without one."""
    defined = {
        name
        for module in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", module.read_text(encoding="utf-8"))
    }

    assert {test for window in WINDOWS for test in window.tests} - defined == set()


def test_the_page_shows_the_windows_as_they_are() -> None:
    """``python -m tests.support.windows`` writes them there."""
    page = PAGE.read_text(encoding="utf-8")

    assert written(page) == page
