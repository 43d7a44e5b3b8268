"""The per-example QPs (10) and (21) against exact rational arithmetic, and in every instruction set."""

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from larank import LinearMulticlassSVC, _core
from references.optima import FORMULATIONS
from sessions import hooks, on_every_level

EPSILON = np.finfo(float).eps


class RowQP:
    """One example: scores, signed coefficients `a` with w_m = sum_i a_i^m x_i, label, A = |x|^2 and cost C.

    One-versus-rest, `rest` is its cost in the problems of the other classes.
    """

    def __init__(self, formulation, scores, a, label, A, C, rest=None):
        self.formulation, self.label, self.A, self.C = formulation, label, A, C
        self.rest = C if rest is None else rest
        self.scores, self.a = np.array(scores, float), np.array(a, float)
        self.classes = len(self.scores)
        self.others = [m for m in range(self.classes) if m != label]

    def __repr__(self):
        values = f"{self.scores.tolist()}, {self.a.tolist()}, {self.label}, {self.A!r}, {self.C!r}, {self.rest!r}"
        return f"RowQP({self.formulation!r}, {values})"

    def solve(self):
        *found, change = hooks.solve_row(self.formulation, self.scores, self.a, self.label, self.A, self.C, self.rest)
        return *found, np.array(change)

    def cost(self, m):
        return self.C if m == self.label else self.rest

    def bounds(self):
        """Of each a^m; the label's own coefficient is free in (21), where the sum binds it."""
        own, other = {
            "crammer-singer": ((-np.inf, self.C), (-np.inf, 0.0)),
            "weston-watkins": ((-np.inf, np.inf), (-self.rest, 0.0)),
            "one-vs-rest": ((0.0, self.C), (-self.rest, 0.0)),
        }[self.formulation]
        return [own if m == self.label else other for m in range(self.classes)]

    def linear(self):
        """The linear part of the dual to be minimised: f(a) = 1/2 |W|^2 + linear' a."""
        own = -1 if self.formulation == "one-vs-rest" else 0
        return [Fraction(own if m == self.label else 1) for m in range(self.classes)]

    def value(self, change):
        """The change of f, exactly."""
        A, exact = Fraction(self.A), [d if isinstance(d, Fraction) else Fraction(float(d)) for d in change]
        slopes = [Fraction(s) + e for s, e in zip(self.scores.tolist(), self.linear(), strict=True)]
        return sum(A * d * d / 2 + slope * d for slope, d in zip(slopes, exact, strict=True))

    def exact(self):
        """The minimiser in rational arithmetic, by trying the intervals between sorted break points."""
        a, A = [Fraction(v) for v in self.a.tolist()], Fraction(self.A)
        z = [v - (Fraction(s) + e) / A for v, s, e in zip(a, self.scores.tolist(), self.linear(), strict=True)]
        if self.formulation == "one-vs-rest":
            limits = [tuple(map(Fraction, pair)) for pair in self.bounds()]
            return [min(max(v, low), high) - old for v, (low, high), old in zip(z, limits, a, strict=True)]
        # With the multiplier t of sum a = 0, every a^m is clip(z^m + t, its bounds); their sum grows with t.
        bounds = [tuple(None if np.isinf(b) else Fraction(b) for b in pair) for pair in self.bounds()]

        def at(t):
            raised = [v + t if low is None else max(v + t, low) for v, (low, _) in zip(z, bounds, strict=True)]
            return [v if high is None else min(v, high) for v, (_, high) in zip(raised, bounds, strict=True)]

        breaks = sorted({b - v for v, pair in zip(z, bounds, strict=True) for b in pair if b is not None})
        below = [t for t in breaks if sum(at(t)) <= 0]
        left = below[-1] if below else breaks[0] - 1
        right = next((t for t in breaks if t > left), left + 1) if below else left - 1
        slope = (sum(at(right)) - sum(at(left))) / (right - left)
        t = left - sum(at(left)) / slope if slope else left
        return [new - old for new, old in zip(at(t), a, strict=True)]

    def violation(self):
        """(6) and (18), from the definitions."""
        is_label = np.arange(self.classes) == self.label
        if self.formulation == "crammer-singer":
            g = self.scores + ~is_label
            return g.max() - g[self.a < np.where(is_label, self.C, 0)].min()
        worst = 0.0
        for m in range(self.classes):
            if self.formulation == "weston-watkins":
                if m == self.label:
                    continue
                alpha, g = -self.a[m], self.scores[self.label] - self.scores[m] - 1
            else:
                sign = 1 if m == self.label else -1
                alpha, g = sign * self.a[m], sign * self.scores[m] - 1
            worst = max(worst, -g if alpha < self.cost(m) else 0, g if alpha > 0 else 0)
        return worst

    def rounding(self):
        """What one rounding comes to: of the coefficients before and after, whatever C is, and of the gradient."""
        new = max(abs(float(old) + d) for old, d in zip(self.a, self.exact(), strict=True))
        return EPSILON * self.classes * (np.abs(self.a).max() + float(new) + (np.abs(self.scores).max() + 1) / self.A)

    def value_rounding(self):
        """The same in units of the objective."""
        gradient = np.abs(self.scores).max() + 1
        cost = max(self.C, self.rest)
        return EPSILON * self.classes**2 * cost * (cost * self.A + gradient)


magnitudes = st.floats(-6, 6).map(lambda e: 10.0**e)


@st.composite
def row_qps(draw, most_classes=40):
    formulation = draw(st.sampled_from(FORMULATIONS))
    classes = draw(st.integers(2, most_classes))
    label = draw(st.integers(0, classes - 1))
    A, C = draw(magnitudes), draw(magnitudes)
    near_one = st.floats(-3, 3) | st.sampled_from([-1.0, 0.0, 1.0]) | st.just(draw(st.floats(-2, 2)))
    score = near_one if draw(st.booleans()) else st.floats(-1e6, 1e6)
    scores = draw(st.lists(score, min_size=classes, max_size=classes))
    share = st.sampled_from([0.0, 0.0, 0.0, 1.0]) | st.floats(0, 1)
    alpha = np.array(draw(st.lists(share, min_size=classes, max_size=classes)))
    alpha *= draw(st.sampled_from([1.0, 1.0, 1e-3, 1e-6, 0.0]))  # far below C, as with separable data
    if formulation == "one-vs-rest":
        C, rest = draw(st.sampled_from([(C, C), (C, draw(magnitudes)), (0.0, C)]))
        a = -rest * alpha
        a[label] = C * alpha[label]
        return RowQP(formulation, scores, a, label, A, C, rest)
    alpha[label] = 0
    if formulation == "crammer-singer" and alpha.sum() > 1:
        alpha /= alpha.sum()
    a = -C * alpha
    own = -np.delete(a, label).sum()
    if formulation == "crammer-singer" and (own > C or abs(own - C) < 1e-12 * C):
        own = C
    a[label] = own
    return RowQP(formulation, scores, a, label, A, C)


@given(row_qps())
def test_the_change_is_the_exact_minimiser_feasible_and_never_worse_than_none(qp):
    *_, change = qp.solve()
    assert np.abs(change - np.array([float(d) for d in qp.exact()])).max() <= 10 * qp.rounding()
    assert qp.value(change) <= qp.value(qp.exact()) + 10 * qp.value_rounding()
    assert qp.value(change) <= qp.value_rounding()
    slack = 4 * EPSILON * max(qp.C, qp.rest)
    lowest, highest = np.transpose(qp.bounds())
    assert (lowest - slack <= qp.a + change).all()
    assert (qp.a + change <= highest + slack).all()
    if qp.formulation != "one-vs-rest":
        # The sum of the change, not of the coefficients: what was off before is not repaired, nor made worse.
        assert abs(change.sum()) <= 8 * EPSILON * qp.classes * qp.C


@given(row_qps())
def test_the_violation_and_the_losses_are_those_of_the_definition(qp):
    violation, loss, rest_loss, _ = qp.solve()
    size = 1 + np.abs(qp.scores).max()
    assert violation == pytest.approx(qp.violation(), rel=1e-14, abs=EPSILON * size)
    own = qp.scores[qp.label]
    margins = np.maximum(1 + qp.scores[qp.others] - own, 0)
    losses = {"crammer-singer": margins.max(), "weston-watkins": margins.sum(), "one-vs-rest": max(1 - own, 0)}
    of_others = np.maximum(1 + qp.scores[qp.others], 0).sum() if qp.formulation == "one-vs-rest" else 0
    assert (loss, rest_loss) == pytest.approx((losses[qp.formulation], of_others), rel=1e-13, abs=4 * EPSILON * size)


@given(row_qps())
def test_an_optimal_row_stays_as_it_is(qp):
    """A row of rounded optimal coefficients changes by rounding only, and not at all without a violation."""
    optimal = np.array([float(a + d) for a, d in zip(map(Fraction, qp.a.tolist()), qp.exact(), strict=True)])
    scores = qp.scores + qp.A * (optimal - qp.a)
    violation, *_, change = RowQP(qp.formulation, scores, optimal, qp.label, qp.A, qp.C, qp.rest).solve()
    assert np.abs(change).max() <= 20 * qp.rounding()
    assert violation > 0 or not change.any()


@given(row_qps())
def test_the_reference_itself_is_feasible_and_meets_the_conditions_of_the_optimum(qp):
    """No coefficient that may fall has a larger slope than one that may rise; without a common sum, zero is between."""
    change = qp.exact()
    new = [Fraction(v) + d for v, d in zip(qp.a.tolist(), change, strict=True)]
    terms, A = zip(qp.scores.tolist(), qp.linear(), change, strict=True), Fraction(qp.A)
    slopes = [Fraction(s) + e + A * d for s, e, d in terms]
    is_coupled = qp.formulation != "one-vs-rest"
    assert not is_coupled or sum(new) == 0
    assert all(low <= v <= high for v, (low, high) in zip(new, qp.bounds(), strict=True))
    may_fall = [s for s, v, (low, _) in zip(slopes, new, qp.bounds(), strict=True) if v > low]
    may_rise = [s for s, v, (_, high) in zip(slopes, new, qp.bounds(), strict=True) if v < high]
    zero = [] if is_coupled else [Fraction(0)]
    assert max(may_fall + zero) <= min(may_rise + zero)


# Classes, |x|^2, cost and change, by hand: where all scores are 0, a step d changes the margin by 2 A d.
BY_HAND = [
    *(((name, 2, 1e-3, 0.125), [0.125, -0.125]) for name in FORMULATIONS),  # a bound stops the step
    *(((name, 2, 2.0, 10.0), [0.25, -0.25]) for name in FORMULATIONS[:2]),  # it ends at margin one
    (("crammer-singer", 3, 1.0, 0.5), [0.5, -0.25, -0.25]),  # each of two classes takes half of what the label gains
]


@pytest.mark.parametrize(("problem", "expected"), BY_HAND)
def test_changes_are_those_computed_by_hand(problem, expected):
    formulation, classes, A, C = problem
    *_, change = RowQP(formulation, [0] * classes, [0] * classes, 0, A, C).solve()
    np.testing.assert_allclose(change, expected, rtol=1e-15)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3, 1e6, 1e9, 1e12])
def test_the_precision_of_the_change_does_not_depend_on_the_cost(formulation, C):
    qp = RowQP(formulation, [0.1, 0.2, 0.3], [0, 0, 0], 0, 1.7, C)
    np.testing.assert_allclose(qp.solve()[-1], [float(d) for d in qp.exact()], rtol=1e-14, atol=1e-16)


LEVELS = _core.simd_levels()


def at_levels(function, *arguments):
    """Return what a function returns at each level of the sessions and of the hooks, whose levels are set apart."""
    found = []
    for level in on_every_level():
        hooks.set_simd_level(level)
        found.append(function(*arguments))
    hooks.set_simd_level(_core.simd_level())
    return found


def bits(numbers):
    return np.asarray(numbers, np.float64).tobytes()


@st.composite
def rows_and_weights(draw):
    """A sparse row, in any order of columns and with repeated ones, and weights of all magnitudes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    features, stored, classes = draw(st.integers(1, 60)), draw(st.integers(0, 50)), draw(st.integers(1, 200))
    magnitude = draw(st.sampled_from([1e-300, 1e-10, 1.0, 1e10, 1e150]))
    x = rng.normal(size=stored) * 10.0 ** rng.integers(-3, 4, stored)
    return x, rng.integers(0, features, stored, dtype=np.int32), (rng.normal(size=(features, classes)) * magnitude)


@given(rows_and_weights())
def test_row_scores_are_the_product_and_bit_identical_at_every_level(problem):
    x, columns, W = problem
    found = at_levels(hooks.row_scores, *problem)
    assert np.shape(found[0]) == W.shape[1:]
    assert (np.abs(found[0] - x @ W[columns]) <= 1e-14 * (np.abs(x) @ np.abs(W[columns]))).all()
    assert len(set(map(bits, found))) == 1


@given(row_qps(most_classes=200))
def test_row_qps_are_bit_identical_at_every_level(qp):
    found = at_levels(hooks.solve_row, qp.formulation, qp.scores, qp.a, qp.label, qp.A, qp.C, qp.rest)
    assert len({tuple(map(bits, parts)) for parts in found}) == 1


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize(
    ("classes", "dtype", "layout"),
    [
        (2, np.float32, np.asarray),
        (5, np.float64, sparse.csr_matrix),
        (40, np.float32, sparse.csr_matrix),
        (40, np.float64, np.asarray),
        (150, np.float32, np.asarray),
        (150, np.float64, sparse.csr_matrix),
    ],
)
def test_whole_models_are_bit_identical_at_every_level(formulation, classes, dtype, layout):
    rng = np.random.default_rng(classes)
    y = np.arange(300) % classes
    X = rng.normal(size=(classes, 30))[y] + rng.normal(size=(300, 30))
    X[rng.random(X.shape) < 0.6] = 0
    model, X = LinearMulticlassSVC(formulation, tol=1e-2, random_state=3), layout(X.astype(dtype))

    def fitted():
        result = model.fit(X, y).result_
        return model.coef_.tobytes(), model.intercept_.tobytes(), result.primal, result.dual

    assert len(set(at_levels(fitted))) == 1


def level_in_a_new_process(value):
    environment = {**os.environ, "LARANK_SIMD": value}
    program = "from larank import _core; print(_core.simd_level())"
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("value", "level"), [*zip(LEVELS, LEVELS, strict=True), ("", LEVELS[-1])])
def test_the_environment_chooses_the_level_and_otherwise_the_best_is_taken(value, level):
    assert level_in_a_new_process(value).stdout.strip() == level


def test_an_unknown_level_is_a_clear_error_and_changes_nothing():
    run = level_in_a_new_process("x86-64-v9")
    assert run.returncode != 0
    assert all(word in run.stderr for word in ("(LARANK_SIMD) must be one of", "'scalar'", "'x86-64-v9'"))
    before = _core.simd_level()
    with pytest.raises(ValueError, match="got 'mmx'"):
        _core.set_simd_level("mmx")
    assert _core.simd_level() == before
