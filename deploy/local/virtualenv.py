"""The virtual environment, made from the hashed lock files."""

import hashlib
import json
import subprocess
import sys
import tomllib
from pathlib import Path

from deploy.local.console import Console, LauncherError
from deploy.local.instance import LOCAL, ROOT

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
_INSTALLER_LOCK = ROOT / "deploy" / "requirements-uv.txt"
_LOCKS = (ROOT / "deploy" / "requirements-build.txt", ROOT / "deploy" / "requirements-dev.txt")
_STAMP = VENV / "docstage-stamp"
_LOG = LOCAL / "setup.log"


def ensure(console: Console) -> None:
    """Make ``.venv`` agree with the lock files; do nothing when it does.

    Raises:
        LauncherError: an installation failed.
    """
    wanted = _fingerprint()
    if PYTHON.exists() and _STAMP.exists() and _STAMP.read_text(encoding="ascii") == wanted:
        return
    if not _usable():
        console.say("creating .venv")
        _run([sys.executable, "-m", "venv", "--clear", str(VENV)])
    console.say("installing Python packages")
    _STAMP.unlink(missing_ok=True)
    install = _installer(console)
    locks = [part for lock in _LOCKS for part in ("-r", str(lock))]
    _run([*install, "--require-hashes", *locks])
    _run([*install, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)])
    _STAMP.write_text(wanted, encoding="ascii")
    console.say("Python packages installed")


def _usable() -> bool:
    """Tell whether ``.venv`` works here: one that was moved or whose Python was replaced does not."""
    if not PYTHON.exists():
        return False
    question = "import sys, pip; print(sys.prefix, *sys.version_info[:2])"
    answer = subprocess.run([str(PYTHON), "-c", question], capture_output=True, text=True, check=False)
    version = sys.version_info
    return answer.stdout.split() == [str(VENV), str(version.major), str(version.minor)]


def _fingerprint() -> str:
    """Hash all that decides what is installed: locks, our own package's metadata, interpreter and place."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    metadata = [project["build-system"], project["project"], project["tool"]["setuptools"]]
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for lock in (_INSTALLER_LOCK, *_LOCKS):
        digest.update(lock.read_bytes())
    digest.update(f"{sys.version_info[:2]} {VENV}".encode())
    return digest.hexdigest()


def _installer(console: Console) -> list[str]:
    """Return the command that installs: uv, in a tenth of pip's time, unless pip has an index of its own configured.

    uv does not read pip's configuration, so it would pass by a company's mirror.
    """
    pip = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet"]
    if _index_configured():
        console.say("pip's own index is configured, so pip installs")
        return pip
    _run([*pip, "--require-hashes", "-r", str(_INSTALLER_LOCK)])
    return [str(VENV / "bin" / "uv"), "pip", "install", "--quiet", "--python", str(PYTHON)]


def _index_configured() -> bool:
    listed = subprocess.run([str(PYTHON), "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
    names = [line.partition("=")[0].rpartition(".")[2] for line in listed.stdout.splitlines()]
    return any(name in {"index-url", "index_url"} for name in names)


def _run(argv: list[str]) -> None:
    with _LOG.open("ab") as log:
        done = subprocess.run(argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False)
    if done.returncode != 0:
        message = f"{Path(argv[0]).name} {' '.join(argv[1:4])} failed; see {_LOG}"
        raise LauncherError(message)
