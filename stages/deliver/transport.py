"""One POST to an address that was checked, with an end to everything about it."""

import asyncio
import contextlib
import ssl
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Final

import httpx

from schema.domain.notices import Answer, DeliveryCode
from schema.domain.targets import Address, Networks, Target, authority, parse_target
from stages.deliver.addresses import RefusedTargetError, Resolver, permitted
from stages.wishes import read_wish

MAX_ADDRESSES: Final = 3
# An answer's body says nothing that we want to know; it is taken in so that its sender may finish, not longer.
MAX_BODY_BYTES: Final = 64 << 10
BODY_SECONDS: Final = 1.0
_WISHES: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


class Transport:
    """Sends to targets that tenants have named, and to no address that they should not reach through us."""

    def __init__(self, *, resolver: Resolver, networks: Networks, timeout_seconds: float, ca_file: str = "") -> None:
        """Make the client.

        It takes no proxy from its environment, follows no redirect and keeps no connection: kept ones are told apart
        by address and port alone, so that one name could be sent another's messages.
        """
        self._resolver = resolver
        self._networks = networks
        self._timeout = timeout_seconds
        self._http = httpx.AsyncClient(
            verify=ssl.create_default_context(cafile=ca_file) if ca_file else True,
            trust_env=False,
            follow_redirects=False,
            timeout=None,  # noqa: S113 - one outer limit holds for name, connection and answer together
            limits=httpx.Limits(max_keepalive_connections=0),
            headers={"User-Agent": "docstage-webhooks/1", "Accept": "*/*"},
        )

    async def close(self) -> None:
        """Close what is open."""
        await self._http.aclose()

    async def post(self, url: str, *, body: bytes, headers: Mapping[str, str], now: datetime) -> Answer:
        """Send; whatever goes wrong is an answer.

        Args:
            url: where to.
            body: JSON.
            headers: those that identify and sign it.
            now: what a wish given as a date is counted from.
        """
        try:
            target = parse_target(url)
            async with asyncio.timeout(self._timeout):
                addresses = await permitted(target, self._resolver, self._networks)
                return await self._send(target, addresses, body, headers, now)
        except RefusedTargetError as error:
            return Answer(code=error.code)
        except TimeoutError:
            return Answer(code=DeliveryCode.TIMEOUT)
        except httpx.TransportError as error:
            return Answer(code=DeliveryCode.TLS_FAILED if _is_tls(error) else DeliveryCode.CONNECTION_FAILED)

    async def _send(
        self, target: Target, addresses: Sequence[Address], body: bytes, headers: Mapping[str, str], now: datetime
    ) -> Answer:
        """Send to the first address that can be connected to."""
        *others, last = addresses[:MAX_ADDRESSES]
        for address in others:
            with contextlib.suppress(httpx.ConnectError):
                return await self._send_to(address, target, body, headers, now)
        return await self._send_to(last, target, body, headers, now)

    async def _send_to(
        self, address: Address, target: Target, body: bytes, headers: Mapping[str, str], now: datetime
    ) -> Answer:
        """Connect to the address, but speak to the name: in the Host header and in what TLS checks."""
        place = authority(str(address), target.port, target.scheme)
        request = self._http.stream(
            "POST",
            f"{target.scheme}://{place}{target.path}",
            content=body,
            headers={"Content-Type": "application/json", "Host": target.authority, **headers},
            extensions={"sni_hostname": target.host},
        )
        async with request as response:
            wish = response.headers.get("retry-after") if response.status_code in _WISHES else None
            answer = Answer(status=response.status_code, retry_after=read_wish(wish, now))
            with contextlib.suppress(TimeoutError, httpx.TransportError):
                async with asyncio.timeout(BODY_SECONDS):
                    await _take_in(response)
        return answer


async def _take_in(response: httpx.Response) -> None:
    """Read a body as it comes, compressed or not, up to the bound; keep nothing."""
    size = 0
    async for chunk in response.aiter_raw():
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            return


def _is_tls(error: BaseException) -> bool:
    """Say whether TLS is what failed; the libraries wrap its error once or twice."""
    return any(isinstance(cause, ssl.SSLError) for cause in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
