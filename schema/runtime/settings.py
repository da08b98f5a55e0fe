"""Every setting, read once from the environment in ``__main__``; names start with ``DOCSTAGE_``.

``docs/settings.md`` is made from these classes, so a description here is what operators read.
"""

import base64
import json
import sys
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from schema.domain.backoff import RetryPolicy
from schema.domain.kinds import Kind
from schema.domain.limits import DocumentLimits
from schema.domain.states import Stage
from schema.domain.targets import Networks, parse_networks
from schema.wire.queues import DLQ_TTL

KEY_BYTES: Final = 32
# Members of a request to a model that make it what it is; an answer that streams is not read.
_OURS: Final = frozenset({"model", "messages", "response_format", "stream", "n"})


class Settings(BaseSettings):
    """What all settings have in common: the prefix, and no change after start."""

    # Inputs are hidden because an error about one value would quote its neighbours, passwords among them.
    model_config = SettingsConfigDict(env_prefix="DOCSTAGE_", frozen=True, extra="ignore", hide_input_in_errors=True)

    @classmethod
    def load(cls) -> Self:
        """Read the environment; where that will not do, end the process with a line that says why."""
        try:
            return cls()
        except ValidationError as error:
            sys.exit(complaint(error))


def key_bytes(text: str) -> bytes:
    """Read the base64 of a key of 256 bits.

    Raises:
        ValueError: it is none.
    """
    key = base64.b64decode(text.strip(), validate=True)
    if len(key) != KEY_BYTES:
        raise ValueError
    return key


def complaint(error: ValidationError) -> str:
    """Say in one line which settings are missing or wrong; their values stay untold."""
    return "; ".join(_complaint(each["loc"], each["type"], each["msg"]) for each in error.errors(include_input=False))


def _complaint(loc: tuple[int | str, ...], kind: str, sentence: str) -> str:
    prefix = Settings.model_config["env_prefix"]
    name = "".join(f"{prefix}{part}".upper() for part in loc[:1])
    return f"{name} is missing" if kind == "missing" else f"{name}: {sentence}".removeprefix(": Value error, ")


class DatabaseSettings(Settings):
    """PostgreSQL."""

    database_url: SecretStr = Field(description="`postgresql://user:password@host:port/name`; a direct connection.")


class BrokerSettings(Settings):
    """RabbitMQ."""

    amqp_url: SecretStr = Field(description="`amqp://user:password@host:port/vhost`.")
    amqp_heartbeat_seconds: int = Field(10, ge=2, description="A silent peer is given up after 2 to 3 of these.")
    publish_timeout_seconds: float = Field(
        5, gt=0, description="Outer limit of one publish with its confirm; covers a blocked socket."
    )


class StoreSettings(Settings):
    """The S3 object store."""

    s3_endpoint: str = Field(description="URL of the S3 API.")
    s3_bucket: str = Field("docstage", description="Bucket for documents and large outputs; must exist.")
    s3_region: str = Field("us-east-1", description="Region to sign for.")
    s3_access_key: SecretStr = Field(description="Access key id.")
    s3_secret_key: SecretStr = Field(description="Secret access key.")
    s3_timeout_seconds: float = Field(10, gt=0, description="Limit of one connect or read.")


class CrashSettings(Settings):
    """Crash tests."""

    failpoints: str = Field("", description="For crash tests only: points at which this process dies.")


class ProcessSettings(CrashSettings):
    """What every process has."""

    log_level: str = Field("INFO", description="DEBUG, INFO, WARNING or ERROR.")
    metrics_host: str = Field("127.0.0.1", description="Where /livez, /readyz and /metrics are served.")
    metrics_port: int = Field(9100, ge=0, description="Their port; intake serves them on its HTTP port.")


class LimitSettings(Settings):
    """What a document may be and reading it may cost; intake and stages must be given the same."""

    max_upload_bytes: int = Field(100 << 20, ge=1, description="Largest document, counted while it is read.")
    max_pages: int = Field(1000, ge=1, description="Most pages of a document.")
    max_frames: int = Field(1000, ge=1, description="Most pages of a TIFF.")
    max_pixels: int = Field(100_000_000, ge=1, description="Most pixels of a picture or a rendered page.")
    max_side: int = Field(
        32_767, ge=100, le=32_767, description="Most pixels of a picture's longer side; more Tesseract does not take."
    )
    max_entries: int = Field(10_000, ge=1, description="Most entries of a DOCX archive.")
    max_ratio: int = Field(150, ge=2, description="Largest ratio of inflated to packed bytes in a DOCX.")
    max_depth: int = Field(
        200, ge=10, le=250, description="Deepest nesting of elements in a DOCX; parsers walk no deeper than 250."
    )
    max_inflated_bytes: int = Field(512 << 20, ge=1, description="Most bytes a DOCX may inflate to, counted.")
    max_part_bytes: int = Field(64 << 20, ge=1, description="Most bytes one part of a DOCX may inflate to.")
    max_page_chars: int = Field(1_000_000, ge=1, description="Most characters of one page's text layer.")
    max_attachment_bytes: int = Field(
        10 << 20, ge=0, description="Largest electronic invoice inside a PDF; a larger one is not looked at."
    )
    model_max_chars: int = Field(
        200_000, ge=1, description="Most characters of a document that a language model is asked about."
    )
    child_memory_bytes: int = Field(2 << 30, ge=1 << 28, description="Memory one parser and its tools may use.")
    child_scratch_bytes: int = Field(
        1 << 30, ge=1 << 20, description="Room for temporary files of one parser, its document among them."
    )
    scan_limit_seconds: float = Field(900, gt=0, description="Longest time extract may read one scanned document.")
    text_limit_seconds: float = Field(
        180, gt=0, description="Longest time extract may read one document with a text layer."
    )
    quick_limit_seconds: float = Field(
        120, gt=0, description="Longest time validate or normalize may work on one document."
    )
    silence_seconds: float = Field(120, gt=0, description="Longest time in which no page is finished.")

    @model_validator(mode="after")
    def _scratch_holds_a_document(self) -> Self:
        """Refuse a size of documents for which there would be no room."""
        if self.max_upload_bytes >= self.child_scratch_bytes:
            message = "child_scratch_bytes must be larger than max_upload_bytes"
            raise ValueError(message)
        return self

    def document_limits(self) -> DocumentLimits:
        """Return the limits as parsers take them."""
        names = {field.name for field in fields(DocumentLimits)} - {"max_bytes"}
        return DocumentLimits(max_bytes=self.max_upload_bytes, **{name: getattr(self, name) for name in names})

    def parser_limits(self) -> dict[str, int | float]:
        """Return what reading one document may cost, as ``GET /v1/limits`` shows it."""
        return {
            "model_max_chars": self.model_max_chars,
            "child_memory_bytes": self.child_memory_bytes,
            "child_scratch_bytes": self.child_scratch_bytes,
            "scan_limit_seconds": self.scan_limit_seconds,
            "text_limit_seconds": self.text_limit_seconds,
            "quick_limit_seconds": self.quick_limit_seconds,
            "silence_seconds": self.silence_seconds,
        }


class ModelSettings(LimitSettings):
    """A language model; there is none without its URL."""

    model_url: str = Field(
        "", description="Base URL of an OpenAI-compatible API, as `https://models.example.com/v1`; empty: no model."
    )
    model_key: SecretStr = Field(SecretStr(""), description="Its API key, where it wants one.")
    model_name: str = Field("", description="Name of the model, as the API knows it; results show it.")
    model_kinds: str = Field("summary,invoice,contract", description="Kinds of jobs that the model reads.")
    model_fallback: Literal["fail", "rules"] = Field(
        "fail", description="What becomes of a document when the model gives no answer: it fails, or rules read it."
    )
    model_timeout_seconds: float = Field(120, gt=0, description="Longest time that one answer may take.")
    model_answers: int = Field(
        2, ge=1, le=10, description="Answers to one question that are paid for, should they be unusable."
    )
    model_parameters: str = Field(
        "", description='More members of the request as JSON, such as `{"temperature": 0, "max_tokens": 8192}`.'
    )
    model_ca_file: str = Field("", description="Certificates to trust instead of the public authorities'.")

    @model_validator(mode="after")
    def _model_can_be_asked(self) -> Self:
        """Refuse an address, kinds or parameters that are none, without saying what they were."""
        url = urlsplit(self.model_url)
        if self.model_url and not (url.scheme in {"http", "https"} and url.hostname and "@" not in url.netloc):
            message = "model_url is no URL of http or https, or has a password in it"
            raise ValueError(message)
        if self.model_url and not self.model_name:
            message = "model_url is set, so model_name must be"
            raise ValueError(message)
        try:
            self.kinds_of_model(), self.parameters_of_model()
        except ValueError:
            message = "model_kinds or model_parameters cannot be read"
            raise ValueError(message) from None
        return self

    def kinds_of_model(self) -> frozenset[Kind]:
        """Return the kinds that the model reads."""
        kinds = frozenset(Kind(part.strip()) for part in self.model_kinds.split(",") if part.strip())
        if Kind.TEXT in kinds:
            raise ValueError(Kind.TEXT)
        return kinds

    def parameters_of_model(self) -> dict[str, Any]:
        """Return the members of a request that are the operator's to choose."""
        parameters = json.loads(self.model_parameters or "{}")
        if not isinstance(parameters, dict) or parameters.keys() & _OURS:
            raise ValueError(_OURS)
        return parameters


class LossSettings(Settings):
    """Lost workers; publisher and stages must be given the same."""

    lost_claims: int = Field(3, ge=0, description="Workers one series may cost before the job is given up.")


class WebhookSettings(Settings):
    """Webhooks; intake and deliver must be given the same."""

    webhook_keys: SecretStr = Field(
        SecretStr(""),
        description="Base64 of 32 random bytes, or several of them after commas: the first encrypts the endpoints' "
        "secrets, all decrypt them. Empty: no webhooks.",
    )
    webhook_networks: str = Field(
        "",
        description="Networks such as `10.1.0.0/16,127.0.0.0/8` that webhooks may go to although they are not public; "
        "plain http is taken to these alone.",
    )

    @model_validator(mode="after")
    def _readable(self) -> Self:
        """Refuse keys and networks that are none, without saying what they were."""
        try:
            self.keys(), self.networks()
        except ValueError:
            message = "webhook_keys or webhook_networks cannot be read"
            raise ValueError(message) from None
        return self

    def keys(self) -> list[bytes]:
        """Return the keys that the endpoints' secrets are sealed with, the newest first."""
        return [key_bytes(part) for part in self.webhook_keys.get_secret_value().split(",") if part.strip()]

    def networks(self) -> Networks:
        """Return the networks that are allowed besides the public ones."""
        return parse_networks(self.webhook_networks)


class PublisherSettings(DatabaseSettings, BrokerSettings, StoreSettings, LossSettings, ProcessSettings):
    """The relay and the sweeper."""

    relay_batch: int = Field(256, ge=1, le=5000, description="Outbox rows taken at once.")
    relay_poll_seconds: float = Field(0.5, gt=0, description="Longest wait between looks at the outbox.")
    sweep_seconds: float = Field(5, gt=0, description="Pause between sweeps.")
    sweep_batch: int = Field(200, ge=1, description="Rows one rule heals at most per sweep.")
    overtaken_seconds: float = Field(
        60, gt=0, description="A ready run is issued again when one issued this much later was claimed."
    )
    silent_seconds: float = Field(600, gt=0, description="A ready run is issued again after this at the latest.")
    tombstone_days: int = Field(
        30, ge=1, description="How long a deleted job's empty row is kept; must outlive the 14 days of its messages."
    )

    @model_validator(mode="after")
    def _tombstones_outlive_messages(self) -> Self:
        """Refuse to forget a job while the broker may still hold a message about it."""
        if timedelta(days=self.tombstone_days) <= DLQ_TTL:
            message = f"tombstone_days is {self.tombstone_days}, but dead-letter messages live {DLQ_TTL.days} days"
            raise ValueError(message)
        return self

    @property
    def row_lock(self) -> timedelta:
        """How long a taken outbox row is one relay's alone: twice what a publish may take, and a margin."""
        return timedelta(seconds=2 * self.publish_timeout_seconds + 2)


class StagesSettings(DatabaseSettings, BrokerSettings, StoreSettings, ModelSettings, LossSettings, ProcessSettings):
    """The consumers."""

    lease_seconds: float = Field(60, ge=1, description="How long a claim lasts without a heartbeat.")
    grace_seconds: float = Field(20, ge=0, description="On SIGTERM, time to finish before claims are released.")
    consumer_timeout_seconds: float = Field(1800, gt=0, description="RabbitMQ's consumer_timeout, as configured.")
    retry_base_seconds: float = Field(
        1, gt=0, description="The first retry waits for once to twice this; both bounds double with each attempt."
    )
    retry_cap_seconds: float = Field(300, gt=0, description="Largest retry bound.")
    retry_attempts: int = Field(6, ge=1, description="Attempts per series for transient failures.")
    unknown_attempts: int = Field(3, ge=1, description="Attempts per series for unclassified exceptions.")
    probe_seconds: float = Field(
        2, gt=0, description="While the object store is down, how often a paused worker asks whether it is up."
    )
    inline_bytes: int = Field(65536, ge=0, description="Larger stage outputs go to the object store.")
    scratch_dir: Path = Field(Path("/tmp/docstage"), description="Temporary files.")  # noqa: S108 - a default
    child_processes: int = Field(2, ge=1, description="Parser processes at once per worker.")
    child_documents: int = Field(200, ge=1, description="Documents after which a parser process is replaced.")

    @property
    def lease(self) -> timedelta:
        """How long a claim lasts without a heartbeat."""
        return timedelta(seconds=self.lease_seconds)

    def policy(self, stage: Stage) -> RetryPolicy:  # noqa: ARG002 - stages share one patience so far
        """Return the stage's patience."""
        return RetryPolicy(
            base=timedelta(seconds=self.retry_base_seconds),
            cap=timedelta(seconds=self.retry_cap_seconds),
            attempts=self.retry_attempts,
            unknown_attempts=self.unknown_attempts,
            lost_claims=self.lost_claims,
        )


class DeliverSettings(DatabaseSettings, BrokerSettings, WebhookSettings, ProcessSettings):
    """The sender of webhooks."""

    webhook_timeout_seconds: float = Field(20, gt=0, description="Longest time one POST may take, name and all.")
    webhook_schedule_seconds: str = Field(
        "5,300,1800,7200,18000,36000,50400,72000,86400",
        description="Pauses between attempts, each spread by a fifth; after the last attempt the delivery has failed.",
    )
    webhook_in_flight: int = Field(64, ge=1, description="POSTs at once per process.")
    webhook_per_endpoint: int = Field(8, ge=1, description="POSTs at once to one endpoint; others wait for their turn.")
    webhook_ca_file: str = Field("", description="Certificates to trust instead of the public authorities'.")
    grace_seconds: float = Field(20, ge=0, description="On SIGTERM, time for POSTs to end.")

    @model_validator(mode="after")
    def _schedule_is_one(self) -> Self:
        """Refuse pauses that are none."""
        if any(pause < timedelta(0) for pause in self.schedule()):
            message = "webhook_schedule_seconds has a pause below 0"
            raise ValueError(message)
        return self

    def schedule(self) -> list[timedelta]:
        """Return the pauses between attempts."""
        return [timedelta(seconds=float(part)) for part in self.webhook_schedule_seconds.split(",") if part.strip()]


class IntakeSettings(DatabaseSettings, BrokerSettings, StoreSettings, LimitSettings, WebhookSettings, ProcessSettings):
    """The HTTP API."""

    http_host: str = Field("127.0.0.1", description="Address to listen on.")
    http_port: int = Field(8080, ge=0, description="Port to listen on.")
    public_url: str = Field("", description="Base of absolute links; empty takes the request's own.")
    default_deadline_seconds: int = Field(6 * 3600, ge=1, description="A job's deadline when it names none.")
    max_deadline_seconds: int = Field(7 * 86400, ge=1, description="Longest deadline a job may name.")
    retention_days: int = Field(7, ge=1, description="How long a finished job and its result are kept.")
    idempotency_hours: int = Field(24, ge=1, description="How long an Idempotency-Key is remembered.")
    reservation_seconds: float = Field(15, gt=1, description="How long a key waits for an upload that went silent.")
    max_backlog: int = Field(50_000, ge=1, description="Unfinished jobs above which new ones get 503.")
    max_tenant_jobs: int = Field(20_000, ge=1, description="Unfinished jobs of one tenant above which it gets 429.")
    max_uploads: int = Field(
        64, ge=1, description="Uploads read at once, each in up to 24 MiB of memory; others wait, then get 503."
    )
    max_tenant_uploads: int = Field(
        32, ge=1, description="Of those, how many of one tenant; fewer, so that its slow ones leave room for others."
    )
    upload_silence_seconds: float = Field(30, gt=0, description="An upload that brings no byte for this long ends.")
    max_wait_seconds: int = Field(60, ge=0, description="Longest time `?wait=` may hold a request.")
    languages: str = Field(
        "", description="Codes that the workers can recognize, such as `eng+deu`; empty leaves the check to them."
    )
    max_webhooks: int = Field(20, ge=0, description="Webhook endpoints a tenant may have.")
    webhook_overlap_hours: float = Field(
        24, ge=0, description="How long messages are signed with the old secret too after a rotation."
    )
    database_connections: int = Field(10, ge=2, description="Connections to PostgreSQL per process.")
    grace_seconds: float = Field(20, ge=0, description="On SIGTERM, time for uploads to finish.")


class ToolSettings(DatabaseSettings, BrokerSettings, CrashSettings):
    """The operator's tools."""


class ClientSettings(Settings):
    """The command line client."""

    url: str = Field("http://127.0.0.1:8080", description="Base URL of the HTTP API, for the command line client.")
    api_key: SecretStr = Field(SecretStr(""), description="API key of the command line client.")
    webhook_secret: SecretStr = Field(SecretStr(""), description="Secret for `docstage webhooks verify`.")
