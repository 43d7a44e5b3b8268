"""AmbiguousClassifier: labels that are sets of candidates, and the mean pairwise loss of one example."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold

from checks import coefficients
from larank import AmbiguousClassifier, LinearMulticlassSVC, TrainingWarning
from larank.data import load_letter
from properties import draws
from references import pairwise
from sessions import hooks, orders_of_fit

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


# The step and the best coefficients of one example


@st.composite
def examples(draw, most=8):
    """Scores, with ties and differences of exactly one among them, and weights of candidates."""
    k = draw(st.integers(2, most))
    score = st.one_of(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0]), st.floats(-3, 3))
    scores = np.array(draw(st.lists(score, min_size=k, max_size=k)))
    size = draw(st.integers(1, k - 1))
    chosen = draw(st.permutations(range(k)))[:size]
    weights = np.zeros(k)
    equal = draw(st.booleans())
    weights[chosen] = 1.0 if equal else draw(st.lists(st.sampled_from([1.0, 2.0, 5.0]), min_size=size, max_size=size))
    return scores, weights


@given(examples(most=40))
@draws(150)
def test_the_sorted_step_is_the_maximum_over_all_pairs(example):
    loss, delta, psi = hooks.pairwise_ascent(*example)
    expected_loss, expected_delta, expected_psi = pairwise.ascent(*example)
    assert (loss, loss) == pytest.approx((expected_loss, pairwise.loss(*example)), abs=1e-12)
    assert delta == pytest.approx(expected_delta, abs=1e-12)
    np.testing.assert_allclose(psi, expected_psi, atol=1e-12)


def dual(beta, scores, weights, kappa):
    return beta[weights > 0].sum() - beta @ scores - kappa * beta @ beta / 2


@given(examples(), st.sampled_from([0.01, 1.0, 7.0]), st.sampled_from([0.01, 1.0, 100.0]))
@draws(200)
def test_the_best_coefficients_are_those_of_a_general_solver(example, kappa, cost):
    scores, weights = example
    M, bounds = pairwise.to_pairs(weights, len(scores))
    found = minimize(
        lambda a: -dual(M @ a, scores, weights, kappa),
        np.zeros(len(bounds)),
        jac=lambda a: kappa * M.T @ (M @ a) + M.T @ scores - 1,
        bounds=[(0, cost * bound) for bound in bounds],
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-12},
    )
    beta = np.array(hooks.pairwise_solution(scores, weights, kappa, cost))
    best = dual(beta, scores, weights, kappa)
    assert best >= -found.fun - 1e-9 * (1 + abs(found.fun))
    assert best == pytest.approx(-found.fun, rel=1e-5, abs=1e-7)


@given(examples(most=60), st.sampled_from([1e-6, 1.0, 1e4]), st.sampled_from([1e-3, 1.0, 1e6]))
@draws(150)
def test_the_best_coefficients_keep_their_bounds_and_leave_no_pair_for_more(example, kappa, cost):
    scores, weights = example
    beta = np.array(hooks.pairwise_solution(scores, weights, kappa, cost))
    right, wrong, of_pair = pairwise.pairs(weights)
    assert abs(beta.sum()) <= 1e-9 * cost
    assert (beta[right] >= 0).all()
    assert (beta[wrong] <= 0).all()
    assert (beta[right] <= cost * of_pair.sum(axis=1) * (1 + 1e-9)).all()
    assert (-beta[wrong] <= cost * of_pair.sum(axis=0) * (1 + 1e-9)).all()
    # The loss that the coefficients account for is all there is: complementary slackness of the whole example.
    after = scores + kappa * beta
    scale = 1 + np.abs(scores).max() + kappa * np.abs(beta).max()
    accounted = (beta[right].sum() - beta @ after) / cost
    assert pairwise.loss(after, weights) == pytest.approx(accounted, abs=1e-9 * scale)


def test_scores_far_from_zero_are_cut_as_those_around_it():
    scores, weights = np.array([0.3, -0.2, 0.1, 0.7, 0.65]), np.array([1.0, 0, 1, 0, 0])
    near = hooks.pairwise_solution(scores, weights, 1.0, 1.0)
    far = hooks.pairwise_solution(scores + 1e8, weights, 1.0, 1.0)
    np.testing.assert_allclose(far, near, atol=1e-6)


# The algorithm


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_one_pass_without_reprocessing_is_algorithm_23_line_by_line(kernel):
    (X, _, sets), (order,) = problem(60, 5, extra=1.5), orders_of_fit(60)
    K = X @ X.T if kernel == "linear" else rbf_kernel(X, gamma=0.4)
    beta = np.zeros_like(sets)
    losses = []
    for t in order:
        scores = K[t] @ beta
        losses.append(pairwise.loss(scores, sets[t]))
        beta[t] = pairwise.step(scores, sets[t], K[t, t], 0.7)
    model = ambiguous(kernel, C=0.7, n_reprocess=0).fit(X, sets)
    np.testing.assert_allclose(coefficients(model, len(X)), beta, atol=1e-12)
    np.testing.assert_allclose(model.decision_function(X), K @ beta, atol=1e-10)
    assert model.regret_.online_loss == pytest.approx(np.mean(losses))
    assert model.regret_.final_loss == pytest.approx(
        np.mean([pairwise.loss(s, w) for s, w in zip(K @ beta, sets, strict=True)])
    )


@draws(25)
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
    model = ambiguous(C=C, n_reprocess=n_reprocess, tol=1e-8, max_iter=100_000)
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
    model = ambiguous("linear", C=3.0, tol=1e-9, max_iter=10**5).fit(X, y)
    other = LinearMulticlassSVC(
        C=1.0, formulation="weston-watkins", fit_intercept=False, tol=1e-9, max_iter=10**5, random_state=0
    ).fit(X, y)
    assert model.result_.primal == pytest.approx(other.result_.primal, rel=1e-7)
    # Its weights may have a common part that cancels in all pairs; ours have none.
    centred = other.coef_ - other.coef_.mean(axis=0)
    np.testing.assert_allclose(model.coef_, centred, atol=1e-4)


# Regret


@draws(15)
@given(st.integers(0, 10**6), st.sampled_from([0.001, 0.1, 3.0]), st.sampled_from(["linear", "rbf"]), st.integers(0, 2))
def test_the_regret_is_below_the_bound_of_proposition_13(seed, C, kernel, n_reprocess):
    X, _, sets = problem(60, 4, seed=seed, extra=1.5)
    model = ambiguous(kernel, C=C, n_reprocess=n_reprocess).fit(X, sets)
    regret, beta = model.regret_, coefficients(model, 60)
    assert model.result_.gap >= -1e-15 * max(1, model.result_.primal)  # but for rounding
    np.testing.assert_allclose(beta.sum(axis=1), 0, atol=1e-9)
    assert (beta[sets > 0] >= 0).all()
    assert (beta[sets == 0] <= 0).all()
    assert regret.examples == 60
    assert regret.value <= regret.bound + 1e-12
    # The bound holds for every w, and for the best w too.
    K = X @ X.T if kernel == "linear" else rbf_kernel(X, gamma=0.4)
    best = coefficients(ambiguous(kernel, C=C, tol=1e-6, max_iter=10**5).fit(X, sets), 60)
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


def test_columns_without_names_are_numbered_and_classes_may_be_announced():
    X, y, sets = problem(40)
    model = ambiguous(C=10.0, max_iter=5).fit(X, sets)
    np.testing.assert_array_equal(model.classes_, range(4))
    assert model.score(X, y) > 0.7
    model = ambiguous().fit(X, [set(NAMES[row > 0]) for row in sets], classes=[*NAMES, "yew"])
    assert list(model.classes_) == [*NAMES, "yew"]
    assert "yew" not in model.predict(X)


def test_the_numbers_of_annotators_say_more_than_the_sets_of_their_labels():
    X, y, _ = problem(600, 4)
    random = np.random.default_rng(0)
    votes = np.where(random.random((600, 7)) < 0.4, y[:, None], random.integers(0, 4, (600, 7)))
    counts = np.stack([(votes == label).sum(axis=1) for label in range(4)], axis=1)
    counted = ambiguous(max_iter=5).fit(X, counts)
    plain = ambiguous(max_iter=5).fit(X, counts > 0)
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
    model = ambiguous().partial_fit(X, sets)
    same = ambiguous().partial_fit(X[~full], sets[~full])
    assert not set(model.support_) & set(np.flatnonzero(full))
    np.testing.assert_allclose(model.decision_function(X), same.decision_function(X), atol=1e-12)
    stream = ambiguous().partial_fit(X[:20], sets[:20]).partial_fit(X[20:], sets[20:])
    for counts in (model.result_.operations, stream.result_.operations):
        assert (counts["uninformative"], counts["process_new"]) == (8, 32)


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
    model = ambiguous(C=3.0, max_iter=5).fit(X, sets)
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
        ambiguous(C=30.0, gamma=3.0, max_iter=10, sharpness=sharpness)
        .fit(X, sets, certify=False)
        .score(letter.X_test[:2000] / 15, letter.y_test[:2000])
        for sharpness in (0.0, 10.0)
    ]
    assert scores[1] > scores[0] + 0.05


def test_the_certificate_after_sharpening_is_that_of_the_last_weights():
    X, _, sets = problem(60, 4, extra=1.5)
    model = ambiguous(C=2.0, max_iter=30, sharpness=5.0).fit(X, sets)
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
        model = ambiguous(C=2.0, sharpness=20.0, max_iter=10**6, time_limit=0.05).fit(X, sets)
    assert np.isfinite(model.result_.primal)
    assert np.isnan(model.result_.dual) or model.result_.gap >= 0
    assert model.regret_.final_loss is None, "the final model solves another problem than the one it is measured by"


# Wrong candidates


THREE = np.eye(3)
# Candidates of three examples, and what is said of them.
WRONG = [
    ([{0}, set(), {1}], "at least one candidate, got an empty set for example 1$"),
    ([{0}, [], {}], "got an empty set for example 1 and 1 others"),
    (np.array([[1, 0], [0, 0], [0, 1]]), "got an empty set for example 1$"),
    (np.array([[1, 0], [0, np.nan], [0, 1]]), "finite numbers >= 0, got nan for example 1"),
    (np.array([[1, 0], [0, -2], [0, 1]]), "finite numbers >= 0, got -2.0 for example 1"),
    (np.array([["a", "b"]] * 3), "must hold numbers: 0 and 1, or weights"),
    ([{0}, {1, "oak"}, {1}], "labels of one type, got words and numbers"),
    ([{0}, 3, {1}], "got 3 for example 1"),
    ([None, {0, 1}, {1}], "got None for example 0"),
    ([0, {0, 1}, {1}], "got 0 for example 0"),
    ([{0}, "oak", {1}], "got 'oak' for example 1"),
    ([{0}, {1: -1.0}, {1}], "got -1.0 for 1 of example 1"),
    ([{0}, {1: "two"}, {1}], "got 'two' for 1 of example 1"),
    ([{0}, {1}], "X and y must be equally long, got 3 and 2"),
    ([{0, 1}] * 3, "got full sets only"),
    ([{0}] * 3, "at least two classes, got one class: 0"),
    ([{0}, {np.nan}, {1}], "numbers that one array can hold; got nan"),
    ([{0}, {2**60 + 1}, {2.5}], "numbers that one array can hold"),
    ([{b"a"}, {b"b"}, {b"a"}], "got b'[ab]'"),
    ([{0}, {None}, {1}], "got None"),
    ([{(1, 2)}, {(1, 2, 3)}, {(1, 2)}], r"got \(1, 2"),
    ([[0], [["a"]], [1]], r"got \[\['a'\]\] for example 1"),
    ([{0: 1e10}, {1: 1e10, 0: 1e-10}, {1: 1.0}], r"differ by more than 1e\+12 times, got 1e-10 beside 1e\+10"),
    (pd.DataFrame(THREE, columns=["a", 1, "b"]), "classes must be labels of one type"),
    ([set(), set(), set()], "got empty sets only"),
]
WRONG_CLASSES = [
    (THREE, ["a", "b"], "classes must name every column of the matrix of candidates, 3; got 2"),
    (THREE, ["a", "b", "a"], "classes must be a list of labels, each named once"),
    ([{0}] * 3, [0, 1], "at least two classes with a weight above zero .*, got 0 alone"),
    ([{0}, {1}, {1}], {0, 1}, "classes must be a list or an array of labels"),
    ([{0}, {1}, {1}], ["a", "b"], "same type as those in classes"),
]


@pytest.mark.parametrize(("y", "classes", "message"), [*((y, None, what) for y, what in WRONG), *WRONG_CLASSES])
def test_wrong_candidates_are_named(y, classes, message):
    may_be_followed = "full sets" in message or "at least two classes" in message
    for call in ("fit",) if may_be_followed else ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=message):
            getattr(ambiguous(), call)(np.eye(3), y, classes=classes)
