"""The command `python -m tools.doctables`: write the tables of studies into the pages of the documentation.

A page has a table between `<!-- table: NAME NUMBER -->` and `<!-- end -->`: the table of that number, counted from 1,
of the last run of the study NAME, which `python -m studies NAME --output docs/results` stores in `docs/results`.
`tests/test_doctables.py` checks that no page differs from its stored runs.
"""

import json
import re
from pathlib import Path

from larank.data.files import atomic_write
from studies.tables import Table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
MARKED = re.compile(r"(<!-- table: ([\w-]+) (\d+) -->\n).*?(<!-- end -->)", re.DOTALL)


def stored_table(name: str, number: int, results: Path = RESULTS) -> str:
    """Return one table of a stored run as Markdown, with the commit, the load and the duration of the run."""
    page = json.loads((results / f"{name}.json").read_text())
    if page["about"]["quick"]:
        raise ValueError(f"{name}.json is a quick form, whose figures say nothing; store a whole run")
    found = page["tables"][number - 1]
    rows = [(row["cells"], row["style"]) for row in found["rows"]]
    table = Table(found["title"], found["headings"], found["notes"], rows, set(found["ends"]))
    about, words = page["about"], " ".join(page["about"]["words"])
    seconds, load = about["seconds"], about["load"][0]
    return f"{table.as_markdown()}\n\n`python -m studies {words}`, {seconds:.0f} s; before the run: {load}.\n"


def filled(text: str, results: Path = RESULTS) -> str:
    """Return the text of a page with its tables as they are stored."""
    return MARKED.sub(lambda mark: mark[1] + "\n" + stored_table(mark[2], int(mark[3]), results) + "\n" + mark[4], text)


def pages() -> list[Path]:
    """Return the pages that may have tables."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def main() -> None:
    for page in pages():
        before = page.read_text()
        if (after := filled(before)) != before:
            with atomic_write(page) as target:
                target.write(after.encode())
            print(f"written: {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
