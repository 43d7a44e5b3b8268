"""Stochastic gradient descent in the core: losses, the certificate, algorithms step for step, the order of visits."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import expit
from sklearn import metrics
from test_sdm import grid_examples

from larank import LinearSGDClassifier
from properties import draws
from references import gradients
from references.gradients import LOSSES, Descent
from sessions import compiled, on_every_level

ALGORITHMS = ("sgd", "svmsgd2", "sgdqn", "olbfgs", "asgd")
SMOOTH = tuple(loss for loss in LOSSES if loss != "hinge")
NEVER = 10**9  # visits between two regularisations

every_loss = pytest.mark.parametrize("loss", LOSSES)
every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)
# Name, whether the loss is joint, functions.
FORMS = {"binary": (False, 1), "one-vs-rest": (False, 3), "joint": (True, 3)}
every_form = pytest.mark.parametrize("form", FORMS)
layouts = pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])


def session_of(X, labels, costs=None, rest_costs=None, *, shuffled=False, dtype=np.float64, weights=None, **options):
    """A session that is fed these examples, at these weights."""
    usual = {"algorithm": "sgd", "loss": "hinge", "joint": False, "functions": 1, "t0": 1.0, "skip": 1}
    usual |= {"lambda_": 1.0, "intercept": False, "seed": 0}
    session = compiled("SgdSession", dtype)(features=X.shape[1], **{**usual, **options})
    if weights is not None:
        session.restore({**session.state(), "weights": np.ascontiguousarray(weights, dtype)})
    feed(session, X, labels, costs, rest_costs, shuffled=shuffled)
    return session


def feed(session, X, labels, costs=None, rest_costs=None, *, shuffled=False):
    costs = np.ones(X.shape[0]) if costs is None else np.asarray(costs, float)
    rest_costs = costs if rest_costs is None else rest_costs
    arrays = (X.data, X.indices, X.indptr.astype(np.int64), X.shape[1]) if sparse.issparse(X) else (X,)
    session.feed(*arrays, np.asarray(labels, np.int32), costs, rest_costs, shuffled=shuffled)


def visit_all(session):
    assert session.run(2**62)
    return session


def after_each_visit(session, look):
    """What `look` sees of the session, visit by visit."""
    is_over = False
    while not is_over:
        is_over = session.run(1)
        yield look(session)


def problem(functions, n=60, features=5, seed=0, zeros=0.0):
    """Examples that are not separable, their labels and costs."""
    random = np.random.default_rng(seed)
    labels = np.arange(n) % max(2, functions)
    X = random.normal(size=(max(2, functions), features))[labels] + 1.5 * random.normal(size=(n, features))
    X[random.random(X.shape) < zeros] = 0
    return X, labels, random.choice([0.5, 1.0, 3.0], n)


def seen_loss(loss, joint, scores, label):
    """Value and gradient as the core has them: those of a single feature that is 1, whose weights are the scores."""
    scores = np.atleast_2d(scores)
    options = {"loss": loss, "joint": joint, "functions": scores.shape[1], "skip": NEVER, "weights": scores}
    session = visit_all(session_of(np.ones((1, 1)), [label], **options))
    return session.counters.loss, (scores - session.weights()).ravel()


@st.composite
def scores_and_labels(draw):
    joint, functions = FORMS[draw(st.sampled_from(sorted(FORMS)))]
    # Not so close to a corner that a difference quotient would go around it.
    score = st.integers(-24, 24).map(lambda k: k / 8 + 0.01)
    scores = np.array(draw(st.lists(score, min_size=functions, max_size=functions, unique=True)))
    return joint, scores + np.arange(functions) / 1000, draw(st.integers(0, max(1, functions - 1)))


@every_loss
@given(scores_and_labels())
def test_the_derivatives_of_a_loss_are_its_difference_quotients(loss, problem):
    joint, scores, label = problem
    step = 1e-5
    _, gradient = seen_loss(loss, joint, scores, label)
    for m, direction in enumerate(np.eye(len(scores)) * step):
        above, below = (seen_loss(loss, joint, scores + d, label)[0] for d in (direction, -direction))
        assert gradient[m] == pytest.approx((above - below) / (2 * step), abs=1e-6)


@every_loss
@given(scores_and_labels(), st.integers(-300, 300))
@example((True, np.array([-1.49, -2.239, 2.887]), 2), 2)  # a small loss beside a large score
def test_a_loss_and_its_gradient_are_the_formulas_also_far_out(loss, problem, factor):
    joint, scores, label = problem
    value, gradient = seen_loss(loss, joint, factor * scores, label)
    expected = gradients.scores_loss(loss, joint, factor * scores, label)
    assert value == pytest.approx(expected[0], rel=1e-12, abs=1e-100)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-12, atol=1e-12 * max(1, np.abs(factor * scores).max()))


@pytest.mark.parametrize("score", [-12.0, -1.5, -1.0, -0.3, 0.0, 0.4, 1.0, 2.0, 12.0])
@pytest.mark.parametrize("label", [0, 1])
def test_losses_of_two_classes_are_those_of_scikit_learn(score, label):
    expected = metrics.log_loss([label], [[expit(-score), expit(score)]], labels=[0, 1])
    assert seen_loss("log_loss", False, [score], label)[0] == pytest.approx(expected, abs=1e-9)
    theirs = pytest.importorskip("sklearn.linear_model._sgd_fast")
    formulas = {"hinge": theirs.Hinge(1.0), "squared_hinge": theirs.SquaredHinge(1.0)}
    for loss, formula in {**formulas, "modified_huber": theirs.ModifiedHuber()}.items():
        value, gradient = seen_loss(loss, False, [score], label)
        assert value == pytest.approx(formula.py_loss(score, 2.0 * label - 1))
        if (loss, abs(score)) != ("hinge", 1.0):  # its corner, where any derivative between both would do
            assert gradient == pytest.approx(formula.py_dloss(score, 2.0 * label - 1))


@st.composite
def problems(draw):
    """Few examples on a coarse grid, with weights, and the options of a session for them."""
    form = draw(st.sampled_from(sorted(FORMS)))
    joint, functions = FORMS[form]
    X, labels, costs = draw(grid_examples(1, 9, classes=max(2, functions)))
    options = {
        "algorithm": draw(st.sampled_from(ALGORITHMS)),
        "loss": draw(st.sampled_from(LOSSES)),
        "joint": joint,
        "functions": functions,
        "lambda_": draw(st.sampled_from([1e-4, 1e-2, 1.0, 10.0])),
        "t0": draw(st.sampled_from([2.0, 30.0, 1e4])),
        "skip": draw(st.sampled_from([1, 3, 16])),
    }
    return X, labels, costs, options


def evaluated(session, X, labels, costs, rest_costs=None):
    feed(session, X, labels, costs, rest_costs)
    session.begin_evaluation(with_dual=True)
    session.evaluate(0, X.shape[0])
    return session.objectives()


def primal_of(W, X, labels, costs, options):
    return gradients.mean_loss_primal(options["loss"], options["joint"], options["lambda_"], W, X, labels, costs)


@draws(300)
@given(problems(), st.integers(0, 3), st.integers(0, 2**32))
def test_the_primal_is_the_formula_and_every_bound_is_below_the_primal_of_all_weights(problem, passes, seed):
    """Not only of the weights of the session: of zeros, and of others."""
    X, labels, costs, options = problem
    session = session_of(X, labels, costs, **options)
    session.begin_bound()
    for _ in range(passes):
        feed(session, X, labels, costs, shuffled=True)
        visit_all(session)
    on_the_way = session.bound()
    at = evaluated(session, X, labels, costs)
    W = session.weights()
    primal, gradient = primal_of(W, X, labels, costs, options)
    assert at.primal == pytest.approx(primal, rel=1e-9)
    if options["loss"] != "hinge" and (not options["joint"] or options["loss"] == "log_loss"):
        assert at.violation == pytest.approx(np.abs(gradient).max(), rel=1e-6, abs=1e-9)
    random = np.random.default_rng(seed)
    for V in (W, np.zeros_like(W), W / 2, random.normal(size=W.shape) / 4, random.normal(size=W.shape) * 2):
        above = primal_of(V, X, labels, costs, options)[0]
        assert max(at.dual, on_the_way) <= above * (1 + 1e-9)
    assert at.dual >= 0


@pytest.mark.parametrize("loss", SMOOTH)
@every_form
def test_the_gap_closes_at_the_optimum(loss, form):
    joint, functions = FORMS[form]
    X, labels, costs = problem(functions, n=40)
    best, W = gradients.mean_loss_optimum(loss, joint, 0.1, X, labels, costs, functions)
    at = evaluated(session_of(X, labels, loss=loss, **named(form), lambda_=0.1, weights=W), X, labels, costs)
    assert at.primal == pytest.approx(best, rel=1e-9)
    if joint and loss != "log_loss":  # at the optimum classes tie for the best other one, and one of them has it all
        assert 0 <= at.dual <= best
    else:
        assert at.dual == pytest.approx(best, rel=1e-6)


@every_loss
def test_a_bound_of_derivatives_on_the_way_closes_in_on_the_optimum(loss):
    """Of averaged SGD in its second half; hinge and joint losses have no other bound that does."""
    X, labels, costs = problem(3, n=200)
    options = {"loss": loss, "form": "joint", "alpha": 0.1, "t0": 500.0, "skip": 1}
    session = driven("asgd", X, labels, costs, **options)
    for number in range(400):
        if number == 200:
            session.begin_bound()
        feed(session, X, labels, costs, shuffled=True)
        visit_all(session)
    at = evaluated(session, X, labels, costs)
    assert 0 <= at.primal - session.bound() <= 0.01 * at.primal


def named(form):
    return dict(zip(("joint", "functions"), FORMS[form], strict=True))


def driven(algorithm, X, labels, costs, *, loss, form, layout=np.asarray, alpha=0.05, t0=20.0, skip=3, **options):
    options = {"algorithm": algorithm, "loss": loss, "lambda_": alpha, "t0": t0, "skip": skip, **options}
    return session_of(layout(X), labels, costs, **named(form), **options)


def written_out(X, labels, costs, *, loss, form, alpha=0.05, t0=20.0):
    return Descent(loss, *FORMS[form], alpha, t0, X, labels, costs)


def assert_same_steps(seen, expected):
    """Tuples of arrays, visit by visit; a single array may come without its tuple."""
    for visit, (mine, theirs) in enumerate(zip(seen, expected, strict=True)):
        for one, other in zip(mine, theirs if isinstance(theirs, tuple) else (theirs,), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11, err_msg=f"after visit {visit}")


def state_of(*names):
    return lambda session: tuple(session.state()[name] for name in names)


# Algorithm, t0, what is compared after each visit, the steps written out. With longer steps the literal ratio of
# Algorithm 8 loses its digits; oLBFGS, which needs curvature, multiplies by the BFGS matrix of the last ten pairs.
PRINTED = {
    "svmsgd2": (20.0, ("weights",), lambda descent: descent.svmsgd2(skip=3)),  # Algorithm 7
    "sgdqn": (200.0, ("weights", "scaling"), lambda descent: descent.sgdqn(skip=3)),  # Algorithm 8
    "olbfgs": (100.0, ("weights",), lambda descent: descent.olbfgs()),
}


@layouts
@pytest.mark.parametrize(
    ("algorithm", "loss"), [(name, loss) for name in PRINTED for loss in LOSSES if (name, loss) != ("olbfgs", "hinge")]
)
@every_form
def test_steps_are_those_that_are_printed(form, algorithm, loss, layout):
    X, labels, costs = problem(FORMS[form][1], n=30 if algorithm == "olbfgs" else 60, zeros=0.3)
    t0, names, steps = PRINTED[algorithm]
    session = driven(algorithm, X, labels, costs, loss=loss, form=form, t0=t0, layout=layout)
    expected = written_out(X, labels, costs, loss=loss, form=form, t0=t0)
    assert_same_steps(after_each_visit(session, state_of(*names)), steps(expected))


@layouts
@every_loss
@every_form
@pytest.mark.parametrize("is_scaled", [False, True])
def test_averaged_sgd_takes_the_steps_of_its_formulas(form, loss, layout, is_scaled):
    X, labels, costs = problem(FORMS[form][1], zeros=0.3)
    scaling = np.array([0.5, 2.0, 1.0, 4.0, 0.1]) if is_scaled else np.ones(5)
    expected = list(written_out(X, labels, costs, loss=loss, form=form).asgd(skip=3, scaling=scaling))

    def fresh():
        session = driven("asgd", X, labels, costs, loss=loss, form=form, layout=layout)
        session.restore({**session.state(), "diagonal": scaling})
        feed(session, layout(X), labels, costs)
        return session

    assert_same_steps(after_each_visit(fresh(), state_of("weights", "average")), expected)
    np.testing.assert_allclose(visit_all(fresh()).weights(), expected[-1][1], rtol=1e-9, atol=1e-11)


def test_the_average_of_averaged_sgd_stays_exact_over_a_long_run():
    """It is kept as a sum of two tables whose factors grow apart, and is made anew before they lose digits."""
    X, labels, costs = problem(1, n=20_000)
    session = visit_all(driven("asgd", X, labels, costs, loss="hinge", form="binary"))
    *_, (_, average) = written_out(X, labels, costs, loss="hinge", form="binary").asgd(skip=3)
    np.testing.assert_allclose(session.weights(), average, rtol=1e-8)


@layouts
@every_loss
@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name != "olbfgs"])
def test_one_versus_rest_is_a_binary_problem_for_each_class_in_the_same_order(algorithm, loss, layout):
    """Not of oLBFGS, whose pairs are those of all parameters together."""
    X, labels, costs = problem(3, zeros=0.3)
    rest = np.random.default_rng(0).choice([0.5, 2.0], len(labels))  # in the problems of the other classes
    options = {"loss": loss, "layout": layout}
    together = driven(algorithm, X, labels, costs, rest_costs=rest, form="one-vs-rest", **options)
    each = [(labels == m, np.where(labels == m, costs, rest)) for m in range(3)]
    alone = [driven(algorithm, X, *binary, form="binary", **options) for binary in each]
    for session in (together, *alone):
        session.begin_bound()
    weights = [visit_all(session).weights() for session in (together, *alone)]
    np.testing.assert_allclose(weights[0], np.hstack(weights[1:]), rtol=1e-10, atol=1e-12)
    assert together.bound() == pytest.approx(sum(session.bound() for session in alone), rel=1e-9, abs=1e-9)
    at = evaluated(together, layout(X), labels, costs, rest)
    parts = [evaluated(session, layout(X), *binary) for session, binary in zip(alone, each, strict=True)]
    assert at.primal == pytest.approx(sum(part.primal for part in parts), rel=1e-9)
    assert at.dual == pytest.approx(sum(part.dual for part in parts), rel=1e-9, abs=1e-9)


@every_loss
@every_form
def test_svmsgd2_that_regularises_at_every_visit_is_sgd(form, loss):
    X, labels, costs = problem(FORMS[form][1])
    sessions = [driven(name, X, labels, costs, loss=loss, form=form, skip=1) for name in ("sgd", "svmsgd2")]
    np.testing.assert_array_equal(*(list(after_each_visit(session, state_of("weights"))) for session in sessions))


def test_the_estimator_regularises_at_every_visit_with_sgd_and_by_the_sparsity_otherwise():
    X, labels, _ = problem(1, zeros=0.5)
    for algorithm, skip in (("sgd", 1), ("svmsgd2", round(16 / np.mean(X != 0)))):
        model = LinearSGDClassifier(algorithm=algorithm, t0=1e3, max_iter=1, random_state=0).fit(X, labels)
        assert model._state["skip"] == skip


def test_sgd_differs_from_line_3_of_algorithm_7_by_the_square_of_the_step():
    """Here the pattern comes first and w_{t+1} is regularised; as printed, both terms are at w_t."""
    X, labels, costs = problem(1)
    options, apart = {"loss": "squared_hinge", "form": "binary"}, []
    for t0 in (1e5, 2e5, 4e5):
        *_, printed = written_out(X, labels, costs, t0=t0, **options).sgd()
        weights = visit_all(driven("sgd", X, labels, costs, t0=t0, skip=1, **options)).weights()
        apart.append(np.abs(weights - printed).max())
    assert np.divide(apart[:-1], apart[1:]) == pytest.approx(4, rel=0.1)


@layouts
@every_loss
@every_form
def test_sgdqn_with_a_diagonal_that_stays_takes_the_steps_of_svmsgd2(form, loss, layout):
    X, labels, costs = problem(FORMS[form][1], zeros=0.3)
    fixed = driven("sgdqn", X, labels, costs, loss=loss, form=form, layout=layout)
    count, update, _ = fixed.state()["schedule"]
    fixed.restore({**fixed.state(), "schedule": np.array([count, update, 1e300])})  # secants have the weight 2 / r
    plain = driven("svmsgd2", X, labels, costs, loss=loss, form=form, layout=layout)
    assert_same_steps(*(after_each_visit(session, state_of("weights")) for session in (fixed, plain)))
    assert (fixed.state()["scaling"] == 1 / 0.05).all()


@every_loss
@every_form
def test_on_dense_examples_without_zeros_the_diagonal_of_sgdqn_is_a_number_for_each_function(form, loss):
    """The printed ratios are those of the loss's curvature along x, the same for all features that x has."""
    X, labels, costs = problem(FORMS[form][1])
    session = driven("sgdqn", X, labels, costs, loss=loss, form=form)
    for (B,) in after_each_visit(session, state_of("scaling")):
        np.testing.assert_allclose(B, np.broadcast_to(B[:1], B.shape), rtol=1e-12)
    if loss != "hinge":
        assert (B < 0.99 / 0.05).all()


@every_algorithm
@every_form
def test_an_intercept_is_a_feature_that_is_one(algorithm, form):
    X, labels, costs = problem(FORMS[form][1], zeros=0.3)
    options = {"loss": "squared_hinge", "form": form, "t0": 100.0}
    wide = np.column_stack([X, np.ones(len(X))])
    found = [driven(algorithm, Z, labels, costs, intercept=Z is X, **options) for Z in (X, wide)]
    np.testing.assert_allclose(*(visit_all(session).weights() for session in found), rtol=1e-9, atol=1e-11)


@layouts
@every_algorithm
@every_form
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_instruction_set_makes_the_same_weights_to_the_last_bit(algorithm, form, layout, dtype):
    X, labels, costs = problem(FORMS[form][1], n=100, features=37, zeros=0.6)
    found = set()
    for _ in on_every_level():
        options = {"loss": "squared_hinge", "form": form, "t0": 1e3, "intercept": True, "dtype": dtype}
        session = visit_all(driven(algorithm, X.astype(dtype), labels, costs, layout=layout, **options))
        at = evaluated(session, layout(X.astype(dtype)), labels, costs)
        found.add((session.weights().tobytes(), at.primal, at.dual, at.violation))
    assert len(found) == 1


@every_algorithm
@every_form
def test_single_precision_sparse_and_wide_indices_make_nearly_the_same_weights(algorithm, form):
    X, labels, costs = problem(FORMS[form][1], n=100, features=20, zeros=0.6)
    X = X.astype(np.float32).astype(np.float64)
    options = {"loss": "log_loss", "form": form, "t0": 1e3, "intercept": True}

    def wide(X):
        X = sparse.csr_matrix(X)
        X.indices = X.indices.astype(np.int64)
        return X

    expected = visit_all(driven(algorithm, X, labels, costs, **options)).weights()
    for layout in (sparse.csr_matrix, wide):
        same = visit_all(driven(algorithm, X, labels, costs, layout=layout, **options)).weights()
        np.testing.assert_allclose(same, expected, rtol=1e-9, atol=1e-11)
        for values in (X.astype(np.float32), X):  # a session in single precision takes examples in double
            single = driven(algorithm, values, labels, costs, layout=layout, dtype=np.float32, **options)
            np.testing.assert_allclose(visit_all(single).weights(), expected, rtol=1e-3, atol=1e-4)


def visits_of(n, seed=0, passes=1, *, shuffled=True, values=1):
    """When each row came in the last pass: it has features of its own, and their weights have moved by 1 / (t + t0)."""
    columns, starts = np.arange(n * values, dtype=np.int32), np.arange(0, n * values + 1, values)
    X = sparse.csr_matrix((np.ones(n * values), columns, starts), shape=(n, n * values))
    session = session_of(X, np.ones(n), algorithm="svmsgd2", t0=1e4, skip=NEVER, seed=seed)
    weights = np.zeros(n)
    for _ in range(passes):
        feed(session, X, np.ones(n), shuffled=shuffled)
        before, weights = weights, visit_all(session).weights()[::values, 0]
    return np.rint(1 / (weights - before) - 1e4).astype(int) - n * (passes - 1)


# Within the second cache and beyond; rows of one value, of a page, and of more.
SIZES = [(1, 1), (2, 1), (500, 1), (60_000, 1), (2_000, 40), (700, 400)]


@pytest.mark.parametrize(("n", "values"), SIZES)
def test_a_pass_visits_every_row_once_and_without_shuffling_as_they_lie(n, values):
    for passes in (1, 2):
        np.testing.assert_array_equal(np.sort(visits_of(n, values=values, passes=passes)), np.arange(n))
    np.testing.assert_array_equal(visits_of(n, values=values, shuffled=False, passes=2), np.arange(n))


@pytest.mark.parametrize(("n", "values"), SIZES[2:])
def test_the_seed_decides_the_order_which_every_pass_has_of_its_own_and_which_mixes_neighbours(n, values):
    first = visits_of(n, values=values)
    np.testing.assert_array_equal(visits_of(n, values=values), first)
    assert np.mean(visits_of(n, seed=1, values=values) == first) < 0.05
    assert np.mean(visits_of(n, passes=2, values=values) == first) < 0.05
    order = np.argsort(first)
    assert np.mean(np.abs(np.diff(order)) <= 1) < 0.05
    np.testing.assert_allclose([part.mean() / n for part in np.array_split(order, 10)], 0.5, rtol=0, atol=0.15)
