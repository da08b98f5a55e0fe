"""The programs that a child starts."""

import os
from functools import partial
from typing import Any

from pytesseract import pytesseract

from stages.child.limits import die_with


def tie_tesseract() -> None:
    """Have every Tesseract die with this child, even when the child and its parent are killed at once.

    pytesseract offers no hook for that; this is the one place where it collects the arguments of Popen.
    """
    arguments = pytesseract.subprocess_args

    def tied(include_stdout: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002 - pytesseract's own
        return {**arguments(include_stdout), "preexec_fn": partial(die_with, os.getpid())}

    pytesseract.subprocess_args = tied
