"""The whole of Docstage on this machine: services, processes, and the order in which they come and go."""

import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from deploy.local import application, env_file, proc, readiness, services, supervisor
from deploy.local.console import Console
from deploy.local.daemon import Daemon
from deploy.local.instance import ROOT, Instance
from deploy.local.prometheus import Prometheus
from deploy.local.s3 import BUCKET, REGION
from deploy.local.service import Service
from deploy.local.services import ServiceSet

_READY_SECONDS = 180.0
# Longer than the supervisor gives the processes, so that it is the one who ends them.
_SUPERVISOR_GRACE_SECONDS = supervisor.GRACE_SECONDS + 10
_API_KEY = "api_key"


@dataclass(frozen=True, slots=True)
class Stack:
    """One instance with all that runs in it."""

    instance: Instance
    console: Console

    def up(self) -> bool:
        """Start what does not run yet and wait until it serves.

        Idempotent: yes; processes started with older code or settings are started anew.

        Returns:
            False when the processes were already running.

        Raises:
            LauncherError: a part did not come up; the message says which and where its log is.
        """
        services.start(self._services(), self.console)
        own = ServiceSet.of(self.instance)
        own.postgres.create_database(application.DATABASE)
        started = self._start_processes()
        readiness.wait(application.ports(self.instance.state), _READY_SECONDS)
        self.console.say("all processes are ready")
        env_file.write(self.instance.name, self.addresses())
        return started

    def down(self) -> None:
        """End the processes, then the services."""
        if self._supervisor().pid() is not None:
            self.console.say("ending the processes")
        self._supervisor().stop(signal.SIGTERM, _SUPERVISOR_GRACE_SECONDS)
        services.stop(self._services(), self.console)

    def status(self) -> str:
        """Return one line per program: its name and process id, or that it does not run."""
        programs = [daemon.name for service in self._services() for daemon in service.daemons()]
        names = [*programs, "supervisor", *application.PORT_NAMES]
        records = {name: proc.Identity.recorded(self.instance.pids / f"{name}.json") for name in names}
        return "\n".join(
            f"{name:12} {'not running' if record is None else f'running, process {record.pid}'}"
            for name, record in records.items()
        )

    def addresses(self) -> dict[str, str]:
        """Return what a client of this instance needs."""
        own = ServiceSet.of(self.instance)
        return {
            "DOCSTAGE_URL": f"http://127.0.0.1:{self.instance.state.port('http')}",
            "DOCSTAGE_API_KEY": self.instance.state.secret(_API_KEY),
            "DOCSTAGE_DATABASE_URL": own.postgres.url(application.DATABASE),
            "DOCSTAGE_AMQP_URL": own.rabbitmq.amqp_url,
            "DOCSTAGE_MANAGEMENT_URL": own.rabbitmq.management_url,
            "DOCSTAGE_S3_ENDPOINT": own.s3.endpoint,
            "DOCSTAGE_S3_BUCKET": BUCKET,
            "DOCSTAGE_S3_REGION": REGION,
            "DOCSTAGE_S3_ACCESS_KEY": own.s3.account.access_key,
            "DOCSTAGE_S3_SECRET_KEY": own.s3.account.secret_key,
            "DOCSTAGE_PROMETHEUS_URL": self._prometheus().url,
            **application.metrics_urls(self.instance.state),
        }

    def _services(self) -> Sequence[Service]:
        return [*ServiceSet.of(self.instance).all(), self._prometheus()]

    def _prometheus(self) -> Prometheus:
        return Prometheus(self.instance, targets=application.ports(self.instance.state))

    def _supervisor(self) -> Daemon:
        argv = [sys.executable, "-m", "deploy.local", "supervise", "--name", self.instance.name]
        return Daemon("supervisor", self.instance, argv=argv, cwd=ROOT)

    def _start_processes(self) -> bool:
        """Migrate the database and start the processes, unless both are as the code and settings want them."""
        daemon = self._supervisor()
        wanted, started = application.fingerprint(self.instance), self.instance.root / "started"
        if daemon.pid() is not None and started.exists() and started.read_text(encoding="ascii") == wanted:
            self.console.say("the processes are running")
            return False
        if daemon.pid() is not None:
            self.console.say("code or settings have changed; ending the processes")
        daemon.stop(signal.SIGTERM, _SUPERVISOR_GRACE_SECONDS)
        self._prepare_database()
        self._move_taken_ports()
        daemon.start()
        started.write_text(application.fingerprint(self.instance), encoding="ascii")
        self.console.say("starting the processes")
        return True

    def _prepare_database(self) -> None:
        application.migrate(self.instance)
        self.console.say("database is at the newest schema")
        if self.instance.state.kept_secret(_API_KEY) is None:
            self.instance.state.keep_secret(_API_KEY, application.create_api_key(self.instance))
            self.console.say("API key created")

    def _move_taken_ports(self) -> None:
        state = self.instance.state
        for name in state.move_taken_ports(list(application.PORT_NAMES.values())):
            self.console.say(f"another program has taken the {name} port; moved to {state.port(name)}")
