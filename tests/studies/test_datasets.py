"""The data sets of the papers are read in the representation their experiments use."""

import numpy as np
import pytest
from scipy import sparse

from studies.datasets import (
    AMBIGUOUS,
    BINARY,
    KERNEL,
    LINEAR,
    SEQUENCES,
    Dataset,
    is_available,
    load,
    load_ambiguous,
    load_sequences,
)


@pytest.mark.parametrize(
    ("read", "accepted"),
    [
        (lambda name: load(name, LINEAR), "news20, reuters_r52"),
        (lambda name: load(name, KERNEL), "mnist, usps, letter"),
        (lambda name: load(name, BINARY), "waveform, banana, reuters"),
        (load_sequences, "ocr_words"),
        (load_ambiguous, "pl_lost"),
    ],
)
def test_an_unknown_data_set_is_refused_by_name(read, accepted):
    with pytest.raises(ValueError, match=f"'mnits' is not a data set; accepted are {accepted}"):
        read("mnits")


def test_data_that_are_not_there_are_named_by_their_source(tmp_path, monkeypatch):
    monkeypatch.setenv("LARANK_DATA", str(tmp_path))
    reads = [("adult_a9a", lambda: load("adult", BINARY)), ("usps", lambda: load("usps", KERNEL))]
    reads += [(name, lambda name=name: load_sequences(name)) for name in SEQUENCES]
    reads += [(name, lambda name=name: load_ambiguous(name)) for name in AMBIGUOUS]
    for name, read in reads:
        with pytest.raises(FileNotFoundError, match=f"'{name}' is not in .*; LARANK_DATA names the data folder"):
            read()


def test_letter_comes_with_the_library_raw_for_kernels_and_scaled_for_linear_models(tmp_path, monkeypatch):
    monkeypatch.setenv("LARANK_DATA", str(tmp_path))
    raw, scaled = load("letter", KERNEL), load("letter", LINEAR)
    assert (raw.X_train.dtype, raw.X_train.min(), raw.X_train.max()) == (np.float32, 0, 15)
    assert (scaled.X_train.dtype, scaled.X_train.min(), scaled.X_train.max()) == (np.float64, 0, 1)
    assert np.array_equal(np.unique(raw.y_train), np.arange(26))


@pytest.mark.parametrize(
    ("name", "stored", "expected"),
    [("usps", [-1.0, 1.0], [0.0, 1.0]), ("mnist", [0, 255], [-1.0, 1.0])],
)
def test_dense_data_sets_have_the_scaling_of_the_larank_experiments(name, stored, expected, tmp_path, monkeypatch):
    monkeypatch.setenv("LARANK_DATA", str(tmp_path))
    X = np.array([stored], dtype=np.float32 if name == "usps" else np.uint8)
    y = np.array([1], dtype=np.uint8)
    (tmp_path / name).mkdir()
    np.savez(tmp_path / name / f"{name}.npz", X_train=X, y_train=y, X_test=X, y_test=y)
    data = load(name, KERNEL)
    for part in (data.X_train, data.X_test):
        assert part.dtype == np.float32
        assert part.flags.c_contiguous
        assert part.tolist() == [expected]
    assert data.y_train.dtype == data.y_test.dtype == np.int64


# ---- What the papers say of them ----

SHAPES = {
    ("letter", "kernel"): ((16000, 16), (4000, 16)),
    ("usps", "kernel"): ((7291, 256), (2007, 256)),
    ("mnist", "kernel"): ((60000, 784), (10000, 784)),
    ("mnist-noise", "kernel"): ((60000, 784), (10000, 784)),
    ("waveform", "binary"): ((4000, 21), (1000, 21)),
    ("banana", "binary"): ((4000, 2), (1300, 2)),
    ("reuters", "binary"): ((7770, 8315), (3299, 8315)),
    ("usps", "binary"): ((7291, 256), (2007, 256)),
    ("usps-noise", "binary"): ((7291, 256), (2007, 256)),
    ("adult", "binary"): ((32561, 123), (16281, 123)),
    ("covtype100k", "binary"): ((100_000, 54), (50_000, 54)),
    ("mnist8", "binary"): ((60_000, 784), (10_000, 784)),
}
RANGES = {"usps": (0, 1), "usps-noise": (0, 1), "adult": (0, 1), "covtype100k": (0, 1), "mnist8": (-1, 1)}


@pytest.mark.parametrize(("name", "kind"), SHAPES)
def test_data_have_the_sizes_of_the_papers_and_binary_labels_two_signs(name, kind):
    problems = {"kernel": KERNEL, "binary": BINARY}[kind]
    if not is_available(problems[name].source):
        pytest.skip(f"needs {problems[name].source} in the data directory (LARANK_DATA)")
    data = load(name, problems)
    assert (data.X_train.shape, data.X_test.shape) == SHAPES[name, kind]
    assert data.X_train.dtype == data.X_test.dtype == np.float32
    assert sparse.issparse(data.X_train) == (name in ("reuters", "adult"))
    if kind == "binary":
        assert set(data.y_train) == set(data.y_test) == {-1, 1}
        lowest, highest = data.X_train.min(), data.X_train.max()
        assert (lowest, highest) == RANGES.get(name, (lowest, highest))


def test_the_problems_with_a_size_are_all_there_are():
    assert {name for name, kind in SHAPES if kind == "kernel"} == set(KERNEL)


def test_noise_flips_a_tenth_of_the_training_labels_and_no_others():
    clean = Dataset(np.zeros((200, 1)), np.repeat([-1, 1], 100), np.zeros((20, 1)), np.repeat([-1, 1], 10))
    noisy = clean.with_flipped_labels()
    assert np.count_nonzero(noisy.y_train != clean.y_train) == 20
    assert np.array_equal(noisy.y_test, clean.y_test)
    assert np.array_equal(clean.y_train, np.repeat([-1, 1], 100))
    assert np.array_equal(noisy.y_train, clean.with_flipped_labels().y_train)
    assert not np.array_equal(noisy.y_train, clean.with_flipped_labels(seed=1).y_train)


def test_a_drawn_part_keeps_examples_and_labels_together():
    X, y = np.arange(50.0)[:, None], np.arange(50)
    part = Dataset(X, y, X + 100, y).drawn(20, 10)
    assert (len(part.y_train), len(part.y_test)) == (20, 10)
    assert len(set(part.y_train)) == 20
    assert np.array_equal(part.X_train[:, 0], part.y_train)
    assert np.array_equal(part.X_test[:, 0], part.y_test + 100)
