"""A private PostgreSQL."""

import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from deploy.local.account import command_prefix
from deploy.local.console import LauncherError
from deploy.local.daemon import Daemon, base_environment
from deploy.local.instance import write_private
from deploy.local.service import Service

USER = "docstage"
OLDEST = 15
_PROGRAMS = Path("/usr/lib/postgresql")
_SYSTEM_ACCOUNT = "postgres"
_STATEMENT_SECONDS = 30.0
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "max_connections": "300",
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
    "log_timezone": "UTC",
    # A failing statement and its detail quote values of rows, which do not belong in a log.
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
}


def newest_programs() -> Path | None:
    """Return the directory of the newest installed server programs that Docstage works with."""
    versions = sorted(
        (int(entry.name) for entry in _PROGRAMS.glob("[0-9]*") if entry.name.isdecimal()),
        reverse=True,
    )
    for version in versions:
        programs = _PROGRAMS / str(version) / "bin"
        if version >= OLDEST and (programs / "postgres").exists():
            return programs
    return None


@dataclass(frozen=True, slots=True)
class Postgres(Service):
    """PostgreSQL on loopback TCP alone, as durable as in production."""

    name: ClassVar[str] = "postgres"
    port_names: ClassVar[Sequence[str]] = ("postgres",)
    secret_names: ClassVar[Sequence[str]] = ("postgres_password",)
    stop_signal: ClassVar[signal.Signals] = signal.SIGINT  # "fast": disconnects clients, then a clean checkpoint

    def url(self, database: str) -> str:
        """Return the address of one of its databases, with a role that may do everything."""
        password = self.state.secret("postgres_password")
        return f"postgresql://{USER}:{password}@127.0.0.1:{self.state.port('postgres')}/{database}"

    def daemons(self) -> Sequence[Daemon]:
        """Return the postmaster."""
        cluster = f"docstage-{hashlib.sha256(str(self._data).encode()).hexdigest()[:12]}"
        settings = _SETTINGS | {"port": str(self.state.port("postgres")), "cluster_name": cluster}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [
            Daemon(
                self.name,
                self.instance,
                argv=self._as_server("postgres", "-D", str(self._data), *options),
                cwd=self._data,
                titles=(f"cluster_name={cluster}", f"postgres: {cluster}: "),
            )
        ]

    def prepare(self) -> None:
        """Make the data directory, whole or not at all."""
        if self._data.exists():
            # Nothing of ours is alive here, but the server would take a zombie that nobody collects for its owner.
            (self._data / "postmaster.pid").unlink(missing_ok=True)
            return
        self._home.mkdir(parents=True, exist_ok=True)
        fresh = self._home / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        password_file = self._home / "password"
        write_private(password_file, self.state.secret("postgres_password"))
        if os.geteuid() == 0:
            shutil.chown(self._home, _SYSTEM_ACCOUNT, _SYSTEM_ACCOUNT)
            shutil.chown(password_file, _SYSTEM_ACCOUNT, _SYSTEM_ACCOUNT)
        self._initialise(fresh, password_file)
        password_file.unlink()
        fresh.rename(self._data)

    def healthy(self) -> bool:
        """Run a statement."""
        return self.query("postgres", "SELECT 1") == "1"

    def settle(self) -> None:
        """Nothing is left to do."""

    def create_database(self, name: str) -> None:
        """Create a database unless it exists.

        Raises:
            LauncherError: the server refused.
        """
        names = self.query("postgres", "SELECT datname FROM pg_database") or ""
        if name not in names.splitlines() and self.query("postgres", f'CREATE DATABASE "{name}"') is None:
            message = f"postgres could not create the database {name}; see {self.instance.logs}"
            raise LauncherError(message)

    def query(self, database: str, statement: str) -> str | None:
        """Run one statement; return what it prints, or ``None`` when it failed or got no answer."""
        connection = {
            "PGHOST": "127.0.0.1",
            "PGPORT": str(self.state.port("postgres")),
            "PGUSER": USER,
            "PGPASSWORD": self.state.secret("postgres_password"),
            "PGCONNECT_TIMEOUT": "3",
        }
        argv = [str(self._programs() / "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statement, "-d", database]
        try:
            answer = subprocess.run(
                argv,
                env=base_environment() | connection,
                capture_output=True,
                timeout=_STATEMENT_SECONDS,
                text=True,
                check=True,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return None
        return answer.stdout.strip()

    @property
    def _home(self) -> Path:
        return self.instance.root / "postgres"

    @property
    def _data(self) -> Path:
        return self._home / "data"

    def _programs(self) -> Path:
        """Return the programs that can read the data directory: those which made it."""
        version_file = self._data / "PG_VERSION"
        if version_file.exists():
            return _PROGRAMS / version_file.read_text(encoding="ascii").strip() / "bin"
        programs = newest_programs()
        if programs is None:
            message = f"PostgreSQL {OLDEST} or newer is not installed"
            raise LauncherError(message)
        return programs

    def _initialise(self, directory: Path, password_file: Path) -> None:
        done = subprocess.run(
            self._as_server(
                "initdb",
                *("-D", str(directory), f"--username={USER}", f"--pwfile={password_file}"),
                *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--data-checksums"),
            ),
            cwd=self._home,
            env=base_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            message = f"initdb failed: {done.stderr.strip()}"
            raise LauncherError(message)

    def _as_server(self, program: str, *arguments: str) -> list[str]:
        """Return the command that runs one of the server's programs, which refuse to run as root."""
        return [
            *command_prefix(_SYSTEM_ACCOUNT, self.instance.root),
            str(self._programs() / program),
            *arguments,
        ]
