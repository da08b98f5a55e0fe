"""What an owner may do about webhooks: each one transaction, and nothing of it for another tenant's endpoints."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from intake.problems import Problem, ProblemCode
from intake.services import Services
from schema.db import webhook_deliveries, webhook_endpoints
from schema.db.webhook_deliveries import DeliveryRecord
from schema.db.webhook_endpoints import Endpoint, NewEndpoint
from schema.domain.ids import new_id
from schema.domain.notices import DeliveryStatus, NoticeType
from schema.domain.targets import Networks, TargetError, check_url
from schema.wire.webhooks import new_secret, shown_secret


@dataclass(frozen=True, slots=True)
class Shown:
    """An endpoint with its secret, as it is shown once."""

    endpoint: Endpoint
    secret: str


@dataclass(frozen=True, slots=True)
class Page:
    """Some deliveries, and the event to go on behind."""

    deliveries: Sequence[DeliveryRecord]
    next_before: UUID | None


def checked_url(url: str, networks: Networks) -> str:
    """Return a URL that may be sent to as far as that can be told without resolving its name.

    Raises:
        Problem: ``invalid_parameter``.
    """
    try:
        check_url(url, networks)
    except TargetError as error:
        raise Problem(ProblemCode.INVALID_PARAMETER, f"url: {error}.", parameter="url") from None
    return url


async def add(intake: Services, tenant_id: UUID, *, url: str, events: Sequence[NoticeType]) -> Shown:
    """Keep a new endpoint.

    Raises:
        Problem: ``webhooks_unavailable``, ``too_many_webhooks``, ``invalid_parameter``.
    """
    endpoint_id = new_id()
    secret, sealed = _sealed_secret(intake, endpoint_id)
    new = NewEndpoint(endpoint_id, tenant_id, checked_url(url, intake.settings.networks()), events, sealed)
    bound = intake.settings.max_webhooks
    async with intake.database.transaction() as conn:
        if not await webhook_endpoints.add(conn, new, bound=bound):
            raise Problem(ProblemCode.TOO_MANY_WEBHOOKS, limit=bound)
        return Shown(_there(await webhook_endpoints.find(conn, endpoint_id=endpoint_id, tenant_id=tenant_id)), secret)


async def list_all(intake: Services, tenant_id: UUID) -> list[Endpoint]:
    """Return a tenant's endpoints, oldest first."""
    async with intake.database.transaction() as conn:
        return await webhook_endpoints.list_of(conn, tenant_id=tenant_id)


async def find(intake: Services, tenant_id: UUID, endpoint_id: UUID) -> Endpoint:
    """Return one of a tenant's endpoints.

    Raises:
        Problem: ``not_found``, also for another tenant's.
    """
    async with intake.database.transaction() as conn:
        return _there(await webhook_endpoints.find(conn, endpoint_id=endpoint_id, tenant_id=tenant_id))


async def change(
    intake: Services,
    tenant_id: UUID,
    endpoint_id: UUID,
    *,
    url: str | None,
    events: Sequence[NoticeType] | None,
    enabled: bool | None,
) -> Endpoint:
    """Change what is given of an endpoint.

    Raises:
        Problem: ``not_found``, ``invalid_parameter``.
    """
    if url is not None:
        checked_url(url, intake.settings.networks())
    async with intake.database.transaction() as conn:
        await webhook_endpoints.change(
            conn, endpoint_id=endpoint_id, tenant_id=tenant_id, url=url, events=events, enabled=enabled
        )
        return _there(await webhook_endpoints.find(conn, endpoint_id=endpoint_id, tenant_id=tenant_id))


async def rotate(intake: Services, tenant_id: UUID, endpoint_id: UUID) -> Shown:
    """Give an endpoint a new secret; messages are signed with the old one too for a while.

    Raises:
        Problem: ``not_found``, ``webhooks_unavailable``.
    """
    secret, sealed = _sealed_secret(intake, endpoint_id)
    overlap = timedelta(hours=intake.settings.webhook_overlap_hours)
    async with intake.database.transaction() as conn:
        await webhook_endpoints.rotate(
            conn, endpoint_id=endpoint_id, tenant_id=tenant_id, secret=sealed, overlap=overlap
        )
        return Shown(_there(await webhook_endpoints.find(conn, endpoint_id=endpoint_id, tenant_id=tenant_id)), secret)


async def remove(intake: Services, tenant_id: UUID, endpoint_id: UUID) -> None:
    """Remove an endpoint; what it was still owed is not sent.

    Raises:
        Problem: ``not_found``.
    """
    async with intake.database.transaction() as conn:
        if not await webhook_endpoints.remove(conn, endpoint_id=endpoint_id, tenant_id=tenant_id):
            raise Problem(ProblemCode.NOT_FOUND)


async def deliveries(
    intake: Services,
    tenant_id: UUID,
    endpoint_id: UUID,
    *,
    status: DeliveryStatus | None,
    before: UUID | None,
    size: int,
) -> Page:
    """Return a page of an endpoint's deliveries, newest first.

    Raises:
        Problem: ``not_found``.
    """
    async with intake.database.transaction() as conn:
        _there(await webhook_endpoints.find(conn, endpoint_id=endpoint_id, tenant_id=tenant_id))
        found = await webhook_deliveries.page(
            conn, endpoint_id=endpoint_id, status=status, before=before, limit=size + 1
        )
    return Page(found[:size], found[size - 1].event_id if len(found) > size else None)


async def redeliver(intake: Services, tenant_id: UUID, endpoint_id: UUID, event_id: UUID) -> DeliveryRecord:
    """Tell an endpoint of an event again, with a whole schedule of attempts.

    Raises:
        Problem: ``not_found``, ``webhook_disabled``.
    """
    async with intake.database.transaction() as conn:
        endpoint = _there(await webhook_endpoints.find(conn, endpoint_id=endpoint_id, tenant_id=tenant_id))
        if endpoint.disabled_at is not None:
            raise Problem(ProblemCode.WEBHOOK_DISABLED)
        reopened = await webhook_deliveries.reopen(conn, endpoint_id=endpoint_id, event_id=event_id)
    if reopened is None:
        raise Problem(ProblemCode.NOT_FOUND)
    intake.waker.wake()
    return reopened


def _there(endpoint: Endpoint | None) -> Endpoint:
    if endpoint is None:
        raise Problem(ProblemCode.NOT_FOUND)
    return endpoint


def _sealed_secret(intake: Services, endpoint_id: UUID) -> tuple[str, bytes]:
    """Draw a secret: as it is shown, and as it is kept."""
    if not intake.vault.can_seal:
        raise Problem(ProblemCode.WEBHOOKS_UNAVAILABLE)
    secret = new_secret()
    return shown_secret(secret), intake.vault.seal(secret, owner=endpoint_id.bytes)
