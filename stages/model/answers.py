"""The form of an answer, derived from the result's own models, and what is taken for one.

Shape: each field of a result becomes ``{value, quote}`` or ``null``: what the model read, and the passage where it
says that it stands. Page, place and confidence are not asked for; they are found out.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from schema.domain.errors import ErrorCode, PermanentError
from schema.domain.kinds import Kind
from schema.wire.results import Contract, Found, Invoice
from stages.fields.shapes import Shape, shapes

SECTIONS: Final[Mapping[Kind, type[BaseModel]]] = {Kind.INVOICE: Invoice, Kind.CONTRACT: Contract}
_FORM: Final = ConfigDict(extra="forbid")
_PROOFS: Final = frozenset(Found.model_fields)


class InvalidAnswerError(Exception):
    """What came is not an answer: cut off, no JSON, or of another form."""


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: Annotated[int, Field(ge=0)] = 0
    completion_tokens: Annotated[int, Field(ge=0)] = 0


class Reply(BaseModel):
    """A chat completion, as far as it is looked at."""

    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None


class _Quote(BaseModel):
    model_config = _FORM

    quote: str


class _SummaryAnswer(BaseModel):
    model_config = _FORM

    sentences: list[_Quote]


@cache
def answer_form(kind: Kind) -> type[BaseModel]:
    """Return the form of an answer about a document of ``kind``."""
    section = SECTIONS.get(kind)
    if section is None:
        return _SummaryAnswer
    fields: dict[str, Any] = {shape.name: _annotation(shape) for shape in shapes(section)}
    return create_model(f"{section.__name__}Answer", __config__=_FORM, **fields)


def read_reply(body: bytes) -> Reply:
    """Read what a provider has answered.

    Raises:
        InvalidAnswerError: it is no chat completion.
    """
    try:
        return Reply.model_validate_json(body)
    except ValidationError:
        raise InvalidAnswerError from None


def read_answer(kind: Kind, reply: Reply) -> dict[str, Any]:
    """Return the answer as JSON of ``answer_form``.

    Raises:
        InvalidAnswerError: it was cut off or is of another form.
        PermanentError: ``model_refused``, when the model or a filter before it would not answer.
    """
    choice = reply.choices[0]
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise PermanentError(ErrorCode.MODEL_REFUSED)
    if choice.finish_reason == "length":
        raise InvalidAnswerError
    try:
        answer = answer_form(kind).model_validate_json(choice.message.content or "")
    except ValidationError:
        raise InvalidAnswerError from None
    return answer.model_dump(mode="json")


def _annotation(shape: Shape) -> tuple[Any, Any]:
    """Return a field of the form: every one is required, as strict providers demand, and may be null."""
    form = _quoted(shape.model)
    return (list[form] if shape.is_list else form | None, ...)  # type: ignore[valid-type]  # made at run time


@cache
def _quoted(model: type[BaseModel]) -> type[BaseModel]:
    """Return ``model`` with a quote in the place of its proof."""
    hints = get_type_hints(model, include_extras=True)
    fields: dict[str, Any] = {name: (hints[name], ...) for name in model.model_fields if name not in _PROOFS}
    return create_model(model.__name__, __config__=_FORM, **fields, quote=(str, ...))
