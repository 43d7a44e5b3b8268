"""The comparison of formulations in the SDM paper: its partitions, its test, and its quick form."""

import numpy as np
import pytest

from studies.papers.sdm import Row, partition, table_of


def test_partition_is_a_stratified_60_20_20_split():
    y = np.repeat([0, 1, 2], [1000, 50, 1])
    parts = partition(y, seed=3)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(y)))
    counts = [np.bincount(y[part], minlength=3).tolist() for part in parts]
    assert counts == [[600, 30, 1], [200, 10, 0], [200, 10, 0]]


def test_ten_wins_out_of_ten_give_the_p_value_of_the_paper():
    ours = tuple(70 + 0.1 * i for i in range(10))
    better = tuple(value + 1 + 0.01 * i for i, value in enumerate(ours))
    accuracy = {"one-vs-rest": ours, "crammer-singer": better, "weston-watkins": ours}
    row = Row("mnist", accuracy, accuracy, dict.fromkeys(accuracy, 0.0))
    assert row.p_value("crammer-singer") == pytest.approx(2.0e-3, abs=1e-4)
    assert row.p_value("weston-watkins") == 1.0
    shown, paper = (" ".join(cells) for cells, _ in table_of([row], 10).rows)
    assert shown.startswith("mnist 70.45 ± 0.30 71.5")
    assert "0.002" in paper
