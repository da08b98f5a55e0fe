"""Webhooks: where to tell of finished jobs, and what became of each telling."""

from http import HTTPStatus
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from intake import webhooks
from intake.bodies import Wish, read_wish
from intake.dependencies import Intake, Tenant, base_url
from intake.problems import Problem, ProblemCode
from intake.routes.answers import PROBLEM, json_answer, read_token, token
from intake.webhook_views import (
    DeliveryList,
    DeliveryView,
    EndpointChange,
    EndpointList,
    EndpointSecretView,
    EndpointView,
    NewEndpoint,
    delivery_view,
    endpoint_view,
    secret_view,
)
from schema.domain.notices import DeliveryStatus

MAX_PAGE: Final = 1000

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], responses=PROBLEM)


def _takes(shape: type[Wish]) -> dict[str, Any]:
    """Describe a body that is read by ``read_wish``."""
    content = {"application/json": {"schema": shape.model_json_schema(ref_template="#/components/schemas/{model}")}}
    return {"requestBody": {"required": True, "content": content}}


def _uuid(value: str) -> UUID:
    """Read an id; ids are opaque, so one of another form is just not there."""
    try:
        return UUID(value)
    except ValueError:
        raise Problem(ProblemCode.NOT_FOUND) from None


async def _endpoint_id(endpoint_id: Annotated[str, Path(description="An endpoint's id.")]) -> UUID:
    return _uuid(endpoint_id)


async def _event_id(event_id: Annotated[str, Path(description="An event's id, the message's webhook-id.")]) -> UUID:
    return _uuid(event_id)


EndpointId = Annotated[UUID, Depends(_endpoint_id)]
EventId = Annotated[UUID, Depends(_event_id)]


@router.post("", status_code=HTTPStatus.CREATED, response_model=EndpointSecretView, openapi_extra=_takes(NewEndpoint))
async def add(request: Request, intake: Intake, tenant: Tenant) -> Response:
    """Add an endpoint. Its secret is in this answer and in no other."""
    wish = await read_wish(request, NewEndpoint)
    view = secret_view(await webhooks.add(intake, tenant, url=wish.url, events=wish.events))
    headers = {"Location": f"{base_url(request, intake)}/v1/webhooks/{view.id}"}
    return json_answer(view, status=HTTPStatus.CREATED, headers=headers)


@router.get("", response_model=EndpointList)
async def index(intake: Intake, tenant: Tenant) -> Response:
    """List all endpoints."""
    found = await webhooks.list_all(intake, tenant)
    return json_answer(EndpointList(endpoints=[endpoint_view(endpoint) for endpoint in found]))


@router.get("/{endpoint_id}", response_model=EndpointView)
async def show(intake: Intake, tenant: Tenant, endpoint_id: EndpointId) -> Response:
    """Show an endpoint, without its secret."""
    return json_answer(endpoint_view(await webhooks.find(intake, tenant, endpoint_id)))


@router.patch("/{endpoint_id}", response_model=EndpointView, openapi_extra=_takes(EndpointChange))
async def change(request: Request, intake: Intake, tenant: Tenant, endpoint_id: EndpointId) -> Response:
    """Change an endpoint: its URL, its events, or whether it is told at all."""
    wish = await read_wish(request, EndpointChange)
    after = await webhooks.change(intake, tenant, endpoint_id, url=wish.url, events=wish.events, enabled=wish.enabled)
    return json_answer(endpoint_view(after))


@router.delete("/{endpoint_id}", status_code=HTTPStatus.NO_CONTENT)
async def remove(intake: Intake, tenant: Tenant, endpoint_id: EndpointId) -> Response:
    """Remove an endpoint with its deliveries; what it is still owed is not sent."""
    await webhooks.remove(intake, tenant, endpoint_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.post("/{endpoint_id}/rotate", response_model=EndpointSecretView)
async def rotate(intake: Intake, tenant: Tenant, endpoint_id: EndpointId) -> Response:
    """Give an endpoint a new secret, shown this once. The old one signs too until ``previous_secret_until``."""
    return json_answer(secret_view(await webhooks.rotate(intake, tenant, endpoint_id)))


@router.get("/{endpoint_id}/deliveries", response_model=DeliveryList)
async def deliveries(
    *,
    intake: Intake,
    tenant: Tenant,
    endpoint_id: EndpointId,
    status: DeliveryStatus | None = None,
    page_token: str | None = None,
    page_size: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100,
) -> Response:
    """List what an endpoint was told or is still owed, newest first."""
    before = read_token(page_token) if page_token is not None else None
    page = await webhooks.deliveries(intake, tenant, endpoint_id, status=status, before=before, size=page_size)
    following = token(page.next_before) if page.next_before else None
    return json_answer(
        DeliveryList(deliveries=[delivery_view(one) for one in page.deliveries], next_page_token=following)
    )


@router.post(
    "/{endpoint_id}/deliveries/{event_id}/redeliver", status_code=HTTPStatus.ACCEPTED, response_model=DeliveryView
)
async def redeliver(intake: Intake, tenant: Tenant, endpoint_id: EndpointId, event_id: EventId) -> Response:
    """Tell an endpoint of an event again, whatever became of it, under the same ``webhook-id``."""
    again = await webhooks.redeliver(intake, tenant, endpoint_id, event_id)
    return json_answer(delivery_view(again), status=HTTPStatus.ACCEPTED)
