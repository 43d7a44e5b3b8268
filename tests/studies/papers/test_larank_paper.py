"""The tables and figures of the LaRank paper are put together rightly, and their quick forms learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from stand_ins import printed

from studies.papers import larank as larank_paper
from studies.papers.larank import (
    AVERAGED,
    AVERAGED_10,
    EXACT,
    GAP,
    ONE_PASS,
    PAPER,
    PAPER_ARGMAX,
    Curve,
    Point,
)
from studies.study import Scope

STUDIES = {study.name: study for study in larank_paper.STUDIES}


def test_published_figures_are_complete():
    assert all(
        set(row) == {"error", "dual", "seconds", "kernels"} for table in PAPER.values() for row in table.values()
    )
    assert all(set(row) == set(PAPER) for row in PAPER_ARGMAX.values())


def test_thinned_curves_keep_their_ends():
    points = tuple(Point(k / 100, float(k), 50 / k, k) for k in range(1, 300))
    thinned = Curve("letter", GAP, 0, points).thinned(10)
    assert len(thinned) == 10
    assert (thinned[0], thinned[-1]) == (points[0], points[-1])
    steps = np.diff(np.log([point.kernels for point in thinned]))
    assert steps.max() < 2 * math.log(299) / 9


def test_one_pass_over_a_part_of_letter_learns_it():
    table = STUDIES["larank-table2"].run(Scope(quick=True), lambda line: None)
    gap, one_pass, exact = table.entries
    assert (gap.algorithm, one_pass.algorithm, exact.algorithm) == (GAP, ONE_PASS, EXACT)
    assert exact.mean("dual") == pytest.approx(gap.mean("dual"), rel=2e-3)
    assert gap.mean("error") < 17
    assert one_pass.mean("error") < 20
    assert 0 < one_pass.mean("dual") < gap.mean("dual")
    assert 0 < one_pass.mean("kernels") < gap.mean("kernels")
    assert one_pass.mean("argmax") >= larank_paper.QUICK_TRAIN / 1e3


def test_all_operations_together_are_best_and_the_first_alone_is_like_mira():
    outcome = STUDIES["larank-figure2"].run(Scope(quick=True), lambda line: None)
    only_new, *_, everything, mira, averaged = outcome.entries
    assert everything.mean("error") < only_new.mean("error")
    assert everything.mean("dual") > only_new.mean("dual")
    # [larank] section 4.4
    assert mira.mean("error") == pytest.approx(only_new.mean("error"), abs=4)
    assert mira.mean("patterns") == pytest.approx(only_new.mean("patterns"), rel=0.1)
    assert averaged.mean("patterns") < 0.7 * mira.mean("patterns")
    assert averaged.mean("kernels") < mira.mean("kernels")
    assert all(row["runs"][0]["dual"] is None for row in outcome.to_dict()["entries"][-2:])
    assert any(line.startswith("MIRA, seed 0") and " - " in line for line in printed(outcome))


def test_the_averaged_perceptron_makes_one_arg_max_per_example_and_gets_better_with_passes():
    table = STUDIES["larank-table3"].run(Scope(quick=True), lambda line: None)
    once, ten_times, one_pass, _ = table.entries
    assert (once.algorithm, ten_times.algorithm) == (AVERAGED, AVERAGED_10)
    assert once.mean("argmax") == larank_paper.QUICK_TRAIN / 1e3
    assert ten_times.mean("argmax") == 10 * larank_paper.QUICK_TRAIN / 1e3
    assert ten_times.mean("error") < once.mean("error")
    assert one_pass.mean("error") < once.mean("error")


def test_no_data_set_at_all_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setenv("LARANK_DATA", str(tmp_path))
    lines: list[str] = []
    with pytest.raises(FileNotFoundError, match="none of usps is in the data directory"):
        STUDIES["larank-figure2"].run(Scope(), lines.append)
    assert lines == ["usps: absent from the data directory, left out"]
