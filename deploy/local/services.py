"""The three services as a set."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from deploy.local.console import Console
from deploy.local.instance import Instance
from deploy.local.postgres import Postgres
from deploy.local.rabbitmq import RabbitMQ
from deploy.local.s3 import S3
from deploy.local.service import Service


@dataclass(frozen=True, slots=True)
class ServiceSet:
    """PostgreSQL, RabbitMQ and S3 of one instance."""

    postgres: Postgres
    rabbitmq: RabbitMQ
    s3: S3

    @classmethod
    def of(cls, instance: Instance) -> "ServiceSet":
        """Return the services of an instance."""
        return cls(Postgres(instance), RabbitMQ(instance), S3(instance))

    def all(self) -> Sequence[Service]:
        """Return each of them."""
        return [self.postgres, self.rabbitmq, self.s3]


def start(services: Sequence[Service], console: Console) -> None:
    """Start the services side by side; the caller holds the instance's lock."""
    for service in services:
        _choose_ports(service, console)
    with ThreadPoolExecutor(max_workers=len(services)) as pool:
        for _ in pool.map(lambda service: _start(service, console), services):
            pass


def stop(services: Sequence[Service], console: Console) -> None:
    """Stop the services side by side."""
    with ThreadPoolExecutor(max_workers=len(services)) as pool:
        for _ in pool.map(lambda service: _stop(service, console), services):
            pass


def kill(services: Sequence[Service]) -> None:
    """End the services at once, each also when another cannot be ended."""
    with ThreadPoolExecutor(max_workers=len(services)) as pool:
        for _ in pool.map(lambda service: service.kill(), services):
            pass


def _choose_ports(service: Service, console: Console) -> None:
    """Settle what the state file holds while one thread alone writes it."""
    for name in service.secret_names:
        service.state.secret(name)
    for name in service.port_names:
        service.state.port(name)
    if service.running():
        return
    service.kill()
    for name in service.state.move_taken_ports(service.port_names):
        console.say(f"{service.name}: another program has taken its {name} port; moved to {service.state.port(name)}")


def _start(service: Service, console: Console) -> None:
    before = service.running()
    service.start()
    console.say(f"{service.name} {'is running' if before else 'started'}")


def _stop(service: Service, console: Console) -> None:
    before = service.running()
    service.stop()
    if before:
        console.say(f"{service.name} stopped")
