"""What clients send and are shown about webhooks."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import Field

from intake.bodies import Wish
from intake.responses import View
from intake.webhooks import Shown
from schema.db.webhook_deliveries import DeliveryRecord
from schema.db.webhook_endpoints import Endpoint
from schema.domain.notices import DeliveryStatus, NoticeType

Events = Annotated[list[NoticeType], Field(min_length=1, max_length=len(NoticeType))]


class NewEndpoint(Wish):
    """An endpoint to add; without ``events`` it is told all of them."""

    url: str
    events: Events = Field(default_factory=lambda: list(NoticeType))


class EndpointChange(Wish):
    """What to change of an endpoint; what is left out stays as it is."""

    url: str | None = None
    events: Events | None = None
    enabled: bool | None = None


class EndpointView(View):
    """An endpoint; ``disabled_reason`` is ``owner``, or ``gone`` after an answer with status 410."""

    id: UUID
    url: str
    events: list[NoticeType]
    enabled: bool
    disabled_reason: str | None
    created_at: datetime
    previous_secret_until: datetime | None


class EndpointList(View):
    """All endpoints, oldest first."""

    endpoints: list[EndpointView]


class EndpointSecretView(EndpointView):
    """An endpoint with its secret, which is shown this once."""

    secret: str


class DeliveryAttemptView(View):
    """One attempt: the receiver's status, or the code of why there was none."""

    at: datetime
    series: int
    attempt: int
    status: int | None
    code: str | None
    seconds: float


class DeliveryView(View):
    """The telling of one event to one endpoint; ``event_id`` is the message's ``webhook-id``."""

    event_id: UUID
    job_id: UUID
    type: NoticeType
    status: DeliveryStatus
    series: int
    attempt: int
    next_attempt_at: datetime | None
    created_at: datetime
    delivered_at: datetime | None
    attempts: list[DeliveryAttemptView]


class DeliveryList(View):
    """A page of deliveries, newest first."""

    deliveries: list[DeliveryView]
    next_page_token: str | None


_SHOWN_OF_ATTEMPTS: Final = frozenset(DeliveryAttemptView.model_fields)


def endpoint_view(endpoint: Endpoint) -> EndpointView:
    """Show an endpoint."""
    return EndpointView(**_endpoint(endpoint))


def secret_view(shown: Shown) -> EndpointSecretView:
    """Show an endpoint with its secret."""
    return EndpointSecretView(**_endpoint(shown.endpoint), secret=shown.secret)


def delivery_view(delivery: DeliveryRecord) -> DeliveryView:
    """Show a delivery."""
    return DeliveryView(
        event_id=delivery.event_id,
        job_id=delivery.job_id,
        type=NoticeType(delivery.type),
        status=delivery.status,
        series=delivery.series,
        attempt=delivery.attempt,
        next_attempt_at=delivery.next_attempt_at,
        created_at=delivery.created_at,
        delivered_at=delivery.delivered_at,
        attempts=[_attempt(entry) for entry in delivery.history],
    )


def _attempt(entry: Mapping[str, Any]) -> DeliveryAttemptView:
    return DeliveryAttemptView(**{name: value for name, value in entry.items() if name in _SHOWN_OF_ATTEMPTS})


def _endpoint(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "id": endpoint.id,
        "url": endpoint.url,
        "events": list(endpoint.events),
        "enabled": endpoint.disabled_at is None,
        "disabled_reason": endpoint.disabled_reason,
        "created_at": endpoint.created_at,
        "previous_secret_until": endpoint.previous_until,
    }
