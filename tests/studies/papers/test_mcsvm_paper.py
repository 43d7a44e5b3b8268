"""The versions of the MCSVM paper are compared at the same accuracy; versions that take too long are left out."""

import pytest

from studies.papers import mcsvm as paper
from studies.study import Scope


@pytest.fixture
def figure7(monkeypatch, tmp_path):
    """Run figure 7 on fewer examples than the quick form, from the data set that comes with the library."""
    monkeypatch.setenv("LARANK_DATA", str(tmp_path))

    def run(sizes, time_limit):
        monkeypatch.setattr(paper, "QUICK", paper.Protocol(figure5=0, figure6=0, figure7=sizes, time_limit=time_limit))
        return paper._figure7(Scope(quick=True), lambda line: None)

    return run


def test_the_versions_of_figure_7_reach_the_same_accuracy(figure7):
    found = figure7((40, 80), 60.0).others
    assert not found["skipped"]
    assert [run.version for run in found["runs"]] == [*paper.VERSIONS] * 2
    assert all(run.violation < 0.1 for run in found["runs"])
    third, fourth, fifth = found["runs"][-3:]
    assert third.kernel_rows > fourth.kernel_rows
    assert fourth.rounds == fifth.rounds == third.rounds


def test_a_version_that_would_take_too_long_is_left_out_with_a_reason(figure7):
    found = figure7((20, 40, 80), 1e-9)
    assert {run.examples for run in found.others["runs"]} == {20}
    assert len(found.others["skipped"]) == 2 * len(paper.VERSIONS)
    (table,) = found.tables
    assert any(note.startswith("Left out: version 1, base line, with 40 examples of letter") for note in table.notes)
    assert table.rows[1][0][1].startswith("> ")
