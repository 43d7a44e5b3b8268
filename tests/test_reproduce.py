"""The reproduced experiments run, and their parts do what they claim."""

import numpy as np
import pytest

from larank.reproduce import experiments
from larank.reproduce.datasets import available, load
from larank.reproduce.sdm import QUICK, Comparison, Row, partition


def test_every_experiment_is_registered_under_its_own_name():
    assert all(name == experiment.name for name, experiment in experiments().items())


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
    assert Comparison(QUICK, (row,)).to_table().row_count == 2


def test_an_unknown_data_set_is_refused_by_name():
    with pytest.raises(ValueError, match="'mnits' is not a data set"):
        load("mnits")


@pytest.mark.skipif(
    not all(available(name) for name in QUICK.datasets),
    reason=f"needs {', '.join(QUICK.datasets)} in the data directory (LARANK_DATA)",
)
def test_quick_form_of_the_sdm_comparison_beats_chance_with_every_formulation():
    lines: list[str] = []
    comparison = experiments()["sdm"].run(True, lines.append)
    assert [row.dataset for row in comparison.rows] == list(QUICK.datasets)
    assert len(lines) == len(QUICK.datasets) * QUICK.partitions * 3
    for row in comparison.rows:
        floor = {"mnist": 75.0, "covtype": 55.0}[row.dataset]
        assert all(row.mean(formulation) > floor for formulation in row.accuracy)
