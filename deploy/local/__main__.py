"""``python3 -m deploy.local``: what ``make`` calls."""

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

from deploy.local import application, compose, demo, env_file, packages, services, slots, supervisor, virtualenv
from deploy.local.compose import Compose
from deploy.local.console import Console, LauncherError
from deploy.local.instance import LOCAL, Instance, locked
from deploy.local.services import ServiceSet
from deploy.local.stack import Stack


def _setup(_: str, console: Console) -> None:
    """Install system packages and .venv."""
    with locked(LOCAL / "setup.lock", _waiting(console)):
        packages.ensure(console)
        virtualenv.ensure(console)


def _venv(_: str, console: Console) -> None:
    """Install .venv alone."""
    with locked(LOCAL / "setup.lock", _waiting(console)):
        virtualenv.ensure(console)


def _up(name: str, console: Console) -> None:
    """Start everything, send the samples through, say where it is."""
    _setup(name, console)
    with _locked_instance(name, console) as instance:
        started = Stack(instance, console).up()
    if started:
        _demo(name, console)
    _say_where(name, console)


def _compose_up(_: str, console: Console) -> None:
    """Start everything in containers, send the samples through, say where it is."""
    _venv(compose.INSTANCE, console)
    with _locked_instance(compose.INSTANCE, console) as instance:
        started = Compose(instance, console).up()
    if started:
        _demo(compose.INSTANCE, console)
    _say_where(compose.INSTANCE, console)


def _compose_down(_: str, console: Console) -> None:
    """Stop and remove the containers."""
    with _locked_instance(compose.INSTANCE, console) as instance:
        Compose(instance, console).down()


def _down(name: str, console: Console) -> None:
    """End everything."""
    with _locked_instance(name, console) as instance:
        Stack(instance, console).down()
    console.say("nothing of Docstage is running")


def _status(name: str, _: Console) -> None:
    """List what runs."""
    print(Stack(Instance.named(name), Console()).status())


def _logs(name: str, _: Console) -> None:
    """Follow the logs of the processes; those of the services lie beside them."""
    logs = Instance.named(name).logs
    files = [str(logs / f"{process}.log") for process in (*application.PORT_NAMES, "supervisor")]
    os.execvp("tail", ["tail", "-n", "20", "-F", *files])  # noqa: S606 - hands the terminal over


def _env(name: str, _: Console) -> None:
    """Print the environment file."""
    path = env_file.path(name)
    print(path.read_text(encoding="utf-8") if path.exists() else "", end="")


def _demo(name: str, console: Console) -> None:
    """Send the samples through."""
    demo.run(env_file.read(name), console)


def _clean(_: str, console: Console) -> None:
    """End everything and remove .local and .venv."""
    names = sorted(path.name for path in LOCAL.glob("*") if path.is_dir())
    for name in names:
        with _locked_instance(name, console) as instance:
            if name == compose.INSTANCE:
                Compose(instance, console).down(remove_data=True)
            else:
                Stack(instance, console).down()
    for directory in (LOCAL, virtualenv.VENV):
        shutil.rmtree(directory, ignore_errors=True)


def _services_up(name: str, console: Console) -> None:
    """Start the services alone."""
    with _locked_instance(name, console) as instance:
        services.start(ServiceSet.of(instance).all(), console)


def _services_down(name: str, console: Console) -> None:
    """Stop the services alone."""
    with _locked_instance(name, console) as instance:
        services.stop(ServiceSet.of(instance).all(), console)


_COMMANDS: Mapping[str, Callable[[str, Console], None]] = {
    "setup": _setup,
    "venv": _venv,
    "up": _up,
    "down": _down,
    "compose up": _compose_up,
    "compose down": _compose_down,
    "status": _status,
    "logs": _logs,
    "env": _env,
    "demo": _demo,
    "clean": _clean,
    "supervise": supervisor.supervise,
    "services up": _services_up,
    "services down": _services_down,
    "services hold": slots.hold,
    "broker hold": slots.hold_broker,
}


def main() -> int:
    """Run one command; a failure that a person can act on is one message, without a traceback."""
    parser = argparse.ArgumentParser(prog="python3 -m deploy.local", description=__doc__)
    parser.add_argument("command", nargs="+", help=", ".join(_COMMANDS))
    parser.add_argument("--name", default="run", help="the instance, .local/NAME")
    arguments = parser.parse_args()
    command = _COMMANDS.get(" ".join(arguments.command))
    if command is None:
        parser.error(f"no such command; there are: {', '.join(_COMMANDS)}")
    console = Console()
    LOCAL.mkdir(exist_ok=True, mode=0o711)
    try:
        command(arguments.name, console)
    except LauncherError as error:
        console.say(f"FAILED: {error}")
        return 1
    except KeyboardInterrupt:
        console.say("interrupted; `make stop` ends what was started")
        return 130
    return 0


@contextmanager
def _locked_instance(name: str, console: Console) -> Iterator[Instance]:
    instance = Instance.named(name)
    with instance.locked(_waiting(console)):
        yield instance


def _waiting(console: Console) -> Callable[[], None]:
    return lambda: console.say("another launcher is at work here; waiting for it")


def _say_where(name: str, console: Console) -> None:
    known = env_file.read(name)
    console.say("Docstage is running:")
    print(f"  API and docs   {known['DOCSTAGE_URL']}/docs")
    print(f"  RabbitMQ       {_without_login(known['DOCSTAGE_MANAGEMENT_URL'])}")
    print(f"  Prometheus     {known['DOCSTAGE_PROMETHEUS_URL']}")
    print(f"  keys, logins   {env_file.path(name)}")


def _without_login(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=f"{parts.hostname}:{parts.port}").geturl()


sys.exit(main())
