"""Every metric, with kind and unit. Labels are ``stage outcome code queue lane kind`` and the like: never an id."""

from collections.abc import Iterable
from itertools import product
from typing import Final

from prometheus_client import Counter, Gauge, Histogram

from schema.domain.errors import MEANINGS, MODEL_CODES
from schema.domain.kinds import Kind
from schema.domain.moves import Move
from schema.domain.notices import DeliveryCode
from schema.domain.states import AttemptOutcome, JobState, Lane, Stage

SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900)

# Intake
ARRIVALS = Counter("docstage_jobs_accepted_total", "Jobs accepted.", ["kind"])
REFUSALS = Counter("docstage_admission_refused_total", "Submissions refused before their body was read.", ["code"])
REQUESTS = Counter("docstage_http_requests_total", "HTTP requests answered.", ["route", "method", "status"])
REQUEST_SECONDS = Histogram("docstage_http_request_seconds", "Time to answer.", ["route"], buckets=SECONDS)
UPLOAD_BYTES = Counter("docstage_upload_bytes_total", "Bytes of documents read.")

# Stages
COMPLETIONS = Counter("docstage_jobs_finished_total", "Jobs that ended.", ["kind", "outcome", "code"])
ATTEMPTS = Counter("docstage_attempts_total", "Claims that ended.", ["stage", "outcome", "code"])
STAGE_SECONDS = Histogram("docstage_stage_seconds", "From claim to outcome.", ["stage", "outcome"], buckets=SECONDS)
QUEUE_WAIT_SECONDS = Histogram("docstage_queue_wait_seconds", "From issued to claimed.", ["lane"], buckets=SECONDS)
RETRIES = Counter("docstage_retries_scheduled_total", "Retries scheduled.", ["stage", "code"])
TAKEOVERS = Counter("docstage_takeovers_total", "Runs taken over from a worker that was gone.", ["stage", "reason"])
FENCED = Counter("docstage_fenced_writes_total", "Writes refused because the claim was no longer current.", ["stage"])
DELIVERIES = Counter("docstage_deliveries_total", "Deliveries by what they meant.", ["stage", "outcome"])
RELEASES = Counter("docstage_claims_released_total", "Claims given back on shutdown or in an outage.", ["stage"])
PAUSED = Gauge("docstage_stages_paused", "1 while this process waits for what its stages depend on.", ["code"])
PROBES = Counter("docstage_dependency_probes_total", "Questions whether a dependency is up.", ["code", "outcome"])
IN_FLIGHT = Gauge("docstage_claims_in_flight", "Claims being worked on.", ["stage"])
CONSUMER_ACTIVE = Gauge("docstage_consumer_active", "1 while the broker delivers to this consumer.", ["queue"])
PAGES = Counter("docstage_pages_total", "Pages read.", ["outcome"])
CHILD_KILLS = Counter("docstage_child_kills_total", "Parser processes ended.", ["reason"])
CHILD_PEAK_BYTES = Gauge(
    "docstage_child_peak_memory_bytes",
    "Most that a parser and its tools had resident since the worker began.",
    ["lane"],
)
CHILD_CALL_BYTES = Histogram(
    "docstage_child_call_memory_bytes",
    "Most that a parser and its tools had resident during one call, of calls that take a quarter of a second or more.",
    ["lane"],
    buckets=[1 << power for power in range(26, 34)],
)

# Model
MODEL_REQUESTS = Counter("docstage_model_requests_total", "Questions to the language model.", ["outcome"])
MODEL_SECONDS = Histogram("docstage_model_seconds", "From a question to its answer or failure.", buckets=SECONDS)
MODEL_TOKENS = Counter("docstage_model_tokens_total", "Tokens that the provider counted.", ["direction"])
MODEL_FALLBACKS = Counter("docstage_model_fallbacks_total", "Documents that the rules read instead.", ["code"])

# Webhooks
WEBHOOK_DELIVERIES = Counter("docstage_webhook_deliveries_total", "Attempts to tell an endpoint.", ["outcome", "code"])
WEBHOOK_SECONDS = Histogram("docstage_webhook_seconds", "Time of one attempt.", ["outcome"], buckets=SECONDS)
WEBHOOKS_PENDING = Gauge("docstage_webhooks_pending", "Tellings that still have to be made.")
WEBHOOKS_OVERDUE_SECONDS = Gauge("docstage_webhooks_overdue_seconds", "How long the first of them has been due.")

# Publisher
PUBLISHED = Counter("docstage_relay_published_total", "Outbox rows published.", ["kind", "outcome"])
PUBLISH_SECONDS = Histogram("docstage_relay_publish_seconds", "From publish to confirm.", buckets=SECONDS)
RELAY_LAG_SECONDS = Histogram("docstage_relay_lag_seconds", "From commit to publish.", buckets=SECONDS)
BROKER_BLOCKED = Gauge("docstage_broker_blocked", "1 while the broker takes no messages (alarm).")
OUTBOX_ROWS = Gauge("docstage_outbox_rows", "Rows in the outbox.", ["kind"])
OUTBOX_OLDEST_SECONDS = Gauge("docstage_outbox_oldest_seconds", "Age of the oldest row that is due.")
JOBS = Gauge("docstage_jobs", "Unfinished jobs.", ["state"])
RUNS = Gauge("docstage_stage_runs", "Unfinished stage runs.", ["lane", "status"])
OLDEST_READY_SECONDS = Gauge("docstage_oldest_ready_seconds", "Age of the oldest run that is ready.", ["lane"])
DEAD_LETTERS = Gauge("docstage_dead_letters_open", "Open dead letters.", ["stage", "code"])
DEAD_LETTER_OLDEST_SECONDS = Gauge("docstage_dead_letter_oldest_seconds", "Age of the oldest open dead letter.")
DEAD_LETTER_ARRIVALS = Counter("docstage_dead_letters_total", "Dead letters that arrived.", ["stage", "code"])
QUEUE_MESSAGES = Gauge("docstage_queue_messages", "Messages ready in a queue.", ["queue"])
QUEUE_CONSUMERS = Gauge("docstage_queue_consumers", "Consumers of a queue.", ["queue"])
SWEPT = Counter("docstage_sweeper_actions_total", "Rows that a sweeper rule healed.", ["rule"])
SWEEP_TIMESTAMP = Gauge("docstage_sweeper_last_timestamp_seconds", "When the last full sweep ended (Unix time).")
SWEEP_SECONDS = Histogram("docstage_sweep_seconds", "Time a full sweep took.", buckets=SECONDS)


def count_end(move: Move, kind: Kind) -> None:
    """Count a job that a committed move has ended; one that goes on is not counted."""
    if move.state.terminal:
        code = move.code.value if move.code else ""
        COMPLETIONS.labels(kind=kind.value, outcome=move.state.value, code=code).inc()


def prepare_stages(lanes: Iterable[Lane]) -> None:
    """Set what a consumer counts to zero, because a rate over a series that does not exist yet shows nothing.

    A first failure would otherwise be invisible: the step from no series to 1 is no increase to Prometheus.
    """
    names = [lane.value for lane in lanes]
    stages = sorted({Lane(name).stage.value for name in names})
    retryable = [code.value for code, meaning in MEANINGS.items() if meaning.retryable]
    _zero(QUEUE_WAIT_SECONDS, names)
    _zero(STAGE_SECONDS, stages, [AttemptOutcome.COMPLETED.value, AttemptOutcome.TRANSIENT.value])
    _zero(RETRIES, stages, retryable)
    _zero(TAKEOVERS, stages, ["lock_free", "lease_expired"])
    for counter in (FENCED, RELEASES, IN_FLIGHT):
        _zero(counter, stages)
    _zero(CHILD_KILLS, ["timeout", "silence", "memory", "scratch", "crash", "cancelled", "recycled"])
    if Stage.NORMALIZE.value in stages:
        _prepare_model()
    _zero(PAGES, ["text_layer", "ocr", "docx", "text", "failed"] if Stage.EXTRACT.value in stages else [])


def _prepare_model() -> None:
    """Set what a worker that may ask a model counts to zero."""
    outcomes = ("answered", "kept", "refused", "invalid", "too_long", "rejected", "rate_limited", "unavailable")
    _zero(MODEL_REQUESTS, [*outcomes, "timeout", "connection_failed"])
    _zero(MODEL_TOKENS, ["in", "out"])
    _zero(MODEL_FALLBACKS, [code.value for code in MODEL_CODES])


def prepare_deliver() -> None:
    """Set what the sender of webhooks counts to zero."""
    _zero(WEBHOOK_DELIVERIES, ["delivered", "deferred", "stale"], [""])
    _zero(WEBHOOK_DELIVERIES, ["retrying", "failed"], [code.value for code in DeliveryCode])
    _zero(WEBHOOK_SECONDS, ["delivered", "retrying", "failed"])


def prepare_intake(kinds: Iterable[str], refusals: Iterable[str]) -> None:
    """Set what intake counts to zero."""
    kinds = list(kinds)
    _zero(ARRIVALS, kinds)
    _zero(COMPLETIONS, kinds, [JobState.CANCELLED.value], [""])
    _zero(REFUSALS, refusals)


def _zero(metric: Counter | Gauge | Histogram, *labels: Iterable[str]) -> None:
    """Make the series of every combination of label values."""
    for values in product(*labels):
        metric.labels(*values)
