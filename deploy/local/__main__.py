"""``python3 -m deploy.local``: what ``make`` calls."""

import argparse
import sys
from collections.abc import Callable, Mapping

from deploy.local import services, slots
from deploy.local.console import Console, LauncherError
from deploy.local.instance import Instance


def _services_up(name: str, console: Console) -> None:
    instance = Instance.named(name)
    with instance.locked(lambda: console.say("another launcher is at work; waiting for it")):
        services.start(services.ServiceSet.of(instance).all(), console)


def _services_down(name: str, console: Console) -> None:
    instance = Instance.named(name)
    with instance.locked(lambda: console.say("another launcher is at work; waiting for it")):
        services.stop(services.ServiceSet.of(instance).all(), console)


_COMMANDS: Mapping[str, Callable[[str, Console], None]] = {
    "services up": _services_up,
    "services down": _services_down,
    "services hold": slots.hold,
}


def main() -> int:
    """Run one command; a failure that a person can act on is one line."""
    parser = argparse.ArgumentParser(prog="python3 -m deploy.local", description=__doc__)
    parser.add_argument("command", nargs="+", help=", ".join(_COMMANDS))
    parser.add_argument("--name", default="run", help="the instance, .local/NAME")
    arguments = parser.parse_args()
    command = _COMMANDS.get(" ".join(arguments.command))
    if command is None:
        parser.error(f"no such command; there are: {', '.join(_COMMANDS)}")
    console = Console()
    try:
        command(arguments.name, console)
    except LauncherError as error:
        console.say(f"FAILED: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


sys.exit(main())
