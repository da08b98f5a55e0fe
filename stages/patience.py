"""Patience with a database that does not answer now: the same question again, until it does."""

from collections.abc import Awaitable, Callable
from typing import Final, ParamSpec, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_random_exponential

from schema.db.engine import is_unavailable
from schema.runtime.logs import get_logger

log = get_logger()

FIRST_BOUND_SECONDS: Final = 0.1
LAST_BOUND_SECONDS: Final = 5.0

P = ParamSpec("P")
T = TypeVar("T")


async def until_answered(ask: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Ask again as long as the database does not answer; what it refuses is raised.

    Without an end of its own: whoever may not wait so long cancels it, and what is asked must be fenced, because
    the answer to an earlier asking may only have been lost.
    """
    patient = AsyncRetrying(
        retry=retry_if_exception(is_unavailable),
        wait=wait_random_exponential(multiplier=FIRST_BOUND_SECONDS, max=LAST_BOUND_SECONDS),
        before_sleep=_tell,
    )
    return await patient(ask, *args, **kwargs)


def _tell(state: RetryCallState) -> None:
    """Log that something waits for the database."""
    error = state.outcome.exception() if state.outcome else None
    log.warning("database_unavailable", exception_type=type(error).__name__, count=state.attempt_number)
