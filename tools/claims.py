"""The command `python -m tools.claims`: what the tests claim, and what they claimed at another revision.

A claim is the name of a test, read as a sentence. Without an argument, all claims of the working tree are listed by
folder. With a revision, the claims that the working tree no longer makes under the same name are listed; each must be
made by another test, or the promise must be gone.
"""

import argparse
import ast
import subprocess
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]


def claims_of(path: str, source: str) -> list[tuple[str, str]]:
    """Return folder and sentence of each test function of a file."""
    folder = str(Path(path).parent)
    names = [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    return [(folder, name.removeprefix("test_").replace("_", " ")) for name in names if name.startswith("test_")]


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
    made = {sentence for _, sentence in now}
    listed = [claim for claim in claims_at(revision) if claim[1] not in made] if revision else now
    by_folder = defaultdict(list)
    for folder, sentence in listed:
        by_folder[folder].append(sentence)
    for folder in sorted(by_folder):
        print(f"{folder}: {len(by_folder[folder])}")
        print("\n".join(f"  {sentence}" for sentence in sorted(by_folder[folder])))
    print(
        f"{len(listed)} claims" + (f" of {revision} have no test of the same name; {len(now)} now" if revision else "")
    )


if __name__ == "__main__":
    main()
