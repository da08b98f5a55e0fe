"""How large an XML part would be with its entities written out; nothing is written out for it."""

import re
from typing import Final

_DECLARED: Final = re.compile(rb"""<!ENTITY\s+([^\s%"'<>&;]{1,100})\s+(?:"([^"]*)"|'([^']*)')""")
_USED: Final = re.compile(rb"&([^\s#&;<>]{1,100});")


def expanded_bytes(data: bytes) -> int:
    """Return the size of ``data`` with every internal entity in its place.

    Entities are counted in the order in which they are declared: one that refers to a later one is counted
    without it, so that no loop has to be looked for.
    """
    sizes: dict[bytes, int] = {}
    end = 0
    for declared in _DECLARED.finditer(data):
        sizes.setdefault(declared[1], _size(declared[2] or declared[3] or b"", sizes))
        end = declared.end()
    return _size(data[end:], sizes)


def _size(text: bytes, sizes: dict[bytes, int]) -> int:
    """Return the size of a text whose entities have these sizes."""
    return len(text) + sum(sizes.get(used[1], 0) for used in _USED.finditer(text))
