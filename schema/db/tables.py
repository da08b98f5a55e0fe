"""The tables as SQLAlchemy knows them, for the statements that are composed.

CHECKs, partial indexes and guards stand in the migrations, the one place that makes them; a test compares
these definitions with a migrated database, column by column.
"""

from datetime import datetime

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    ForeignKey,
    Integer,
    Interval,
    LargeBinary,
    MetaData,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

metadata = MetaData()


def _job() -> ForeignKey:
    """Return a reference to the job that a row belongs to and goes with."""
    return ForeignKey("job.id", ondelete="CASCADE")


def _time(name: str, *, nullable: bool = True, default: bool = False) -> Column[datetime]:
    """Return a column of aware times; ``default`` when the database fills in its own clock."""
    server_default = "now()" if default else None
    aware = DateTime(timezone=True)
    return Column(name, aware, nullable=nullable and not default, server_default=server_default)


tenant = Table(
    "tenant",
    metadata,
    Column("id", UUID, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    _time("created_at", default=True),
)

api_key = Table(
    "api_key",
    metadata,
    Column("id", UUID, primary_key=True),
    Column("tenant_id", UUID, ForeignKey("tenant.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("key_hash", LargeBinary, nullable=False, unique=True),
    _time("created_at", default=True),
    _time("revoked_at"),
)

job = Table(
    "job",
    metadata,
    Column("id", UUID, primary_key=True),
    Column("tenant_id", UUID, ForeignKey("tenant.id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="accepted"),
    Column("current_stage", Text, nullable=False, server_default="validate"),
    Column("options", JSONB, nullable=False, server_default="{}"),
    Column("client_tag", Text),
    Column("traceparent", Text),
    Column("warnings", JSONB, nullable=False, server_default="[]"),
    Column("error", JSONB),
    Column("event_sequence", BigInteger, nullable=False, server_default="0"),
    Column("deadline", Interval, nullable=False),
    Column("retention", Interval, nullable=False),
    _time("created_at", default=True),
    _time("updated_at", default=True),
    _time("deadline_at", nullable=False),
    _time("finished_at"),
    _time("expires_at", nullable=False),
    _time("deleted_at"),
)

document = Table(
    "document",
    metadata,
    Column("job_id", UUID, _job(), primary_key=True),
    Column("sha256", Text, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("declared_type", Text),
    Column("media_type", Text, nullable=False),
    Column("storage_key", Text, nullable=False),
    Column("content", LargeBinary),
    _time("created_at", default=True),
)

worker = Table(
    "worker",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("stages", Text, nullable=False),
    Column("liveness", Text, nullable=False, server_default="lease"),
    _time("started_at", default=True),
    _time("stopped_at"),
)

stage_run = Table(
    "stage_run",
    metadata,
    Column("job_id", UUID, _job(), primary_key=True),
    Column("stage", Text, primary_key=True),
    Column("status", Text, nullable=False, server_default="ready"),
    Column("lane", Text, nullable=False),
    Column("series", Integer, nullable=False, server_default="1"),
    Column("attempt", Integer, nullable=False, server_default="1"),
    Column("lost", Integer, nullable=False, server_default="0"),
    Column("fencing_token", BigInteger, nullable=False, server_default="0"),
    Column("worker_id", Integer),
    _time("claimed_at"),
    _time("lease_expires_at"),
    _time("next_attempt_at"),
    _time("issued_at", default=True),
    Column("issues", Integer, nullable=False, server_default="1"),
    Column("deferred_event", UUID),
    Column("reissued_series", Integer, nullable=False, server_default="0"),
    Column("pages_done", Integer, nullable=False, server_default="0"),
    Column("pages_total", Integer),
)

stage_attempt = Table(
    "stage_attempt",
    metadata,
    Column("job_id", UUID, _job(), primary_key=True),
    Column("stage", Text, primary_key=True),
    Column("fencing_token", BigInteger, primary_key=True),
    Column("series", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("worker_id", Integer, nullable=False),
    _time("began_at", default=True),
    _time("ended_at"),
    Column("outcome", Text),
    Column("code", Text),
    Column("exception_type", Text),
)

stage_output = Table(
    "stage_output",
    metadata,
    Column("job_id", UUID, _job(), primary_key=True),
    Column("stage", Text, primary_key=True),
    Column("fencing_token", BigInteger, nullable=False),
    Column("content", JSONB),
    Column("blob_key", Text),
    Column("sha256", Text, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    _time("created_at", default=True),
)

page_text = Table(
    "page_text",
    metadata,
    Column("job_id", UUID, _job(), primary_key=True),
    Column("page", Integer, primary_key=True),
    Column("fencing_token", BigInteger, nullable=False),
    Column("content", JSONB, nullable=False),
    _time("created_at", default=True),
)

result = Table(
    "result",
    metadata,
    Column("job_id", UUID, _job(), primary_key=True),
    Column("content", JSONB),
    Column("blob_key", Text),
    Column("sha256", Text, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    _time("created_at", default=True),
)

outbox_event = Table(
    "outbox_event",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("event_id", UUID, nullable=False),
    Column("kind", Text, nullable=False),
    Column("tenant_id", UUID),
    Column("job_id", UUID),
    Column("lane", Text),
    Column("payload", JSONB, nullable=False),
    _time("not_before"),
    Column("deferrals", Integer, nullable=False, server_default="0"),
    Column("traceparent", Text),
    _time("created_at", default=True),
    _time("available_at", default=True),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("last_error", Text),
)

dead_letter = Table(
    "dead_letter",
    metadata,
    Column("id", UUID, primary_key=True),
    Column("job_id", UUID, _job()),
    Column("tenant_id", UUID),
    Column("stage", Text),
    Column("series", Integer, nullable=False, server_default="1"),
    Column("reason", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("owner", Text, nullable=False, server_default="operator"),
    Column("state", Text, nullable=False, server_default="open"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("body_sha256", LargeBinary),
    Column("body_bytes", Integer),
    Column("queue", Text),
    Column("seen", Integer, nullable=False, server_default="1"),
    Column("history", JSONB, nullable=False, server_default="[]"),
    _time("created_at", default=True),
    _time("closed_at"),
)

job_event = Table(
    "job_event",
    metadata,
    Column("job_id", UUID, _job(), primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    _time("at", default=True),
    Column("type", Text, nullable=False),
    Column("stage", Text),
    Column("data", JSONB, nullable=False, server_default="{}"),
)

idempotency_key = Table(
    "idempotency_key",
    metadata,
    Column("tenant_id", UUID, ForeignKey("tenant.id"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("token", BigInteger, nullable=False, server_default="1"),
    _time("lease_expires_at", nullable=False),
    Column("fingerprint", Text),
    Column("job_id", UUID),
    _time("created_at", default=True),
    _time("expires_at", nullable=False),
)

webhook_endpoint = Table(
    "webhook_endpoint",
    metadata,
    Column("id", UUID, primary_key=True),
    Column("tenant_id", UUID, ForeignKey("tenant.id"), nullable=False),
    Column("url", Text, nullable=False),
    Column("events", ARRAY(Text), nullable=False),
    Column("secret", LargeBinary, nullable=False),
    Column("previous_secret", LargeBinary),
    _time("previous_until"),
    _time("created_at", default=True),
    _time("disabled_at"),
    Column("disabled_reason", Text),
)

webhook_delivery = Table(
    "webhook_delivery",
    metadata,
    Column("endpoint_id", UUID, ForeignKey("webhook_endpoint.id", ondelete="CASCADE"), primary_key=True),
    Column("event_id", UUID, primary_key=True),
    Column("job_id", UUID, _job(), nullable=False),
    Column("type", Text, nullable=False),
    Column("data", JSONB, nullable=False),
    Column("status", Text, nullable=False, server_default="pending"),
    Column("series", Integer, nullable=False, server_default="1"),
    Column("attempt", Integer, nullable=False, server_default="0"),
    _time("next_attempt_at"),
    Column("issues", Integer, nullable=False, server_default="1"),
    _time("issued_at", default=True),
    Column("history", JSONB, nullable=False, server_default="[]"),
    _time("created_at", default=True),
    _time("delivered_at"),
)
