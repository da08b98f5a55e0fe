"""``python -m schema.migrations upgrade|downgrade|current [REVISION]``."""

import argparse
from pathlib import Path

from alembic import command
from alembic.config import Config

from schema.runtime.settings import DatabaseSettings


def config(database_url: str) -> Config:
    """Return alembic's configuration for one database, without an ini file."""
    settings = Config()
    settings.set_main_option("script_location", str(Path(__file__).parent))
    settings.attributes["database_url"] = database_url
    return settings


def main() -> None:
    """Move the database named by DOCSTAGE_DATABASE_URL."""
    parser = argparse.ArgumentParser(
        prog="python -m schema.migrations",
        description="Move the database between revisions.",
        epilog="example: DOCSTAGE_DATABASE_URL=postgresql://… python -m schema.migrations upgrade",
    )
    parser.add_argument("direction", choices=("upgrade", "downgrade", "current"))
    parser.add_argument("revision", nargs="?", help="default: head for upgrade, base for downgrade")
    arguments = parser.parse_args()
    settings = config(DatabaseSettings.load().database_url.get_secret_value())
    if arguments.direction == "upgrade":
        command.upgrade(settings, arguments.revision or "head")
    elif arguments.direction == "downgrade":
        command.downgrade(settings, arguments.revision or "base")
    else:
        command.current(settings, verbose=True)


if __name__ == "__main__":
    main()
