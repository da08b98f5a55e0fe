"""The test services as containers, for a machine that has Docker but not the servers themselves."""

import contextlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import httpx
from testcontainers.core.container import DockerContainer

from deploy.local import ports
from deploy.local.daemon import wait_until
from tests.support.services import Services

_START_SECONDS = 120
_USER = "docstage"
_REGION = "us-east-1"
_FLUSH = "echo 'fs.configure -locationPrefix=/buckets/ -fsync -apply' | weed shell"


@dataclass(frozen=True, slots=True)
class ContainerHandle:
    """One container with the interface of a local service; it keeps its port and its data over restarts."""

    container: DockerContainer
    healthy: Callable[[DockerContainer], bool]

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.container.get_wrapped_container().start()
        self.wait()

    def stop(self) -> None:
        """End it in good order."""
        self.container.get_wrapped_container().stop()

    def kill(self) -> None:
        """End every process of it by SIGKILL."""
        self.container.get_wrapped_container().kill()

    def pause(self) -> None:
        """Freeze it."""
        self.container.get_wrapped_container().pause()

    def resume(self) -> None:
        """Let it go on after ``pause``."""
        self.container.get_wrapped_container().unpause()

    def wait(self) -> None:
        """Wait until it answers a real request."""
        assert wait_until(lambda: self.healthy(self.container), _START_SECONDS), (
            f"{self.container.image} does not answer"
        )


@contextmanager
def docker_services() -> Iterator[Services]:
    """Run the three services as containers; they are removed at the end, also (by Ryuk) when we are killed."""
    password = secrets.token_hex(16)
    database, amqp, management, s3 = _free_ports(4)
    management_url = f"http://{_USER}:{password}@127.0.0.1:{management}"
    with ExitStack() as stack:
        postgres = stack.enter_context(_postgres(password, database))
        rabbitmq = stack.enter_context(_rabbitmq(password, amqp, management))
        store = stack.enter_context(_s3(password, s3))
        services = Services(
            database_url=f"postgresql://{_USER}:{password}@127.0.0.1:{database}/postgres",
            amqp_url=f"amqp://{_USER}:{password}@127.0.0.1:{amqp}/",
            management_url=management_url,
            s3_endpoint=f"http://127.0.0.1:{s3}",
            s3_region=_REGION,
            s3_access_key=_USER,
            s3_secret_key=password,
            postgres=_ready(postgres, lambda box: _succeeds(box, f"pg_isready -h 127.0.0.1 -U {_USER}")),
            rabbitmq=_ready(rabbitmq, lambda _: _answers(f"{management_url}/api/health/checks/virtual-hosts")),
            s3=_ready(store, lambda box: _answers(f"http://127.0.0.1:{s3}/healthz") and _succeeds(box, _FLUSH)),
        )
        yield services


def _postgres(password: str, port: int) -> DockerContainer:
    container = DockerContainer("postgres:15").with_bind_ports(5432, port)
    return container.with_env("POSTGRES_USER", _USER).with_env("POSTGRES_PASSWORD", password)


def _rabbitmq(password: str, amqp: int, management: int) -> DockerContainer:
    container = DockerContainer("rabbitmq:3-management").with_bind_ports(5672, amqp).with_bind_ports(15672, management)
    return container.with_env("RABBITMQ_DEFAULT_USER", _USER).with_env("RABBITMQ_DEFAULT_PASS", password)


def _s3(secret_key: str, port: int) -> DockerContainer:
    container = DockerContainer("chrislusf/seaweedfs").with_command("mini -dir=/data -master.telemetry=false")
    container = container.with_bind_ports(8333, port)
    return container.with_env("AWS_ACCESS_KEY_ID", _USER).with_env("AWS_SECRET_ACCESS_KEY", secret_key)


def _ready(container: DockerContainer, healthy: Callable[[DockerContainer], bool]) -> ContainerHandle:
    handle = ContainerHandle(container, healthy)
    handle.wait()
    return handle


def _free_ports(count: int) -> list[int]:
    chosen: list[int] = []
    for _ in range(count):
        chosen.append(ports.pick(chosen))
    return chosen


def _succeeds(container: DockerContainer, command: str) -> bool:
    answer = container.get_wrapped_container().exec_run(["sh", "-c", command])
    return bool(answer.exit_code == 0)


def _answers(url: str) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(url, timeout=3).is_success
    return False
