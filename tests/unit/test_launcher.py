"""The local launcher's decisions, which need no process to be tested."""

import re
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from deploy.local import compose, demo, env_file, ports, proc, supervisor
from deploy.local.instance import ROOT, Instance, State


@pytest.fixture(autouse=True)
def local_directory(tmp_path, monkeypatch):
    """Keep what a test starts out of the checkout's own .local."""
    monkeypatch.setattr("deploy.local.instance.LOCAL", tmp_path)
    monkeypatch.setattr("deploy.local.env_file.LOCAL", tmp_path)
    return tmp_path


@pytest.fixture
def instance():
    """An instance that nothing runs in yet."""
    return Instance.named("run")


def test_ports_and_secrets_stay_the_same_over_restarts(instance):
    """Clients keep their URLs, and the data directories keep fitting the passwords."""
    port, secret = instance.state.port("amqp"), instance.state.secret("password")

    again = Instance.named("run").state

    assert (again.port("amqp"), again.secret("password")) == (port, secret)


def test_no_two_names_share_a_port(instance):
    """Two services on one port cannot both start."""
    chosen = [instance.state.port(f"service-{number}") for number in range(50)]

    assert len(set(chosen)) == 50


def test_ports_are_chosen_below_the_ephemeral_range():
    """The kernel hands out ephemeral ports to clients, who would sit on a service's port while it restarts."""
    lowest = int((proc.PROC / "sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])

    assert all(ports.pick(()) < lowest for _ in range(50))


def test_what_many_ask_for_at_once_is_made_once_and_kept(instance):
    """Services are started and stopped side by side, also in a checkout where none of them ever ran."""
    names = [f"name-{number}" for number in range(12)]
    together = Barrier(2 * len(names))

    def ask(name):
        together.wait()
        return instance.state.port(name), instance.state.secret(name)

    with ThreadPoolExecutor(2 * len(names)) as pool:
        answers = list(pool.map(ask, names + names))

    kept = [(instance.state.port(name), instance.state.secret(name)) for name in names]
    assert answers == kept + kept
    assert len({port for port, _ in kept}) == len(names)


def test_state_is_readable_by_its_owner_alone(instance):
    """It holds every password of the instance."""
    instance.state.secret("password")

    assert (instance.root / "state.json").stat().st_mode & 0o777 == 0o600


def test_the_first_restart_comes_within_a_second_and_later_ones_wait_longer():
    """One death is healed at once; a process that cannot start must not spin."""
    first = [supervisor.restart_delay_seconds(1) for _ in range(100)]
    tenth = [supervisor.restart_delay_seconds(10) for _ in range(100)]

    assert max(first) < 1
    assert min(tenth) >= 15
    assert max(tenth) <= 30
    assert len(set(first)) > 50


def test_the_environment_file_gives_back_what_was_written(local_directory):
    """Shells and tests read it; a password may hold any character."""
    values = {"DOCSTAGE_URL": "http://127.0.0.1:1", "DOCSTAGE_API_KEY": "it's $HOME #1"}

    env_file.write("run", values)

    assert env_file.read("run") == values
    assert (local_directory / "docstage.env").stat().st_mode & 0o777 == 0o600


def test_every_sample_of_the_demo_exists():
    """A renamed sample would fail the very first ``make run`` of a new user."""
    assert [name for name in demo.KINDS if not (demo.SAMPLES / name).exists()] == []


def test_compose_is_given_every_variable_it_asks_for(instance):
    """A missing one stops ``make run DOCKER=1``, which no test machine without images would notice."""
    asked = set(re.findall(r"\$\{(\w+):\?", (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")))

    assert set(compose.variables(instance.state)) == asked


def test_state_of_an_instance_that_never_ran_is_empty(tmp_path):
    """Asking what is known must not make anything."""
    state = State(tmp_path / "none" / "state.json")

    assert state.kept_secret("api_key") is None
    assert not state.file.exists()
