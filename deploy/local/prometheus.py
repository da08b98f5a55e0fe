"""A private Prometheus that watches the processes and the broker."""

import contextlib
import http.client
import json
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import ClassVar

from deploy.local.daemon import Daemon
from deploy.local.instance import ROOT
from deploy.local.service import Service

_RULES = ROOT / "deploy" / "prometheus"


@dataclass(frozen=True, slots=True)
class Prometheus(Service):
    """Prometheus on loopback, with the alert rules of ``deploy/prometheus``."""

    name: ClassVar[str] = "prometheus"
    port_names: ClassVar[Sequence[str]] = ("prometheus",)
    secret_names: ClassVar[Sequence[str]] = ()

    targets: Mapping[str, int] = field(default_factory=dict)
    """The metrics port of each process, by its name."""

    @property
    def url(self) -> str:
        """Return the address of its page and API."""
        return f"http://127.0.0.1:{self.state.port('prometheus')}"

    def daemons(self) -> Sequence[Daemon]:
        """Return the server."""
        argv = [
            shutil.which("prometheus") or "prometheus",
            f"--config.file={self._config}",
            f"--web.listen-address=127.0.0.1:{self.state.port('prometheus')}",
            f"--storage.tsdb.path={self._home / 'data'}",
            "--storage.tsdb.retention.time=7d",
            "--log.level=warn",
        ]
        return [Daemon(self.name, self.instance, argv=argv, cwd=self._home)]

    def prepare(self) -> None:
        """Write the configuration."""
        self._home.mkdir(exist_ok=True)
        # JSON is YAML, and the standard library writes it.
        self._config.write_text(json.dumps(self._configuration(), indent=1), encoding="utf-8")

    def healthy(self) -> bool:
        """Ask whether it serves queries."""
        connection = http.client.HTTPConnection("127.0.0.1", self.state.port("prometheus"), timeout=3)
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/-/ready")
            return connection.getresponse().status == HTTPStatus.OK
        return False

    def settle(self) -> None:
        """Have a server that already ran read today's configuration and rules."""
        self.prepare()
        for daemon in self.daemons():
            daemon.send(signal.SIGHUP)

    @property
    def _home(self) -> Path:
        return self.instance.root / "prometheus"

    @property
    def _config(self) -> Path:
        return self._home / "prometheus.yml"

    def _configuration(self) -> dict[str, object]:
        processes = [
            {"targets": [f"127.0.0.1:{port}"], "labels": {"process": process}} for process, port in self.targets.items()
        ]
        broker = [{"targets": [f"127.0.0.1:{self.state.port('rabbitmq_metrics')}"]}]
        return {
            "global": {"scrape_interval": "5s", "evaluation_interval": "5s"},
            "rule_files": [str(path) for path in sorted(_RULES.glob("rules*.yml"))],
            "scrape_configs": [
                {"job_name": "docstage", "static_configs": processes},
                {"job_name": "rabbitmq", "static_configs": broker},
            ],
        }
