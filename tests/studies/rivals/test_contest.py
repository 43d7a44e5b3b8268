"""What comparisons share: entrants, turns, processes, and this version beside the one before."""

import sys
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from studies.measure import ChildFailedError, Measurement, TimeoutExceededError, ask, check_interpreter, thread_limits
from studies.rivals import kernel, kernels, maps, streams
from studies.rivals.contest import Entrant, beside_before, entrants, runs_in_turns
from studies.rivals.libraries import KERNEL, usable
from studies.study import Findings, Scope
from studies.trial import PeakMemory


def test_a_library_that_is_not_installed_is_left_out_with_a_line():
    rivals = {"here": SimpleNamespace(requires="sklearn.svm"), "not": SimpleNamespace(requires="no_such.module")}
    lines: list[str] = []
    assert usable(rivals, rivals, lines.append) == ["here"]
    assert lines == ["not: left out, no_such.module is not installed"]


def test_every_library_gets_the_same_number_of_threads():
    assert set(thread_limits(2).values()) == {"2", "passive"}


def test_the_peak_is_that_of_this_process_since_construction():
    memory = PeakMemory()
    filled = bytearray(b"x" * 50_000_000)
    assert memory.peak() > 40_000_000
    assert len(filled) == 50_000_000


@pytest.mark.parametrize("tasks", [kernels.TASKS, maps.TASKS, streams.TASKS])
def test_a_task_is_looked_up_in_a_process_of_its_own_whose_errors_and_limits_are_told(tasks, tmp_path):
    with pytest.raises(ChildFailedError, match="has no attribute 'nothing'"):
        ask(tasks, "nothing", tmp_path, 1, 60.0)
    with pytest.raises(TimeoutExceededError, match=r"stopped after 0\.001 s"):
        ask(tasks, "nothing", tmp_path, 1, 0.001)


# ---- This version and the one before ----


@dataclass(frozen=True)
class Trained(Measurement):
    predict: float
    error: float


def run(wall, cpu=1.0, error=0.1):
    return Trained(wall, cpu, 0, 100, {}, 0.5, error)


def test_versions_of_ours_take_turns_and_rivals_have_one():
    settings = Scope(datasets=["letter"], solvers=["larank", "svc"], against="old/python")
    found = entrants(settings, KERNEL, lambda line: None)
    assert found == [Entrant("larank"), Entrant("larank", python="old/python"), Entrant("svc")]
    assert [str(entrant) for entrant in found] == ["larank", "larank before", "svc"]
    turns: list[str] = []
    measures = {entrant: lambda entrant=entrant: turns.append(str(entrant)) or run(1.0) for entrant in found}
    runs_in_turns(Findings(), "letter", measures, settings, lambda line: None)
    assert turns == ["larank", "larank before", "svc"] * 3


def test_this_version_stands_beside_the_one_before():
    old, new = Entrant("larank", "dense", "old/python"), Entrant("larank", "dense")
    found = {new: [run(1.1), run(1.0)], old: [run(2.0), run(1.25, cpu=0.5)], Entrant("svc", "dense"): [run(9.0)]}
    (row,) = beside_before("letter", found)
    assert (row.solver, row.runs, row.wall, row.cpu, row.test, row.peak) == ("larank dense", 2, 0.8, 2.0, 1.0, 1.0)
    assert row.differs == []
    assert str(row.claim).endswith("bar 1.03, undecided (the two disagree; run it on a quiet machine)")
    (row,) = beside_before("letter", {new: [run(1.02)], old: [run(1.0, error=0.2)]})
    assert str(row.claim) == "letter: larank dense takes 1.020 of the time before, 1.000 in CPU seconds; bar 1.03, met"
    findings = Findings()
    findings.add(before=[row])
    assert "| letter | larank dense | 1 | 1.020 | 1.000 | 1.000 | 1.000 | no: error |" in (
        findings.to_tables()[-1].as_markdown()
    )
    assert findings.to_lines() == [str(row.claim)]


def test_a_version_that_failed_is_named_and_not_compared():
    def fails():
        raise ChildFailedError("trace\nNo module named larank\n")

    measures = {Entrant("larank"): lambda: run(1.0), Entrant("larank", python="old"): fails}
    found = Findings()
    runs_in_turns(found, "letter", measures, Scope(datasets=["letter"]), lambda line: None)
    assert found.rows["before"] == []
    assert [(gone.solver, gone.reason) for gone in found.rows["unfinished"]] == [
        ("larank before", "No module named larank")
    ]


def test_an_interpreter_with_larank_runs_this_code(monkeypatch):
    monkeypatch.setattr(kernel, "measure_certificate", lambda *asked: kernels.Certificate(0.5, 9.0, 7.0))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    try:
        check_interpreter(sys.executable)
    except ValueError:
        pytest.skip("larank is not installed in this interpreter")
    settings = Scope(datasets=["letter"], solvers=["larank"], repeats=1, against=sys.executable, quick=True)
    found = kernel.compare(settings, lambda line: None)
    assert found.rows["unfinished"] == []
    (row,) = found.rows["before"]
    assert row.solver == "larank dense"
    assert {work.solver for work in found.rows["work"]} == {"larank", "larank before"}
    assert all(row.train > 0 and 0 < row.peak_without_input <= row.peak for row in found.rows["rows"])
