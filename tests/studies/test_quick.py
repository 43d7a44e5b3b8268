"""The quick form of every study runs, fills its tables, and writes numbers and figures that can be read."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from studies import __main__ as command
from studies.datasets import is_available
from studies.study import Findings

FEWER: dict[str, tuple[str, ...]] = {
    "sgd": ("--solvers", "larank-svmsgd2", "sgdclassifier", "--parts", "passes", "target", "memory"),
    "sequence": ("--solvers", "larank-greedy"),
    "sdm": ("--datasets", "covtype", "--seeds", "2"),
    "path": ("--values", "2"),
    "search": ("--costs", "2", "--gammas", "1", "--folds", "2"),
    "maps": ("--problems", "mnist"),
    "concepts": ("--parts", "simulation", "weak", "curve", "speed"),
    "memorylimits": ("--estimators", "LaRankClassifier"),
    "workers": ("--parts", "fit", "rounds"),
    "ospas": ("--datasets", "child-world"),
}
"""Options that leave out what takes long. LARANK_WHOLE_STUDIES=1 runs the whole quick forms with all rivals."""
WITHOUT_ROWS: dict[str, set[str]] = {
    "ambiguous": {"Accuracy in percent on candidates made for LETTER and USPS"},
    "concepts": {"Errors (thesis, table C.2)", "Order of the test errors (thesis, table C.2)"}
    | {"Nearest concepts (thesis, table C.3)", "Neighbours of the same class"},
    "maps": {"A map with a linear classifier against the exact machine, 2 threads, wall seconds"},
    "ospas": {"Alignment errors on the house (thesis, figure 6.3)", "GeoQuery, unambiguous"}
    | {"Strategies on the house, level 3 (thesis, figure 6.4)"},
    "workers": set(),
}
"""Tables of the parts that these forms leave out."""
CERTAIN = ("faults", "files", "memorylimits", "agreement")
"""Studies whose claims do not depend on how busy the machine is."""

OF_MEMORY = ("files", "memory", "memorylimits")
"""Studies whose findings are peaks of memory, which a process of its own has."""


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Two blobs in the place of banana, USPS and ADULT where the data directory lacks them."""
    if all(map(is_available, ("banana", "usps", "adult_a9a"))):
        return
    random, folder = np.random.default_rng(0), tmp_path_factory.mktemp("data")
    monkeypatch.setenv("LARANK_DATA", str(folder))
    for name, labels in (("banana", (-1, 1)), ("usps", (3, 0)), ("adult_a9a", (-1, 1))):
        arrays: dict[str, Any] = {}
        for part, size in (("train", 1600), ("test", 600)):
            side = random.integers(2, size=size)
            X = (1.4 * side[:, None] - 0.7 + random.normal(size=(size, 2))).astype(np.float32)
            arrays[f"y_{part}"] = np.take(labels, side)
            csr = sparse.csr_matrix(X)
            parts = {"_data": csr.data, "_indices": csr.indices, "_indptr": csr.indptr, "_shape": np.array(X.shape)}
            arrays |= {f"X_{part}{key}": values for key, values in (parts if "a9a" in name else {"": X}).items()}
        (folder / name).mkdir()
        np.savez(folder / name / f"{name}.npz", **arrays)


def refused(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


@pytest.fixture
def processes(request: pytest.FixtureRequest, name: str) -> None:
    """Run measured tasks in the test process, unless the study is about memory."""
    if name not in OF_MEMORY:
        request.getfixturevalue("in_this_process")


@pytest.mark.usefixtures("data", "processes")
@pytest.mark.parametrize("name", command.STUDIES)
def test_the_quick_form_fills_its_tables_and_writes_all_there_is(name, tmp_path, monkeypatch, capsys) -> None:
    if name == "memorylimits" and not Path("/proc/self/clear_refs").exists():
        pytest.skip("the peak of the resident set is read from /proc")
    study, kept = command.STUDIES[name], list[Findings]()

    def run(scope: Any, say: Any) -> Findings:
        kept.append(study.run(scope, say))
        return kept[-1]

    monkeypatch.setitem(command.STUDIES, name, replace(study, run=run))
    fewer = () if os.environ.get("LARANK_WHOLE_STUDIES") else FEWER.get(name, ())
    status = command.main([name, "--quick", *fewer, "--output", str(tmp_path)])
    out, err = capsys.readouterr()
    if "in the data directory; set LARANK_DATA" in err or "LARANK_DATA names the data folder" in err:
        pytest.skip(f"needs a data set of {', '.join(study.datasets)} (LARANK_DATA)")
    assert status == 0, err
    assert "Quick form: it only shows that the study works" in out
    (found,) = kept
    empty = {table.title for table in found.to_tables() if not table.rows} - {"This version over the one before"}
    assert empty <= WITHOUT_ROWS.get(name, set())
    page = json.loads((tmp_path / f"{name}.json").read_text(), parse_constant=refused)
    assert (page["about"]["study"], page["about"]["quick"]) == (name, True)
    assert [table["title"] for table in page["tables"]] == [table.title for table in found.to_tables() if table.rows]
    assert page["numbers"]
    assert (tmp_path / f"{name}.svg").exists() == (study.draw is not None)
    if study.draw:
        assert (tmp_path / f"{name}.svg").read_bytes().startswith(b"<?xml")
    if name in CERTAIN:
        assert [claim["text"] for claim in page["claims"] if not claim["holds"]] == []
        assert not found.has_failed


def test_every_form_that_leaves_something_out_is_of_a_study() -> None:
    assert {*FEWER, *WITHOUT_ROWS, *CERTAIN, *OF_MEMORY} <= set(command.STUDIES)
