"""What a process says when its settings are not right."""

import pytest
from pydantic import ValidationError

from dlq_tools.cli import main
from schema.runtime.settings import PublisherSettings, complaint

GIVEN = {
    "database_url": "postgresql://docstage:hunter2@localhost/docstage",
    "amqp_url": "amqp://docstage:hunter2@localhost",
    "s3_endpoint": "http://localhost",
    "s3_access_key": "docstage",
    "s3_secret_key": "hunter2",
}


def test_an_error_about_one_setting_does_not_quote_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message ends up in a log, and a database's URL has its password in it."""
    monkeypatch.setenv("DOCSTAGE_DATABASE_URL", GIVEN["database_url"])
    monkeypatch.delenv("DOCSTAGE_AMQP_URL", raising=False)

    with pytest.raises(ValidationError) as caught:
        PublisherSettings()

    assert "amqp_url" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_settings_do_not_show_their_secrets() -> None:
    """A settings object in a log line or a debugger must not carry the passwords of all services with it."""
    settings = PublisherSettings.model_validate(GIVEN)

    assert "hunter2" not in f"{settings!r} {settings} {settings.model_dump()}"


def test_a_process_without_its_settings_says_in_one_line_which(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator's first start goes wrong this way; a traceback would hide the name that is wanted."""
    monkeypatch.delenv("DOCSTAGE_DATABASE_URL", raising=False)
    monkeypatch.setenv("DOCSTAGE_AMQP_URL", GIVEN["amqp_url"])
    monkeypatch.setenv("DOCSTAGE_AMQP_HEARTBEAT_SECONDS", "1")

    with pytest.raises(SystemExit) as caught:
        main(["stats"])

    assert caught.value.code == (
        "DOCSTAGE_AMQP_HEARTBEAT_SECONDS: Input should be greater than or equal to 2; DOCSTAGE_DATABASE_URL is missing"
    )


def test_tombstones_must_outlive_the_messages_about_their_jobs() -> None:
    """A message about a job that nobody remembers could not be told from a stranger's."""
    with pytest.raises(ValidationError, match="tombstone_days is 14, but dead-letter messages live 14 days") as caught:
        PublisherSettings.model_validate(GIVEN | {"tombstone_days": 14})

    assert complaint(caught.value) == "tombstone_days is 14, but dead-letter messages live 14 days"
