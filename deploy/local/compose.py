"""The same system in containers: ``make run DOCKER=1``."""

import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from deploy.local import application, env_file, readiness
from deploy.local.console import Console, LauncherError
from deploy.local.instance import LOCAL, ROOT, Instance, State, write_private

INSTANCE = "docker"
_FILE = ROOT / "deploy" / "compose.yaml"
_VARIABLES = LOCAL / "compose.env"
_API_KEY = "api_key"
_READY_SECONDS = 180.0
_PORTS = (*application.PORT_NAMES.values(), "postgres", "amqp", "management", "s3", "prometheus", "grafana")
_SECRETS = ("postgres_password", "rabbitmq_password", "s3_access_key", "s3_secret_key", "grafana_password")


@dataclass(frozen=True, slots=True)
class Compose:
    """The containers of this checkout."""

    instance: Instance
    console: Console

    @property
    def state(self) -> State:
        """The ports and secrets they were given."""
        return self.instance.state

    def up(self) -> bool:
        """Build the image, start what does not run yet, and wait until it serves.

        Returns:
            False when all was already running.
        """
        command = _compose_command()
        running = bool(self._output(command, "ps", "--quiet", "intake"))
        if not running:
            self.state.move_taken_ports(_PORTS)
        self._write_variables()
        self.console.say("building the image and starting the containers")
        self._call(command, "up", "--detach", "--build")
        readiness.wait(application.ports(self.state), _READY_SECONDS)
        self.console.say("all processes are ready")
        if self.state.kept_secret(_API_KEY) is None:
            create = ("exec", "-T", "intake", "docstage", "keys", "create", "--tenant", "demo", "--name", "local")
            self.state.keep_secret(_API_KEY, self._output(command, *create))
        env_file.write(INSTANCE, self._addresses())
        return not running

    def down(self, *, remove_data: bool = False) -> None:
        """Stop and remove the containers; their data stays unless it is to go."""
        self._write_variables()
        self._call(_compose_command(), "down", *(["--volumes"] if remove_data else []))

    def _addresses(self) -> dict[str, str]:
        port, secret = self.state.port, self.state.secret
        broker = f"docstage:{secret('rabbitmq_password')}@127.0.0.1"
        return {
            "DOCSTAGE_URL": f"http://127.0.0.1:{port('http')}",
            "DOCSTAGE_API_KEY": secret(_API_KEY),
            "DOCSTAGE_DATABASE_URL": f"postgresql://docstage:{secret('postgres_password')}"
            f"@127.0.0.1:{port('postgres')}/{application.DATABASE}",
            "DOCSTAGE_AMQP_URL": f"amqp://{broker}:{port('amqp')}/",
            "DOCSTAGE_MANAGEMENT_URL": f"http://{broker}:{port('management')}",
            "DOCSTAGE_S3_ENDPOINT": f"http://127.0.0.1:{port('s3')}",
            "DOCSTAGE_S3_BUCKET": "docstage",
            "DOCSTAGE_S3_REGION": "us-east-1",
            "DOCSTAGE_S3_ACCESS_KEY": secret("s3_access_key"),
            "DOCSTAGE_S3_SECRET_KEY": secret("s3_secret_key"),
            "DOCSTAGE_PROMETHEUS_URL": f"http://127.0.0.1:{port('prometheus')}",
            "DOCSTAGE_GRAFANA_URL": f"http://127.0.0.1:{port('grafana')}",
            **application.metrics_urls(self.state),
        }

    def _write_variables(self) -> None:
        lines = [f"{name}={value}\n" for name, value in variables(self.state).items()]
        write_private(_VARIABLES, "".join(lines))

    def _call(self, command: Sequence[str], *arguments: str) -> None:
        if subprocess.run(_full(command, arguments), check=False).returncode != 0:
            message = f"`{shlex.join(_full(command, arguments))}` failed"
            raise LauncherError(message)

    def _output(self, command: Sequence[str], *arguments: str) -> str:
        done = subprocess.run(_full(command, arguments), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            message = f"`{shlex.join(_full(command, arguments))}` failed:\n{done.stderr.strip()}"
            raise LauncherError(message)
        return done.stdout.strip()


def variables(state: State) -> dict[str, str]:
    """Return what the Compose file asks for: our ports and secrets by their names in capitals."""
    ports = {f"{name.upper()}_PORT": str(state.port(name)) for name in _PORTS}
    secrets = {name.upper(): state.secret(name) for name in _SECRETS}
    return ports | secrets | {"WEBHOOK_KEY": application.webhook_key(state)}


def _full(command: Sequence[str], arguments: Sequence[str]) -> list[str]:
    return [*command, "--env-file", str(_VARIABLES), "--file", str(_FILE), *arguments]


def _compose_command() -> Sequence[str]:
    """Return how Compose is called here.

    Raises:
        LauncherError: it is not installed, or no Docker engine answers.
    """
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "info"], capture_output=True, check=False).returncode != 0:
        message = "no Docker engine answers; without DOCKER=1 none is needed"
        raise LauncherError(message)
    if subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode != 0:
        message = "Docker has no Compose plugin; without DOCKER=1 none is needed"
        raise LauncherError(message)
    return [docker, "compose"]
