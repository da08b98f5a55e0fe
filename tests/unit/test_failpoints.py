"""Failpoints: off unless asked for, and what was asked for at the pass that was named."""

import signal
import subprocess
import sys

import pytest

from schema.runtime import failpoints
from schema.runtime.failpoints import FailpointError, Point, arm, hit

PROGRAM = "from schema.runtime.failpoints import *; arm({!r}); [hit(Point.CLAIMED) for _ in range(2)]; print('over')"


@pytest.fixture(autouse=True)
def disarmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave no point armed."""
    monkeypatch.setattr(failpoints, "_hit", failpoints._off)  # noqa: SLF001 - what ``arm`` replaces


def test_points_are_off_unless_armed() -> None:
    """A process that nobody tests passes all of them and looks nothing up on the way."""
    arm("")

    for point in Point:
        hit(point)

    assert failpoints._hit is failpoints._off  # noqa: SLF001 - this is what it costs


def test_an_armed_point_acts_at_its_pass_and_no_other_does() -> None:
    """A test has to be able to mean the third page of a scan."""
    arm("page_kept=raise@3,published=cut")

    for point in (Point.PAGE_KEPT, Point.CLAIMED, Point.PAGE_KEPT):
        hit(point)
    with pytest.raises(FailpointError):
        hit(Point.PAGE_KEPT)
    hit(Point.PAGE_KEPT)
    with pytest.raises(ConnectionResetError):
        hit(Point.PUBLISHED)


@pytest.mark.parametrize("settings", ["nowhere=kill", "claimed=explode", "claimed", "claimed=kill@soon"])
def test_what_does_not_exist_cannot_be_armed(settings: str) -> None:
    """A crash test with a wrong name in it would be green for ever."""
    with pytest.raises(ValueError, match=r".*"):
        arm(settings)


def test_a_killed_process_ends_by_sigkill_at_its_second_pass() -> None:
    """No handler, no buffer and no ``finally`` of it runs."""
    ended = subprocess.run([sys.executable, "-c", PROGRAM.format("claimed=kill@2")], capture_output=True, check=False)  # noqa: S603

    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, b"")


def test_a_process_that_hangs_stays_and_says_nothing() -> None:
    """Alive for the kernel, dead for everybody else."""
    with subprocess.Popen([sys.executable, "-c", PROGRAM.format("claimed=hang")], stdout=subprocess.PIPE) as process:  # noqa: S603 - as above
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=1)
        process.kill()
        assert process.communicate()[0] == b""
