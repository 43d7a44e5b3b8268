"""The shell lines of the documentation are accepted by the commands that they call."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from larank.cli import app
from studies import __main__ as studies

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED_SHELL = re.compile(r"^```(?:sh|bash|shell|console)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`((?:larank|python -m studies|make) [^`\n]+)`")
COMMAND = re.compile(r"^\s*(?:\$ )?((?:larank|python -m studies|make)\b.*)$")
PLACEHOLDER = re.compile(r"\.\.\.|\[|NAME|\b[A-Z]{3,}\b")


def lines_of(page):
    """Return the shell lines of a page: those of fenced blocks, and commands within sentences without placeholders."""
    text = page.read_text(encoding="utf-8")
    blocks = "\n".join(FENCED_SHELL.findall(text)).replace("\\\n", " ")
    fenced = [found[1] for found in map(COMMAND.match, blocks.splitlines()) if found]
    inline = [line for line in INLINE.findall(FENCED_SHELL.sub("", text)) if not PLACEHOLDER.search(line)]
    return [shlex.split(re.split(" [|>&] ", line)[0], comments=True) for line in (*fenced, *inline)]


LINES = {f"{page.stem}: {shlex.join(words)}": words for page in PAGES for words in lines_of(page)}


def calling(*program):
    """Parametrize a test by the arguments of the lines that call a program."""
    found = {name: words[len(program) :] for name, words in LINES.items() if tuple(words[: len(program)]) == program}
    assert found, f"no page calls {' '.join(program)}"
    return pytest.mark.parametrize("words", found.values(), ids=found)


def parse(command, words, parent=None):
    """Parse the words as a command line, with those of the commands within, and run nothing."""
    context = command.make_context("larank", words, parent=parent)
    if hasattr(command, "resolve_command"):
        _, inner, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        parse(inner, rest, context)


def refusal(words):
    """Return the message of the usage error that the words cause, or an empty text."""
    try:
        parse(typer.main.get_command(app), words)
    except typer.BadParameter.__base__ as error:  # UsageError of typer's own copy of click
        return error.format_message()
    return ""


@calling("larank")
def test_lines_that_call_larank_are_accepted(words):
    assert re.match(r"(Missing argument|Usage:)|$", refusal(words))  # a sentence may name the command alone


def test_lines_that_larank_does_not_know_are_refused():
    assert "Missing argument" in refusal(["train"])
    assert "--nonsense" in refusal(["train", "a.csv", "b.larank", "--nonsense"])
    assert "nonsense" in refusal(["tag", "nonsense"])


@calling("python", "-m", "studies")
def test_lines_that_call_a_study_are_accepted(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if words not in ([], ["--list"]):
        chosen = studies._parser().parse_args(words)
        studies.STUDIES[chosen.study].scope(chosen)


@calling("make")
def test_lines_that_call_make_name_a_target(words):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert [word for word in words if "=" not in word and word not in targets] == []
