"""A private PostgreSQL."""

import hashlib
import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from deploy.local.console import LauncherError
from deploy.local.daemon import Daemon, base_environment
from deploy.local.instance import write_private
from deploy.local.service import Service

USER = "docstage"
OLDEST = 15
_PROGRAMS = Path("/usr/lib/postgresql")
_SYSTEM_ACCOUNT = "postgres"
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
        settings = _SETTINGS | {"port": str(self.state.port("postgres"))}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [
            Daemon(
                self.name,
                self.instance,
                argv=[str(self._programs() / "postgres"), "-D", str(self._data), *options],
                cwd=self._data,
                user=_account(),
                hides_environment=True,
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
        if (account := _account()) is not None:
            shutil.chown(self._home, account, account)
            shutil.chown(password_file, account, account)
        self._run(
            [
                str(self._programs() / "initdb"),
                *("-D", str(fresh), f"--username={USER}", f"--pwfile={password_file}"),
                *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--data-checksums"),
            ]
        )
        password_file.unlink()
        fresh.rename(self._data)

    def healthy(self) -> bool:
        """Run a statement."""
        return self.query("postgres", "SELECT 1") == "1"

    def settle(self) -> None:
        """Nothing is left to do."""

    def create_database(self, name: str) -> None:
        """Create a database unless it exists."""
        if self.query("postgres", f"SELECT 1 FROM pg_database WHERE datname = '{name}'") != "1":  # noqa: S608 - a constant of ours
            self.query("postgres", f'CREATE DATABASE "{name}"')

    def remove_data(self) -> None:
        """Remove the data, wherever it lives."""
        shutil.rmtree(self._home, ignore_errors=True)

    def query(self, database: str, statement: str) -> str | None:
        """Run one statement; return what it prints, or ``None`` when it failed."""
        answer = subprocess.run(
            [str(self._programs() / "psql"), "-XAtq", "-c", statement, "-d", database],
            env=base_environment()
            | {
                "PGHOST": "127.0.0.1",
                "PGPORT": str(self.state.port("postgres")),
                "PGUSER": USER,
                "PGPASSWORD": self.state.secret("postgres_password"),
                "PGCONNECT_TIMEOUT": "3",
            },
            capture_output=True,
            timeout=30,
            text=True,
            check=False,
        )
        return answer.stdout.strip() if answer.returncode == 0 else None

    @property
    def _home(self) -> Path:
        """Return where its data lives: in the instance, unless the server's account cannot get there.

        PostgreSQL refuses to run as root, and root's checkout may be in a place that no one else may enter.
        """
        home = self.instance.root / "postgres"
        account = _account()
        if account is None or _may_enter(account, self.instance.root):
            return home
        place = hashlib.sha256(str(self.instance.root).encode()).hexdigest()[:12]
        return Path("/var/lib/docstage") / place

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

    def _run(self, argv: Sequence[str]) -> None:
        account = _account()
        done = subprocess.run(
            argv,
            cwd=self._home,
            env=base_environment(),
            user=account,
            group=account,
            extra_groups=None if account is None else [],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            message = f"{Path(argv[0]).name} failed: {done.stderr.strip()}"
            raise LauncherError(message)


def _account() -> str | None:
    """Return the account to run the server under; ``None`` is our own."""
    return _SYSTEM_ACCOUNT if os.geteuid() == 0 else None


def _may_enter(account: str, directory: Path) -> bool:
    """Tell whether ``account`` can reach ``directory``, by every folder above it too."""
    owner = pwd.getpwnam(account)
    return (
        subprocess.run(
            ["/usr/bin/test", "-x", str(directory)],
            user=owner.pw_uid,
            group=owner.pw_gid,
            extra_groups=[],
            check=False,
        ).returncode
        == 0
    )
