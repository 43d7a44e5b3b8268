"""The figures of the MCSVM paper are put together rightly, and say what the paper says."""

import numpy as np
import pytest
from stand_ins import printed

from larank.parameters import COOLING
from studies.papers import mcsvm as paper
from studies.study import Scope

STUDIES = {study.name: study for study in paper.STUDIES if study.draw}


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Less still than the quick form, on the data that comes with the library."""
    monkeypatch.setenv("LARANK_DATA", str(tmp_path))
    monkeypatch.setattr(paper, "QUICK", paper.Protocol(figure5=120, figure6=120, figure7=(40, 80), time_limit=60.0))


def test_a_smaller_epsilon_takes_more_rounds_to_a_higher_dual(small):
    runs = STUDIES["mcsvm-figure5"].run(Scope(quick=True), lambda line: None).runs
    assert [run.epsilon for run in runs] == list(paper.EPSILONS)
    assert (np.diff([run.rounds for run in runs]) < 0).all()
    assert (np.diff([run.dual for run in runs]) <= 1e-6).all()
    assert all(run.violation < run.epsilon for run in runs)


def test_figure_6_has_every_schedule_ending_at_the_same_objective(small):
    runs = STUDIES["mcsvm-figure6"].run(Scope(quick=True), lambda line: None).runs
    assert [run.cooling for run in runs] == list(COOLING)
    assert [run.dual for run in runs] == pytest.approx([runs[0].dual] * len(runs), rel=1e-2)
    assert all((np.diff([dual for _, dual in run.path]) >= -1e-9).all() for run in runs)
    assert all(run.path[-1][0] == run.rounds for run in runs)


def test_the_versions_of_figure_7_reach_the_same_accuracy(small):
    outcome = STUDIES["mcsvm-figure7"].run(Scope(quick=True), lambda line: None)
    assert not outcome.skipped
    assert [run.version for run in outcome.runs] == [*paper.VERSIONS] * 2
    assert all(run.violation < 0.1 for run in outcome.runs)
    by_version = {run.version: run for run in outcome.runs if run.examples == 80}
    third, fourth, fifth = list(by_version.values())[2:]
    assert third.kernel_rows > fourth.kernel_rows
    assert fourth.rounds == fifth.rounds == third.rounds


def test_a_version_that_would_take_too_long_is_left_out_with_a_reason(monkeypatch, small):
    monkeypatch.setattr(paper, "QUICK", paper.Protocol(40, 40, (20, 40, 80), time_limit=1e-9))
    lines = []
    outcome = STUDIES["mcsvm-figure7"].run(Scope(quick=True), lines.append)
    assert {run.examples for run in outcome.runs} == {20}
    assert len(outcome.skipped) == 2 * len(paper.VERSIONS)
    assert set(outcome.skipped) <= set(lines)
    text = " ".join(printed(outcome))
    assert "Left out: version 1, base line, with 40 examples of letter" in text
    assert "> " in text
