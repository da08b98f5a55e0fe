"""A model's answer about one document: the one that is kept, else a new one, which is kept before anything else.

An answer is paid for. It lies in the object store under its job and what was asked, so that neither a retry nor a
worker that takes over pays again, and so that it goes when the job goes.
"""

import contextlib
import hashlib
from collections.abc import Mapping
from typing import Any, Protocol

from schema.domain.errors import MODEL_CODES, ErrorCode, PermanentError, StageError, TransientError
from schema.domain.kinds import Kind
from schema.runtime import failpoints, metrics
from schema.runtime.blobs import answer_key
from schema.runtime.failpoints import Point
from schema.runtime.settings import ModelSettings
from stages.model.answers import InvalidAnswerError, Reply, read_answer, read_reply
from stages.model.question import VERSION, Question, make_question
from stages.work import Work


class Store(Protocol):
    """Where answers are kept."""

    async def get(self, key: str, /) -> bytes:
        """Return an object's bytes; raises ``document_gone`` when there is none."""

    async def put(self, key: str, body: bytes, /) -> object:
        """Store an object; raises an owned error when it cannot."""


class Asked(Protocol):
    """Who is asked; ``stages.model.provider.Provider`` is."""

    async def ask(self, body: bytes, *, idempotency_key: str) -> bytes:
        """Return the answer's body; raises an owned error when there is none."""


class Model:
    """A model behind a provider, as the settings name it."""

    def __init__(self, settings: ModelSettings, provider: Asked, store: Store, *, attempts: int) -> None:
        """Keep the ports; ``attempts`` is how many a series has."""
        self._settings = settings
        self._provider = provider
        self._store = store
        self._attempts = attempts
        self._kinds = settings.kinds_of_model()
        self._parameters = settings.parameters_of_model()

    @property
    def name(self) -> str:
        """Its name and the version of what it is asked, as results tell it."""
        return f"model-{VERSION}:{self._settings.model_name}"

    def reads(self, kind: Kind, document: Mapping[str, Any]) -> bool:
        """Say whether it is to read this document: not where there is no text, or an electronic invoice inside."""
        has_text = any(page["text"].strip() for page in document["pages"])
        return kind in self._kinds and has_text and not (kind is Kind.INVOICE and document.get("attachments"))

    def gives_way(self, error: StageError, attempt: int) -> bool:
        """Say whether the rules take over after ``error``: when told to, and no further attempt could help."""
        is_last = isinstance(error, PermanentError) or attempt >= self._attempts
        return self._settings.model_fallback == "rules" and error.code in MODEL_CODES and is_last

    async def answer(self, work: Work, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer, as JSON of ``answers.answer_form``; at most one is asked for per call.

        Raises:
            TransientError: what provider or store raise, or ``model_answer_invalid`` while another may be asked for.
            PermanentError: what the provider raises, ``model_refused``, or ``model_answer_invalid``.
        """
        question = make_question(
            work.kind,
            document["pages"],
            name=self._settings.model_name,
            parameters=self._parameters,
            max_chars=self._settings.model_max_chars,
            sentences=work.options.sentences,
        )
        for number in range(1, self._settings.model_answers + 1):
            key = answer_key(work.job_id, question.digest, number)
            kept = await self._kept(key)
            if kept is None:
                return self._accept(work.kind, await self._ask(question, key), number)
            with contextlib.suppress(InvalidAnswerError):
                found = read_answer(work.kind, read_reply(kept))
                metrics.MODEL_REQUESTS.labels(outcome="kept").inc()
                return found
        raise PermanentError(ErrorCode.MODEL_ANSWER_INVALID)

    async def _kept(self, key: str) -> bytes | None:
        try:
            return await self._store.get(key)
        except PermanentError:
            return None

    async def _ask(self, question: Question, key: str) -> bytes:
        """Ask under a key that is the same for whoever asks this again, and keep what comes."""
        idempotency_key = hashlib.sha256(key.encode()).hexdigest()
        body = await self._provider.ask(question.body, idempotency_key=idempotency_key)
        # Where it cannot be kept it is used all the same: giving it up would be to pay again for certain.
        with contextlib.suppress(StageError):
            await self._store.put(key, body)
        failpoints.hit(Point.ANSWER_KEPT)
        return body

    def _accept(self, kind: Kind, body: bytes, number: int) -> dict[str, Any]:
        """Read a new answer and count what it came to."""
        outcome = "invalid"
        try:
            reply = read_reply(body)
            _count_tokens(reply)
            found = read_answer(kind, reply)
            outcome = "answered"
        except InvalidAnswerError:
            if number < self._settings.model_answers:
                raise TransientError(ErrorCode.MODEL_ANSWER_INVALID) from None
            raise PermanentError(ErrorCode.MODEL_ANSWER_INVALID) from None
        except PermanentError:
            outcome = "refused"
            raise
        finally:
            metrics.MODEL_REQUESTS.labels(outcome=outcome).inc()
        return found


def _count_tokens(reply: Reply) -> None:
    if reply.usage is not None:
        metrics.MODEL_TOKENS.labels(direction="in").inc(reply.usage.prompt_tokens)
        metrics.MODEL_TOKENS.labels(direction="out").inc(reply.usage.completion_tokens)
