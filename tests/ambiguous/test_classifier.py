"""AmbiguousClassifier: labels that are sets of candidates."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold

from larank import AmbiguousClassifier, LinearMulticlassSVC, TrainingWarning
from larank.data import load_letter
from references import pairwise

NAMES = np.array(["ash", "birch", "elm", "oak"])


def problem(n=40, k=4, d=4, seed=0, extra=1.0):
    """Examples, their labels, and a 0/1 matrix of candidates with `extra` wrong ones on average."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % k
    X = 2.5 * np.eye(k, d)[y] + random.normal(size=(n, d))
    sets = (random.random((n, k)) < extra / k).astype(float)
    sets[np.arange(n), y] = 1
    full = sets.all(axis=1)
    sets[full, (y[full] + 1) % k] = 0
    return X, y, sets


def ambiguous(kernel="rbf", **parameters):
    return AmbiguousClassifier(kernel, **{"gamma": 0.4, "random_state": 0, "n_jobs": 1, **parameters})


def coefficients(model, n):
    beta = np.zeros((n, len(model.classes_)))
    beta[model.support_] = model.dual_coef_.toarray()
    return beta


# The algorithm


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_one_pass_without_reprocessing_is_algorithm_23_line_by_line(kernel):
    X, _, sets = problem(60, 5, extra=1.5)
    K = X @ X.T if kernel == "linear" else rbf_kernel(X, gamma=0.4)
    beta = np.zeros_like(sets)
    losses = []
    for t in range(len(X)):
        scores = K[t] @ beta
        losses.append(pairwise.loss(scores, sets[t]))
        beta[t] = pairwise.step(scores, sets[t], K[t, t], 0.7)
    model = ambiguous(kernel, C=0.7, n_reprocess=0, shuffle=False).fit(X, sets)
    np.testing.assert_allclose(coefficients(model, len(X)), beta, atol=1e-12)
    np.testing.assert_allclose(model.decision_function(X), K @ beta, atol=1e-10)
    assert model.regret_.online_loss == pytest.approx(np.mean(losses))
    assert model.regret_.final_loss == pytest.approx(
        np.mean([pairwise.loss(s, w) for s, w in zip(K @ beta, sets, strict=True)])
    )


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 30.0]), st.sampled_from([0, 2]), st.booleans())
def test_the_optimum_is_that_of_a_general_solver(seed, C, n_reprocess, weighted):
    X, _, sets = problem(12, 4, seed=seed, extra=1.5)
    random = np.random.default_rng(seed)
    costs = C * np.ones(len(X))
    if weighted:
        sets = sets * random.integers(1, 4, sets.shape)
        weights = random.random(len(X)) + 0.1
        costs = C * weights
    K = rbf_kernel(X, gamma=0.4)
    model = ambiguous(C=C, n_reprocess=n_reprocess, stop="gap", tol=1e-8, max_iter=100_000)
    model.fit(X, sets, sample_weight=weights if weighted else None)
    optimum = pairwise.optimum(K, sets, costs)
    assert model.result_.status == "converged"
    assert model.result_.dual <= optimum * (1 + 1e-6)
    assert model.result_.primal >= optimum * (1 - 1e-6)
    assert model.result_.primal == pytest.approx(optimum, rel=1e-6)
    primal, dual = pairwise.certificate(coefficients(model, len(X)), K, sets, costs)
    assert (model.result_.primal, model.result_.dual) == pytest.approx((primal, dual), rel=1e-9)


def test_single_candidates_make_the_svm_of_weston_and_watkins():
    X, y, _ = problem(60)
    model = ambiguous("linear", C=3.0, stop="gap", tol=1e-9, max_iter=10**5).fit(X, y)
    other = LinearMulticlassSVC(
        C=1.0, formulation="weston-watkins", fit_intercept=False, tol=1e-9, max_iter=10**5, random_state=0
    ).fit(X, y)
    assert model.result_.primal == pytest.approx(other.result_.primal, rel=1e-7)
    # Its weights may have a common part that cancels in all pairs; ours have none.
    centred = other.coef_ - other.coef_.mean(axis=0)
    np.testing.assert_allclose(model.coef_, centred, atol=1e-4)


# Regret


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from([0.001, 0.1, 3.0]), st.sampled_from(["linear", "rbf"]), st.integers(0, 2))
def test_the_regret_is_below_the_bound_of_proposition_13(seed, C, kernel, n_reprocess):
    X, _, sets = problem(60, 4, seed=seed, extra=1.5)
    model = ambiguous(kernel, C=C, n_reprocess=n_reprocess, shuffle=False).fit(X, sets)
    regret, beta = model.regret_, coefficients(model, 60)
    assert model.result_.gap >= -1e-15 * max(1, model.result_.primal)  # but for rounding
    np.testing.assert_allclose(beta.sum(axis=1), 0, atol=1e-9)
    assert (beta[sets > 0] >= 0).all()
    assert (beta[sets == 0] <= 0).all()
    assert regret.examples == 60
    assert regret.value <= regret.bound + 1e-12
    # The bound holds for every w, and for the best w too.
    K = X @ X.T if kernel == "linear" else rbf_kernel(X, gamma=0.4)
    best = coefficients(ambiguous(kernel, C=C, stop="gap", tol=1e-6, max_iter=10**5).fit(X, sets), 60)
    own, bound = (((b * (K @ b)).sum() / 60 / C + 2 * K.diagonal().max() * C) / 2 for b in (beta, best))
    assert regret.bound == pytest.approx(own)
    loss = np.mean([pairwise.loss(s, w) for s, w in zip(K @ best, sets, strict=True)])
    assert regret.online_loss - loss <= bound + 1e-9


def test_the_mean_loss_of_a_stream_falls_and_is_counted_over_all_calls():
    X, _, sets = problem(2000, 4, extra=1.0)
    model, losses = ambiguous(C=0.3), []
    for start in range(0, 2000, 500):
        model.partial_fit(X[start : start + 500], sets[start : start + 500])
        losses.append(model.regret_.online_loss)
        assert model.regret_.examples == start + 500
        assert model.regret_.final_loss is None
        assert model.regret_.value is None
    assert losses == sorted(losses, reverse=True)


# Candidates


def test_all_ways_to_write_candidates_make_one_model():
    X, _, sets = problem(40)
    rows = [np.flatnonzero(row) for row in sets]
    plain = ambiguous().fit(X, sets, classes=NAMES)
    shuffled = NAMES[[2, 0, 3, 1]]
    for y, classes in (
        ([set(NAMES[row]) for row in rows], None),
        ([list(NAMES[row[::-1]]) for row in rows], None),
        ([(*NAMES[row], NAMES[row[0]]) for row in rows], None),
        ([NAMES[row] for row in rows], NAMES),
        ([dict.fromkeys(NAMES[row], 3) for row in rows], None),
        ([{name: float(name in NAMES[row]) for name in NAMES} for row in rows], None),
        (sets.astype(bool), NAMES),
        (sets.astype(int)[:, [2, 0, 3, 1]], shuffled),
        (sparse.csr_matrix(sets), NAMES),
        (sparse.coo_array(sets), NAMES),
        (pd.DataFrame(sets[:, [2, 0, 3, 1]], columns=shuffled), None),
        (pl.DataFrame(sets[:, [2, 0, 3, 1]], schema=list(shuffled)), None),
        (np.array([set(NAMES[row]) for row in rows], dtype=object), None),
    ):
        model = ambiguous().fit(X, y, classes=classes)
        np.testing.assert_array_equal(model.classes_, NAMES)
        np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
        np.testing.assert_array_equal(model.support_candidates_.toarray(), plain.support_candidates_.toarray())


def test_the_columns_of_a_matrix_are_numbered_where_they_have_no_names():
    X, y, sets = problem(40)
    model = ambiguous(C=10.0, epochs=5).fit(X, sets)
    np.testing.assert_array_equal(model.classes_, range(4))
    assert model.score(X, y) > 0.7


def test_the_numbers_of_annotators_say_more_than_the_sets_of_their_labels():
    X, y, _ = problem(600, 4)
    random = np.random.default_rng(0)
    votes = np.where(random.random((600, 7)) < 0.4, y[:, None], random.integers(0, 4, (600, 7)))
    counts = np.stack([(votes == label).sum(axis=1) for label in range(4)], axis=1)
    counted = ambiguous(epochs=5).fit(X, counts)
    plain = ambiguous(epochs=5).fit(X, counts > 0)
    assert counted.score(X, y) > plain.score(X, y) + 0.02
    np.testing.assert_allclose(counted.support_candidates_.sum(axis=1), 1)


def test_weights_count_by_their_proportions_and_may_be_written_in_many_ways():
    X, _, sets = problem(60)
    sets *= np.random.default_rng(0).integers(1, 4, sets.shape)
    rows, columns = np.nonzero(sets)
    entries = np.repeat(sets[rows, columns] / 2, 2), (np.repeat(rows, 2), np.repeat(columns, 2))
    expected = ambiguous().fit(X, sets).decision_function(X)
    for y in (
        1e-300 * sets,
        1e308 / 3 * sets,
        sparse.coo_array(entries, shape=sets.shape),  # entries that are there twice add up
        [{label: weight for label, weight in enumerate(row) if weight} for row in sets],
    ):
        np.testing.assert_allclose(ambiguous().fit(X, y).decision_function(X), expected, rtol=0, atol=1e-12)
    with pytest.raises(AssertionError):  # weights count at all
        np.testing.assert_allclose(ambiguous().fit(X, sets > 0).decision_function(X), expected, atol=1e-3)


def test_examples_with_all_classes_as_candidates_are_left_out_and_counted():
    X, _, sets = problem(40)
    full = np.arange(40) % 5 == 2
    sets[full] = 1
    model = ambiguous(shuffle=False).fit(X, sets)
    same = ambiguous(shuffle=False).fit(X[~full], sets[~full])
    assert not set(model.support_) & set(np.flatnonzero(full))
    np.testing.assert_allclose(model.decision_function(X), same.decision_function(X), atol=1e-12)
    stream = ambiguous().partial_fit(X[:20], sets[:20]).partial_fit(X[20:], sets[20:])
    for counts in (model.result_.operations, stream.result_.operations):
        assert (counts["uninformative"], counts["process_new"]) == (8, 32)


def test_a_class_that_is_nobodys_candidate_may_be_announced():
    X, _, sets = problem(40)
    model = ambiguous().fit(X, [set(NAMES[row > 0]) for row in sets], classes=[*NAMES, "yew"])
    assert list(model.classes_) == [*NAMES, "yew"]
    assert "yew" not in model.predict(X)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_class_that_comes_alone_does_not_swallow_the_others(kernel):
    X, y, _ = problem(400, 4, extra=0)
    model = ambiguous(kernel, gamma=0.1)
    for part in (y < 3, y == 3):
        model.partial_fit(X[part], [{label} for label in y[part].tolist()])
    assert model.score(X, y) > 0.75
    assert np.mean(model.predict(X) == 3) < 0.5


def test_predictions_among_the_candidates_are_what_selection_can_go_by():
    X, y, sets = problem(200)
    model = ambiguous(C=3.0, epochs=5).fit(X, sets)
    predicted = model.predict(X)
    share = np.mean(sets[np.arange(200), predicted] > 0)
    assert share > np.mean(predicted == y) == model.score(X, y)
    lists = [set(np.flatnonzero(row).tolist()) for row in sets]
    assert model.score(X, sets) == model.score(X, sparse.csr_matrix(sets)) == model.score(X, lists) == share
    weights = np.arange(200.0)
    hits = sets[np.arange(200), predicted] > 0
    assert model.score(X, lists, sample_weight=weights) == pytest.approx(np.average(hits, weights=weights))
    assert model.score(X[:2], [{"unheard of"}, {"as well"}]) == 0
    with pytest.raises(ValueError, match="X and y must be equally long, got 3 and 200"):
        model.score(X[:3], lists)
    search = GridSearchCV(
        ambiguous(), {"C": [0.1, 10.0]}, cv=KFold(3, shuffle=True, random_state=0), error_score="raise"
    )
    assert search.fit(X, lists).best_score_ > 0.7


def test_labels_in_a_matrix_are_noticed():
    X, y, _ = problem(60)
    pairs = np.column_stack([y + 1, (y + 1) % 4 + 1])
    with (
        pytest.warns(UserWarning, match=r"60 of 60 examples have all 2 classes as candidates .* y.tolist"),
        pytest.raises(ValueError, match="full sets only"),
    ):
        ambiguous().fit(X, pairs)
    assert ambiguous().fit(X, pairs.tolist()).score(X, y + 1) > 0.5


# Sharpness


def test_sharpness_finds_the_right_one_of_candidates_that_come_together():
    letter = load_letter()
    X, y = letter.X_train[:1500] / 15, letter.y_train[:1500]
    random = np.random.default_rng(0)
    labels = np.unique(y)
    partner = dict(zip(labels, np.roll(labels, 1), strict=True))
    sets = [{right, *random.choice(labels, 2), *([partner[right]] if random.random() < 0.7 else [])} for right in y]
    scores = [
        ambiguous(C=30.0, gamma=3.0, epochs=10, sharpness=sharpness, certify=False)
        .fit(X, sets)
        .score(letter.X_test[:2000] / 15, letter.y_test[:2000])
        for sharpness in (0.0, 10.0)
    ]
    assert scores[1] > scores[0] + 0.05


def test_the_certificate_after_sharpening_is_that_of_the_last_weights():
    X, _, sets = problem(60, 4, extra=1.5)
    model = ambiguous(C=2.0, epochs=30, sharpness=5.0).fit(X, sets)
    assert 0 <= model.result_.relative_gap < 0.05
    weights = sets.copy()  # those of patterns without coefficients are not known, and they have no loss
    weights[model.support_] = model.support_candidates_.toarray()
    assert (model.support_candidates_.toarray() > 0).sum() == (sets[model.support_] > 0).sum()
    primal, dual = pairwise.certificate(coefficients(model, 60), rbf_kernel(X, gamma=0.4), weights, np.full(60, 2.0))
    assert model.result_.dual == pytest.approx(dual, rel=1e-9)
    if len(model.support_) == 60:
        assert model.result_.primal == pytest.approx(primal, rel=1e-9)


def test_training_that_ends_between_two_weights_claims_no_lower_bound():
    X, _, sets = problem(400, 6, 6, extra=2.0)
    with pytest.warns(TrainingWarning):
        model = ambiguous(C=2.0, sharpness=20.0, epochs=10**6, time_limit=0.05).fit(X, sets)
    assert np.isfinite(model.result_.primal)
    assert np.isnan(model.result_.dual) or model.result_.gap >= 0
    assert model.regret_.final_loss is None, "the final model solves another problem than the one it is measured by"


# Wrong candidates


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        ([{0}, set(), {1}], None, "at least one candidate, got an empty set for example 1$"),
        ([{0}, [], {}], None, "got an empty set for example 1 and 1 others"),
        (np.array([[1, 0], [0, 0], [0, 1]]), None, "got an empty set for example 1$"),
        (np.array([[1, 0], [0, np.nan], [0, 1]]), None, "finite numbers >= 0, got nan for example 1"),
        (np.array([[1, 0], [0, -2], [0, 1]]), None, "finite numbers >= 0, got -2.0 for example 1"),
        (np.array([["a", "b"]] * 3), None, "must hold numbers: 0 and 1, or weights"),
        (np.eye(3), ["a", "b"], "classes must name every column of the matrix of candidates, 3; got 2"),
        (np.eye(3), ["a", "b", "a"], "classes must be a list of labels, each named once"),
        ([{0}, {1, "oak"}, {1}], None, "labels of one type, got words and numbers"),
        ([{0}, 3, {1}], None, "got 3 for example 1"),
        ([None, {0, 1}, {1}], None, "got None for example 0"),
        ([0, {0, 1}, {1}], None, "got 0 for example 0"),
        ([{0}, "oak", {1}], None, "got 'oak' for example 1"),
        ([{0}, {1: -1.0}, {1}], None, "got -1.0 for 1 of example 1"),
        ([{0}, {1: "two"}, {1}], None, "got 'two' for 1 of example 1"),
        ([{0}, {1}], None, "X and y must be equally long, got 3 and 2"),
        ([{0, 1}] * 3, None, "got full sets only"),
        ([{0}] * 3, None, "at least two classes, got one class: 0"),
        ([{0}] * 3, [0, 1], "at least two classes with a weight above zero .*, got 0 alone"),
        ([{0}, {np.nan}, {1}], None, "numbers that one array can hold; got nan"),
        ([{0}, {2**60 + 1}, {2.5}], None, "numbers that one array can hold"),
        ([{b"a"}, {b"b"}, {b"a"}], None, "got b'[ab]'"),
        ([{0}, {None}, {1}], None, "got None"),
        ([{(1, 2)}, {(1, 2, 3)}, {(1, 2)}], None, r"got \(1, 2"),
        ([[0], [["a"]], [1]], None, r"got \[\['a'\]\] for example 1"),
        (
            [{0: 1e10}, {1: 1e10, 0: 1e-10}, {1: 1.0}],
            None,
            r"differ by more than 1e\+12 times, got 1e-10 beside 1e\+10",
        ),
        ([{0}, {1}, {1}], {0, 1}, "classes must be a list or an array of labels"),
        (pd.DataFrame(np.eye(3), columns=["a", 1, "b"]), None, "classes must be labels of one type"),
        ([set(), set(), set()], None, "got empty sets only"),
        ([{0}, {1}, {1}], ["a", "b"], "same type as those in classes"),
    ],
)
def test_wrong_candidates_are_named(y, classes, message):
    X = np.eye(3)
    for call in ("fit", "partial_fit"):
        if call == "partial_fit" and ("full sets" in message or "at least two classes" in message):
            continue  # more may come
        with pytest.raises(ValueError, match=message):
            getattr(ambiguous(), call)(X, y, classes=classes)
