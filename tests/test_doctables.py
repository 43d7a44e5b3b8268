"""Tables of studies in the documentation are those of the stored runs."""

import json

import pytest

from tools import doctables

RUN = {
    "about": {"quick": False, "words": ["some"], "seconds": 3.2, "load": ["load 0.10", "load 0.20"]},
    "tables": [
        {"title": "A title", "headings": ["set", "error"], "notes": ["A note."], "ends": [1]}
        | {"rows": [{"cells": ["dna", "4.2"], "style": ""}, {"cells": ["all", "5.1"], "style": "bold"}]}
    ],
}
PAGE = "Before.\n\n<!-- table: some 1 -->\nold\n<!-- end -->\n\nAfter.\n"


def store(folder, run):
    (folder / "some.json").write_text(json.dumps(run))


@pytest.mark.parametrize("page", doctables.pages(), ids=lambda page: page.stem)
def test_a_page_has_the_tables_of_the_stored_runs(page):
    text = page.read_text()
    assert doctables.filled(text) == text


def test_every_stored_run_is_shown():
    shown = {mark[2] for page in doctables.pages() for mark in doctables.MARKED.finditer(page.read_text())}
    assert {path.stem for path in doctables.RESULTS.glob("*.json")} == shown != set()


def test_a_marked_table_is_replaced_and_the_text_around_it_is_kept(tmp_path):
    store(tmp_path, RUN)
    found = doctables.filled(PAGE, tmp_path)
    assert found.startswith("Before.\n\n<!-- table: some 1 -->\n")
    assert found.endswith("<!-- end -->\n\nAfter.\n")
    assert all(text in found for text in ("| dna | 4.2 |\n| **all** | **5.1** |", "A note."))
    assert "old" not in found
    assert "`python -m studies some`, 3 s; before the run: load 0.10." in found
    assert doctables.filled(found, tmp_path) == found


def test_quick_forms_are_not_shown(tmp_path):
    store(tmp_path, RUN | {"about": RUN["about"] | {"quick": True}})
    with pytest.raises(ValueError, match=r"some\.json is a quick form"):
        doctables.filled(PAGE, tmp_path)
