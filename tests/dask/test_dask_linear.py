"""Rounds over the partitions of a cluster come to the optimum of all data, whatever happens to workers."""

import os
import signal
import threading
import warnings
from itertools import count, pairwise

import dask
import dask.array as da
import numpy as np
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

LETTER = load_letter()
LOOPBACK = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
X, Y = LETTER.X_train[:3000] / 15, LETTER.y_train[:3000]


def quick(*arguments, **options):
    return larank.dask.LinearMulticlassSVC(*arguments, **{"tol": 1e-2, "C": 0.1, "random_state": 0, **options})


def parts_of(*arrays, chunks=800):
    return [da.from_array(array, chunks=(chunks, *array.shape[1:])) for array in arrays]


def primal_of(model, C, weights=1.0):
    """From the formula of Crammer and Singer."""
    own = model.classes_ == Y[:, None]
    scores = model.decision_function(X)
    losses = np.maximum(0, 1 + np.where(own, -np.inf, scores).max(axis=1) - scores[own])
    return (model.coef_**2).sum() / 2 + (model.intercept_**2).sum() / 2 + C * (weights * losses).sum()


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


def test_partitions_that_are_empty_sparse_uneven_or_of_one_class(client):
    order = np.argsort(Y, kind="stable")
    cuts = [0, 0, 2000, 2003, 3000, 3000]
    rows, labels = csr_matrix(X)[order], Y[order]
    parts = [[dask.delayed(each[a:b]) for a, b in pairwise(cuts)] for each in (rows, labels)]
    model = quick().fit(*parts, client=client)
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
    with pytest.warns(larank.TrainingWarning, match="by an interrupt|time_limit=0.5"):
        model = quick(tol=1e-9, C=100.0, time_limit=0.5 if status == "time_limit" else None).fit(
            *parts_of(X, Y), client=client
        )
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


@pytest.mark.parametrize("in_round", [1, 12])
def test_a_killed_worker_costs_time_and_nothing_else(client, monkeypatch, in_round):
    kill_in_round(monkeypatch, client, in_round, sorted(client.scheduler_info()["workers"])[0])
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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"C": np.inf}, "C must be finite"),
        ({"warm_start": True}, "warm_start must be False"),
        ({"n_jobs": 2}, "n_jobs must be None for Dask collections, whose workers have threads; got 2"),
    ],
)
def test_what_does_not_act_on_collections_is_refused(client, options, words):
    with pytest.raises(ValueError, match=words):
        quick(**options).fit(*parts_of(X, Y), client=client)
    with pytest.raises(NotImplementedError, match=r"path trains on local data: use larank\.LinearMulticlassSVC"):
        quick().path(X, Y, [1.0])
