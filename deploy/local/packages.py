"""The system packages Docstage needs, and how they get onto a Debian machine."""

import importlib.util
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from deploy.local import postgres, rabbitmq
from deploy.local.console import Console, LauncherError
from deploy.local.instance import LOCAL

_LANGUAGES = ("eng", "deu", "fra", "osd")
_INSTALLER = Path(__file__).with_name("install-packages")
_LOG = LOCAL / "setup.log"


def ensure(console: Console) -> None:
    """Install what is missing; do nothing when all is there.

    Raises:
        LauncherError: we may not install; the message is the command a person must run.
    """
    missing = [name for name, present in _requirements().items() if not present()]
    if not missing:
        return
    become_root = _become_root()
    if become_root is None or shutil.which("apt-get") is None:
        command = shlex.join(["sudo", str(_INSTALLER), *missing])
        message = f"these system packages are missing, and this user may not install them. Run:\n\n    {command}\n"
        raise LauncherError(message)
    console.say(f"installing system packages: {' '.join(missing)}")
    with _LOG.open("ab") as log:
        done = subprocess.run(
            [*become_root, str(_INSTALLER), *missing], stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
        )
    _tesseract_languages.cache_clear()
    if done.returncode != 0:
        message = f"the packages could not be installed; see {_LOG}"
        raise LauncherError(message)
    console.say("system packages installed")


def _requirements() -> Mapping[str, Callable[[], bool]]:
    languages = {
        f"tesseract-ocr-{language}": lambda language=language: language in _tesseract_languages()
        for language in _LANGUAGES
    }
    return {
        "python3-venv": lambda: importlib.util.find_spec("ensurepip") is not None,
        "postgresql": lambda: postgres.newest_programs() is not None,
        "rabbitmq-server": rabbitmq.SERVER.exists,
        "tesseract-ocr": lambda: shutil.which("tesseract") is not None,
        **languages,
        "prometheus": lambda: shutil.which("prometheus") is not None,
        "curl": lambda: shutil.which("curl") is not None,  # for whoever tries the API
    }


@cache
def _tesseract_languages() -> frozenset[str]:
    if shutil.which("tesseract") is None:
        return frozenset()
    listed = subprocess.run(["tesseract", "--list-langs"], capture_output=True, text=True, check=False)
    return frozenset(listed.stdout.split())


def _become_root() -> list[str] | None:
    """Return what to put before a command so that root runs it; ``None`` when that would ask for a password."""
    if os.geteuid() == 0:
        return []
    if (
        shutil.which("sudo")
        and subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0
    ):
        return ["sudo", "-n"]
    return None
