"""What the local launcher does to real processes and to the services of the tests."""

import contextlib
import os
import signal
import socket
import sys
from urllib.parse import urlsplit

import httpx
import pytest

from deploy.local import proc
from deploy.local.daemon import Daemon, wait_until
from deploy.local.instance import Instance
from deploy.local.slots import free_slot

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def instance(tmp_path, monkeypatch):
    """An instance that nothing runs in yet."""
    monkeypatch.setattr("deploy.local.instance.LOCAL", tmp_path)
    return Instance.named("run")


@pytest.fixture
def daemon(instance):
    """A program of that instance; whatever the test leaves of it is ended."""
    made = Daemon("sleeper", instance, argv=SLEEP, cwd=instance.root)
    yield made
    made.kill()


@pytest.fixture
def listener():
    """A socket of somebody else's that listens on a port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_a_program_is_found_again_and_ended(daemon):
    """``make stop`` is another process than ``make run``."""
    daemon.start()
    pid = daemon.pid()

    same = Daemon(daemon.name, daemon.instance, daemon.argv, daemon.cwd)
    assert same.pid() == pid
    same.stop(signal.SIGTERM, 10)

    assert daemon.pid() is None
    assert proc.Identity.of(pid) is None


def test_a_record_left_by_another_process_of_the_same_id_is_not_believed(daemon):
    """After a reboot the id belongs to somebody else, who must not be taken for a service, nor killed."""
    own = proc.Identity.of(os.getpid())
    proc.Identity(own.pid, own.started_ticks - 1, own.boot_id).record(daemon.instance.pids / "sleeper.json")

    assert daemon.pid() is None


def test_children_that_left_the_session_die_with_the_program(instance):
    """Both epmd and PostgreSQL's children do; a port they keep open breaks the next start."""
    start_apart = f"import subprocess; subprocess.Popen({SLEEP!r}, start_new_session=True)"
    daemon = Daemon("parent", instance, argv=[sys.executable, "-c", start_apart], cwd=instance.root)
    daemon.start()
    assert wait_until(lambda: daemon.pid() is None and len(daemon.members()) == 1, 10)

    daemon.kill()

    assert daemon.members() == []


def test_a_frozen_program_can_be_stopped(daemon):
    """A fault test that was killed half-way leaves a stopped process behind, which would never see SIGTERM."""
    daemon.start()
    daemon.send(signal.SIGSTOP)

    daemon.stop(signal.SIGTERM, 10)

    assert daemon.members() == []


@pytest.mark.usefixtures("instance")
def test_each_test_run_gets_services_of_its_own():
    """Two runs at once, in two terminals, must not break each other's services."""
    with free_slot("test") as first, free_slot("test") as second:
        names = (first.name, second.name)
    with free_slot("test") as afterwards:
        pass

    assert names == ("test", "test-2")
    assert afterwards.name == "test"


def test_a_port_that_another_program_took_is_chosen_anew(instance, listener):
    """A restart after somebody else has moved in must work, and only the taken port may change."""
    taken = listener.getsockname()[1]
    kept = instance.state.port("kept")
    state_file = instance.root / "state.json"
    state_file.write_text(f'{{"ports": {{"kept": "{kept}", "lost": "{taken}"}}}}', encoding="utf-8")

    moved = instance.state.move_taken_ports(["kept", "lost"])

    assert moved == ["lost"]
    assert instance.state.port("lost") != taken
    assert instance.state.port("kept") == kept


@pytest.mark.parametrize("name", ["postgres", "rabbitmq", "s3"])
def test_a_killed_service_refuses_connections_and_comes_back_on_its_port(services, name):
    """The fault tests rest on it: a service that is down is really down, and a client's URL outlives the restart."""
    handle, port = getattr(services, name), _port(services, name)

    handle.kill()
    refused = not _connects(port)
    handle.start()

    assert refused
    assert _connects(port)


def test_a_paused_service_keeps_its_connections_and_says_nothing(services):
    """A hung machine differs from a dead one: nobody is told, and only time limits help."""
    with httpx.Client(timeout=1) as client:
        assert client.get(f"{services.s3_endpoint}/healthz").is_success

        services.s3.pause()
        try:
            with pytest.raises(httpx.ReadTimeout):
                client.get(f"{services.s3_endpoint}/healthz")
        finally:
            services.s3.resume()

        assert client.get(f"{services.s3_endpoint}/healthz", timeout=30).is_success


def _port(services, name):
    url = {"postgres": services.database_url, "rabbitmq": services.amqp_url, "s3": services.s3_endpoint}[name]
    return urlsplit(url).port


def _connects(port):
    with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False
