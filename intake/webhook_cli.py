"""``docstage webhooks``: where to be told of finished jobs, what was told, and whether a message is genuine."""

import argparse
import json
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from intake.client import webhooks
from intake.client.api import ApiClient
from intake.client.webhooks import Message
from schema.domain.notices import DeliveryStatus, NoticeType
from schema.runtime.settings import ClientSettings

Connect = Callable[[argparse.Namespace], ApiClient]
Act = Callable[[ApiClient, argparse.Namespace], Awaitable[int]]


def add_commands(command: argparse.ArgumentParser, reached: argparse.ArgumentParser, connect: Connect) -> None:
    """Add the actions to ``docstage webhooks``; ``connect`` makes a client of the options."""
    actions = command.add_subparsers(required=True, metavar="ACTION")

    def action(name: str, act: Act, sentence: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = actions.add_parser(name, parents=[reached], help=sentence)
        made.set_defaults(run=lambda options: _reach(connect, act, options))
        made.add_argument("--json", action="store_true", help="print JSON")
        return made

    add = action("add", _add, "add an endpoint and print its secret, this once")
    add.add_argument("address", metavar="URL", help="where to be told; https")
    events = [notice.value for notice in NoticeType]
    add.add_argument("--event", action="append", default=[], choices=events, help="what of; default: everything")
    action("list", _list, "list endpoints")
    for name, act, sentence in (
        ("remove", _remove, "remove an endpoint with its deliveries"),
        ("enable", _enable, "enable an endpoint, also after it was gone"),
        ("disable", _disable, "tell an endpoint nothing for now"),
        ("rotate", _rotate, "make a new secret and print it, this once"),
    ):
        action(name, act, sentence).add_argument("endpoint", metavar="ENDPOINT")
    listing = action("deliveries", _deliveries, "list what an endpoint was told or is owed")
    listing.add_argument("endpoint", metavar="ENDPOINT")
    listing.add_argument("--status", choices=[status.value for status in DeliveryStatus])
    listing.add_argument("--limit", type=int, default=20, metavar="N", help="at most so many (default: 20)")
    again = action("redeliver", _redeliver, "have an event told again")
    again.add_argument("endpoint", metavar="ENDPOINT")
    again.add_argument("event", metavar="EVENT", help="the message's webhook-id")
    _add_verify(actions)


def _add_verify(actions: Any) -> None:  # noqa: ANN401 - argparse's own type is private
    verify = actions.add_parser(
        "verify",
        help="say whether a message is genuine",
        description="Say whether a message was signed with the secret in DOCSTAGE_WEBHOOK_SECRET.",
    )
    verify.add_argument("body", help="file with the body as it was received; - reads standard input")
    verify.add_argument("--id", required=True, help="the header webhook-id")
    verify.add_argument("--timestamp", required=True, help="the header webhook-timestamp")
    verify.add_argument("--signature", required=True, help="the header webhook-signature")
    verify.add_argument("--any-age", action="store_true", help="do not refuse an old message")
    verify.set_defaults(run=_verify)


async def _reach(connect: Connect, act: Act, options: argparse.Namespace) -> int:
    async with connect(options) as client:
        return await act(client, options)


def _say(options: argparse.Namespace, content: object, show: Callable[[Console], None]) -> int:
    """Print JSON when it was asked for, else what people read."""
    if options.json:
        sys.stdout.write(f"{json.dumps(content, ensure_ascii=False, indent=2)}\n")
    else:
        show(Console())
    return 0


async def _add(client: ApiClient, options: argparse.Namespace) -> int:
    made = await webhooks.add(client, options.address, options.event)
    return _say(options, made, lambda console: webhooks.print_secret(console, made))


async def _list(client: ApiClient, options: argparse.Namespace) -> int:
    found = await webhooks.list_all(client)
    return _say(options, found, lambda console: webhooks.print_endpoints(console, found))


async def _remove(client: ApiClient, options: argparse.Namespace) -> int:
    await webhooks.remove(client, options.endpoint)
    return 0


async def _enable(client: ApiClient, options: argparse.Namespace) -> int:
    after = await webhooks.enable(client, options.endpoint, enabled=True)
    return _say(options, after, lambda console: webhooks.print_endpoints(console, [after]))


async def _disable(client: ApiClient, options: argparse.Namespace) -> int:
    after = await webhooks.enable(client, options.endpoint, enabled=False)
    return _say(options, after, lambda console: webhooks.print_endpoints(console, [after]))


async def _rotate(client: ApiClient, options: argparse.Namespace) -> int:
    made = await webhooks.rotate(client, options.endpoint)
    return _say(options, made, lambda console: webhooks.print_secret(console, made))


async def _deliveries(client: ApiClient, options: argparse.Namespace) -> int:
    found = await webhooks.deliveries(client, options.endpoint, status=options.status, limit=max(1, options.limit))
    return _say(options, found, lambda console: webhooks.print_deliveries(console, found))


async def _redeliver(client: ApiClient, options: argparse.Namespace) -> int:
    again = await webhooks.redeliver(client, options.endpoint, options.event)
    return _say(options, again, lambda console: webhooks.print_deliveries(console, [again]))


def _body(name: str) -> bytes:
    return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()


async def _verify(options: argparse.Namespace) -> int:
    """Check a message; nothing is connected to."""
    secret = ClientSettings().webhook_secret.get_secret_value()
    message = Message(options.id, options.timestamp, options.signature, _body(options.body))
    # The sender's clock is the world's, not the database's.
    reason = webhooks.why_not(message, secret, now=None if options.any_age else time.time())
    sys.stdout.write("genuine\n" if reason is None else f"not genuine: {reason}\n")
    return 0 if reason is None else 1
