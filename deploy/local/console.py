"""What the launcher says while it works."""

import sys
import threading
import time
from dataclasses import dataclass, field


class LauncherError(Exception):
    """Something a person must see; its text is the whole message, without a traceback."""


@dataclass(slots=True)
class Console:
    """Prints short lines with the time since the start, from any thread."""

    began: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def say(self, text: str) -> None:
        """Print one line to stderr, so that stdout carries only what a command answers."""
        elapsed = time.monotonic() - self.began
        with self._lock:
            print(f"[{elapsed:6.1f}s] {text}", file=sys.stderr, flush=True)
