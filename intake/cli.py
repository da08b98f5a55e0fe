"""``docstage``: submit documents, follow them, fetch results; and make the keys for it."""

import argparse
import asyncio
import contextlib
import json
import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr, ValidationError
from rich.console import Console

from intake import webhook_cli
from intake.client import submissions
from intake.client.api import FORMATS, ApiClient, ApiError
from intake.client.printing import print_done, print_job
from intake.client.submissions import Done, Wanted
from schema.domain.kinds import Kind
from schema.domain.options import OcrMode
from schema.runtime.examples import examples_of
from schema.runtime.settings import ClientSettings, DatabaseSettings, complaint

EXAMPLES: Final = """examples:
  docstage submit letter.pdf --kind text --wait
  docstage submit invoices/*.pdf --kind invoice --wait --output results
  docstage submit scan.tif --kind summary --languages eng+deu --pages 1-3,5
  docstage status 0190f3a2-…
  docstage result 0190f3a2-… --format markdown
  docstage cancel 0190f3a2-…
  docstage webhooks add https://example.com/hooks --event job.completed
  docstage keys create --tenant acme --name laptop
  docstage keys revoke 0190f3a2-…

The address and key come from --url and --api-key, or from DOCSTAGE_URL and DOCSTAGE_API_KEY.
`docstage keys` talks to the database and needs DOCSTAGE_DATABASE_URL instead.
"""
INTERRUPTED: Final = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; the exit status is 0 when all of it went well."""
    options = parser().parse_args(arguments)
    try:
        status = asyncio.run(options.run(options))
    except (ApiError, OSError) as error:
        status = _complain(str(error))
    except ValidationError as error:
        status = _complain(complaint(error))
    except KeyboardInterrupt:
        status = INTERRUPTED
    sys.exit(status)


def parser() -> argparse.ArgumentParser:
    """Return the commands and their options."""
    root = argparse.ArgumentParser(
        prog="docstage",
        description="Submit documents to Docstage and fetch what it found in them.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = root.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, sentence: str, *parents: argparse.ArgumentParser) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            parents=parents,
            help=sentence,
            description=f"{sentence.capitalize()}.",
            epilog=examples_of(f"docstage {name}", EXAMPLES),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    reached = argparse.ArgumentParser(add_help=False)
    reached.add_argument("--url", help="base URL of the service")
    reached.add_argument("--api-key", help="API key; better kept in DOCSTAGE_API_KEY, where `ps` does not show it")
    _add_submit(command("submit", "submit documents", reached))
    _add_status(command("status", "show how a job is doing", reached))
    _add_result(command("result", "print a job's result", reached))
    _add_cancel(command("cancel", "stop a job", reached))
    webhook_cli.add_commands(command("webhooks", "be told when jobs have ended"), reached, _client)
    _add_keys(command("keys", "create, list and revoke API keys"))
    return root


def _add_submit(command: argparse.ArgumentParser) -> None:
    command.set_defaults(run=_submit)
    command.add_argument("files", nargs="+", type=Path, metavar="FILE")
    command.add_argument("--kind", choices=[kind.value for kind in Kind], required=True, help="what to find out")
    command.add_argument("--wait", action="store_true", help="follow each document to its end and print what was found")
    command.add_argument("--languages", help="languages to recognize, such as eng+deu")
    command.add_argument("--pages", help="pages to read, such as 1-3,5")
    command.add_argument("--strict", action="store_true", help="fail the document when one of its pages fails")
    command.add_argument(
        "--ocr",
        choices=[mode.value for mode in OcrMode],
        help="how pictures of text are read (default: auto, which reads again what was not sure)",
    )
    command.add_argument("--sentences", type=int, metavar="N", help="how long a summary may be (default: 3 to 7)")
    command.add_argument("--client-tag", help="a mark of your own for these jobs")
    command.add_argument("--deadline", type=int, metavar="SECONDS", help="give up after this long")
    command.add_argument("--output", type=Path, metavar="DIR", help="write each result as JSON into DIR (with --wait)")
    command.add_argument("--json", action="store_true", help="print JSON instead of a summary")
    command.add_argument("--concurrency", type=int, default=4, metavar="N", help="documents at once (default: 4)")


def _add_status(command: argparse.ArgumentParser) -> None:
    command.add_argument("id", help="the job's")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_status)


def _add_result(command: argparse.ArgumentParser) -> None:
    command.add_argument("id", help="the job's")
    command.add_argument("--format", choices=list(FORMATS), default="json", help="default: json")
    command.set_defaults(run=_result)


def _add_cancel(command: argparse.ArgumentParser) -> None:
    command.add_argument("id", help="the job's")
    command.set_defaults(run=_cancel)


def _add_keys(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(required=True, metavar="ACTION")
    create = actions.add_parser("create", help="make a key and print it, this once")
    create.add_argument("--tenant", required=True, help="whose key; a new name makes a new tenant")
    create.add_argument("--name", required=True, help="what the key is for")
    create.set_defaults(run=_create_key)
    actions.add_parser("list", help="list keys").set_defaults(run=_list_keys)
    revoke = actions.add_parser("revoke", help="end a key")
    revoke.add_argument("id", type=uuid.UUID)
    revoke.set_defaults(run=_revoke_key)


def _client(options: argparse.Namespace) -> ApiClient:
    given = {"url": options.url, "api_key": SecretStr(options.api_key) if options.api_key else None}
    settings = ClientSettings(**{name: value for name, value in given.items() if value is not None})
    return ApiClient.connect(settings.url, settings.api_key.get_secret_value())


async def _submit(options: argparse.Namespace) -> int:
    """Submit, follow, print."""
    named = {
        "kind": options.kind,
        "languages": options.languages,
        "pages": options.pages,
        "strict": "true" if options.strict else None,
        "ocr": options.ocr,
        "sentences": None if options.sentences is None else str(options.sentences),
        "client_tag": options.client_tag,
        "deadline_seconds": str(options.deadline) if options.deadline else None,
    }
    fields = {name: value for name, value in named.items() if value is not None}
    wanted = Wanted(fields, options.wait, max(1, options.concurrency))
    async with _client(options) as client:
        with submissions.progress_bars(Console(stderr=True)) as progress:
            everything = await submissions.run(client, options.files, wanted, progress)
    _keep(everything, options.output)
    if options.json:
        _say_json([_plain(done) for done in everything])
    else:
        console = Console()
        for done in everything:
            print_done(console, done)
    return 0 if all(done.good for done in everything) else 1


def _keep(everything: Sequence[Done], folder: Path | None) -> None:
    """Write results as files named after the documents; of two documents of one name the second adds its job's id."""
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    used: set[str] = set()
    for done in everything:
        if done.result is not None:
            name = done.path.name if done.path.name not in used else f"{done.path.name}.{done.result['job_id']}"
            used.add(name)
            body = json.dumps(done.result, ensure_ascii=False, indent=2)
            (folder / f"{name}.json").write_text(body, encoding="utf-8")


def _plain(done: Done) -> dict[str, Any]:
    return {
        "file": str(done.path),
        "seconds": round(done.seconds, 3),
        "job": done.job,
        "result": done.result,
        "error": done.error,
    }


async def _status(options: argparse.Namespace) -> int:
    async with _client(options) as client:
        job, _ = await client.job(options.id)
    if options.json:
        _say_json(job)
    elif job is not None:
        print_job(Console(), job)
    return 0


async def _result(options: argparse.Namespace) -> int:
    async with _client(options) as client:
        _say(await client.result(options.id, options.format))
    return 0


async def _cancel(options: argparse.Namespace) -> int:
    async with _client(options) as client:
        print_job(Console(), await client.cancel(options.id))
    return 0


@contextlib.asynccontextmanager
async def _database() -> AsyncIterator[Any]:
    """Connect to the database; imported here because everything else starts without it."""
    from schema.db.engine import Database, is_unavailable  # noqa: PLC0415 - SQLAlchemy is slow to import

    url = DatabaseSettings().database_url.get_secret_value()
    database = Database.connect(url, application="docstage-keys", pool_size=1)
    try:
        yield database
    except Exception as error:
        if not is_unavailable(error):
            raise
        raise ApiError("no_database", "The database does not answer.") from None  # noqa: EM101 - code and sentence
    finally:
        await database.close()


async def _create_key(options: argparse.Namespace) -> int:
    from intake import key_register  # noqa: PLC0415 - as above

    async with _database() as database:
        _say(await key_register.create(database, tenant=options.tenant, name=options.name))
    return 0


async def _list_keys(_: argparse.Namespace) -> int:
    from intake import key_register  # noqa: PLC0415 - as above

    async with _database() as database:
        await key_register.show(database, Console())
    return 0


async def _revoke_key(options: argparse.Namespace) -> int:
    from intake import key_register  # noqa: PLC0415 - as above

    async with _database() as database:
        revoked = await key_register.revoke(database, options.id)
    return 0 if revoked else _complain("there is no key of this id in use")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _say_json(content: object) -> None:
    _say(json.dumps(content, ensure_ascii=False, indent=2))


def _complain(sentence: str) -> int:
    """Tell what went wrong; return the exit status that says so."""
    sys.stderr.write(f"docstage: {sentence}\n")
    return 1


if __name__ == "__main__":
    main()
