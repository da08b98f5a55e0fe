"""What parent and child say to each other: length-prefixed frames over one socket.

JSON, never pickle: a hostile document may own the child, and whatever the child says is only data to the
parent. Both sides import this module, so it uses the standard library alone.

Shape: a frame is its kind (1 byte), the length of its payload (4 bytes, big endian) and the payload. The
parent sends ``REQUEST`` and, when the document travels along, ``BLOB``; the child answers with any number of
``EVENT`` and then one ``RESULT`` or ``FAILURE``. ``READY`` comes once, when the child has started.
"""

import json
import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final

HEADER: Final = struct.Struct(">BI")

EXIT_OUT_OF_MEMORY: Final = 77
"""How a child exits that had not even the memory to say so."""


class FrameKind(IntEnum):
    """What a frame's payload is."""

    REQUEST = 1
    BLOB = 2
    READY = 3
    EVENT = 4
    RESULT = 5
    FAILURE = 6


def pack(kind: FrameKind, payload: bytes) -> bytes:
    """Return the frame."""
    return HEADER.pack(kind, len(payload)) + payload


def dump(value: Mapping[str, Any]) -> bytes:
    """Encode ``value`` as compact JSON; refuses what JSON cannot say (NaN, lone surrogates)."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
