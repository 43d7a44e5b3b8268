"""The comparison of formulations in the SDM paper: its partitions, its test, and its quick form."""

import numpy as np
import pytest

from studies.datasets import is_available
from studies.papers import sdm
from studies.papers.experiment import Scope
from studies.papers.sdm import QUICK, STUDY, Comparison, Row, partition


def test_partition_is_a_stratified_60_20_20_split():
    y = np.repeat([0, 1, 2], [1000, 50, 1])
    parts = partition(y, seed=3)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(y)))
    counts = [np.bincount(y[part], minlength=3).tolist() for part in parts]
    assert counts == [[600, 30, 1], [200, 10, 0], [200, 10, 0]]


def test_partition_depends_on_the_seed_only():
    y = np.arange(100) % 3
    assert all(np.array_equal(a, b) for a, b in zip(partition(y, 1), partition(y, 1), strict=True))
    assert not np.array_equal(partition(y, 1)[0], partition(y, 2)[0])


def test_ten_wins_out_of_ten_give_the_p_value_of_the_paper():
    ours = tuple(70 + 0.1 * i for i in range(10))
    better = tuple(value + 1 + 0.01 * i for i, value in enumerate(ours))
    accuracy = {"one-vs-rest": ours, "crammer-singer": better, "weston-watkins": ours}
    row = Row("mnist", accuracy, accuracy, dict.fromkeys(accuracy, 0.0))
    assert row.p_value("crammer-singer") == pytest.approx(2.0e-3, abs=1e-4)
    assert row.p_value("weston-watkins") == 1.0
    assert len(Comparison(QUICK, (row,)).to_tables()[0].rows) == 2


@pytest.mark.skipif(
    not all(is_available(name) for name in QUICK.datasets),
    reason=f"needs {', '.join(QUICK.datasets)} in the data directory (LARANK_DATA)",
)
def test_quick_form_of_the_sdm_comparison_beats_chance_with_every_formulation():
    lines: list[str] = []
    comparison = STUDY.run(Scope(quick=True), lines.append)
    assert [row.dataset for row in comparison.rows] == list(QUICK.datasets)
    assert len(lines) == len(QUICK.datasets) * QUICK.partitions * 3
    for row in comparison.rows:
        floor = {"mnist": 75.0, "covtype": 55.0}[row.dataset]
        assert all(row.mean(formulation) > floor for formulation in row.accuracy)


def test_seeds_and_data_sets_of_the_sdm_comparison_can_be_chosen(monkeypatch):
    monkeypatch.setattr(sdm, "_row", lambda dataset, protocol, say: (dataset, protocol.partitions))
    monkeypatch.setattr("studies.papers.experiment.is_available", lambda source: True)
    assert STUDY.run(Scope(quick=True, seeds=2, datasets=("news20",)), print).rows == (("news20", 2),)
