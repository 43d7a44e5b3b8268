"""The language of the project: words that `docs/project/language.md` replaces, counted in every file.

Docstrings, comments, messages and pages are searched. `tests/language.txt` has the number of findings that each file is
allowed, which may only fall: `python -m tests.test_language` lists the findings, and `--write` lowers the allowance.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALLOWED = Path(__file__).with_name("language.txt")
ROOMS = ("src", "core", "docs", "examples", "README.md", "CONTRIBUTING.md", "SECURITY.md")

WORDS = {
    r"\b(that|those|the one) of\b": "name the noun again",
    r"\b(is|are) (?-i:none)\b": "does not exist; is not an X",
    r"\b(would|will) do\b": "is sufficient, is accepted",
    r"\ball the same\b": "still",
    r"\bbut for\b": "except",
    r"\bas it was\b": "unchanged",
    r"\bat hand\b": "available, current",
    r"\banew\b": "again, from scratch",
    r"\b(let|lets) go\b|\bgoes over to\b": "evict, remove",
    r"\bleft (out|alone)\b|\bleaves? (out|alone)\b": "omitted, not updated",
    r"\bmend(s|ed|ing)?\b": "fix, repair",
    r"\blooks? at\b|\ba look\b|\blooked at\b": "inspect; an evaluation pass",
    r"\b(whoever|nobody|somebody|everybody)\b": "name the caller, thread or reader",
    r"\b(tells?|told)\b": "report, print, give",
    r"\b(newborn|born)\b": "newly added",
    r"\bbesides?\b": "in addition to; compared with",
    r"\bare? at rest\b|\bthat rests?\b": "converged, inactive",
    r"\bof its own accord\b": "by itself",
    r"\b(pupil|lesson|sitting)s?\b": "model, update, labelling session",
    r"\b(is|are) no (?!longer\b|more\b|other\b|better\b|less\b)[a-z]+": "negate the verb: is not a",
}
BEGINNINGS = r"(Of|Those|The same|Who|What|Where|By|As|From|With)\b"
"""A docstring or a comment that begins so is not a sentence."""


def sentences(path: Path) -> Iterator[tuple[int, str, bool]]:
    """Line, text and whether the text begins a docstring or a comment, of all that people read in a file."""
    text = path.read_text()
    if path.suffix == ".md":
        is_code = False
        for number, line in enumerate(text.split("\n"), 1):
            is_code ^= line.startswith("```")
            if not is_code:
                yield number, re.sub(r"`[^`]*`", "``", line), False
    elif path.suffix in (".hpp", ".cpp"):
        for number, line in enumerate(text.split("\n"), 1):
            comment = re.search(r"//+ ?(.*)", line)
            if comment:
                yield number, comment[1], False
    elif path.suffix == ".py":
        yield from _of_python(text)


def _of_python(text: str) -> Iterator[tuple[int, str, bool]]:
    before = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# "), token.start[0] != before + 1
            before = token.start[0]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=False)
            for number, line in enumerate((docstring or "").split("\n")):
                yield node.body[0].lineno + number, re.sub(r"`[^`]*`", "``", line), number == 0
        elif isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("warn")):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value, False


def findings(path: Path) -> list[tuple[int, str, str]]:
    """Line, words found and what to write instead."""
    found = []
    for number, text, begins in sentences(path):
        for words, better in WORDS.items():
            found += [(number, match[0], better) for match in re.finditer(words, text, flags=re.I)]
        if begins and re.match(BEGINNINGS, text):
            found.append((number, text[:40], "begin with a verb or a noun"))
    return found


def paths() -> list[str]:
    """Every file of the project that people read."""
    listed = subprocess.run(["git", "ls-files", *ROOMS], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    kept = [path for path in listed.split() if Path(path).suffix in (".py", ".md", ".hpp", ".cpp")]
    return [path for path in kept if (ROOT / path).exists()]


def allowed() -> dict[str, int]:
    """The number of findings by file."""
    pairs = (line.split() for line in ALLOWED.read_text().splitlines())
    return {path: int(count) for count, path in pairs}


def test_no_file_has_more_words_to_replace_than_it_is_allowed():
    if not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout, which lists the files")
    limits = allowed()
    counts = {path: len(findings(ROOT / path)) for path in paths()}
    more = {path: (count, limits.get(path, 0)) for path, count in counts.items() if count > limits.get(path, 0)}
    assert not more, f"found and allowed by file {more}; python -m tests.test_language FILE lists the lines"
    fewer = {path: (counts.get(path, 0), limit) for path, limit in limits.items() if counts.get(path, 0) < limit}
    assert not fewer, f"found and allowed by file {fewer}; python -m tests.test_language --write lowers the allowance"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        counts = {path: len(findings(ROOT / path)) for path in paths()}
        ALLOWED.write_text("".join(f"{count} {path}\n" for path, count in counts.items() if count))
    for path in sys.argv[1:]:
        if path != "--write":
            for number, words, better in findings(ROOT / path):
                print(f"{path}:{number}: {words!r}: {better}")  # noqa: T201
