"""Commands run in this process, for the tests of the command line."""

import sys
from unittest import mock

import pytest
from typer.testing import CliRunner

from larank import cli


def larank(words, *arguments, code=0):
    """Run a command, whose first words are separated by spaces, and check its exit status."""
    result = CliRunner().invoke(cli.app, [*str(words).split(" "), *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


def failure(*arguments):
    """Run a command that must fail; return its one line on standard error."""
    result = larank(*arguments, code=1)
    (line,) = [line for line in result.stderr.splitlines() if not line.startswith("larank: training ")]
    assert line.startswith("larank: error: ")
    assert result.stdout == ""
    return line


def status_of(*arguments):
    """Run a command as the process does; return its exit status."""
    with mock.patch.object(sys, "argv", ["larank", *map(str, arguments)]), pytest.raises(SystemExit) as end:
        cli.main()
    return end.value.code
