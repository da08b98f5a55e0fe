"""A stored result in the forms that clients ask for: JSON, plain text, Markdown and CSV.

Shape: a result is the JSON of ``schema.wire.results.Result``. Its values come from documents of strangers, so
none may become a formula in a spreadsheet or markup in a page.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from schema.wire.results import Contract, Invoice, InvoiceLine, Model, TaxLine

PAGE_BREAK: Final = "\n\f\n"
CSV_COLUMNS: Final = ("field", "value", "confidence", "page")

_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
_MARKUP: Final = re.compile(r"([\\`*_\[\]#|~>])")
_SECTIONS: Final[Mapping[str, type[Model]]] = {"invoice": Invoice, "contract": Contract}
_ITEMS: Final[Mapping[str, type[Model]]] = {"taxes": TaxLine, "lines": InvoiceLine}

Json = dict[str, Any]
Result = Mapping[str, Any]
Row = tuple[str, str, float | None, int | None]


def as_json(result: Result, *, include_text: bool) -> Json:
    """Return the result with or without its text; kind ``text`` always has it.

    Shape: with text, ``text`` is the whole document's and each page has its own; without, no page has one.
    """
    if include_text or result["kind"] == "text":
        return {**result, "text": as_text(result)}
    return {**result, "pages": [_without_text(page) for page in result["pages"]]}


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
    """Yield the sections that the result has, in the order of the models: jsonb has one of its own."""
    for name, model in _SECTIONS.items():
        if result.get(name) is not None:
            section = _ordered(result[name], model)
            items = {key: [_ordered(item, _ITEMS[key]) for item in section[key]] for key in _ITEMS if key in section}
            yield section | items


def _ordered(values: Mapping[str, Any], model: type[Model]) -> Json:
    return {key: values[key] for key in model.model_fields if key in values} | dict(values)


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
