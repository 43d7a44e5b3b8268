"""Training over the partitions of a cluster comes to the optimum of all data, whatever happens to workers."""

import os
import signal
import threading
import warnings
from itertools import count, pairwise

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from joblib import parallel_config
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import larank
import larank.dask
from larank.dask.linear import DistributedRounds
from larank.data import load_letter
from references import gradients, optima

LETTER = load_letter()
LOOPBACK = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
X, Y = LETTER.X_train[:3000] / 15, LETTER.y_train[:3000]


def quick(*arguments, **options):
    return larank.dask.LinearMulticlassSVC(*arguments, **{"tol": 1e-2, "C": 0.1, "random_state": 0, **options})


def parts_of(*arrays, chunks=800):
    return [da.from_array(array, chunks=(chunks, *array.shape[1:])) for array in arrays]


def primal_of(model, C, weights=1.0):
    """From the formula of Crammer and Singer."""
    W, Z = np.column_stack([model.coef_, model.intercept_]), optima.with_constant(X, 1.0)
    return optima.primal("crammer-singer", W, Z, np.searchsorted(model.classes_, Y), C * weights * np.ones(len(Y)))


@pytest.mark.parametrize("formulation", ["crammer-singer", "weston-watkins", "one-vs-rest"])
def test_the_optimum_is_that_of_one_process(client, formulation):
    model = quick(formulation).fit(*parts_of(X, Y), client=client)
    alone = larank.LinearMulticlassSVC(formulation, C=0.1, tol=1e-4, random_state=0).fit(X, Y)
    assert model.result_.status == "converged"
    assert model.result_.exact
    assert model.result_.relative_gap <= 1e-2
    assert model.result_.dual <= alone.result_.primal
    assert alone.result_.dual <= model.result_.primal <= 1.0101 * alone.result_.primal
    assert model.result_.support_patterns > 0
    assert type(model.local()) is larank.LinearMulticlassSVC


@pytest.mark.parametrize("is_balanced", [False, True])
def test_the_certificate_is_that_of_all_data_with_weights(client, is_balanced):
    """Also where each partition holds a few of the classes."""
    order = np.argsort(Y, kind="stable")
    labels, counts = np.unique(Y, return_counts=True)
    weights = np.random.default_rng(0).uniform(0, 2, len(Y))
    if is_balanced:
        weights = len(Y) / (26 * counts[np.searchsorted(labels, Y)])
        model = quick(class_weight="balanced").fit(*parts_of(X[order], Y[order]), client=client)
    else:
        model = quick().fit(*parts_of(X, Y, weights), client=client)
    assert model.result_.primal == pytest.approx(primal_of(model, 0.1, weights), rel=1e-6)


def sorted_parts(X, Y, cuts):
    """Sparse partitions of the examples, sorted by class."""
    order = np.argsort(Y, kind="stable")
    return [[dask.delayed(each[a:b]) for a, b in pairwise(cuts)] for each in (csr_matrix(X)[order], Y[order])]


def test_partitions_that_are_empty_sparse_uneven_or_of_one_class(client):
    model = quick().fit(*sorted_parts(X, Y, [0, 0, 2000, 2003, 3000, 3000]), client=client)
    assert model.result_.primal == pytest.approx(primal_of(model, 0.1), rel=1e-6)
    assert model.result_.relative_gap <= 1e-2


@pytest.mark.parametrize("labels", [np.array([7, -3]), np.array([True, False]), np.array(["no", "yes"], object)])
def test_two_classes_of_any_kind(client, labels):
    y = labels[(Y < "M").astype(int)]
    model = quick(tol=0.05).fit(*parts_of(X.astype(np.float32), y), client=client)
    assert model.coef_.shape == (1, 16)
    assert model.coef_.dtype == np.float32
    assert set(model.predict(parts_of(X.astype(np.float32))[0]).compute()) <= set(labels)
    assert model.score(X.astype(np.float32), y) > 0.6


def in_round(monkeypatch, number, action):
    """Do this at the beginning of a round of training."""
    advance, calls = DistributedRounds.advance, count(1)

    def and_act(rounds):
        if next(calls) == number:
            action()
        return advance(rounds)

    monkeypatch.setattr(DistributedRounds, "advance", and_act)


@pytest.mark.parametrize("status", ["interrupted", "time_limit"])
def test_an_early_end_leaves_a_model_and_its_gap(client, monkeypatch, status):
    if status == "interrupted":
        in_round(monkeypatch, 5, lambda: os.kill(os.getpid(), signal.SIGINT))
    model = quick(tol=1e-9, C=100.0, time_limit=0.5 if status == "time_limit" else None)
    with pytest.warns(larank.TrainingWarning, match="by an interrupt|time_limit=0.5"):
        model.fit(*parts_of(X, Y), client=client)
    assert model.result_.status == status
    assert model.result_.primal >= model.result_.dual
    assert set(model.predict(X)) <= set(Y)  # how good it is depends on how far it came
    point = model.result_.history[-1]
    assert point.rounds > 0
    assert point.bytes_sent > 0


def test_progress_tells_rounds_gap_and_bytes(client, capsys):
    quick(tol=0.1, verbose=2).fit(*parts_of(X, Y), client=client)
    lines = capsys.readouterr().err
    assert all(words in lines for words in ("2 shares", "rounds, ", "MB sent", "relative gap"))


def test_a_grid_search_runs_on_dask_workers(client):
    search = GridSearchCV(larank.LinearMulticlassSVC(tol=0.1, random_state=0), {"C": [0.01, 0.1]}, cv=2)
    alone = clone(search).fit(X[:1000], Y[:1000])
    with parallel_config("dask"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X[:1000], Y[:1000])
    assert search.best_params_ == alone.best_params_


def kill_in_round(monkeypatch, client, number, address):
    """kill -9 of a worker while a round is under way."""
    pid = client.run(os.getpid, workers=[address])[address]
    in_round(monkeypatch, number, lambda: threading.Timer(0.002, os.kill, (pid, signal.SIGKILL)).start())


# A worker takes seconds to start again, so only the nightly run kills one before the first round too.
KILLED_IN_ROUND = [1, 12] if os.environ.get("LARANK_WHOLE_STUDIES") else [12]


@pytest.mark.parametrize("number", KILLED_IN_ROUND)
def test_a_killed_worker_costs_time_and_nothing_else(client, monkeypatch, number):
    kill_in_round(monkeypatch, client, number, sorted(client.scheduler_info()["workers"])[0])
    model = quick(C=10.0, tol=2e-3).fit(*parts_of(X, Y), client=client)
    assert model.result_.operations["shares_lost"] >= 1
    assert model.result_.status == "converged"
    assert model.result_.relative_gap <= 2e-3
    assert model.result_.primal == pytest.approx(primal_of(model, 10.0), rel=1e-6)


def test_data_that_are_lost_for_good_leave_the_last_model_and_its_gap(client, monkeypatch):
    workers = sorted(client.scheduler_info()["workers"])
    cuts = [0, 1000, 2000, 3000]
    parts = [
        [client.scatter(each[a:b], workers=[workers[a // 1000 % 2]]) for a, b in pairwise(cuts)] for each in (X, Y)
    ]
    kill_in_round(monkeypatch, client, 60, workers[0])  # after some full loops, also where rounds are short
    estimator = quick(C=100.0, tol=1e-9)
    with pytest.raises(larank.dask.ClusterError, match="cannot be computed again") as caught:
        estimator.fit(*([dask.delayed(part) for part in some] for some in parts), client=client)
    assert caught.value.model.result_.primal == pytest.approx(primal_of(caught.value.model, 100.0), rel=1e-6)
    np.testing.assert_array_equal(estimator.coef_, caught.value.model.coef_)


def test_a_lost_scheduler_is_said_and_leaves_the_last_model(monkeypatch):
    cluster = LocalCluster(n_workers=1, processes=False, protocol="tcp://", silence_logs=50, **LOOPBACK)
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}), cluster, Client(cluster) as client:
        in_round(monkeypatch, 5, lambda: cluster.sync(cluster.scheduler.close))
        with pytest.raises(larank.dask.ClusterError, match=r"connection to the scheduler at .* is lost") as caught:
            quick(C=100.0, tol=1e-9).fit(*parts_of(X, Y), client=client)
        assert caught.value.model.result_.relative_gap > 0


X4, Y4 = (LETTER.X_train[:4000] / 15).astype(np.float32), LETTER.y_train[:4000]


def descent(**options):
    return larank.dask.LinearSGDClassifier(**{"max_iter": 5, "random_state": 0, **options})


def test_the_model_is_an_ordinary_one_nearly_as_good_as_that_of_one_process(client, tmp_path):
    parts = da.from_array(X4, chunks=(700, -1)), da.from_array(Y4, chunks=500)
    model = descent().fit(*parts, client=client)
    alone = larank.LinearSGDClassifier(max_iter=5, random_state=0).fit(X4, Y4)
    assert model.result_.primal < 1.1 * alone.result_.primal
    assert 0 < model.result_.dual < alone.result_.primal
    assert model.result_.operations["rounds"] == 5
    assert abs(model.score(*parts) - alone.score(X4, Y4)) < 0.1  # which rows a worker gets is not always the same
    ordinary = model.local()
    assert type(ordinary) is larank.LinearSGDClassifier
    larank.save(ordinary, tmp_path / "model.larank")
    np.testing.assert_array_equal(larank.load(tmp_path / "model.larank").predict(X4), model.predict(X4))
    assert ordinary.partial_fit(X4[:100], Y4[:100]).coef_.shape == (26, 16)


def test_the_certificate_of_descent_is_that_of_all_data(client):
    model = descent(class_weight="balanced").fit(*parts_of(X4, Y4, chunks=1500), client=client)
    labels, W = np.searchsorted(model.classes_, Y4), np.vstack([model.coef_.T, model.intercept_]).astype(float)
    costs = (len(Y4) / (26 * np.bincount(labels)))[labels]
    primal, _ = gradients.mean_loss_primal("hinge", True, 1e-4, W, optima.with_constant(X4, 1.0), labels, costs)
    assert model.result_.primal == pytest.approx(primal, rel=1e-4)


def test_a_frame_of_unknown_sizes_trains_too(client):
    frame = pd.DataFrame(X4, columns=[f"c{k}" for k in range(16)]).assign(y=Y4)
    parts = dd.from_pandas(frame, npartitions=3)
    parts = parts[parts.c0 > 0.1]
    model = descent().fit(parts.drop(columns="y"), parts.y, client=client)
    assert list(model.feature_names_in_) == list(frame.columns[:-1])
    likely = descent(loss="log_loss", t0=1e4).fit(parts.drop(columns="y"), parts.y, client=client)
    np.testing.assert_allclose(likely.predict_proba(parts.drop(columns="y")).compute().sum(axis=1), 1, rtol=1e-6)
    assert model.score(parts.drop(columns="y"), parts.y) > 0.6


def test_partitions_that_are_empty_sparse_uneven_or_lack_classes(client):
    model = descent(max_iter=20).fit(*sorted_parts(X4, Y4, [0, 0, 2500, 2510, 4000, 4000]), client=client)
    assert len(model.classes_) == 26
    assert model.score(X4, Y4) > 0.4


@pytest.mark.parametrize(
    ("make", "options", "data", "words"),
    [
        (quick, {"C": np.inf}, {}, "C must be finite"),
        (quick, {"warm_start": True}, {}, "warm_start must be False"),
        (descent, {"warm_start": True}, {}, "warm_start must be False"),
        (descent, {}, {"y": np.full(100, "A")}, "at least two classes, got one class: 'A'"),
        (descent, {}, {"X": np.full((100, 4), np.nan)}, r"partition [01]: X must hold finite numbers"),
        (descent, {}, {"X": np.zeros((0, 4)), "y": np.zeros(0)}, "at least one example"),
        (quick, {"n_jobs": 2}, {}, "n_jobs must be None for Dask collections, because the workers have threads; got 2"),
        (descent, {}, {"sample_weight": np.full(100, -1.0)}, "sample_weight must be finite and not negative"),
        (descent, {}, {"sample_weight": np.zeros(100)}, "at least two classes with a weight above zero"),
    ],
)
def test_bad_input_says_what_is_wrong(client, make, options, data, words):
    random = np.random.default_rng(0)
    given = {"X": random.normal(size=(100, 4)), "y": np.array(["A", "B"])[random.integers(0, 2, 100)], **data}
    with pytest.raises(ValueError, match=words):
        make(**options).fit(**dict(zip(given, parts_of(*given.values(), chunks=50), strict=True)), client=client)


def test_partitions_that_do_not_belong_together_are_named(client):
    X = [dask.delayed(np.zeros((3, 2))), dask.delayed(np.zeros((3, 3)))]
    y = [dask.delayed(np.array([0, 1, 1]))] * 2
    with pytest.raises(ValueError, match="partition 1 must be like partition 0: it has 3 features, not 2"):
        descent().fit(X, y, client=client)
    names = [pd.DataFrame(np.zeros((3, 2)), columns=columns) for columns in (["a", "b"], ["a", "c"])]
    for parts, labels, words in (
        ([np.zeros((3, 2)), csr_matrix((3, 2))], y, "all must be dense, or all sparse"),
        (names, y, r"it has the columns \['a', 'c'\], not \['a', 'b'\]"),
        (names[:1] * 2, [y[0], dask.delayed(np.array(["a", "b", "b"]))], "its labels are of the type"),
    ):
        with pytest.raises(ValueError, match=f"partition 1 must be like partition 0: {words}"):
            descent().fit([dask.delayed(part) for part in parts], labels, client=client)
    with pytest.raises(ValueError, match="as many partitions as X, 2; got 1"):
        descent().fit(X, y[:1], client=client)


def test_without_a_cluster_the_error_says_so():
    with pytest.raises(ValueError, match=r"make a distributed\.Client first"):
        descent().fit(da.zeros((4, 2)), da.zeros(4))
    with pytest.raises(TypeError, match=r"client must be a distributed\.Client or None, got int"):
        descent().fit(da.zeros((4, 2)), da.zeros(4), client=3)
    with pytest.raises(NotImplementedError, match=r"path trains on local data: use larank\.LinearMulticlassSVC"):
        quick().path(X, Y, [1.0])
