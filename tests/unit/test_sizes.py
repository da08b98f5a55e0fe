"""How long things may get: a module and a function that a reader takes in as a whole."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("intake", "publisher", "stages", "dlq_tools", "schema", "deploy", "docs", "tests")
MODULE_LINES = 400
FUNCTION_LINES = 50
# SQL in a migration is a list of facts; cutting it in two would hide what belongs together.
LISTS = {ROOT / "schema/migrations/versions"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sources() -> list[Path]:
    """Return every Python file that is ours."""
    found = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return sorted(path for path in found if not LISTS & set(path.parents))


def functions(path: Path) -> Iterator[Function]:
    """Yield every function and method of a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return (node for node in ast.walk(tree) if isinstance(node, Function))


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder != "tests"])
def test_no_module_outgrows_its_reader(folder: str) -> None:
    """A module that cannot be read in one go has more than one responsibility; tests are looked up, not read."""
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sources() if _within(path, folder)}

    assert {str(path.relative_to(ROOT)): lines for path, lines in lengths.items() if lines > MODULE_LINES} == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_function_outgrows_its_reader(folder: str) -> None:
    """What does not fit on a screen is not seen at once, and so not understood at once."""
    found = ((path, function) for path in sources() if _within(path, folder) for function in functions(path))
    long = [
        f"{path.relative_to(ROOT)}:{function.name}" for path, function in found if _lines(function) > FUNCTION_LINES
    ]

    assert long == []


def _within(path: Path, folder: str) -> bool:
    return path.is_relative_to(ROOT / folder)


def _lines(function: Function) -> int:
    """Count a function's lines; what its docstring promises is not held against it."""
    promise = function.body[0] if ast.get_docstring(function, clean=False) is not None else None
    described = (promise.end_lineno or promise.lineno) - promise.lineno + 1 if promise else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - described
