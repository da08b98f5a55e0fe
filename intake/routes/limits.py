"""What this installation takes, keeps and allows."""

from datetime import timedelta

from fastapi import APIRouter, Response

from intake.dependencies import Intake, Tenant
from intake.responses import LimitsView
from intake.routes.answers import PROBLEM, json_answer
from schema.domain.kinds import Kind, MediaType
from schema.domain.options import OcrMode

router = APIRouter(prefix="/v1/limits", tags=["limits"], responses=PROBLEM)


@router.get("", response_model=LimitsView)
async def limits(intake: Intake, tenant: Tenant) -> Response:
    """Say what is accepted and for how long it is kept, and how much of the quota is used."""
    acceptance, settings = intake.acceptance, intake.settings
    view = LimitsView(
        max_upload_bytes=acceptance.max_upload_bytes,
        media_types=[media_type.value for media_type in MediaType],
        kinds=list(Kind),
        languages=sorted(acceptance.bounds.languages) or None,
        ocr=list(OcrMode),
        document=settings.document_limits().as_json(),
        parser=settings.parser_limits(),
        default_deadline_seconds=acceptance.bounds.default_deadline_seconds,
        max_deadline_seconds=acceptance.bounds.max_deadline_seconds,
        retention_seconds=int(acceptance.retention.total_seconds()),
        idempotency_key_seconds=int(timedelta(hours=settings.idempotency_hours).total_seconds()),
        max_wait_seconds=settings.max_wait_seconds,
        max_unfinished_jobs=intake.admission.max_tenant_jobs,
        unfinished_jobs=await intake.admission.unfinished(tenant),
    )
    return json_answer(view)
