"""Help texts: each command shows how it is used, with options that it has."""

import re
import shlex

import pytest

from dlq_tools import arguments
from intake import cli


def lines(examples: str) -> list[str]:
    """Return the commands among a text's lines, without what only a shell reads."""
    return [line.strip().partition(" > ")[0] for line in examples.splitlines() if line.startswith("  docstage")]


@pytest.mark.parametrize("line", lines(cli.EXAMPLES))
def test_an_example_of_the_client_is_a_command(line):
    """What is copied from the help must work."""
    words = shlex.split(line.replace("0190f3a2-…", "0190f3a2-0000-7000-8000-000000000000"))

    assert cli.parser().parse_args(words[1:]).run


@pytest.mark.parametrize("line", lines(arguments.EXAMPLES))
def test_an_example_of_the_dead_letter_tool_is_a_command(line):
    """At three in the morning the help is copied, not read."""
    words = shlex.split(line.replace("0190f3a2-…", "0190f3a2-0000-7000-8000-000000000000"))

    assert arguments.parse(words[1:]).command == words[1]


def commands_of(help_text: str) -> set[str]:
    """Return the commands that a help text lists."""
    return set(re.findall(r"^    ([a-z]+)(?=\s)", help_text, re.MULTILINE))


@pytest.mark.parametrize(("parse", "program"), [(cli.main, "docstage"), (arguments.parse, "docstage-dlq")])
def test_every_command_has_an_example(parse, program, capsys):
    """A list of options says what can be said, not what one says."""
    with pytest.raises(SystemExit):
        parse(["--help"])
    found = commands_of(capsys.readouterr().out)
    for command in found:
        with pytest.raises(SystemExit):
            parse([command, "--help"])
        assert f"\n  {program} {command}" in capsys.readouterr().out, command
    assert len(found) >= 6
