"""``/docs``: the API's own description as one plain page, which needs no script and no other server."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

from intake.problems import REFUSALS

HEADERS: Final = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
METHODS: Final = ("get", "post", "put", "patch", "delete")
HEAD: Final = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Docstage</title>'
STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code { font: 0.9em ui-monospace, monospace; }
h2 { margin-top: 2.5rem; } h3 { margin: 2rem 0 0.25rem; }
table { border-collapse: collapse; margin: 0.5rem 0; }
td, th { text-align: left; vertical-align: top; padding: 0.2rem 1.2rem 0.2rem 0; border-bottom: 1px solid #8884; }
"""
INTRODUCTION: Final = """
<p>Send <code>Authorization: Bearer &lt;key&gt;</code> with every call of <code>/v1</code>.
The same description for programs is <a href="/openapi.json">/openapi.json</a>.</p>
"""

Json = Mapping[str, Any]


def page(openapi: Json) -> str:
    """Write the page for an OpenAPI description."""
    info = openapi["info"]
    parts = [
        f"<h1>{escape(info['title'])}</h1><p>{escape(info['summary'])}</p>",
        INTRODUCTION,
        "<h2>Calls</h2>",
        *_calls(openapi),
        "<h2>Shapes</h2>",
        *_shapes(openapi["components"]["schemas"]),
        "<h2>Problems</h2>",
        _problems(),
    ]
    body = "\n".join(parts)
    return f'<!doctype html><html lang="en"><head>{HEAD}<style>{STYLE}</style></head><body>{body}</body></html>'


def _calls(openapi: Json) -> Iterator[str]:
    """Yield one section per call, in the order in which they were declared."""
    for path, methods in openapi["paths"].items():
        for method in METHODS:
            if method in methods:
                call = methods[method]
                yield f"<h3><code>{method.upper()} {escape(path)}</code></h3>"
                yield f"<p>{escape(call.get('description', ''))}</p>"
                yield from _table(_parameters(call))
                yield f"<p>Answers: {', '.join(_answers(call))}</p>"


def _parameters(call: Json) -> Iterator[tuple[str, str, str]]:
    """Yield name, place and meaning of what a call takes."""
    for parameter in call.get("parameters", ()):
        meaning = parameter.get("description") or _type(parameter.get("schema", {}))
        yield parameter["name"], parameter["in"], meaning
    form = call.get("requestBody", {}).get("content", {}).get("multipart/form-data", {}).get("schema", {})
    for name, schema in form.get("properties", {}).items():
        needed = " (required)" if name in form.get("required", ()) else ""
        example = f", such as {schema['example']}" if "example" in schema else ""
        yield name, "form", f"{_type(schema)}{example}{needed}"


def _answers(call: Json) -> Iterator[str]:
    """Yield each status with its form; what is not listed is a problem."""
    for status, response in call["responses"].items():
        shapes = [_shape_of(content) or escape(media) for media, content in response.get("content", {}).items()]
        label = f"<code>{escape(status)}</code>" if status != "default" else "or a problem"
        yield f"{label} {' or '.join(shapes)}" if status != "default" else label


def _shape_of(content: Json) -> str:
    """Return a link to the shape that a content has, if it has a name."""
    name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    return f'<a href="#{escape(name)}">{escape(name)}</a>' if name else ""


def _shapes(schemas: Json) -> Iterator[str]:
    """Yield one section per shape of ours."""
    for name, schema in schemas.items():
        if "properties" in schema and "ValidationError" not in name:
            yield f'<h3 id="{escape(name)}">{escape(name)}</h3><p>{escape(schema.get("description", ""))}</p>'
            yield from _table((field, _type(of), "") for field, of in schema["properties"].items())


def _type(schema: Json) -> str:
    """Say in a few words what a value is."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(_type(option) for option in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(str(value) for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type") or "anything")


def _problems() -> str:
    """List every code that a refusal can have; a problem's ``type`` points to its line."""
    rows = "".join(
        f'<tr id="{code}"><td><code>{code}</code></td><td>{refusal.status}</td><td>{escape(refusal.title)}</td></tr>'
        for code, refusal in REFUSALS.items()
    )
    return f"<table><tr><th>code</th><th>status</th><th>meaning</th></tr>{rows}</table>"


def _table(rows: Iterator[tuple[str, str, str]]) -> Iterator[str]:
    """Yield a table unless it would be empty."""
    lines = "".join(
        f"<tr><td><code>{escape(first)}</code></td><td>{escape(second)}</td><td>{escape(third)}</td></tr>"
        for first, second, third in rows
    )
    if lines:
        yield f"<table>{lines}</table>"
