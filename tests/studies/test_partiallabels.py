"""Candidate labels: how false ones are made, how examples are split, and what selection sees."""

from __future__ import annotations

import numpy as np
import pytest

from studies.datasets import AmbiguousSet, is_available, load_ambiguous
from studies.partiallabels import (
    DISTRACTED,
    Split,
    folds,
    select,
    share_among_candidates,
    with_distractors,
    with_random_candidates,
)

LABELS = np.arange(2000) % 5
ROWS = np.zeros((2000, 1))


@pytest.mark.parametrize("false", [0, 1, 3])
def test_random_candidates_are_the_true_label_and_so_many_others_evenly_drawn(false):
    made = with_random_candidates(ROWS, LABELS, 5, false)
    assert made.candidates[np.arange(2000), LABELS].all()
    assert np.array_equal(made.candidates.sum(axis=1), np.full(2000, 1 + false))
    others = made.candidates.sum(axis=0) - 400
    assert np.allclose(others, 400 * false, atol=120)


def test_a_distractor_is_the_same_for_all_examples_of_a_class_and_nearly_always_there():
    made = with_distractors(ROWS, LABELS, 5)
    assert made.candidates[np.arange(2000), LABELS].all()
    for label in range(5):
        others = made.candidates[label == LABELS].mean(axis=0)
        others[label] = 0
        assert np.count_nonzero(others) == 1
        assert others.max() == pytest.approx(DISTRACTED, abs=0.05)


def test_a_split_is_standardised_by_its_training_part_and_keeps_rows_together():
    X = np.column_stack([np.arange(100.0), np.ones(100)])
    data = AmbiguousSet(X, np.arange(100), np.eye(100, dtype=bool))
    split = Split.of(data, 0)
    assert (len(split.X), len(split.y_test)) == (80, 20)
    assert np.allclose(split.X.mean(axis=0), 0)
    assert np.allclose(split.X.std(axis=0), [1, 0])
    trained = split.candidates.argmax(axis=1)
    assert set(trained) | set(split.y_test) == set(range(100))
    slope = np.ptp(split.X[:, 0]) / np.ptp(trained)
    assert np.allclose(np.diff(split.X[:, 0]), slope * np.diff(trained))
    assert np.allclose(np.diff(split.X_test[:, 0]), slope * np.diff(split.y_test))
    small = Split.of(data, 0, most=10)
    assert (len(small.X), len(small.y_test)) == (10, 10)
    assert np.array_equal(small.candidates, split.candidates[:10])
    assert not np.array_equal(Split.of(data, 1).y_test, split.y_test)


def test_every_example_is_held_out_once():
    parts = list(folds(10, 3, seed=0))
    assert sorted(np.concatenate([valid for _, valid in parts])) == list(range(10))
    assert all(set(train) | set(valid) == set(range(10)) and not set(train) & set(valid) for train, valid in parts)


def test_selection_counts_predictions_that_are_candidates():
    candidates = np.zeros((9, 3), bool)
    candidates[:, 0] = True
    candidates[:6, 1] = True
    assert share_among_candidates(np.full(9, 1), candidates) == pytest.approx(2 / 3)

    def fit(X, among, label):
        return lambda queries: np.full(len(queries), label)

    chosen, share = select(fit, [2, 1, 0], np.zeros((9, 1)), candidates, seed=0)
    assert (chosen, share) == (0, 1.0)
    candidates[:, 1] = True
    assert select(fit, [2, 1, 0], np.zeros((9, 1)), candidates, seed=0)[0] == 1  # the first of equals
    with pytest.raises(ValueError, match="settings is empty"):
        select(fit, [], np.zeros((9, 1)), candidates, seed=0)


@pytest.mark.parametrize(
    ("name", "shape", "mean", "most"),
    [
        ("pl_lost", (1122, 108, 16), 2.232, 3),
        ("pl_msrcv2", (1758, 48, 23), 3.156, 7),
        ("pl_birdsong", (4998, 38, 13), 2.175, 4),
        ("pl_fgnet", (1002, 262, 78), 7.477, 11),
    ],
)
def test_real_candidates_have_their_published_sizes_and_the_true_label_is_one(name, shape, mean, most):
    if not is_available(name):
        pytest.skip(f"needs {name} in the data directory (LARANK_DATA)")
    data = load_ambiguous(name)
    assert (*data.X.shape, data.candidates.shape[1]) == shape
    assert (data.X.dtype, data.y.dtype, data.candidates.dtype) == (np.float64, np.int64, np.bool_)
    sizes = data.candidates.sum(axis=1)
    assert (sizes.mean(), sizes.max()) == (pytest.approx(mean, abs=1e-3), most)
    assert data.candidates[np.arange(len(data.y)), data.y].all()
