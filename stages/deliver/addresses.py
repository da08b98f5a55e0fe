"""From a target's name to the addresses that a webhook may be sent to."""

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Protocol

from schema.domain.notices import DeliveryCode
from schema.domain.targets import Address, Networks, Target, may_go_to


class RefusedTargetError(Exception):
    """A target that nothing is sent to; ``code`` says why."""

    def __init__(self, code: DeliveryCode) -> None:
        """Keep the code."""
        super().__init__(code.value)
        self.code = code


class Resolver(Protocol):
    """Finds a name's addresses."""

    async def resolve(self, host: str, port: int) -> Sequence[Address]:
        """Return the addresses, the best first; raises ``OSError`` when there are none."""


class SystemResolver:
    """The system's resolver, in threads of its own: a name server that is slow must not hold up anything else."""

    def __init__(self, threads: int) -> None:
        """Nothing is started before the first question."""
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="resolve")

    async def resolve(self, host: str, port: int) -> Sequence[Address]:
        """Ask the system."""
        found = await asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
        return list(dict.fromkeys(ip_address(entry[4][0]) for entry in found))


async def permitted(target: Target, resolver: Resolver, networks: Networks) -> Sequence[Address]:
    """Resolve a target once and return the addresses that may be connected to.

    Whoever sends connects to one of these and to nothing else: a name that is resolved again could lead elsewhere
    by then. Plain http is for listed networks alone.

    Raises:
        RefusedTargetError: ``name_not_resolved``, or ``address_refused`` when none of its addresses is permitted.
    """
    try:
        literal = target.address
        found = [literal] if literal else await resolver.resolve(target.host, target.port)
    except (OSError, UnicodeError):
        raise RefusedTargetError(DeliveryCode.NAME_NOT_RESOLVED) from None
    allowed = [address for address in found if may_go_to(address, scheme=target.scheme, networks=networks)]
    if not allowed:
        raise RefusedTargetError(DeliveryCode.ADDRESS_REFUSED)
    return allowed
