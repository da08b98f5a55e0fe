"""Send the sample documents through a running system."""

import os
import subprocess
from collections.abc import Mapping

from deploy.local.console import Console, LauncherError
from deploy.local.instance import ROOT
from deploy.local.virtualenv import VENV

SAMPLES = ROOT / "deploy" / "samples"
KINDS: Mapping[str, str] = {
    "invoice.pdf": "invoice",
    "receipt-photo.jpg": "invoice",
    "contract.docx": "contract",
    "minutes.txt": "summary",
    "letter-scan.pdf": "text",
}


def run(environment: Mapping[str, str], console: Console) -> None:
    """Submit each sample and wait until it is finished.

    Raises:
        LauncherError: one did not come through.
    """
    if "DOCSTAGE_API_KEY" not in environment:
        message = "Docstage was not started here yet; `make run` does"
        raise LauncherError(message)
    failed = [name for name, kind in KINDS.items() if not _comes_through(name, kind, environment, console)]
    if failed:
        message = f"these samples did not come through: {', '.join(failed)}; see `make logs`"
        raise LauncherError(message)


def _comes_through(name: str, kind: str, environment: Mapping[str, str], console: Console) -> bool:
    """Let the client send one sample; it prints the result and how long it took."""
    console.say(f"sample {name}, asked for its {kind}")
    done = subprocess.run(
        [str(VENV / "bin" / "docstage"), "submit", str(SAMPLES / name), "--kind", kind, "--wait"],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode == 0
