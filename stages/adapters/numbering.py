"""The numbers that Word shows before paragraphs of lists, which the text itself does not contain."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from lxml import etree

W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
VAL: Final = f"{W}val"

_BULLET: Final = "•"
_PLACEHOLDER = re.compile(r"%([1-9])")
_ROMAN: Final = (
    (1000, "m"),
    (900, "cm"),
    (500, "d"),
    (400, "cd"),
    (100, "c"),
    (90, "xc"),
    (50, "l"),
    (40, "xl"),
    (10, "x"),
    (9, "ix"),
    (5, "v"),
    (4, "iv"),
    (1, "i"),
)
_MAX_STYLE_CHAIN: Final = 20
_MAX_ROMAN: Final = 3999


@dataclass(frozen=True, slots=True)
class Level:
    """How one level of a list numbers its paragraphs."""

    style: str = "decimal"
    text: str = ""
    start: int = 1


@dataclass(frozen=True, slots=True)
class ListItem:
    """A paragraph's place: which list, which level."""

    number_id: str
    level: int


@dataclass(slots=True)
class Numbering:
    """The lists of a document, counting as its paragraphs go by."""

    levels: dict[str, dict[int, Level]] = field(default_factory=dict)
    lists: dict[str, str] = field(default_factory=dict)
    restarts: dict[tuple[str, int], int] = field(default_factory=dict)
    styles: dict[str, ListItem] = field(default_factory=dict)
    _counters: dict[str, dict[int, int]] = field(default_factory=dict)

    def label(self, properties: etree._Element | None) -> str:
        """Count a paragraph and return what stands before it; empty when it is in no list."""
        item = self._item(properties)
        if item is None or item.number_id not in self.lists:
            return ""
        abstract = self.lists[item.number_id]
        level = self.levels.get(abstract, {}).get(item.level)
        if level is None:
            return ""
        self._count(abstract, item, level)
        if level.style == "bullet":
            return _BULLET
        return _PLACEHOLDER.sub(lambda match: self._figure(abstract, int(match.group(1)) - 1), level.text)

    def _item(self, properties: etree._Element | None) -> ListItem | None:
        """Find the paragraph's list: its own mention wins over its style's."""
        if properties is None:
            return None
        style = properties.find(f"{W}pStyle")
        inherited = self.styles.get(style.get(VAL, "")) if style is not None else None
        return list_item(properties, inherited)

    def _count(self, abstract: str, item: ListItem, level: Level) -> None:
        """Advance the paragraph's level and begin the deeper ones anew."""
        counters = self._counters.setdefault(abstract, {})
        restart = self.restarts.pop((item.number_id, item.level), None)
        if restart is not None:
            counters[item.level] = restart
        else:
            counters[item.level] = counters.get(item.level, level.start - 1) + 1
        for deeper in [other for other in counters if other > item.level]:
            del counters[deeper]

    def _figure(self, abstract: str, index: int) -> str:
        """Return a level's present number in its own style."""
        level = self.levels[abstract].get(index, Level())
        return figure(self._counters[abstract].get(index, level.start), level.style)


def read_numbering(numbering: etree._Element | None, styles: etree._Element | None) -> Numbering:
    """Read the lists from the parts ``numbering.xml`` and ``styles.xml``, as far as they are there."""
    result = Numbering()
    if numbering is None:
        return result
    for abstract in numbering.iterchildren(f"{W}abstractNum"):
        result.levels[abstract.get(f"{W}abstractNumId", "")] = dict(_levels(abstract))
    for entry in numbering.iterchildren(f"{W}num"):
        number_id = entry.get(f"{W}numId", "")
        result.lists[number_id] = _value(entry, "abstractNumId")
        for override in entry.iterchildren(f"{W}lvlOverride"):
            start = _value(override, "startOverride")
            if start:
                result.restarts[number_id, _integer(override.get(f"{W}ilvl", ""))] = _integer(start)
    if styles is not None:
        result.styles.update(_style_items(styles))
    return result


def list_item(properties: etree._Element, inherited: ListItem | None) -> ListItem | None:
    """Read a list's mention in paragraph properties; what it leaves open is inherited."""
    mention = properties.find(f"{W}numPr")
    if mention is None:
        return inherited
    number_id = _value(mention, "numId") or (inherited.number_id if inherited else "")
    level = _value(mention, "ilvl")
    return ListItem(number_id, _integer(level) if level or inherited is None else inherited.level)


def figure(number: int, style: str) -> str:
    """Write ``number`` as lists of ``style`` do."""
    match style:
        case "lowerLetter" | "upperLetter":
            text = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        case "lowerRoman" | "upperRoman":
            text = _roman(number)
        case "decimalZero":
            text = f"{number:02}"
        case "none":
            text = ""
        case _:
            text = str(number)
    return text.upper() if style.startswith("upper") else text


def _roman(number: int) -> str:
    """Write a number in Roman figures; one out of their range stays as it is."""
    if not 0 < number <= _MAX_ROMAN:
        return str(number)
    text = ""
    for value, letters in _ROMAN:
        count, number = divmod(number, value)
        text += letters * count
    return text


def _levels(abstract: etree._Element) -> Iterator[tuple[int, Level]]:
    """Read the levels of one kind of list."""
    for entry in abstract.iterchildren(f"{W}lvl"):
        start = _value(entry, "start")
        yield (
            _integer(entry.get(f"{W}ilvl", "")),
            Level(_value(entry, "numFmt") or "decimal", _value(entry, "lvlText"), _integer(start) if start else 1),
        )


def _style_items(styles: etree._Element) -> Iterator[tuple[str, ListItem]]:
    """Say for each paragraph style in which list it puts its paragraphs, itself or by what it is based on."""
    by_id = {style.get(f"{W}styleId", ""): style for style in styles.iterchildren(f"{W}style")}
    for name in by_id:
        chain: list[etree._Element] = []
        current = by_id.get(name)
        while current is not None and len(chain) < _MAX_STYLE_CHAIN:
            chain.append(current)
            current = by_id.get(_value(current, "basedOn"))
        item: ListItem | None = None
        for style in reversed(chain):
            properties = style.find(f"{W}pPr")
            item = list_item(properties, item) if properties is not None else item
        if item is not None:
            yield name, item


def _value(parent: etree._Element, name: str) -> str:
    """Return the value of a child element; empty when it has none."""
    child = parent.find(f"{W}{name}")
    return "" if child is None else child.get(VAL, "")


def _integer(text: str) -> int:
    """Read a number from a document; nonsense is 0."""
    try:
        return max(-1, min(int(text), 1_000_000))
    except ValueError:
        return 0
