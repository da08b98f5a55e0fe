"""A language model's provider, as a test wants it to be: what it answers, and the settings to ask it by."""

import json
from collections.abc import Mapping
from typing import Any

from schema.domain.kinds import Kind
from stages.model.answers import answer_form
from tests.support.receiver import Receiver, answer

MODEL = "small-1"


def report(kind: Kind, **fields: Any) -> str:
    """Return an answer as a model writes it: what is not given is unknown."""
    form = answer_form(kind).model_json_schema()["properties"]
    empty = {name: [] if shape.get("type") == "array" else None for name, shape in form.items()}
    return json.dumps({**empty, **fields})


def said(value: str, quote: str | None = None, **more: Any) -> dict[str, Any]:
    """Return one field of an answer; without a quote the value is its own."""
    return {"value": value, "quote": value if quote is None else quote, **more}


def completion(content: str | None, *, finish_reason: str = "stop", refusal: str | None = None) -> bytes:
    """Return the body of a chat completion."""
    message = {"role": "assistant", "content": content, "refusal": refusal}
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
        }
    ).encode()


def answered(content: str | None, **more: Any) -> bytes:
    """Return the whole HTTP answer with a completion in it."""
    return answer(200, body=completion(content, **more), Content_Type="application/json")


def asking(receiver: Receiver, **settings: str) -> Mapping[str, str]:
    """Return the settings of a worker that asks ``receiver``."""
    return {
        "DOCSTAGE_MODEL_URL": f"http://{receiver.host}:{receiver.port}/v1",
        "DOCSTAGE_MODEL_KEY": "sk-test",
        "DOCSTAGE_MODEL_NAME": MODEL,
        **{f"DOCSTAGE_{name}": value for name, value in settings.items()},
    }
