"""Ports that are free, and stay ours while a service is down."""

import random
import socket
from collections.abc import Collection
from pathlib import Path

from deploy.local.console import LauncherError

_LOWEST = 15_000
_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_TRIES = 200


def pick(taken: Collection[int], *, twin: int = 0) -> int:
    """Return a free port that is not in ``taken``, whose neighbour ``twin`` ports above is free as well.

    Ports come from below the ephemeral range: there no client's own end of a connection can take the port of a
    service that is being restarted.

    Raises:
        LauncherError: there is none.
    """
    highest = _lowest_ephemeral() - 1 - twin
    for _ in range(_TRIES):
        port = random.randint(_LOWEST, highest)  # noqa: S311 - spreads instances, hides nothing
        if not {port, port + twin} & set(taken) and is_free(port) and is_free(port + twin):
            return port
    message = f"no free port between {_LOWEST} and {highest}"
    raise LauncherError(message)


def is_free(port: int) -> bool:
    """Tell whether nothing listens on ``port`` of any address.

    SO_REUSEADDR looks past connections in TIME_WAIT, which do not keep a service from starting.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def _lowest_ephemeral() -> int:
    try:
        return int(_RANGE_FILE.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 32_768
