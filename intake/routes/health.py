"""Whether this process lives, can do its work, and how it is doing."""

import asyncio
from collections.abc import Awaitable
from http import HTTPStatus
from typing import Final

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import PlainTextResponse

from intake.dependencies import Intake
from schema.db.engine import is_unavailable
from schema.domain.errors import TransientError

CHECK_SECONDS: Final = 3.0

router = APIRouter(tags=["health"])

# Kept until they have ended: a frozen database holds up even the closing of its connection.
_given_up: Final[set[asyncio.Future[bool]]] = set()


@router.get("/livez", response_class=PlainTextResponse)
async def livez() -> str:
    """Say that the process answers."""
    return "alive\n"


@router.get("/readyz", response_class=PlainTextResponse)
async def readyz(intake: Intake) -> Response:
    """Say what is missing: 503 when no job could be taken in, 200 with ``degraded`` when it could but would wait."""
    database, store, broker = await asyncio.gather(
        _answers(intake.database.ping()), _answers(intake.blobs.ping()), intake.broker.missing()
    )
    missing = [name for name, answers in (("database", database), ("object store", store)) if not answers]
    lines = [f"missing: {name}" for name in missing] + [f"degraded: {phrase}" for phrase in broker]
    status = HTTPStatus.SERVICE_UNAVAILABLE if missing else HTTPStatus.OK
    return PlainTextResponse("\n".join([*lines, "not ready" if missing else "ready", ""]), status)


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics() -> Response:
    """Return this process's metrics for Prometheus."""
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


async def _answers(question: Awaitable[None]) -> bool:
    """Say whether a dependency answers in time; a question that is given up may take longer to end than that."""
    asking = asyncio.ensure_future(_told(question))
    answered, _ = await asyncio.wait({asking}, timeout=CHECK_SECONDS)
    if not answered:
        _given_up.add(asking)
        asking.add_done_callback(_given_up.discard)
        asking.cancel()
        return False
    return asking.result()


async def _told(question: Awaitable[None]) -> bool:
    """Say whether a dependency answers at all."""
    try:
        await question
    except TransientError:
        return False
    except Exception as error:
        if not is_unavailable(error):
            raise
        return False
    return True
