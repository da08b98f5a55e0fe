"""What a child can be asked to do, by name."""

from collections.abc import Mapping
from typing import Any, Final

from stages.child.call import Call, Operation
from stages.child.extraction import extract
from stages.child.inspection import inspect


def normalize(call: Call) -> Mapping[str, Any]:
    """Find what was asked for in the extracted text.

    It runs here because patterns over a hostile text can take any time.
    """
    # Loaded with the first call: children that only extract do without its tables.
    from stages.fields.engine import normalize as find  # noqa: PLC0415

    found: Mapping[str, Any] = find(dict(call.request))
    return found


OPERATIONS: Final[Mapping[str, Operation]] = {"inspect": inspect, "extract": extract, "normalize": normalize}
