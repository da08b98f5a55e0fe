"""PostgreSQL, RabbitMQ and S3 for a test run, and the means to break each of them.

They come from the local launcher, the one ``make run`` uses, or from containers when ``DOCSTAGE_TEST_SERVICES=docker``
and a Docker engine answers. Both give the same interface.
"""

import asyncio
import os
import secrets
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import urlsplit

import asyncpg
import boto3
import httpx

from deploy.local.daemon import collect_children
from deploy.local.instance import Instance
from deploy.local.rabbitmq import RabbitMQ
from deploy.local.s3 import REGION
from deploy.local.services import ServiceSet

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_ROOT = Path(__file__).resolve().parents[2]
_STOP_SECONDS = 120
_T = TypeVar("_T")


class Handle(Protocol):
    """One service that a test may break; whoever breaks it also starts it again."""

    def start(self) -> None:
        """Start it, or let it go on, and wait until it answers."""

    def stop(self) -> None:
        """End it in good order; its port refuses connections until ``start``."""

    def kill(self) -> None:
        """End every process of it by SIGKILL."""

    def pause(self) -> None:
        """Freeze it: connections stay open, nothing answers."""

    def resume(self) -> None:
        """Let it go on after ``pause``."""


@dataclass(frozen=True, slots=True)
class Services:
    """The services of this test run, all on loopback and nobody else's."""

    database_url: str
    amqp_url: str
    management_url: str
    s3_endpoint: str
    s3_region: str
    s3_access_key: str
    s3_secret_key: str
    postgres: Handle
    rabbitmq: Handle
    s3: Handle

    def s3_client(self) -> "S3Client":
        """Return a client with rights over every bucket."""
        return boto3.client(
            "s3",
            endpoint_url=self.s3_endpoint,
            region_name=self.s3_region,
            aws_access_key_id=self.s3_access_key,
            aws_secret_access_key=self.s3_secret_key,
        )


@contextmanager
def running_services() -> Iterator[Services]:
    """Run the services for as long as the context lasts; afterwards nothing of them runs."""
    if os.environ.get("DOCSTAGE_TEST_SERVICES") == "docker":  # noqa: TID251 - chosen outside, before any settings exist
        from tests.support.docker_services import docker_services  # noqa: PLC0415 - needs Docker's client only here

        with docker_services() as services:
            yield services
    else:
        with _local_services() as services:
            yield services


@contextmanager
def fresh_database(services: Services, *, template: str = "template1") -> Iterator[str]:
    """Create a database of a random name; yield its URL; drop it even when something is still connected."""
    name = f"test_{secrets.token_hex(6)}"
    _execute(services, f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    try:
        yield urlsplit(services.database_url)._replace(path=f"/{name}").geturl()
    finally:
        _execute(services, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@contextmanager
def fresh_vhost(services: Services) -> Iterator[str]:
    """Create a RabbitMQ virtual host of a random name; yield its AMQP URL; delete it with all its queues."""
    name = f"test-{secrets.token_hex(6)}"
    address = f"{services.management_url}/api/vhosts/{name}"
    with httpx.Client(timeout=30) as client:
        client.put(address).raise_for_status()
        try:
            yield urlsplit(services.amqp_url)._replace(path=f"/{name}").geturl()
        finally:
            client.delete(address).raise_for_status()


@contextmanager
def fresh_bucket(services: Services) -> Iterator[str]:
    """Create a bucket of a random name; yield the name; delete it with all its objects."""
    name = f"test-{secrets.token_hex(6)}"
    client = services.s3_client()
    client.create_bucket(Bucket=name)
    try:
        yield name
    finally:
        _empty(client, name)
        client.delete_bucket(Bucket=name)
        client.close()


def _empty(client: "S3Client", bucket: str) -> None:
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for entry in page.get("Contents", []):
            client.delete_object(Bucket=bucket, Key=entry["Key"])


def _execute(services: Services, statement: str) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(services.database_url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    _apart(run())


def _apart(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine on a loop of its own, so that a test with a running loop may call it too."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(asyncio.run, work).result()


@contextmanager
def private_broker() -> Iterator[RabbitMQ]:
    """Run a broker that one module has for itself, to take away from it what a shared one must keep."""
    with _held("broker hold", "test-broker") as instance:
        yield RabbitMQ(instance)


@contextmanager
def _local_services() -> Iterator[Services]:
    with _held("services hold", "test") as instance:
        yield _services_of(instance)


@contextmanager
def _held(command: str, name: str) -> Iterator[Instance]:
    """Let the launcher hold services; it stops them when our end of the pipe closes, also if we are killed."""
    launcher = subprocess.Popen(  # noqa: S603 - our own launcher
        [sys.executable, "-m", "deploy.local", *command.split(), "--name", name],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    try:
        yield _instance_held_by(launcher)
    finally:
        launcher.communicate(timeout=_STOP_SECONDS)
        collect_children()


def _instance_held_by(launcher: subprocess.Popen[str]) -> Instance:
    assert launcher.stdout is not None
    name = launcher.stdout.readline().strip()
    assert name, "the services did not start; the launcher said why"
    return Instance.named(name)


def _services_of(instance: Instance) -> Services:
    local = ServiceSet.of(instance)
    return Services(
        database_url=local.postgres.url("postgres"),
        amqp_url=local.rabbitmq.amqp_url,
        management_url=local.rabbitmq.management_url,
        s3_endpoint=local.s3.endpoint,
        s3_region=REGION,
        s3_access_key=local.s3.account.access_key,
        s3_secret_key=local.s3.account.secret_key,
        postgres=local.postgres,
        rabbitmq=local.rabbitmq,
        s3=local.s3,
    )
