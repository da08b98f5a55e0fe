"""Logs: one JSON object a line, a static past-tense event, ids and codes only."""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Final

import structlog

# A key that is not on this list is dropped: content cannot slip out under a new name.
ALLOWED: Final = frozenset(
    {
        "event", "level", "timestamp", "process",
        "job_id", "tenant_id", "stage", "lane", "series", "attempt", "token", "worker_id", "outcome", "code",
        "kind", "rule", "count", "queue", "exception_type", "seconds", "delay_seconds", "request_id", "method",
        "route", "status", "reason", "event_id", "letter_id", "pages", "size_bytes", "signal", "port", "missing",
        "by", "state", "endpoint_id", "level_number", "exchange", "liveness", "version", "where",
    }
)  # fmt: skip


def _only_allowed(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Drop what is not on the list, and say by name that it was."""
    dropped = [key for key in event if key not in ALLOWED]
    kept = {key: value for key, value in event.items() if key in ALLOWED}
    return kept | {"missing": dropped} if dropped else kept


def configure(process: str, level: str) -> None:
    """Send structlog and the libraries' own logs to stdout as JSON.

    A library's record is reduced to its logger's name and level, because its text may carry content.
    """
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _only_allowed,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(process=process)
    logging.basicConfig(handlers=[_Reduced()], level=logging.WARNING, force=True)


class _Reduced(logging.Handler):
    """Reports that a library logged something, without what it said."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the logger's name and the exception's type."""
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else None
        structlog.get_logger().warning("library_logged", where=record.name, exception_type=kind)


def get_logger() -> Any:  # noqa: ANN401 - structlog's loggers are typed by configuration
    """Return the logger that every module uses."""
    return structlog.get_logger()
