"""The seven processes of Docstage: what they are called, how they are started and configured."""

import base64
import hashlib
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.local.console import LauncherError
from deploy.local.daemon import base_environment
from deploy.local.instance import ROOT, Instance, State
from deploy.local.s3 import BUCKET, REGION
from deploy.local.services import ServiceSet
from deploy.local.virtualenv import PYTHON, VENV

DATABASE = "docstage"
PACKAGES = ("intake", "publisher", "stages", "dlq_tools", "schema")
INTAKE = "intake"
DELIVER = "deliver"
_ARGUMENTS: Mapping[str, Sequence[str]] = {
    INTAKE: ["intake"],
    "publisher": ["publisher"],
    "validate": ["stages", "validate"],
    "extract": ["stages", "extract"],
    "normalize": ["stages", "normalize"],
    "persist": ["stages", "persist"],
    DELIVER: ["stages", "deliver"],
}
# Those that have to do with the endpoints' secrets; processes that read documents have no use for the key.
_TRUSTED = (INTAKE, DELIVER)
PORT_NAMES: Mapping[str, str] = {name: "http" if name == INTAKE else f"{name}_metrics" for name in _ARGUMENTS}


@dataclass(frozen=True, slots=True)
class Process:
    """One process and all it is told."""

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str]


def ports(state: State) -> dict[str, int]:
    """Return for each process the port on which it serves ``/metrics`` and ``/readyz``."""
    return {name: state.port(port) for name, port in PORT_NAMES.items()}


def metrics_urls(state: State) -> dict[str, str]:
    """Return where each process tells its metrics, by the name under which the environment file has it."""
    return {
        f"DOCSTAGE_METRICS_URL_{name.upper()}": f"http://127.0.0.1:{port}/metrics"
        for name, port in ports(state).items()
    }


def processes(instance: Instance) -> list[Process]:
    """Return the processes of an instance."""
    state = instance.state
    common = environment(instance)
    found = []
    for name, arguments in _ARGUMENTS.items():
        own = {"DOCSTAGE_SCRATCH_DIR": str(_scratch(instance, name))}
        if name in _TRUSTED:
            own |= {
                "DOCSTAGE_WEBHOOK_KEYS": webhook_key(state),
                # A receiver that is being tried out is on this machine.
                "DOCSTAGE_WEBHOOK_NETWORKS": "127.0.0.0/8,::1",
            }
        if name != INTAKE:
            own["DOCSTAGE_METRICS_PORT"] = str(state.port(PORT_NAMES[name]))
        found.append(Process(name, [str(PYTHON), "-m", *arguments], {**common, **own}))
    return found


def environment(instance: Instance) -> dict[str, str]:
    """Return the environment of everything that is run for an instance."""
    services = ServiceSet.of(instance)
    account = services.s3.account
    return {
        **base_environment(),
        "PYTHONUNBUFFERED": "1",
        "DOCSTAGE_DATABASE_URL": services.postgres.url(DATABASE),
        "DOCSTAGE_AMQP_URL": services.rabbitmq.amqp_url,
        "DOCSTAGE_S3_ENDPOINT": services.s3.endpoint,
        "DOCSTAGE_S3_BUCKET": BUCKET,
        "DOCSTAGE_S3_REGION": REGION,
        "DOCSTAGE_S3_ACCESS_KEY": account.access_key,
        "DOCSTAGE_S3_SECRET_KEY": account.secret_key,
        "DOCSTAGE_HTTP_HOST": "127.0.0.1",
        "DOCSTAGE_HTTP_PORT": str(instance.state.port("http")),
        "DOCSTAGE_LOG_LEVEL": os.environ.get("DOCSTAGE_LOG_LEVEL", "INFO"),
    }


def webhook_key(state: State) -> str:
    """Return the key that endpoints' secrets are sealed with: base64 of 32 bytes."""
    return base64.b64encode(state.secret("webhook_key").encode()).decode()


def migrate(instance: Instance) -> None:
    """Bring the database to the newest schema."""
    _run([str(PYTHON), "-m", "schema.migrations", "upgrade"], instance)


def create_api_key(instance: Instance) -> str:
    """Create the key that the demo and the person at this machine use."""
    argv = [str(VENV / "bin" / "docstage"), "keys", "create", "--tenant", "demo", "--name", "local"]
    return _run(argv, instance).strip()


def fingerprint(instance: Instance) -> str:
    """Hash code and configuration: processes that were started with another one are out of date."""
    digest = hashlib.sha256()
    for process in processes(instance):
        digest.update(json.dumps([process.argv, sorted(process.environment.items())]).encode())
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _run(argv: Sequence[str], instance: Instance) -> str:
    done = subprocess.run(argv, cwd=ROOT, env=environment(instance), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        message = f"{' '.join([Path(argv[0]).name, *argv[1:]])} failed:\n{done.stderr.strip()}"
        raise LauncherError(message)
    return done.stdout


def _scratch(instance: Instance, process: str) -> Path:
    directory = instance.root / "scratch" / process
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    return directory
