"""See which test fails for each mutant of table.toml: `python -m tools.mutants [--area A ...] [--ids I ...]`.

Everything happens in a copy of the tree under build/mutants. Mutants of Python are written into the copy and taken
back. All mutants of C++ are compiled into one build, each behind a comparison with LARANK_MUTANT. A mutant is killed by
the first test that fails: the one that killed it before (`killed_by`) runs first, then the tests of its area.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("table.toml")
SECONDS = 900  # for the tests of one file; 100 for one test, which ends endless loops
# Python finds the copy before an editable installation of the package, in the tests' subprocesses too.
_SITE = "import sys\nsys.meta_path[:] = [f for f in sys.meta_path if not type(f).__name__.startswith('ScikitBuild')]\n"
_IMPORTED = "dask hypothesis pandas rich safetensors.numpy scipy.optimize sklearn.svm typer xdist"  # once for all runs
_NOT_COPIED = ("build", "demo", "dist", "reports")
_SWITCH_AT = "core/simd/mutant.hpp"
_SWITCH = """#pragma once
#include <cstdlib>
namespace larank {
inline const int mutant = std::getenv("LARANK_MUTANT") ? std::atoi(std::getenv("LARANK_MUTANT")) : 0;
}
"""

Row = dict[str, Any]


class Outcome(NamedTuple):
    """The test that killed a mutant, if one did."""

    killer: str
    seconds: float


def place_of(row: Row, text: str) -> tuple[int, int]:
    """Return where the old text of a row stands in its file: the nth occurrence from its line on."""
    at = text.find(row["line"]) - 1
    for _ in range(1 + row.get("nth", 0)):
        at = text.find(row["old"], at + 1) if at > -2 else -2
        if at < 0:
            raise LookupError(f"{row['id']}: {row['file']} has changed; draw its mutant again")
    return at, at + len(row["old"])


def mutated(row: Row, text: str) -> str:
    """Return the text of a file with a mutant in it."""
    first, end = place_of(row, text)
    return text[:first] + row["new"] + text[end:]


def with_all(rows: list[tuple[int, Row]], text: str) -> str:
    """Return a file of C++ with all its mutants, each chosen by its number at run time."""

    def rendered(first: int, end: int, spans: list[tuple[int, int, int, str]]) -> str:
        done = ""
        while spans:
            (start, stop, number, new), *others = spans
            inner = [span for span in others if span[0] < stop]
            if any(span[1] > stop for span in inner):
                raise ValueError(f"mutants overlap in {text[start:stop]!r}: give both the same old text")
            old = rendered(start, stop, inner)
            form = "{{ if ({}) {{ {} }} else {{ {} }} }}" if text[stop - 1] == ";" else "({} ? ({}) : ({}))"
            done += text[first:start] + form.format(f"::larank::mutant == {number}", new, old)
            first, spans = stop, others[len(inner) :]
        return done + text[first:end]

    spans = [(*place_of(row, text), number, row["new"]) for number, row in rows]
    spans.sort(key=lambda span: (span[0], -span[1]))
    return '#include "simd/mutant.hpp"\n' + rendered(0, len(text), spans)


class Tree:
    """The copy of the tree in which mutants live."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.source = folder, folder / "tree"

    def copy(self, in_core: list[tuple[int, Row]]) -> None:
        """Bring the copy up to date; unchanged files keep their times, so that little is compiled again."""
        tops = [path for path in ROOT.iterdir() if path.name[0] != "." and path.name not in _NOT_COPIED]
        files = [path for top in tops for path in (top.rglob("*") if top.is_dir() else [top]) if path.is_file()]
        files = [path for path in files if path.suffix not in (".pyc", ".so")]
        wanted = {str(path.relative_to(ROOT)): path.read_bytes() for path in files}
        for path in {row["file"] for _, row in in_core}:
            some = [(number, row) for number, row in in_core if row["file"] == path]
            wanted[path] = with_all(some, wanted[path].decode()).encode()
        wanted |= {_SWITCH_AT: _SWITCH.encode(), "site/sitecustomize.py": _SITE.encode()}
        for path, content in wanted.items():
            target = self.source / path
            if not target.is_file() or target.read_bytes() != content:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
        for old in self.source.rglob("*"):
            if not old.is_dir() and old.suffix != ".pyc" and str(old.relative_to(self.source)) not in wanted:
                old.unlink()

    def compile(self) -> Path:
        """Build the core with all mutants of C++ in it, and return where its modules are."""
        build, here = self.folder / "core", Path(sys.executable).parent
        options = [f"-DPython_EXECUTABLE={sys.executable}", f"-DCMAKE_MAKE_PROGRAM={here / 'ninja'}"]
        options += ["-DLARANK_TEST_HOOKS=ON"]
        subprocess.run([here / "cmake", "-S", self.source, "-B", build, "-G", "Ninja", *options], check=True)
        subprocess.run([here / "cmake", "--build", build, "--target", "_core", "_core_hooks"], check=True)
        return build

    def link(self, *folders: str | Path) -> None:
        """Put the compiled modules in these folders beside the Python files of the copy."""
        for found in [module for folder in folders for module in Path(folder).glob("_core*.so")]:
            (self.source / "src/larank" / found.name).symlink_to(found)

    @contextmanager
    def holding(self, row: Row) -> Iterator[None]:
        """The copy with a mutant of Python in it."""
        path = self.source / row["file"]
        text = path.read_text()
        try:
            self._replace(path, mutated(row, text))
            yield
        finally:
            self._replace(path, text)

    def _replace(self, path: Path, text: str) -> None:
        path.write_text(text)
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()

    def run(self, test: str, number: int = 0) -> Outcome:
        """Run tests until one fails, in a fork of this process, which has imported what takes long."""
        began, seen, log = time.perf_counter(), self.folder / "running", self.folder / "log"
        seen.write_text("")
        child = os.fork()
        if not child:
            os._exit(self._tested(test, number, seen, log))
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            if time.perf_counter() - began > SECONDS:
                os.killpg(child, signal.SIGKILL)
            time.sleep(0.05)
        is_gone = re.search("^ERROR: .*not found: ", log.read_text(errors="replace"), re.MULTILINE)  # of an older name
        has_passed = ended[1] == 0 or is_gone
        return Outcome("" if has_passed else seen.read_text() or test, time.perf_counter() - began)

    def _tested(self, test: str, number: int, seen: Path, log: Path) -> int:
        os.setsid()
        for stream in (1, 2):
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        os.chdir(self.source)
        paths = [str(self.source / "site"), str(self.source / "src")]
        os.environ |= {"PYTHONPATH": os.pathsep.join(paths), "LARANK_MUTANT": str(number)}
        exec(_SITE)
        sys.path[:0] = paths
        for name in [name for name in sys.modules if name.partition(".")[0] in ("larank", "tests", "tools")]:
            del sys.modules[name]

        class Running:
            def pytest_runtest_logstart(self, nodeid: str) -> None:
                seen.write_text(nodeid)

        words = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--timeout=100", "--timeout-method=thread", test]
        return int(pytest.main(words, plugins=[Running()]))


def examine(tree: Tree, row: Row, tests: list[str], number: int) -> Outcome:
    """Run tests until one fails with a mutant."""
    found = Outcome("", 0.0)
    for test in tests:
        with nullcontext() if row["file"].startswith("core/") else tree.holding(row):
            killer, seconds = tree.run(test, number)
        found = Outcome(killer, found.seconds + seconds)
        if killer:
            break
    return found


def main() -> int:
    table = tomllib.loads(TABLE.read_text())
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--area", nargs="*", default=list(table["areas"]), choices=list(table["areas"]))
    parser.add_argument("--ids", nargs="*", help="only these mutants")
    parser.add_argument("--folder", type=Path, default=ROOT / "build/mutants", help="where the copy of the tree is")
    parser.add_argument("--tests", nargs="*", help="tests to run in place of those of the area")
    parser.add_argument("--unmutated", action="store_true", help="only see that all tests pass without a mutant")
    chosen = parser.parse_args()
    numbered = [(n, row) for n, row in enumerate(table["mutants"], 1) if "equivalent" not in row]
    rows = [(n, row) for n, row in numbered if row["id"].rpartition("-")[0] in chosen.area]
    rows = [(n, row) for n, row in rows if not chosen.ids or row["id"] in chosen.ids]
    in_core = [(n, row) for n, row in numbered if row["file"].startswith("core/")]
    tree, needs_core = Tree(chosen.folder.resolve()), any(row["file"].startswith("core/") for _, row in rows)
    tree.copy(in_core if needs_core else [])
    tree.link(*([tree.compile()] if needs_core else find_spec("larank").submodule_search_locations))
    for name in _IMPORTED.split():
        import_module(name)
    survivors = 0
    for number, row in rows if not chosen.unmutated else []:
        tests = table["areas"][row["id"].rpartition("-")[0]]["tests"]
        tests = chosen.tests or [*([row["killed_by"]] if "killed_by" in row else []), *tests]
        killer, seconds = examine(tree, row, tests, number)
        survivors += not killer
        print(f"{row['id']:15} {seconds:6.1f} s  {f'killed by {killer}' if killer else 'SURVIVED'}", flush=True)
    print(f"{len(rows)} mutants, {survivors} survived")
    for test in dict.fromkeys(test for area in chosen.area for test in table["areas"][area]["tests"]):
        if chosen.unmutated and (killer := tree.run(test).killer):
            survivors += 1
            print(f"without a mutant, {killer} fails")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
