"""The data sets of the papers are read in the representation their experiments use."""

import numpy as np
import pytest
from scipy import sparse

from larank.reproduce.datasets import (
    BINARY,
    DENSE_DATASETS,
    BinaryDataset,
    available,
    load_binary,
    load_dense,
    with_flipped_labels,
)


def test_a_set_without_a_dense_form_is_refused_by_name():
    with pytest.raises(ValueError, match=r"'news20' is not a data set; accepted are letter, usps, mnist"):
        load_dense("news20")


@pytest.mark.parametrize(
    ("name", "stored", "expected"),
    [("letter", [0, 15], [0.0, 15.0]), ("usps", [-1.0, 1.0], [0.0, 1.0]), ("mnist", [0, 255], [-1.0, 1.0])],
)
def test_dense_data_sets_have_the_scaling_of_the_larank_experiments(name, stored, expected, tmp_path, monkeypatch):
    monkeypatch.setenv("LARANK_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=f"{name}.npz does not exist"):
        load_dense(name)
    X = np.array([stored], dtype=np.float32 if name == "usps" else np.uint8)
    y = np.array([1], dtype=np.uint8)
    (tmp_path / name).mkdir()
    np.savez(tmp_path / name / f"{name}.npz", X_train=X, y_train=y, X_test=X, y_test=y)
    data = load_dense(name)
    for part in (data.X_train, data.X_test):
        assert part.dtype == np.float32
        assert part.flags.c_contiguous
        assert part.tolist() == [expected]
    assert data.y_train.dtype == data.y_test.dtype == np.int64


@pytest.mark.skipif(not all(map(available, DENSE_DATASETS)), reason="needs letter, usps and mnist (LARANK_DATA)")
def test_dense_data_sets_have_the_shapes_of_the_paper():
    shapes = {name: (data.X_train.shape, data.X_test.shape) for name in DENSE_DATASETS if (data := load_dense(name))}
    assert shapes == {
        "letter": ((16000, 16), (4000, 16)),
        "usps": ((7291, 256), (2007, 256)),
        "mnist": ((60000, 784), (10000, 784)),
    }


# ---- Binary problems ----

SHAPES = {
    "waveform": ((4000, 21), (1000, 21)),
    "banana": ((4000, 2), (1300, 2)),
    "reuters": ((7770, 8315), (3299, 8315)),
    "usps": ((7291, 256), (2007, 256)),
    "usps-noise": ((7291, 256), (2007, 256)),
    "adult": ((32561, 123), (16281, 123)),
    "covtype100k": ((100_000, 54), (50_000, 54)),
    "mnist8": ((60_000, 784), (10_000, 784)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_binary_problems_have_the_sizes_of_the_thesis_and_labels_of_two_signs(name):
    if not available(BINARY[name].source):
        pytest.skip(f"needs {BINARY[name].source} in the data directory (LARANK_DATA)")
    data = load_binary(name)
    assert (data.X_train.shape, data.X_test.shape) == SHAPES[name]
    assert data.X_train.dtype == data.X_test.dtype == np.float32
    assert sparse.issparse(data.X_train) == (name in ("reuters", "adult"))
    assert set(data.y_train) == set(data.y_test) == {-1, 1}
    lowest, highest = data.X_train.min(), data.X_train.max()
    expected = {"usps": (0, 1), "usps-noise": (0, 1), "adult": (0, 1), "covtype100k": (0, 1), "mnist8": (-1, 1)}
    assert (lowest, highest) == expected.get(name, (lowest, highest))


def test_a_binary_problem_is_refused_by_name_and_missed_by_its_source(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="'mnist' is not a data set; accepted are waveform, banana, reuters"):
        load_binary("mnist")
    monkeypatch.setenv("LARANK_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"adult_a9a\.npz does not exist"):
        load_binary("adult")


def test_noise_flips_a_tenth_of_the_training_labels_and_no_others():
    clean = BinaryDataset(np.zeros((200, 1)), np.repeat([-1, 1], 100), np.zeros((20, 1)), np.repeat([-1, 1], 10))
    noisy = with_flipped_labels(clean)
    assert np.count_nonzero(noisy.y_train != clean.y_train) == 20
    assert np.array_equal(noisy.y_test, clean.y_test)
    assert np.array_equal(clean.y_train, np.repeat([-1, 1], 100))
    assert np.array_equal(noisy.y_train, with_flipped_labels(clean).y_train)
    assert not np.array_equal(noisy.y_train, with_flipped_labels(clean, seed=1).y_train)
