"""A private S3 object store: SeaweedFS."""

import contextlib
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import ClassVar

from deploy.local.console import LauncherError
from deploy.local.daemon import Daemon, base_environment, wait_until
from deploy.local.instance import ADMIN_GRPC_OFFSET, ROOT, write_private
from deploy.local.s3_request import S3Account
from deploy.local.service import Service

REGION = "us-east-1"
BUCKET = "docstage"
WEED = ROOT / ".venv" / "bin" / "weed"
_SETTLE_SECONDS = 30.0
# SeaweedFS puts one socket per gRPC port there, whatever TMPDIR says, and does not remove it.
_SOCKETS = Path("/tmp")  # noqa: S108 - named by the program, not by us
_PARTS = ("master", "volume", "filer", "s3")


@dataclass(frozen=True, slots=True)
class S3(Service):
    """SeaweedFS in one process, on loopback, told to flush each object to disk before it answers."""

    name: ClassVar[str] = "s3"
    port_names: ClassVar[Sequence[str]] = (*(f"{part}{kind}" for part in _PARTS for kind in ("", "_grpc")), "admin")
    secret_names: ClassVar[Sequence[str]] = ("s3_access_key", "s3_secret_key")
    grace_seconds: ClassVar[float] = 10.0

    @property
    def endpoint(self) -> str:
        """Return the address of the S3 API."""
        return f"http://127.0.0.1:{self.state.port('s3')}"

    @property
    def account(self) -> S3Account:
        """Return the one identity, which may do everything."""
        return S3Account(
            port=self.state.port("s3"),
            region=REGION,
            access_key=self.state.secret("s3_access_key"),
            secret_key=self.state.secret("s3_secret_key"),
        )

    def daemons(self) -> Sequence[Daemon]:
        """Return SeaweedFS, without the parts that nobody here uses and without its telemetry."""
        listening = [
            f"-{part}.port{suffix}={self.state.port(part + kind)}"
            for part in _PARTS
            for kind, suffix in (("", ""), ("_grpc", ".grpc"))
        ]
        admin = self.state.port("admin")
        argv = [
            *(str(WEED), "-logtostderr=true", "mini", f"-dir={self._home / 'data'}"),
            *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", *listening, f"-s3.config={self._config}"),
            *("-s3.port.iceberg=0", "-s3.port.lance=0", "-webdav=false", "-admin.ui=false"),
            *(f"-admin.port={admin}", f"-admin.port.grpc={admin + ADMIN_GRPC_OFFSET}", "-master.telemetry=false"),
        ]
        return [Daemon(self.name, self.instance, argv=argv, cwd=self._home)]

    def prepare(self) -> None:
        """Write the identity file."""
        if not WEED.exists():
            message = f"{WEED} is missing; `make setup` installs it"
            raise LauncherError(message)
        (self._home / "data").mkdir(parents=True, exist_ok=True)
        identity = {
            "name": "docstage",
            "credentials": [{"accessKey": self.account.access_key, "secretKey": self.account.secret_key}],
            "actions": ["Admin"],
        }
        write_private(self._config, json.dumps({"identities": [identity]}))
        self._remove_sockets()

    def healthy(self) -> bool:
        """List the buckets."""
        return self._answers("GET", "/", HTTPStatus.OK)

    def settle(self) -> None:
        """Create the bucket, have every object flushed, and wait until one can be stored and read back.

        Raises:
            LauncherError: it does not take an object, or does not hold to the setting.
        """
        if not wait_until(self._stores, _SETTLE_SECONDS):
            message = f"s3 takes no object; see {self.instance.logs}/s3.log"
            raise LauncherError(message)
        kept = self._shell("fs.configure -locationPrefix=/buckets/ -fsync -apply", "fs.configure")
        if '"fsync":true' not in "".join(kept.split()):
            message = "s3 did not accept the setting that flushes objects to disk"
            raise LauncherError(message)

    def stop(self) -> None:
        """End it in good order."""
        super(S3, self).stop()
        self._remove_sockets()

    def kill(self) -> None:
        """End it at once."""
        super(S3, self).kill()
        self._remove_sockets()

    @property
    def _home(self) -> Path:
        return self.instance.root / "s3"

    @property
    def _config(self) -> Path:
        return self._home / "identities.json"

    def _stores(self) -> bool:
        return (
            self._answers("PUT", f"/{BUCKET}", HTTPStatus.OK, HTTPStatus.CONFLICT)
            and self._answers("PUT", f"/{BUCKET}/.probe", HTTPStatus.OK, body=b"probe")
            and self._answers("GET", f"/{BUCKET}/.probe", HTTPStatus.OK)
            and self._answers("DELETE", f"/{BUCKET}/.probe", HTTPStatus.NO_CONTENT)
        )

    def _answers(self, method: str, path: str, *statuses: HTTPStatus, body: bytes = b"") -> bool:
        with contextlib.suppress(OSError, HTTPException):
            return self.account.request(method, path, body)[0] in statuses
        return False

    def _shell(self, *commands: str) -> str:
        master, filer = (
            f"127.0.0.1:{self.state.port(part)}.{self.state.port(f'{part}_grpc')}" for part in ("master", "filer")
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            return subprocess.run(
                [str(WEED), "shell", f"-master={master}", f"-filer={filer}"],
                input="\n".join([*commands, ""]),
                cwd=self._home,
                env=base_environment(),
                capture_output=True,
                timeout=_SETTLE_SECONDS,
                text=True,
                check=False,
            ).stdout
        return ""

    def _remove_sockets(self) -> None:
        known = [self.state.port(name) for name in self.port_names]
        for port in (*known, self.state.port("admin") + ADMIN_GRPC_OFFSET):
            for socket in _SOCKETS.glob(f"seaweedfs-*-{port}.sock"):
                socket.unlink(missing_ok=True)
