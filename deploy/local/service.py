"""What every private service has in common: it is started once, asked whether it works, and ended whole."""

import signal
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from deploy.local.console import LauncherError
from deploy.local.daemon import Daemon, wait_until
from deploy.local.instance import Instance, State

_RECOVERY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Service(ABC):
    """One private service of an instance."""

    name: ClassVar[str]
    port_names: ClassVar[Sequence[str]]
    secret_names: ClassVar[Sequence[str]]
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    start_seconds: ClassVar[float] = 180.0
    grace_seconds: ClassVar[float] = 20.0

    instance: Instance

    @property
    def state(self) -> State:
        """The ports and secrets of the instance."""
        return self.instance.state

    @abstractmethod
    def daemons(self) -> Sequence[Daemon]:
        """Return its programs in the order in which they start."""

    @abstractmethod
    def prepare(self) -> None:
        """Write its configuration and make its data directory."""

    @abstractmethod
    def healthy(self) -> bool:
        """Tell whether it answers a real request."""

    @abstractmethod
    def settle(self) -> None:
        """Do what can only be done once it answers."""

    def running(self) -> bool:
        """Tell whether all its programs run."""
        return all(daemon.pid() is not None for daemon in self.daemons())

    def start(self) -> None:
        """Start it if it does not work yet, and wait until it does.

        Idempotent: yes; one that is paused goes on, one that hangs is started anew.

        Raises:
            LauncherError: it ended at once, or does not answer in time.
        """
        if self.running():
            self.resume()
            if wait_until(self.healthy, _RECOVERY_SECONDS):
                self.settle()
                return
        self.kill()
        self.prepare()
        for daemon in self.daemons():
            daemon.start()
        if not wait_until(lambda: not self.running() or self.healthy(), self.start_seconds) or not self.running():
            message = f"{self.name} did not start; see {self.instance.logs}"
            raise LauncherError(message)
        self.settle()

    def stop(self) -> None:
        """End it in good order."""
        for daemon in reversed(self.daemons()):
            daemon.stop(self.stop_signal, self.grace_seconds)

    def kill(self) -> None:
        """End it as a power cut would: every process at once, no goodbye."""
        for daemon in reversed(self.daemons()):
            daemon.kill()

    def pause(self) -> None:
        """Freeze it, as a machine that hangs: connections stay open, nothing answers."""
        for daemon in self.daemons():
            daemon.send(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after ``pause``."""
        for daemon in self.daemons():
            daemon.send(signal.SIGCONT)
