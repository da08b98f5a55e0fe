"""A stored result in the forms that clients ask for: JSON, plain text, Markdown and CSV.

Shape: a result is the JSON of ``schema.wire.results.Result``. Its values come from documents of strangers, so
none may become a formula in a spreadsheet or markup in a page.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, get_args

from schema.wire.results import Model
from schema.wire.results import Result as ResultModel

PAGE_BREAK: Final = "\n\f\n"
CSV_COLUMNS: Final = ("field", "value", "confidence", "page")

_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
_MARKUP: Final = re.compile(r"([\\`*_\[\]#|~>])")
_SECTIONS: Final = ("invoice", "contract")
# What stands first, although a model has it from its heirs.
_FIRST: Final[Sequence[str]] = ("version", "job_id", "value", "role")

Json = dict[str, Any]
Result = Mapping[str, Any]
Row = tuple[str, str, float | None, int | None]


def as_json(result: Result, *, include_text: bool) -> Json:
    """Return the result with or without its text, in the order of the models; kind ``text`` always has its text.

    Shape: with text, ``text`` is the whole document's and each page has its own; without, no page has one.
    """
    ordered = _ordered(result, ResultModel)
    if include_text or result["kind"] == "text":
        return {**ordered, "text": as_text(result)}
    return {**ordered, "pages": [_without_text(page) for page in ordered["pages"]]}


def as_text(result: Result) -> str:
    """Return the document's text, its pages parted by a form feed on a line of its own."""
    return PAGE_BREAK.join(page.get("text") or "" for page in result["pages"])


def as_csv(result: Result) -> str:
    """Return a row for every value, with the field's name as a path.

    Shape: ``field,value,confidence,page``; a value that a spreadsheet would take for a formula begins with an
    apostrophe.
    """
    target = io.StringIO(newline="")
    writer = csv.writer(target)
    writer.writerow(CSV_COLUMNS)
    for name, value, confidence, page in _rows(result):
        writer.writerow((name, _inert(value), "" if confidence is None else confidence, "" if page is None else page))
    return target.getvalue()


def as_markdown(result: Result) -> str:
    """Return the result for people: a table of fields, the invoice's lines, or the text itself."""
    parts = [f"# {result['kind'].capitalize()}"]
    for section in _sections(result):
        parts += _section_tables(section)
    if result.get("summary") is not None:
        parts.append(_bullets(result["summary"]["sentences"]))
    if result["kind"] == "text":
        parts += [_escaped_lines(page.get("text") or "") for page in result["pages"]]
    if result["warnings"]:
        parts.append("## Warnings\n\n" + "\n".join(_warning(each) for each in result["warnings"]))
    return "\n\n".join(part for part in parts if part) + "\n"


def _without_text(page: Mapping[str, Any]) -> Json:
    return {key: value for key, value in page.items() if key != "text"}


def _sections(result: Result) -> Iterator[Json]:
    """Yield the sections that the result has, in the order of the models."""
    ordered = _ordered(result, ResultModel)
    yield from (ordered[name] for name in _SECTIONS if ordered.get(name) is not None)


def _ordered(values: Mapping[str, Any], model: type[Model]) -> Json:
    """Return ``values`` with all keys in them as people read them: jsonb has its own."""
    shape = _shape(model)
    known = {key: _ordered_value(values[key], shape[key]) for key in shape if key in values}
    return known | {key: value for key, value in values.items() if key not in shape}


def _ordered_value(value: Any, model: type[Model] | None) -> Any:  # noqa: ANN401 - JSON
    if model is None:
        return value
    if isinstance(value, list):
        return [_ordered_value(each, model) for each in value]
    return _ordered(value, model) if isinstance(value, Mapping) else value


@cache
def _shape(model: type[Model]) -> dict[str, type[Model] | None]:
    """Return the keys of a model in their order, each with the model of what is under it."""
    names: list[str] = [name for name in _FIRST if name in model.model_fields]
    names += [name for name in model.model_fields if name not in names]
    return {name: _model_in(model.model_fields[name].annotation) for name in names}


def _model_in(annotation: Any) -> type[Model] | None:  # noqa: ANN401 - whatever a field is annotated with
    """Return the model in an annotation such as ``list[TaxLine]`` or ``TextField | None``."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return annotation
    return next((found for each in get_args(annotation) if (found := _model_in(each))), None)


def _rows(result: Result) -> Iterator[Row]:
    for section in _sections(result):
        yield from _section_rows(section)
    if result.get("summary") is not None:
        for index, sentence in enumerate(result["summary"]["sentences"]):
            yield f"sentences[{index}]", sentence["text"], None, sentence.get("page")
    if result["kind"] == "text":
        for page in result["pages"]:
            yield "text", page.get("text") or "", page.get("confidence"), page["number"]


def _section_rows(section: Mapping[str, Any]) -> Iterator[Row]:
    for name, field in section.items():
        if isinstance(field, list):
            for index, item in enumerate(field):
                yield from _item_rows(f"{name}[{index}]", item)
        else:
            yield _field_row(name, field or {})


def _item_rows(path: str, item: Mapping[str, Any]) -> Iterator[Row]:
    """Yield a row for a found value and its role, or one for each value of an invoice's line."""
    if "confidence" not in item:
        yield from ((f"{path}.{name}", value, None, None) for name, value in item.items() if value is not None)
        return
    yield _field_row(path, item)
    if item.get("role"):
        yield f"{path}.role", item["role"], item["confidence"], item.get("page")


def _field_row(path: str, field: Mapping[str, Any]) -> Row:
    return path, field.get("value") or "", field.get("confidence"), field.get("page")


def _inert(value: str) -> str:
    """Keep a spreadsheet from running ``value``; a negative number is none of its formulas."""
    if value.startswith(_FORMULA) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def _section_tables(section: Mapping[str, Any]) -> Iterator[str]:
    rows = [
        (_title(name), _shown(field), "" if field is None else f"{field['confidence']:.2f}", _page(field))
        for name, field in section.items()
        if not isinstance(field, list)
    ]
    yield _table(("Field", "Value", "Confidence", "Page"), rows)
    for name, items in section.items():
        if isinstance(items, list) and items:
            yield f"## {_title(name)}\n\n{_item_table(items)}"


def _item_table(items: Sequence[Mapping[str, Any]]) -> str:
    if "confidence" not in items[0]:
        columns = tuple(items[0])
        return _table(tuple(map(_title, columns)), [[item[column] or "" for column in columns] for item in items])
    with_role = any("role" in item for item in items)
    head = ("Value", "Role", "Page") if with_role else ("Value", "Page")
    rows = [(_shown(item), *((item.get("role") or "",) if with_role else ()), _page(item)) for item in items]
    return _table(head, rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([_escaped(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _shown(field: Mapping[str, Any] | None) -> str:
    return "" if field is None else str(field["value"])


def _page(field: Mapping[str, Any] | None) -> str:
    return "" if field is None or field.get("page") is None else str(field["page"])


def _bullets(sentences: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(
        f"- {_escaped(each['text'])}" + (f" (p. {each['page']})" if each.get("page") else "") for each in sentences
    )


def _warning(warning: Mapping[str, Any]) -> str:
    pages = ", ".join(map(str, warning["pages"]))
    return f"- `{warning['code']}`" + (f" (p. {pages})" if pages else "")


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _escaped(text: str) -> str:
    """Return ``text`` on one line, without meaning to Markdown or HTML."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split())).replace("&", "&amp;").replace("<", "&lt;")


def _escaped_lines(text: str) -> str:
    return "\n".join(_escaped(line) for line in text.split("\n"))
