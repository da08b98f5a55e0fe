"""What the pages say of commands, files and settings is true of the code."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import schema
from docs import settings_page
from schema.runtime.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
MAKE = re.compile(r"`make ([a-z-]+)|^make ([a-z-]+)", re.MULTILINE)
TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)
HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)
TEST = re.compile(r"`(test_[a-z0-9_]+)`")
MODULE = re.compile(r"`((?:intake|publisher|stages|dlq_tools|schema)(?:[./][a-z_]+)+(?:\.py)?)`")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def each_page() -> pytest.MarkDecorator:
    """Run a test once per page."""
    return pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def test_the_settings_page_says_what_the_settings_are() -> None:
    """Operators set what they read there; ``make docs`` writes it anew."""
    assert settings_page.PAGE.read_text(encoding="utf-8") == settings_page.page()


def test_every_setting_has_a_description() -> None:
    """A name alone tells an operator neither what it does nor when to change it."""
    bare = [
        f"{group.__name__}.{name}"
        for group in settings_page.groups()
        for name, field in group.model_fields.items()
        if not field.description
    ]

    assert bare == []


def test_every_process_is_named_on_the_settings_page() -> None:
    """A class of settings that no process is known to read would be listed as read by nobody."""
    leaves = {group for group in _descendants(Settings) if not group.__subclasses__()}

    assert leaves == set(settings_page.READERS)


@each_page()
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    """A page that leads nowhere is found by the reader who needs it most."""
    broken = [link for link in _links(page) if not _resolves(page, link)]

    assert broken == []


@each_page()
def test_every_make_target_that_is_named_exists(page: Path) -> None:
    """The first command a newcomer types must not fail."""
    targets = set(TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    named = {first or second for first, second in MAKE.findall(page.read_text(encoding="utf-8"))}

    assert named <= targets


@each_page()
def test_every_module_that_is_named_exists(page: Path) -> None:
    """A map to a place that has moved is worse than none."""
    named = MODULE.findall(page.read_text(encoding="utf-8"))

    assert [name for name in named if not _is_code(name)] == []


@each_page()
def test_every_test_that_is_named_exists(page: Path) -> None:
    """A promise that names its proof must not outlive it."""
    named = set(TEST.findall(page.read_text(encoding="utf-8")))
    defined = {
        name
        for module in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", module.read_text(encoding="utf-8"))
    }

    assert named - defined == set()


def test_every_decision_is_numbered_once_and_short() -> None:
    """They are read one after another, and cited by number."""
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [int(page.name[:4]) for page in pages]
    long = [page.name for page in pages if len(page.read_text(encoding="utf-8").splitlines()) > 40]

    assert numbers == list(range(1, len(pages) + 1))
    assert long == []


def test_the_glossary_is_in_order() -> None:
    """A term that is looked up is looked for by its first letters."""
    rows = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    terms = [term.casefold() for term in re.findall(r"^\| \*\*([^*]+)\*\*", rows, re.MULTILINE)]

    assert terms == sorted(terms)


def test_the_schema_package_is_ours() -> None:
    """A distribution of the same name is on PyPI, and would be imported without a word where it is installed."""
    assert Path(schema.__file__).resolve().parent == ROOT / "schema"


def _descendants(group: type[Settings]) -> Iterator[type[Settings]]:
    for one in group.__subclasses__():
        yield one
        yield from _descendants(one)


def _links(page: Path) -> list[str]:
    """Return the relative links of a page, those in code left out."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return [link for link in LINK.findall(text) if not re.match(r"[a-z]+:", link)]


def _resolves(page: Path, link: str) -> bool:
    """Say whether a link's file and heading exist."""
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return False
    return not anchor or anchor in {_anchor(found) for found in HEADING.findall(target.read_text(encoding="utf-8"))}


def _anchor(heading: str) -> str:
    """Return the name that a renderer gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _is_code(name: str) -> bool:
    """Say whether a dotted name or a path is a module or package here, or something that a module defines."""
    parts = re.split(r"[./]", name.removesuffix(".py"))
    place = ROOT.joinpath(*parts)
    if place.is_dir() or place.with_suffix(".py").exists():
        return True
    module = ROOT.joinpath(*parts[:-1]).with_suffix(".py")
    return module.exists() and re.search(rf"\b{parts[-1]}\b", module.read_text(encoding="utf-8")) is not None
