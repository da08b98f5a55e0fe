"""What a process says when its settings are not right."""

import pytest
from pydantic import ValidationError

from schema.runtime.settings import PublisherSettings


def test_an_error_about_one_setting_does_not_quote_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message ends up in a log, and a database's URL has its password in it."""
    monkeypatch.setenv("DOCSTAGE_DATABASE_URL", "postgresql://docstage:hunter2@localhost/docstage")
    monkeypatch.delenv("DOCSTAGE_AMQP_URL", raising=False)

    with pytest.raises(ValidationError) as caught:
        PublisherSettings()

    assert "amqp_url" in str(caught.value)
    assert "hunter2" not in str(caught.value)
