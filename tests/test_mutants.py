"""The runner of mutants tells a fault that a test notices from one that no test has looked for."""

import re
import subprocess
import sys
import tomllib

import pytest

from tools.mutants.__main__ import ROOT, TABLE, place_of, with_all

ROWS = {row["id"]: row for row in tomllib.loads(TABLE.read_text())["mutants"]}


def test_a_mutant_is_killed_by_the_test_of_its_claim_and_survives_others(tmp_path):
    killed, other = ROWS["models-20"], ROWS["journal-11"]
    words = ["--ids", killed["id"], other["id"], "--tests", killed["killed_by"], "--folder", str(tmp_path)]
    command = [sys.executable, "-m", "tools.mutants", *words]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120).stdout
    assert f"killed by {killed['killed_by']}" in told
    assert re.search(r"journal-11 .*SURVIVED", told)
    assert "2 mutants, 1 survived" in told
    for row in (killed, other):
        assert (tmp_path / "tree" / row["file"]).read_bytes() == (ROOT / row["file"]).read_bytes()


def test_mutants_of_one_file_are_chosen_by_number():
    rows = [(7, {"id": "a", "file": "f", "line": "if (a < b + c) d();", "old": "a < b + c", "new": "a <= b + c"})]
    rows += [(8, rows[0][1] | {"old": "b + c", "new": "b - c"}), (9, rows[0][1] | {"old": "d();", "new": ""})]
    sum_of_two = "(::larank::mutant == 8 ? (b - c) : (b + c))"
    assert with_all(rows, "if (a < b + c) d();").endswith(
        f"if ((::larank::mutant == 7 ? (a <= b + c) : (a < {sum_of_two}))) "
        "{ if (::larank::mutant == 9) {  } else { d(); } }"
    )


def test_a_place_that_has_changed_is_told():
    row = {"id": "a", "file": "f.py", "line": "return a + b", "old": "a + b"}
    assert place_of(row, "def f():\n    return a + b") == (20, 25)
    for text in ("return a - b", "return a"):
        with pytest.raises(LookupError, match=r"a: f\.py has changed"):
            place_of(row, text)
