"""A private RabbitMQ with its management and Prometheus plugins."""

import base64
import contextlib
import http.client
import json
import shutil
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from deploy.local.daemon import Daemon, base_environment
from deploy.local.service import Service

USER = "docstage"
SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
CONTROL = SERVER.with_name("rabbitmqctl")
_AMQP_HELLO = b"AMQP\x00\x00\x09\x01"
_METHOD_FRAME = b"\x01"
_PLUGINS = "[rabbitmq_management,rabbitmq_prometheus].\n"


@dataclass(frozen=True, slots=True)
class RabbitMQ(Service):
    """One broker node on loopback, with an epmd of its own so that no other Erlang node is met or left behind."""

    name: ClassVar[str] = "rabbitmq"
    port_names: ClassVar[Sequence[str]] = ("amqp", "management", "rabbitmq_metrics", "erlang", "epmd")
    secret_names: ClassVar[Sequence[str]] = ("rabbitmq_password",)
    grace_seconds: ClassVar[float] = 30.0

    @property
    def amqp_url(self) -> str:
        """Return the address of the default virtual host."""
        return f"amqp://{USER}:{self._password}@127.0.0.1:{self.state.port('amqp')}/"

    @property
    def management_url(self) -> str:
        """Return the address of the management page and API, with the login in it."""
        return f"http://{USER}:{self._password}@127.0.0.1:{self.state.port('management')}"

    def daemons(self) -> Sequence[Daemon]:
        """Return epmd, then the broker."""
        epmd = str(self.state.port("epmd"))
        return [
            Daemon(
                "epmd",
                self.instance,
                argv=[shutil.which("epmd") or "epmd", "-port", epmd, "-address", "127.0.0.1"],
                cwd=self._home,
            ),
            Daemon(self.name, self.instance, argv=[str(SERVER)], cwd=self._home, environment=self._environment(epmd)),
        ]

    def prepare(self) -> None:
        """Write the configuration; the user and password count only on the first start."""
        self._home.mkdir(exist_ok=True)
        lines = [
            f"listeners.tcp.1 = 127.0.0.1:{self.state.port('amqp')}",
            "management.tcp.ip = 127.0.0.1",
            f"management.tcp.port = {self.state.port('management')}",
            "prometheus.tcp.ip = 127.0.0.1",
            f"prometheus.tcp.port = {self.state.port('rabbitmq_metrics')}",
            f"default_user = {USER}",
            f"default_pass = {self._password}",
            # The default of 512 MB suits a broker that owns its machine; with a few quorum queues it only costs disk.
            "raft.wal_max_size_bytes = 67108864",
            "vm_memory_high_watermark.relative = 0.4",
            "disk_free_limit.absolute = 200MB",
            "log.console = false",
            f"log.file = {self.instance.logs / 'rabbitmq-node.log'}",
            "log.file.level = info",
        ]
        self._config.write_text("\n".join([*lines, ""]), encoding="utf-8")
        self._config.chmod(0o600)
        self._plugins.write_text(_PLUGINS, encoding="utf-8")

    def control(self, *arguments: str) -> None:
        """Run ``rabbitmqctl`` on the node.

        Raises:
            subprocess.CalledProcessError: it refused.
        """
        environment = {**base_environment(), **self._environment(str(self.state.port("epmd")))}
        subprocess.run([str(CONTROL), *arguments], env=environment, check=True, stdout=subprocess.DEVNULL)

    def lose_data(self) -> None:
        """Forget every queue and message, as a node whose disk is gone; it must not be running."""
        shutil.rmtree(self._home / "data")

    def healthy(self) -> bool:
        """Greet the AMQP port and ask the management API whether every virtual host is up."""
        return self._greets() and self._virtual_hosts_are_up()

    def settle(self) -> None:
        """Nothing is left to do."""

    @property
    def _password(self) -> str:
        return self.state.secret("rabbitmq_password")

    @property
    def _home(self) -> Path:
        return self.instance.root / "rabbitmq"

    @property
    def _config(self) -> Path:
        return self._home / "rabbitmq.conf"

    @property
    def _plugins(self) -> Path:
        return self._home / "enabled_plugins"

    def _environment(self, epmd_port: str) -> dict[str, str]:
        home = str(self._home)
        return {
            "HOME": home,  # the Erlang cookie lives there
            # At localhost: the node must find itself also where the machine's name does not resolve.
            "RABBITMQ_NODENAME": "docstage@localhost",
            "RABBITMQ_BASE": home,
            "RABBITMQ_MNESIA_BASE": f"{home}/data",
            "RABBITMQ_LOG_BASE": f"{home}/log",
            "RABBITMQ_CONFIG_FILE": str(self._config),
            "RABBITMQ_CONFIG_FILES": f"{home}/none",
            "RABBITMQ_ADVANCED_CONFIG_FILE": f"{home}/advanced.config",
            "RABBITMQ_CONF_ENV_FILE": f"{home}/rabbitmq-env.conf",
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._plugins),
            "RABBITMQ_GENERATED_CONFIG_DIR": f"{home}/generated",
            "RABBITMQ_PID_FILE": f"{home}/pid",
            "RABBITMQ_DIST_PORT": str(self.state.port("erlang")),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "ERL_EPMD_PORT": epmd_port,
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }

    def _greets(self) -> bool:
        with contextlib.suppress(OSError):
            address = ("127.0.0.1", self.state.port("amqp"))
            with socket.create_connection(address, timeout=3) as connection:
                connection.settimeout(3)
                connection.sendall(_AMQP_HELLO)
                return connection.recv(1) == _METHOD_FRAME
        return False

    def _virtual_hosts_are_up(self) -> bool:
        login = base64.b64encode(f"{USER}:{self._password}".encode()).decode()
        connection = http.client.HTTPConnection("127.0.0.1", self.state.port("management"), timeout=3)
        try:
            connection.request("GET", "/api/health/checks/virtual-hosts", headers={"Authorization": f"Basic {login}"})
            answer = connection.getresponse()
            return answer.status == http.HTTPStatus.OK and json.load(answer)["status"] == "ok"
        except (OSError, http.client.HTTPException, ValueError, KeyError):
            return False
        finally:
            connection.close()
