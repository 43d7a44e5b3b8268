"""Averaged gradient descent on the partitions of a cluster."""

import itertools

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from test_dask_linear import parts_of

import larank
import larank.dask
from larank.data import load_letter

LETTER = load_letter()
X, Y = (LETTER.X_train[:4000] / 15).astype(np.float32), LETTER.y_train[:4000]


def quick(**options):
    return larank.dask.SGDQNClassifier(**{"epochs": 5, "random_state": 0, **options})


def test_the_model_is_an_ordinary_one_nearly_as_good_as_that_of_one_process(client, tmp_path):
    parts = da.from_array(X, chunks=(700, -1)), da.from_array(Y, chunks=500)
    model = quick().fit(*parts, client=client)
    alone = larank.SGDQNClassifier(epochs=5, random_state=0).fit(X, Y)
    assert model.result_.primal < 1.1 * alone.result_.primal
    assert 0 < model.result_.dual < alone.result_.primal
    assert model.result_.operations["rounds"] == 5
    assert abs(model.score(*parts) - alone.score(X, Y)) < 0.1  # which rows a worker gets is not always the same
    ordinary = model.local()
    assert type(ordinary) is larank.SGDQNClassifier
    larank.save(ordinary, tmp_path / "model.larank")
    np.testing.assert_array_equal(larank.load(tmp_path / "model.larank").predict(X), model.predict(X))
    assert ordinary.partial_fit(X[:100], Y[:100]).coef_.shape == (26, 16)


def test_the_certificate_is_that_of_all_data(client):
    model = quick(class_weight="balanced").fit(*parts_of(X, Y, chunks=1500), client=client)
    scores = model.decision_function(X).astype(float)
    own = np.arange(26) == np.searchsorted(model.classes_, Y)[:, None]
    margins = scores[own] - np.where(own, -np.inf, scores).max(axis=1)
    factors = len(Y) / (26 * np.unique(Y, return_counts=True)[1])
    losses = np.maximum(0, 1 - margins) * factors[np.searchsorted(model.classes_, Y)]
    norm = (model.coef_.astype(float) ** 2).sum() + (model.intercept_.astype(float) ** 2).sum()
    assert model.result_.primal == pytest.approx(1e-4 / 2 * norm + losses.mean(), rel=1e-4)


def test_a_frame_of_unknown_sizes_trains_too(client):
    frame = pd.DataFrame(X, columns=[f"c{k}" for k in range(16)]).assign(y=Y)
    parts = dd.from_pandas(frame, npartitions=3)
    parts = parts[parts.c0 > 0.1]
    model = quick().fit(parts.drop(columns="y"), parts.y, client=client)
    assert list(model.feature_names_in_) == list(frame.columns[:-1])
    likely = model.set_params(loss="log_loss", t0=1e4).fit(parts.drop(columns="y"), parts.y, client=client)
    np.testing.assert_allclose(likely.predict_proba(parts.drop(columns="y")).compute().sum(axis=1), 1, rtol=1e-6)
    assert model.score(parts.drop(columns="y"), parts.y) > 0.6


def test_partitions_that_are_empty_sparse_uneven_or_lack_classes(client):
    cuts = [0, 0, 2500, 2510, 4000, 4000]
    order = np.argsort(Y, kind="stable")
    rows, labels = csr_matrix(X)[order], Y[order]
    parts = [[dask.delayed(each[a:b]) for a, b in itertools.pairwise(cuts)] for each in (rows, labels)]
    model = quick(epochs=20).fit(*parts, client=client)
    assert len(model.classes_) == 26
    assert model.score(X, Y) > 0.4


@pytest.mark.parametrize(
    ("options", "data", "words"),
    [
        ({"warm_start": True}, {}, "warm_start must be False"),
        ({}, {"y": np.full(100, "A")}, "at least two classes, got one class: 'A'"),
        ({}, {"X": np.full((100, 4), np.nan)}, r"partition [01]: X must hold finite numbers"),
        ({}, {"X": np.zeros((0, 4)), "y": np.zeros(0)}, "at least one example"),
        ({}, {"sample_weight": np.full(100, -1.0)}, "sample_weight must be finite and not negative"),
        ({}, {"sample_weight": np.zeros(100)}, "at least two classes with a weight above zero"),
    ],
)
def test_bad_input_says_what_is_wrong(client, options, data, words):
    random = np.random.default_rng(0)
    given = {"X": random.normal(size=(100, 4)), "y": np.array(["A", "B"])[random.integers(0, 2, 100)], **data}
    with pytest.raises(ValueError, match=words):
        quick(**options).fit(**dict(zip(given, parts_of(*given.values(), chunks=50), strict=True)), client=client)


def test_partitions_that_do_not_belong_together_are_named(client):
    X = [dask.delayed(np.zeros((3, 2))), dask.delayed(np.zeros((3, 3)))]
    y = [dask.delayed(np.array([0, 1, 1]))] * 2
    with pytest.raises(ValueError, match="partition 1 must be like partition 0: it has 3 features, not 2"):
        quick().fit(X, y, client=client)
    names = [pd.DataFrame(np.zeros((3, 2)), columns=columns) for columns in (["a", "b"], ["a", "c"])]
    for parts, labels, words in (
        ([np.zeros((3, 2)), csr_matrix((3, 2))], y, "all must be dense, or all sparse"),
        (names, y, r"it has the columns \['a', 'c'\], not \['a', 'b'\]"),
        (names[:1] * 2, [y[0], dask.delayed(np.array(["a", "b", "b"]))], "its labels are of the type"),
    ):
        with pytest.raises(ValueError, match=f"partition 1 must be like partition 0: {words}"):
            quick().fit([dask.delayed(part) for part in parts], labels, client=client)
    with pytest.raises(ValueError, match="as many partitions as X, 2; got 1"):
        quick().fit(X, y[:1], client=client)


def test_without_a_cluster_the_error_says_so():
    with pytest.raises(ValueError, match=r"make a distributed\.Client first"):
        quick().fit(da.zeros((4, 2)), da.zeros(4))
    with pytest.raises(TypeError, match=r"client must be a distributed\.Client or None, got int"):
        quick().fit(da.zeros((4, 2)), da.zeros(4), client=3)
