"""Data sets are read as the experiments use them; generated ones and candidate labels have what they promise."""

import numpy as np
import pytest
from scipy import sparse

from studies import datasets, partiallabels
from studies.datasets import AMBIGUOUS, BINARY, GRADIENT, KERNEL, LINEAR, SEQUENCES, Dataset, is_available, load
from studies.generated import ill_conditioned, text_like
from studies.partiallabels import select, with_distractors, with_random_candidates


@pytest.mark.parametrize(
    ("read", "accepted"),
    [
        (lambda name: load(name, LINEAR), "news20, reuters_r52"),
        (lambda name: load(name, KERNEL), "mnist, usps, letter"),
        (lambda name: load(name, BINARY), "waveform, banana, reuters"),
        (datasets.load_sequences, "ocr_words"),
        (datasets.load_ambiguous, "pl_lost"),
    ],
)
def test_an_unknown_data_set_is_refused_by_name(read, accepted):
    with pytest.raises(ValueError, match=f"'mnits' is not a data set; accepted are {accepted}"):
        read("mnits")


def test_data_that_are_not_there_are_named_by_their_source(tmp_path, monkeypatch):
    monkeypatch.setenv("LARANK_DATA", str(tmp_path))
    reads = [("adult_a9a", lambda: load("adult", BINARY)), ("usps", lambda: load("usps", KERNEL))]
    reads += [(name, lambda name=name: datasets.load_sequences(name)) for name in SEQUENCES]
    reads += [(name, lambda name=name: datasets.load_ambiguous(name)) for name in AMBIGUOUS]
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
    **dict.fromkeys(
        [("mnist", "kernel"), ("mnist-noise", "kernel"), ("mnist8", "binary")], ((60000, 784), (10000, 784))
    ),
    **dict.fromkeys([("usps", "kernel"), ("usps", "binary"), ("usps-noise", "binary")], ((7291, 256), (2007, 256))),
    ("waveform", "binary"): ((4000, 21), (1000, 21)),
    ("banana", "binary"): ((4000, 2), (1300, 2)),
    ("reuters", "binary"): ((7770, 8315), (3299, 8315)),
    ("adult", "binary"): ((32561, 123), (16281, 123)),
    ("covtype100k", "binary"): ((100_000, 54), (50_000, 54)),
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


# ---- Generated examples ----


def test_dense_examples_have_no_zeros_uneven_scales_and_rows_of_unit_length():
    X, y, X_test, y_test = ill_conditioned(3000, 1000, 60)
    assert (X.shape, X_test.shape) == ((3000, 60), (1000, 60))
    assert X.dtype == X_test.dtype == np.float32
    assert np.count_nonzero(X) == X.size
    scales = X.std(axis=0)
    assert scales.max() > 10 * scales.min()
    both = np.vstack([X, X_test])
    assert np.sqrt(np.mean(np.sum(both * both, axis=1))) == pytest.approx(1, rel=1e-3)
    assert set(y) == set(y_test) == {-1, 1}
    assert abs(y.mean()) < 0.1


def test_text_has_the_density_of_rcv1_common_words_and_rows_of_unit_length():
    X, y, X_test, _ = text_like(4000, 100)
    assert X.shape == (4000, 47_152)
    assert X_test.shape == (100, 47_152)
    assert X.dtype == np.float32
    assert X.nnz / np.prod(X.shape) == pytest.approx(0.0016, rel=0.03)
    assert X.has_canonical_format
    assert np.allclose(sparse.linalg.norm(X, axis=1), 1, atol=1e-5)
    seen = np.sort(np.bincount(X.indices))[::-1]
    assert 0.2 < seen[0] / 4000 < 0.6
    assert seen[100] > 10 * seen[5000]
    assert abs(y.mean()) < 0.05


@pytest.mark.parametrize("drawn", [ill_conditioned, text_like])
def test_the_same_seed_draws_the_same(drawn):
    first, again, other = (drawn(200, 50, 40, seed=seed) for seed in (1, 1, 2))
    assert abs(first[0] - again[0]).max() == 0
    assert np.array_equal(first[1], again[1])
    assert abs(first[0] - other[0]).max() > 0


@pytest.mark.parametrize("name", GRADIENT)
def test_small_forms_have_labels_of_two_signs_and_rows_in_single_precision(name):
    if not is_available(GRADIENT[name].source):
        pytest.skip(f"needs {GRADIENT[name].source} in the data directory (LARANK_DATA)")
    data = datasets.load_small(name, GRADIENT, 1000, 500)
    assert data.X_train.dtype == data.X_test.dtype == np.float32
    assert set(data.y_train) == {-1, 1}
    assert sparse.issparse(data.X_train) == (name in ("news20-0", "rcv1"))


@pytest.mark.skipif(not is_available("news20"), reason="needs news20 in the data directory (LARANK_DATA)")
def test_the_first_group_is_one_of_twenty():
    data = load("news20-0", GRADIENT)
    assert np.mean(data.y_train == 1) == pytest.approx(0.05, abs=0.02)


# ---- Candidate labels ----

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
        assert others.max() == pytest.approx(partiallabels.DISTRACTED, abs=0.05)


def test_a_split_is_standardised_by_its_training_part_and_keeps_rows_together():
    X = np.column_stack([np.arange(100.0), np.ones(100)])
    data = datasets.AmbiguousSet(X, np.arange(100), np.eye(100, dtype=bool))
    split = partiallabels.Split.of(data, 0)
    assert (len(split.X), len(split.y_test)) == (80, 20)
    assert np.allclose(split.X.mean(axis=0), 0)
    assert np.allclose(split.X.std(axis=0), [1, 0])
    trained = split.candidates.argmax(axis=1)
    assert set(trained) | set(split.y_test) == set(range(100))
    slope = np.ptp(split.X[:, 0]) / np.ptp(trained)
    assert np.allclose(np.diff(split.X[:, 0]), slope * np.diff(trained))
    assert np.allclose(np.diff(split.X_test[:, 0]), slope * np.diff(split.y_test))
    small = partiallabels.Split.of(data, 0, most=10)
    assert (len(small.X), len(small.y_test)) == (10, 10)
    assert np.array_equal(small.candidates, split.candidates[:10])
    assert not np.array_equal(partiallabels.Split.of(data, 1).y_test, split.y_test)


def test_every_example_is_held_out_once():
    parts = list(partiallabels.folds(10, 3, seed=0))
    assert sorted(np.concatenate([valid for _, valid in parts])) == list(range(10))
    assert all(set(train) | set(valid) == set(range(10)) and not set(train) & set(valid) for train, valid in parts)


def test_selection_counts_predictions_that_are_candidates():
    candidates = np.zeros((9, 3), bool)
    candidates[:, 0] = True
    candidates[:6, 1] = True
    assert partiallabels.share_among_candidates(np.full(9, 1), candidates) == pytest.approx(2 / 3)

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
    data = datasets.load_ambiguous(name)
    assert (*data.X.shape, data.candidates.shape[1]) == shape
    assert (data.X.dtype, data.y.dtype, data.candidates.dtype) == (np.float64, np.int64, np.bool_)
    sizes = data.candidates.sum(axis=1)
    assert (sizes.mean(), sizes.max()) == (pytest.approx(mean, abs=1e-3), most)
    assert data.candidates[np.arange(len(data.y)), data.y].all()
