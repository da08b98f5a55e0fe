"""XML from strangers: parsed without DTDs, entities or network, and read by local names.

The versions of ZUGFeRD and UBL differ in their namespaces and hardly in their names.
"""

from collections.abc import Iterator
from typing import Final

from lxml import etree

MAX_CHARACTERS: Final = 20_000_000


def parse_xml(text: str) -> etree._Element | None:
    """Return the root element; ``None`` for what is too large, not well-formed, or declares a document type."""
    if len(text) > MAX_CHARACTERS:
        return None
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(text.lstrip("\ufeff \r\n\t").encode("utf-8", "replace"), parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    return root if root.getroottree().docinfo.internalDTD is None else None


def local_name(node: etree._Element) -> str:
    """Return the element's name without its namespace."""
    tag = node.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def find_all(node: etree._Element, path: str) -> Iterator[etree._Element]:
    """Yield the elements at ``path``: local names between slashes, alternatives between bars."""
    step, _, rest = path.partition("/")
    names = step.split("|")
    for child in node:
        if local_name(child) in names:
            if rest:
                yield from find_all(child, rest)
            else:
                yield child


def find_text(node: etree._Element, *paths: str) -> str | None:
    """Return the first text at the first of ``paths`` that has one, its whitespace made single blanks."""
    for path in paths:
        for found in find_all(node, path):
            text = " ".join((found.text or "").split())
            if text:
                return text
    return None
