"""Real services for the tests that need them: started once, each test with a database and a vhost of its own."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from alembic import command

from schema.db.engine import Database
from schema.migrations.__main__ import config
from tests.support.services import Services, fresh_bucket, fresh_database, fresh_vhost, running_services
from tests.support.system import System, running_system


@pytest.fixture(scope="session")
def services() -> Iterator[Services]:
    """PostgreSQL, RabbitMQ and S3."""
    with running_services() as running:
        yield running


@pytest.fixture(scope="session")
def template(services: Services) -> Iterator[str]:
    """A migrated database that others are copied from, which takes a tenth of the time of migrating."""
    with fresh_database(services) as url:
        command.upgrade(config(url), "head")
        yield url.rpartition("/")[2]


@pytest.fixture
def database_url(services: Services, template: str) -> Iterator[str]:
    """A migrated database of this test's own."""
    with fresh_database(services, template=template) as url:
        yield url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A pool on a migrated database."""
    database = Database.connect(database_url, application="docstage-test", pool_size=8)
    yield database
    await database.close()


@pytest.fixture
def amqp_url(services: Services) -> Iterator[str]:
    """A virtual host of this test's own."""
    with fresh_vhost(services) as url:
        yield url


@pytest.fixture
def bucket(services: Services) -> Iterator[str]:
    """A bucket of this test's own."""
    with fresh_bucket(services) as name:
        yield name


def settings_for(services: Services, database_url: str, amqp_url: str, bucket: str) -> dict[str, str]:
    """Return the settings with which a process reaches one test's own part of the services."""
    return {
        "DOCSTAGE_DATABASE_URL": database_url,
        "DOCSTAGE_AMQP_URL": amqp_url,
        "DOCSTAGE_S3_ENDPOINT": services.s3_endpoint,
        "DOCSTAGE_S3_REGION": services.s3_region,
        "DOCSTAGE_S3_BUCKET": bucket,
        "DOCSTAGE_S3_ACCESS_KEY": services.s3_access_key,
        "DOCSTAGE_S3_SECRET_KEY": services.s3_secret_key,
    }


@pytest.fixture
def environment(services: Services, database_url: str, amqp_url: str, bucket: str) -> dict[str, str]:
    """The settings of processes that one test has for itself."""
    return settings_for(services, database_url, amqp_url, bucket)


@pytest.fixture(scope="module")
def module_environment(services: Services, template: str) -> Iterator[dict[str, str]]:
    """The settings of processes that the tests of one module share, because starting them costs seconds."""
    with (
        fresh_database(services, template=template) as database_url,
        fresh_vhost(services) as amqp_url,
        fresh_bucket(services) as bucket,
    ):
        yield settings_for(services, database_url, amqp_url, bucket)


@pytest.fixture(scope="module")
async def system(module_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    """A system that the tests of one module share; they start what they need of it."""
    async with running_system(module_environment, tmp_path_factory.mktemp("system")) as made:
        yield made


@pytest.fixture
async def own_system(environment: dict[str, str], tmp_path: Path) -> AsyncIterator[System]:
    """A system that one test has for itself, to break."""
    async with running_system(environment, tmp_path) as made:
        yield made


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the quick tests first, so that a plain mistake shows at once."""
    order = ("unit", "integration", "faults", "e2e")
    items.sort(key=lambda item: next((i for i, name in enumerate(order) if f"/{name}/" in str(item.path)), 9))
