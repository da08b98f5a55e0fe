"""Workers killed by SIGKILL at every window between a delivery and its acknowledgement."""

import pytest

from tests.support.eventually import eventually
from tests.support.factories import rows
from tests.support.oracle import STAGES, verify
from tests.support.system import System

# The windows of one delivery, by what had just happened when the process died.
POINTS = ("delivered", "claimed", "worked", "output_stored", "outcome_committed")
TEXT = b"Docstage never loses a job.\nIt never leaves one stuck.\n"


@pytest.fixture(scope="module")
async def front(system: System) -> System:
    """Intake and publisher, which live through all of this module."""
    await system.start(system.process("intake", "intake"), system.process("publisher", "publisher"))
    return system


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("point", POINTS)
async def test_a_worker_killed_at_any_point_costs_nothing(front, stage, point):
    """P2 to P5: another worker finishes the job, with one output per stage and the truth in its history."""
    others = [other for other in STAGES if other != stage]
    rest = front.stages(f"rest-{stage}-{point}", *others)
    doomed = front.stages(f"doomed-{stage}-{point}", stage, DOCSTAGE_FAILPOINTS=f"{point}=kill")
    await front.start(rest, doomed)
    job_id = await front.submit(TEXT)
    assert await doomed.wait() == -9

    heir = front.stages(f"heir-{stage}-{point}", stage)
    await front.start(heir)

    assert (await front.finished(job_id))["status"] == "completed"
    verdict = await verify(front.database, job_id)
    lost = [attempt for attempt in verdict.attempts if attempt["outcome"] == "worker_lost"]
    # Before the claim nothing is lost, and after the commit there is nothing left to lose.
    assert len(lost) == (0 if point in {"delivered", "outcome_committed"} else 1)
    await eventually(lambda: _nothing_owed(front))
    for process in (rest, heir):
        process.close()


async def _nothing_owed(system: System) -> bool:
    return await rows(system.database, "SELECT 1 FROM outbox_event") == []


async def test_an_acknowledgement_follows_its_commit(front):
    """P4: killed after the commit and before the ack, the delivery comes again, finds the work done and is acked."""
    rest = front.stages("rest-ack", "extract", "normalize", "persist")
    doomed = front.stages("doomed-ack", "validate", DOCSTAGE_FAILPOINTS="outcome_committed=kill")
    await front.start(rest, doomed)
    job_id = await front.submit(TEXT)
    await doomed.wait()

    heir = front.stages("heir-ack", "validate")
    await front.start(heir)
    await front.finished(job_id)

    async def counted() -> bool:
        return 'docstage_deliveries_total{outcome="stale",stage="validate"} 1.0' in await heir.metrics()

    await eventually(counted)
    for process in (rest, heir):
        process.close()
