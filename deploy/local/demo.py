"""Send the sample documents through a running system."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from deploy.local.console import Console, LauncherError
from deploy.local.instance import ROOT
from deploy.local.virtualenv import VENV

_SAMPLES = ROOT / "deploy" / "samples"
_DOCUMENTS = (".pdf", ".docx", ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".txt")
_KINDS = ("invoice", "contract", "summary", "text")


def run(environment: Mapping[str, str], console: Console) -> None:
    """Submit each sample and wait until it is finished.

    Raises:
        LauncherError: one did not come through.
    """
    if "DOCSTAGE_API_KEY" not in environment:
        message = "Docstage was not started here yet; `make run` does"
        raise LauncherError(message)
    samples = sorted(path for path in _SAMPLES.glob("*") if path.suffix in _DOCUMENTS)
    failed = [sample.name for sample in samples if not _comes_through(sample, environment, console)]
    if failed:
        message = f"these samples did not come through: {', '.join(failed)}; see `make logs`"
        raise LauncherError(message)


def kind_of(sample: Path) -> str:
    """Tell the kind of a sample from its name: ``invoice-scanned.png`` is an invoice, what names no kind is text."""
    return next((kind for kind in _KINDS if kind in sample.stem), "text")


def _comes_through(sample: Path, environment: Mapping[str, str], console: Console) -> bool:
    kind = kind_of(sample)
    done = subprocess.run(
        [str(VENV / "bin" / "docstage"), "submit", str(sample), "--kind", kind, "--wait"],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    outcome = "completed" if done.returncode == 0 else f"FAILED: {(done.stderr or done.stdout).strip()}"
    console.say(f"sample {sample.name} ({kind}): {outcome}")
    return done.returncode == 0
