"""The command `python -m tools.claims`: what the tests claim, and what they claimed at another revision.

A claim is the name of a test, read as a sentence. Without an argument, all claims of the working tree are listed by the
promise they check. With a revision, the claims that the working tree no longer makes under the same name are listed,
with the number of claims for each promise before and now; each claim in that list must be made by another test, or the
promise must be gone.
"""

import argparse
import ast
import re
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROMISES = {
    "scikit-learn (docs/promises.md)": r"sklearn|check_estimator|clone|pickle|feature names|ecosystem|array of another",
    "interrupts and limits (docs/promises.md)": r"ctrl|interrupt|signal|killed|time limit|max iter|full disk",
    "threads (docs/promises.md)": r"thread|worker|dask/|parallel",
    "memory (docs/promises.md)": r"memory|copied|cache|bytes|forget|released",
    "certificate (docs/certificate.md)": r"certif|\bgap|dual|primal|optimum|optimal|objective|violation|exact|bound",
    "data and files (docs/data.md)": r"tests/data|tests/tables|file|saved|model_files|loaded|read|table|column|stream",
    "failures (docs/promises.md)": r"refus|named|wrong|error|told|what it lacks|as it was|is not|cannot|must|warn",
    "numbers (docs/promises.md)": r"seed|bit|level|instruction|precision|same model|does not change|scale|weight",
    "the house (CONTRIBUTING.md)": r"test_house|test_parameters|test_examples|shell_lines|page|says first|mutant",
    "command line and reports (docs/cli.md)": r"tests/cli|test_report|progress",
    "studies (docs/benchmarks.md)": r"tests/studies",
    "algorithms (docs)": r"",
}
"""By promise, the words of paths and names of the tests that check it; the first that matches counts."""


def promise_of(claim: tuple[str, str]) -> str:
    """Return the promise that a claim belongs to."""
    return next(promise for promise, words in PROMISES.items() if re.search(words, " ".join(claim)))


def claims_of(path: str, source: str) -> list[tuple[str, str]]:
    """Return file and sentence of each test function of a file."""
    names = [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    return [(path, name.removeprefix("test_").replace("_", " ")) for name in names if name.startswith("test_")]


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _is_test(path: str) -> bool:
    return path.startswith("tests/") and Path(path).name.startswith("test_") and path.endswith(".py")


def claims_now() -> list[tuple[str, str]]:
    """Return the claims of the working tree."""
    paths = [path for path in _git("ls-files").splitlines() if _is_test(path) and (ROOT / path).exists()]
    return [claim for path in paths for claim in claims_of(path, (ROOT / path).read_text())]


def claims_at(revision: str) -> list[tuple[str, str]]:
    """Return the claims of a revision."""
    paths = [path for path in _git("ls-tree", "-r", "--name-only", revision).splitlines() if _is_test(path)]
    return [claim for path in paths for claim in claims_of(path, _git("show", f"{revision}:{path}"))]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.claims", description=__doc__)
    parser.add_argument("revision", nargs="?", help="list what this revision claimed and the working tree does not")
    revision = parser.parse_args().revision
    now = claims_now()
    before = claims_at(revision) if revision else []
    made = {sentence for _, sentence in now}
    listed = defaultdict(list)
    for claim in (claim for claim in before if claim[1] not in made) if revision else now:
        listed[promise_of(claim)].append(claim)
    was, has = Counter(map(promise_of, before)), Counter(map(promise_of, now))
    for promise in PROMISES:
        print(f"{promise}: {has[promise]}" + (f", {was[promise]} at {revision}" if revision else ""))
        print("\n".join(f"  {path}: {sentence}" for path, sentence in sorted(listed[promise])))
    gone = f"; of {len(before)} at {revision}, {sum(map(len, listed.values()))} have no test of the same name now"
    print(f"{len(now)} claims" + (gone if revision else ""))


if __name__ == "__main__":
    main()
