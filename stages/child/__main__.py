"""Starts a child: limits first, then the parsers, then calls until the parent hangs up or kills it."""

import gc
import importlib
import json
import os
import sys

from stages.child.limits import confine, die_with, on_refused_memory
from stages.sandbox.protocol import EXIT_OUT_OF_MEMORY


def main() -> None:
    """Serve the parent that started this process with its order as the one argument."""
    order = json.loads(sys.argv[1])
    die_with(order["parent"])
    confine(
        memory_bytes=order["memory_bytes"],
        file_size_bytes=order["file_size_bytes"],
        open_files=order["open_files"],
    )
    # Only now: what follows loads the parsers, and they too live within the limits.
    from stages.child.serving import Line, serve  # noqa: PLC0415
    from stages.child.tools import tie_tesseract  # noqa: PLC0415

    tie_tesseract()
    line = Line.on_standard_input()
    on_refused_memory(line.give_up)
    operations = importlib.import_module(order["operations"]).OPERATIONS
    gc.freeze()
    try:
        serve(line, operations, order["cpu_seconds"])
    except MemoryError:
        # Not even the answer could be made; unwinding further would need memory as well.
        os._exit(EXIT_OUT_OF_MEMORY)
    except BrokenPipeError:
        os._exit(0)


main()
