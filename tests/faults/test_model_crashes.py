"""Workers killed with a model's answer in hand: it is paid for once."""

import pytest

from schema.domain.kinds import Kind
from schema.runtime.blobs import Blobs
from schema.runtime.settings import StoreSettings
from tests.support.crashes import MODEL_POINTS
from tests.support.eventually import eventually
from tests.support.factories import rows
from tests.support.provider import answered, asking, report, said
from tests.support.receiver import receiving
from tests.support.system import System

TEXT = b"Muster GmbH\nTotal EUR 99.00\n"


@pytest.fixture(scope="module")
async def front(system: System) -> System:
    """All but normalize."""
    await system.start(
        system.process("intake", "intake"),
        system.process("publisher", "publisher"),
        system.stages("rest", "validate", "extract", "persist"),
    )
    return system


@pytest.mark.parametrize("point", MODEL_POINTS)
async def test_a_model_is_asked_once_though_its_worker_dies_with_the_answer(front, point):
    """W22: the next worker finds the answer under what was asked; it goes when the job goes."""
    async with receiving() as receiver:
        receiver.answering = lambda _: answered(report(Kind.INVOICE, total=said("99.00", "Total EUR 99.00")))
        doomed = front.stages("doomed", "normalize", DOCSTAGE_FAILPOINTS=f"{point}=kill", **asking(receiver))
        await front.start(doomed)
        job_id = await front.submit(TEXT, kind="invoice")
        assert await doomed.wait() == -9
        assert len(receiver.requests) == 1

        await front.start(front.stages("heir", "normalize", **asking(receiver)))
        job = await front.finished(job_id)

    assert job["status"] == "completed"
    assert len(receiver.requests) == 1
    attempts = await rows(
        front.database,
        "SELECT outcome FROM stage_attempt WHERE job_id = :id AND stage = 'normalize' ORDER BY fencing_token",
        id=job_id,
    )
    assert [attempt["outcome"] for attempt in attempts] == ["worker_lost", "completed"]
    async with front.client() as client:
        result = (await client.get(f"/v1/jobs/{job_id}/result")).json()
        assert (result["engine"], result["invoice"]["total"]["value"]) == ("model-2:small-1", "99.00")
        assert len(await _answers(front, job_id)) == 1
        assert (await client.delete(f"/v1/jobs/{job_id}")).status_code == 204
    await eventually(lambda: _none_left(front, job_id))


async def _none_left(front: System, job_id: str) -> bool:
    return await _answers(front, job_id) == []


async def _answers(front: System, job_id: str) -> list[str]:
    """Return the keys of the answers that are kept for a job."""
    settings = {name.removeprefix("DOCSTAGE_").lower(): value for name, value in front.environment.items()}
    blobs = Blobs.connect(StoreSettings(**{name: settings[name] for name in settings if name.startswith("s3_")}))
    try:
        return [entry.key for entry in await blobs.list(f"jobs/{job_id}/answers/")]
    finally:
        blobs.close()
