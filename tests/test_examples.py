"""What the documentation shows runs, and what it names exists."""

from __future__ import annotations

import dataclasses
import re
import shlex
import subprocess
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from larank.cli import app
from larank.data import load_letter
from studies import __main__ as studies

ROOT = Path(__file__).parents[1]
EXAMPLES = {
    "active_learning.py": "the best of all",
    "linear_text.py": "weston-watkins",
    "c_path.py": "best C",
    "captions.py": "trained on the names of the caption",
    "dask_cluster.py": "with a kernel: test error",
    "exact_kernel.py": "converged",
    "house_story.py": "he is john, not harry: location(rice) = kitchen",
    "file_stream.py": "tomorrow: 26 classes, with Z",
    "kernel_map.py": "of the kernel left out",
    "own_structure.py": "svmstruct-1slack: wrong partners",
    "own_stopping.py": "same predictions True",
    "larank_one_pass.py": "completed after 1 pass",
    "precomputed_kernel.py": "same predictions True",
    "stream.py": "26 classes, with Z",
    "string_kernel.py": "bianco Italian",
    "table.py": "same predictions True",
    "tagging.py": "'B-SHIP'",
}
LETTERS = {"active_learning.py": 800, "larank_one_pass.py": 2000, "precomputed_kernel.py": 600, "exact_kernel.py": 2000}
LETTERS |= {"README.md": 4000, "docs/kernel/gpu.md": 800, "docs/ambiguous/classifier.md": 600}
LETTERS |= {"kernel_map.py": 2000, "docs/streams.md": 4000, "docs/maps.md": 4000}
"""Numbers of letters that are sufficient for examples and pages that train on all of them for a long time."""
FEWER = {
    "active_learning.py": {"range(3)": "range(1)", "100, 150, 300": "100"},
    "house_story.py": {"make_triples(6000": "make_triples(2000"},
    "README.md": {"range(16000)": "range(4000)", "range(0, 6000": "range(0, 4000"},
    "docs/ambiguous/concepts.md": {"make_triples(5000": "make_triples(1000"},
    "docs/ambiguous/house.md": {"make_triples(50_000": "make_triples(2000"},
    "docs/maps.md": {"n_components=1000": "n_components=500"},
    "docs/streams.md": {"range(0, 12000": "range(0, 4000"},
}
"""Other numbers that are replaced by smaller ones."""
PROCESSES = {"dask_cluster.py", "tagging.py"}
"""A cluster imports the script again; the other example shows that scripts run."""
Main = Callable[..., None]
PAGES = ["README.md", "CONTRIBUTING.md", *sorted(p.relative_to(ROOT).as_posix() for p in ROOT.glob("docs/**/*.md"))]
FENCED_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCED_SHELL = re.compile(r"^```(?:sh|bash|shell|console)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`((?:larank|python -m studies|make) [^`\n]+)`")
COMMAND = re.compile(r"^\s*(?:\$ )?((?:larank|python -m studies|make)\b.*)$")
PLACEHOLDER = re.compile(r"\.\.\.|\[|NAME|\b[A-Z]{3,}\b")
NAMED_PATH = re.compile(r"`((?:core|src|studies|tests|docs|examples)/[\w./-]+)`")


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Main:
    """Run the code of an example or a page, with smaller numbers, as the main module in an empty folder.

    What it changes is undone.
    """
    monkeypatch.chdir(tmp_path)
    module, letter = types.ModuleType("__main__"), load_letter()

    def run(name: str, code: str, *arguments: str) -> None:
        for number, smaller in FEWER.get(name, {}).items():
            assert number in code
            code = code.replace(number, smaller)
        letters = LETTERS.get(name)
        most = {"X_train": letters, "y_train": letters, "X_test": letters and 1000, "y_test": letters and 1000}
        few = {name: getattr(letter, name)[:size] for name, size in most.items()}
        monkeypatch.setattr("larank.data.load_letter", lambda: dataclasses.replace(letter, **few))
        monkeypatch.setitem(sys.modules, "__main__", module)
        monkeypatch.setattr(sys, "argv", ["main", *arguments])
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            exec(compile(code, "main", "exec", dont_inherit=True), module.__dict__)

    return run


def test_every_example_is_run_here() -> None:
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(EXAMPLES)
    assert set(EXAMPLES) > PROCESSES


@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - PROCESSES))
def test_example_runs_and_says_something(name: str, main: Main, capsys: pytest.CaptureFixture[str]) -> None:
    main(name, text_of(f"examples/{name}"))
    assert EXAMPLES[name] in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(PROCESSES))
def test_example_runs_as_a_script(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / name)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert EXAMPLES[name] in done.stdout


def test_text_example_reads_a_file(tmp_path: Path, main: Main, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{k % 3} {1 + k % 3}:1 {4 + k % 5}:0.5\n" for k in range(60)]
    (tmp_path / "small.svm").write_text("".join(lines))
    main("linear_text.py", text_of("examples/linear_text.py"), "small.svm")
    assert "3 classes" in capsys.readouterr().out


@pytest.mark.parametrize("page", [page for page in PAGES if FENCED_PYTHON.search(text_of(page))])
def test_python_in_a_page_runs(page: str, main: Main) -> None:
    main(page, "\n".join(FENCED_PYTHON.findall(text_of(page))))


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_exist(page: str) -> None:
    assert [path for path in NAMED_PATH.findall(text_of(page)) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    here = ROOT / page
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", text_of(page)):
        path, _, heading = target.partition("#")
        there = here.parent / path if path else here
        assert there.exists(), target
        assert not heading or heading in anchors(there.read_text(encoding="utf-8")), target


def anchors(text: str) -> list[str]:
    """What links to the headings of a page are called."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_the_documentation_has_no_placeholders() -> None:
    assert [page for page in PAGES if "@@" in text_of(page)] == []


@pytest.mark.parametrize(("page", "lines"), [("README.md", 150), ("docs/architecture.md", 250)])
def test_a_page_for_newcomers_stays_short(page: str, lines: int) -> None:
    assert len(text_of(page).splitlines()) <= lines


# ---- Shell lines are accepted by the commands that they call ----


def lines_of(page):
    """Return the shell lines of a page: those of fenced blocks, and commands within sentences without placeholders."""
    text = text_of(page)
    blocks = "\n".join(FENCED_SHELL.findall(text)).replace("\\\n", " ")
    fenced = [found[1] for found in map(COMMAND.match, blocks.splitlines()) if found]
    inline = [line for line in INLINE.findall(FENCED_SHELL.sub("", text)) if not PLACEHOLDER.search(line)]
    return [shlex.split(re.split(" [|>&] ", line)[0], comments=True) for line in (*fenced, *inline)]


LINES = {
    f"{Path(page).stem}: {shlex.join(words)}": words for page in (*PAGES, "SECURITY.md") for words in lines_of(page)
}


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
