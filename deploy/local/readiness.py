"""Wait until the processes say that they serve."""

import contextlib
import http.client
from collections.abc import Mapping
from http import HTTPStatus

from deploy.local.console import LauncherError
from deploy.local.daemon import wait_until


def wait(ports: Mapping[str, int], seconds: float) -> None:
    """Wait until ``/readyz`` of each named process answers 200.

    Raises:
        LauncherError: some did not in time; the message names them.
    """
    if not wait_until(lambda: not missing(ports), seconds):
        message = f"not ready: {', '.join(missing(ports))}; see `make logs`"
        raise LauncherError(message)


def missing(ports: Mapping[str, int]) -> list[str]:
    """Return the names of those that are not ready."""
    return [name for name, port in ports.items() if not _says_ready(port)]


def _says_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/readyz")
        return connection.getresponse().status == HTTPStatus.OK
    return False
