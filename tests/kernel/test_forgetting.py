"""LaRankClassifier(max_patterns=..., forget=...): streams without an end, and streams that drift."""

import math
import pickle

import numpy as np
import pytest
from overlapping import assert_feasible
from sklearn.metrics.pairwise import rbf_kernel

from larank import LaRank, LaRankClassifier
from larank.data import models
from references import optima

TAU, MOST_HEIRS, MOST_LOST, RIDGE, BETWEEN_LOOKS = 0.08, 8, 0.9, 1e-3, 64
FORGET = ("least", "oldest")
every_forget = pytest.mark.parametrize("forget", FORGET)


def noisy(rows, seed=0, features=6, classes=4, spread=0.5):
    """Labels that are the best of smooth functions with Gumbel noise."""
    random = np.random.default_rng(seed)
    centers, heights = random.normal(size=(60, features)), 3 * random.normal(size=(60, classes))
    X = random.normal(size=(rows, features))
    scores = rbf_kernel(X, centers, gamma=0.3) @ heights
    return X, (scores + spread * random.gumbel(size=(rows, classes))).argmax(axis=1)


def bounded(max_patterns, forget="least", **parameters):
    given = {"kernel": "rbf", "gamma": 0.3, "shuffle": False, "random_state": 0, **parameters}
    return LaRankClassifier(max_support=max_patterns, **given, solver=LaRank(forget=forget))


class Reference:
    """PROCESSNEW alone with a bound on patterns, from all kernel values, in one pass.

    Where looks are taken, `averaged` is the average of coefficients, in which those after s examples count like s.
    """

    def __init__(self, K, y, C, max_patterns, forget, *, averages=False):
        self.K, self.present, self.looked, have_left = K, [], 0, False
        self.coefficients, self.averaged = np.zeros((2, len(y), y.max() + 1))
        for i, label in enumerate(y):
            self.process_new(i, label, C, np.unique(y[: i + 1]))
            if len(self.present) > max_patterns and forget == "oldest":
                self.leave(self.present[0])
            elif len(self.present) > max_patterns:
                self.bequeath()
                have_left = True
            if averages and have_left and i + 1 - self.looked >= BETWEEN_LOOKS:
                self.look(i + 1)
        self.look(len(y))

    def look(self, now):
        self.averaged += (1 - (self.looked / now) ** 2) * (self.coefficients - self.averaged)
        self.looked = now

    def process_new(self, i, label, C, arrived):
        g, rivals = -(self.K[i] @ self.coefficients), arrived[arrived != label]
        g[label] += 1
        if not len(rivals):
            return
        rival = rivals[g[rivals].argmin()]
        violation = g[label] - g[rival]
        if violation > TAU:
            step = min(C, violation / (2 * self.K[i, i]))
            self.coefficients[i, label], self.coefficients[i, rival] = step, -step
            self.present.append(i)

    def bequeath(self):
        going = self.present[-1]
        heirs, shares, lost = self.shares_of(going)
        if lost > MOST_LOST:
            both = (self.coefficients**2 + self.averaged**2).sum(axis=1)
            going = min(self.present, key=lambda j: self.K[j, j] * both[j])
            heirs, shares, lost = self.shares_of(going)
        for values in (self.coefficients, self.averaged):
            values[heirs] += shares[:, None] * values[going]
        self.leave(going)

    def shares_of(self, i):
        others = [j for j in self.present if j != i]
        heirs = sorted(others, key=lambda j: -(self.K[i, j] ** 2) / self.K[j, j])[:MOST_HEIRS]
        K = self.K[np.ix_(heirs, heirs)]
        shares = np.linalg.solve(K + RIDGE * np.diag(np.diag(K)), self.K[i, heirs])
        return heirs, shares, 1 - shares @ self.K[i, heirs] / self.K[i, i]

    def leave(self, i):
        self.present.remove(i)
        self.coefficients[i] = self.averaged[i] = 0


@pytest.mark.parametrize(
    ("forget", "max_patterns", "gamma"),
    [
        *((forget, *rest) for forget in FORGET for rest in ((2, 0.1), (5, 0.1), (12, 0.1), (12, 2.0))),
        ("least", None, 0.1),
    ],
)
def test_what_is_let_go_and_what_others_inherit_is_as_written_down(forget, max_patterns, gamma):
    X, y = noisy(80)
    K = rbf_kernel(X, gamma=gamma)
    y[:4] = range(4)  # labels are numbered as they arrive
    expected = Reference(K, y, 0.7, max_patterns or math.inf, forget)
    settings = {"kernel": "precomputed", "C": 0.7, "operations": ("new",), "average": False, "epochs": 1}
    model = bounded(max_patterns, forget, **settings).fit(K, y)
    assert max_patterns is None or model.result_.operations["forgotten"] > 10
    np.testing.assert_array_equal(np.sort(model.support_), np.sort(expected.present))
    np.testing.assert_allclose(model.dual_coef_.toarray(), expected.coefficients[model.support_], atol=1e-9)


@pytest.mark.parametrize(("max_patterns", "gamma"), [(5, 0.1), (12, 0.1), (12, 2.0)])
def test_the_model_is_the_average_of_coefficients_as_written_down(max_patterns, gamma):
    X, y = noisy(500)
    K = rbf_kernel(X, gamma=gamma)
    y[:4] = range(4)
    expected = Reference(K, y, 0.7, max_patterns, "least", averages=True)
    model = bounded(max_patterns, kernel="precomputed", C=0.7, operations=("new",)).fit(K, y)
    np.testing.assert_allclose(model.dual_coef_.toarray(), expected.averaged[model.support_], atol=1e-9)
    assert np.abs(expected.averaged - expected.coefficients).max() > 0.1


def test_the_average_of_a_noisy_stream_is_better_than_its_last_coefficients():
    X, y = noisy(12_000, spread=1.5)
    averaged, last = (bounded(60, average=average).fit(X[:8000], y[:8000]) for average in ("auto", False))
    assert averaged.score(X[8000:], y[8000:]) > last.score(X[8000:], y[8000:]) + 0.01


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_letting_the_oldest_go_keeps_coefficients_feasible_and_the_dual_known(kernel):
    X, y = noisy(600)
    model = bounded(40, "oldest", kernel=kernel, C=2.0, average=False).fit(X, y)
    assert_feasible(model, y, 2.0, sums=1e-12)
    assert len(model.support_) <= 40
    beta, S = model.dual_coef_.toarray(), model.support_vectors_
    K = S @ S.T if kernel == "linear" else rbf_kernel(S, gamma=0.3)
    dual = beta[np.arange(len(beta)), y[model.support_]].sum() - np.einsum("iy,ij,jy", beta, K, beta) / 2
    assert model.result_.dual == pytest.approx(dual, rel=1e-6)
    assert not model.result_.exact


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@every_forget
@pytest.mark.parametrize("average", ["auto", False])
def test_the_primal_objective_of_fit_is_that_of_the_model(kernel, forget, average):
    X, y = noisy(500)
    model = bounded(30, forget, kernel=kernel, C=0.5, average=average).fit(X, y)
    losses = optima.losses("crammer-singer", model.decision_function(X), y)
    if kernel == "linear":
        half = np.square(model.coef_).sum() / 2
    else:
        beta = model.dual_coef_.toarray()
        half = np.einsum("iy,ij,jy", beta, rbf_kernel(model.support_vectors_, gamma=0.3), beta) / 2
    assert model.result_.primal == pytest.approx(half + 0.5 * losses.sum(), rel=1e-5)
    has_bound = forget == "oldest" or kernel == "linear"
    assert math.isnan(model.result_.dual) != has_bound
    assert not has_bound or model.result_.dual <= model.result_.primal


@every_forget
def test_blocks_parts_of_a_stream_and_little_memory_do_not_change_the_model(forget):
    X, y = noisy(150)
    K = rbf_kernel(X, gamma=0.3)
    whole, *others = (
        bounded(25, forget, kernel="precomputed", **settings).fit(K, y)
        for settings in ({}, {"batch_size": 1}, {"batch_size": 7})
    )
    parts = bounded(25, forget, kernel="precomputed")
    for some in np.array_split(np.arange(150), 4):
        parts.partial_fit(K[some], y[some])
    np.testing.assert_array_equal(parts.support_, whole.support_)
    for other in (*others, parts):
        np.testing.assert_array_equal(other.dual_coef_.toarray(), whole.dual_coef_.toarray())
    K, y = K[:120, :120], y[:120]
    roomy = bounded(60, forget, kernel="precomputed").fit(K, y)
    tight = bounded(60, forget, kernel="precomputed", memory_limit=48_000, batch_size=4).fit(K, y)
    np.testing.assert_allclose(tight.dual_coef_.toarray(), roomy.dual_coef_.toarray(), atol=1e-9)


@pytest.mark.parametrize("kernel", ["poly", "linear"])
@every_forget
@pytest.mark.parametrize("start", ["fit", "partial_fit"])
def test_a_saved_model_goes_on_as_the_one_that_was_kept(kernel, forget, start, tmp_path):
    X, y = noisy(160)
    X = np.rint(X)  # kernel values are whole numbers, however they are computed
    model = bounded(20, forget, kernel=kernel, gamma=1, degree=2, coef0=1, C=0.01)
    getattr(model, start)(X[:80], y[:80])
    models.save(model, tmp_path / "model")
    loaded, copied = models.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))
    going_on = [each.partial_fit(X[80:], y[80:]).decision_function(X) for each in (model, loaded, copied)]
    np.testing.assert_allclose(going_on[1], going_on[0], atol=1e-12)
    np.testing.assert_allclose(going_on[2], going_on[0], atol=1e-12)


def test_weights_keep_what_patterns_have_added_to_them():
    X, y = noisy(500)
    settings = {"kernel": "linear", "operations": ("new",), "average": False, "epochs": 1}
    bound, free = bounded(2, **settings).fit(X, y), bounded(None, **settings).fit(X, y)
    assert len(bound.support_) == 2 < len(free.support_)
    np.testing.assert_array_equal(bound.coef_, free.coef_)
    assert bound.result_.dual == pytest.approx(free.result_.dual, rel=1e-6)


def test_few_patterns_are_within_a_point_of_all_of_them():
    X, y = noisy(9000, seed=1)
    every, few = (bounded(most, max_iter=1, certify=False).fit(X[:5000], y[:5000]) for most in (None, 250))
    assert few.score(X[5000:], y[5000:]) >= every.score(X[5000:], y[5000:]) - 0.01


def test_letting_the_oldest_go_follows_labels_that_change():
    X, y = noisy(3000, spread=0.1)
    y[1500:] = (y[1500:] + 1) % 4
    oldest, least = (
        bounded(150, forget, C=5.0).partial_fit(X[:2400], y[:2400]).score(X[2400:], y[2400:])
        for forget in ("oldest", "least")
    )
    before = bounded(150, "oldest", C=5.0).partial_fit(X[:900], y[:900]).score(X[900:1500], y[900:1500])
    assert oldest >= before - 0.03
    assert oldest > least


def test_memory_does_not_grow_with_the_stream():
    X, y = noisy(4000)
    model = bounded(50).partial_fit(X[:1000], y[:1000])
    before = model._machine.session.bytes
    for some in np.array_split(np.arange(1000, 4000), 6):
        model.partial_fit(X[some], y[some])
    assert model._machine.session.bytes < 1.05 * before
    assert model._machine.session.slots <= 51


def test_a_checkpoint_goes_on_to_the_same_model(tmp_path):
    X, y = noisy(200)
    K = rbf_kernel(X, gamma=0.3)
    model = bounded(30, kernel="precomputed", time_limit=1e-9)
    with pytest.warns(UserWarning, match="time_limit"):
        model.fit(K, y, checkpoint=tmp_path / "state", every=1e-9)
    resumed = bounded(30, kernel="precomputed").fit(K, y, checkpoint=tmp_path / "state", resume=True)
    whole = bounded(30, kernel="precomputed").fit(K, y)
    np.testing.assert_array_equal(resumed.dual_coef_.toarray(), whole.dual_coef_.toarray())
