"""What the documentation shows runs, and what it names exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = {
    "active_learning.py": "the best of all",
    "linear_text.py": "weston-watkins",
    "c_path.py": "best C",
    "exact_kernel.py": "converged",
    "own_structure.py": "svmstruct-1slack: wrong partners",
    "own_stopping.py": "same predictions True",
    "larank_one_pass.py": "completed after 1 pass",
    "precomputed_kernel.py": "same predictions True",
    "stream.py": "26 classes, with Z",
    "string_kernel.py": "bianco Italian",
    "tagging.py": "'B-SHIP'",
}
FENCED_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED_PATH = re.compile(r"`((?:core|src|tests|benchmarks|docs|examples)/[\w./-]+)`")


def run(*arguments: str, cwd: Path) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_example_runs_and_says_something(name: str, tmp_path: Path) -> None:
    assert EXAMPLES[name] in run(str(ROOT / "examples" / name), cwd=tmp_path)


def test_text_example_reads_a_file(tmp_path: Path) -> None:
    lines = [f"{k % 3} {1 + k % 3}:1 {4 + k % 5}:0.5\n" for k in range(60)]
    (tmp_path / "small.svm").write_text("".join(lines))
    assert "3 classes" in run(str(ROOT / "examples" / "linear_text.py"), "small.svm", cwd=tmp_path)


def test_every_example_is_run_here() -> None:
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(EXAMPLES)


PAGES = ["README.md", "docs/active.md", "docs/lasvm.md", "docs/sequences.md", "docs/structured.md"]


@pytest.mark.parametrize("page", PAGES)
def test_python_in_a_page_runs(page: str, tmp_path: Path) -> None:
    blocks = FENCED_PYTHON.findall((ROOT / page).read_text())
    assert blocks
    run("-c", "\n".join(blocks), cwd=tmp_path)


def test_architecture_names_files_that_exist() -> None:
    named = NAMED_PATH.findall((ROOT / "docs" / "architecture.md").read_text())
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_architecture_names_every_file_of_the_library() -> None:
    named = set(NAMED_PATH.findall((ROOT / "docs" / "architecture.md").read_text()))
    sources = [path for folder in ("core", "src/larank") for path in (ROOT / folder).rglob("*.[hcp]*")]
    written = {path.relative_to(ROOT).as_posix() for path in sources if path.suffix in {".hpp", ".cpp", ".py", ".pyi"}}
    assert sorted(written - named) == []


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*"))]
)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    path = ROOT / page
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text())
    assert [target for target in targets if not (path.parent / target).exists()] == []


def test_the_documentation_has_no_placeholders():
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        assert "@@" not in page.read_text(encoding="utf-8"), page
