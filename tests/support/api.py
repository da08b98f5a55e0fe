"""The HTTP API inside the test's own process: real services behind it, no socket before it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from fastapi import FastAPI

from intake.app import create_app
from intake.keys import key_hash, new_key
from intake.services import Services, opened
from schema.db import tenants
from schema.db.engine import Database
from schema.runtime.settings import IntakeSettings

BASE = "http://docstage.test"
PDF = b"%PDF-1.7\n" + b"nothing that anybody reads here\n"


@dataclass(frozen=True, slots=True)
class Api:
    """A running application with the parts it is made of."""

    app: FastAPI
    services: Services

    @property
    def database(self) -> Database:
        """The application's own pool."""
        return self.services.database

    def client(self, key: str | None = None) -> httpx.AsyncClient:
        """Return a client; without a key nobody in particular."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers, timeout=30)

    async def tenant(self, name: str = "acme") -> str:
        """Make a tenant and return a key of it."""
        key = new_key()
        async with self.database.transaction() as conn:
            tenant_id = await tenants.ensure_tenant(conn, name=name)
            await tenants.add_key(conn, tenant_id=tenant_id, name="test", key_hash=key_hash(key))
        return key


def intake_settings(environment: Mapping[str, str], **changes: Any) -> IntakeSettings:
    """Return settings for one test's own part of the services."""
    values = {name.removeprefix("DOCSTAGE_").lower(): value for name, value in environment.items()}
    return IntakeSettings(**{**values, **changes})


@asynccontextmanager
async def running_api(environment: Mapping[str, str], **changes: Any) -> AsyncIterator[Api]:
    """Run the application while the block runs."""
    async with opened(intake_settings(environment, **changes)) as services:
        yield Api(create_app(services), services)


def form(
    body: bytes = PDF, *, name: str = "letter.pdf", declared: str = "application/pdf", **fields: str
) -> dict[str, Any]:
    """Return what httpx needs for a submission; a kind that is not named is ``text``."""
    return {"files": {"file": (name, body, declared)}, "data": {"kind": "text", **fields}}


async def submitted(client: httpx.AsyncClient, **fields: str) -> dict[str, Any]:
    """Submit a document and return its job."""
    answer = await client.post("/v1/jobs", **form(**fields))
    assert answer.status_code == 202, answer.text
    job: dict[str, Any] = answer.json()
    return job
