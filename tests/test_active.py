"""Selection strategies, the pool they draw from, and the learner that asks for labels."""

import copy
import re
from functools import cache, partial

import numpy as np
import pandas
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_matrix, csr_array, csr_matrix
from scipy.stats import chisquare
from sklearn.linear_model import LogisticRegression, SGDClassifier
from typer.testing import CliRunner

import larank
from checks import refuses
from larank import LaRankClassifier, LaSVMClassifier, cli
from larank.active import ActiveLearner, LabelBudgetExhausted, PoolExhausted
from larank.data import load_letter
from larank.kernel.selection import (
    STRATEGIES,
    Active,
    AutoActive,
    Gradient,
    Pool,
    Random,
    Strategy,
    label_margin,
    strategy_named,
    uncertainty_margin,
)

MARGINS = st.lists(st.integers(0, 9).map(lambda tenth: tenth / 5), min_size=1, max_size=30)


def pool(size, seed=0):
    return Pool(size, np.random.RandomState(seed))


# Margins


@given(st.integers(2, 6), st.integers(1, 8), st.integers(0, 1000))
def test_margins_are_those_of_sorted_scores_and_of_all_other_classes(classes, examples, seed):
    random = np.random.RandomState(seed)
    scores = random.randint(-3, 4, (examples, classes)) / 2  # with ties
    labels = random.randint(classes, size=examples)
    ordered = [sorted(row) for row in scores.tolist()]
    assert uncertainty_margin(scores).tolist() == [row[-1] - row[-2] for row in ordered]
    others = [max(s for c, s in enumerate(row) if c != y) for row, y in zip(scores.tolist(), labels, strict=True)]
    own = [row[y] for row, y in zip(scores.tolist(), labels, strict=True)]
    assert label_margin(scores, labels).tolist() == [mine - other for mine, other in zip(own, others, strict=True)]


@pytest.mark.parametrize("shape", [(4,), (4, 1)])
def test_binary_margins_are_those_of_the_scores_minus_and_plus_half_f(shape):
    f, labels = np.array([-2.0, 0.5, 0.0, 3.0]), np.array([0, 0, 1, 1])
    scores = np.column_stack([-f / 2, f / 2])
    assert uncertainty_margin(f.reshape(shape)).tolist() == uncertainty_margin(scores).tolist() == [2, 0.5, 0, 3]
    assert label_margin(f.reshape(shape), labels).tolist() == label_margin(scores, labels).tolist() == [2, -0.5, 0, 3]


def test_the_uncertainty_margin_is_the_label_margin_of_the_prediction():
    scores = np.random.RandomState(0).randn(40, 5)
    scores.setflags(write=False)
    assert np.array_equal(uncertainty_margin(scores), label_margin(scores, scores.argmax(axis=1)))


# Strategies


@given(MARGINS)
def test_gradient_and_active_choose_the_first_of_the_smallest_margins(margins):
    place = min(range(len(margins)), key=lambda k: (margins[k], k))
    assert Gradient().choose(np.array(margins), 1.0) == place
    assert Active().choose(np.array(margins), 1.0) == place


@given(MARGINS, st.integers(1, 6), st.integers(0, 9).map(lambda tenth: tenth / 5))
def test_autoactive_chooses_as_if_it_had_drawn_one_by_one(margins, enough, reach):
    drawn = []
    for margin in margins:
        drawn.append(margin)
        if sum(m < reach for m in drawn) == enough:
            break
    assert AutoActive(enough=enough).choose(np.array(margins), reach) == drawn.index(min(drawn))


def test_strategies_are_found_by_name_with_the_sizes_of_the_thesis():
    assert [strategy_named(name) for name in STRATEGIES] == [
        Random(),
        Gradient(sample_size=50),
        Active(sample_size=50),
        AutoActive(sample_size=100, enough=5),
    ]
    assert [strategy_named(name).draws for name in STRATEGIES] == [1, 50, 50, 100]
    assert Random().choose(np.array([3.0]), 1.0) == 0
    assert [name for name in STRATEGIES if not strategy_named(name).needs_scores] == ["random"]
    assert [name for name in STRATEGIES if strategy_named(name).needs_labels] == ["gradient"]


def test_a_strategy_of_ones_own_is_taken_as_it_is():
    class Farthest:
        draws, budget, needs_scores, needs_labels = 3, None, True, False

        def choose(self, margins, reach):
            return int(margins.argmax())

    strategy = Farthest()
    assert isinstance(strategy, Strategy)
    assert strategy_named(strategy) is strategy


# The pool


@given(st.integers(1, 200), st.integers(1, 70), st.integers(0, 1000))
def test_candidates_are_different_and_in_the_pool(size, count, seed):
    numbers = pool(size, seed)
    for taken in range(size // 2):
        numbers.remove(taken)
    drawn = numbers.draw(count)
    assert drawn.dtype == np.int64
    assert len(drawn) == len(set(drawn.tolist())) == min(count, len(numbers))
    assert all(number in numbers and number >= size // 2 for number in drawn.tolist())


@pytest.mark.parametrize(("size", "count"), [(5, 1), (5, 4), (9, 3), (12, 3)])
def test_every_candidate_is_equally_likely_at_every_place(size, count):
    numbers = pool(size)
    draws = np.array([numbers.draw(count) for _ in range(4000)])
    for place in range(count):
        assert chisquare(np.bincount(draws[:, place], minlength=size)).pvalue > 1e-3
    if count > 1:  # and so is every pair of them
        pairs = np.bincount(draws[:, 0] * size + draws[:, 1], minlength=size * size).reshape(size, size)
        assert not pairs.diagonal().any()
        assert chisquare(pairs[~np.eye(size, dtype=bool)]).pvalue > 1e-3


@pytest.mark.parametrize("count", [1, 4, 50, None])
def test_a_pool_gives_every_number_exactly_once_in_random_order(count):
    numbers, given = pool(173), []
    while len(numbers):
        given.append(int(numbers.draw(count)[0]))
        numbers.remove(given[-1])
        assert given[-1] not in numbers
        refuses(f"number must be in the pool, got {given[-1]}", numbers.remove, given[-1])
    assert sorted(given) == list(range(173)) != given
    assert not len(numbers.draw(count))


# The learner


class Recorder:
    """An estimator that writes down what it is given; its decision is the first feature."""

    def __init__(self):
        self.given = []
        self.looked_at = []

    def partial_fit(self, X, y, **others):
        self.given.append((X, np.asarray(y).tolist(), others))

    def decision_function(self, X):
        self.looked_at.append(len(X))
        return np.asarray(X, dtype=float)[:, 0]


def numbered(size=30):
    """Examples whose first feature is their distance to the boundary."""
    return np.column_stack([np.linspace(-3, 4, size), np.arange(size)])


def informed(X, **settings):
    """A learner whose estimator knows two classes."""
    estimator = Recorder()
    estimator.classes_ = np.array([0, 1])
    return ActiveLearner(estimator, X, random_state=0, **settings)


def ask_for(learner, labels):
    asked = []
    while learner.remaining:
        index, x = learner.query()
        learner.teach(x, labels[index])
        asked.append(index)
    return asked


def test_looking_at_all_examples_asks_in_order_of_their_distance():
    X = numbered()
    learner = informed(X, selection=Active(sample_size=None))
    assert ask_for(learner, np.zeros(len(X), int)) == np.argsort(np.abs(X[:, 0])).tolist()


def test_a_sample_is_no_larger_than_asked_for_and_each_label_is_one_step():
    learner = informed(numbered(), selection=Active(sample_size=4, budget=20))
    asked = ask_for(learner, np.arange(30) % 2)
    assert learner.estimator.looked_at == [4] * 20
    assert [(X[0, 1], y) for X, y, _ in learner.estimator.given] == [(index, [index % 2]) for index in asked]
    assert len(set(asked)) == 20


def test_queries_are_random_until_two_classes_are_known():
    learner = ActiveLearner(Recorder(), numbered(), random_state=0)
    for _ in range(6):
        _, x = learner.query()
        learner.teach(x, "cat")
    assert learner.estimator.looked_at == []
    learner.teach(learner.query()[1], "dog")
    learner.query()
    assert learner.estimator.looked_at == [23]  # what is left of a pool smaller than the sample


def test_random_selection_never_looks_at_scores():
    learner = informed(numbered(), selection="random")
    assert sorted(ask_for(learner, np.arange(30) % 2)) == list(range(30))
    assert learner.estimator.looked_at == []


def test_autoactive_reaches_as_far_as_the_estimator_says():
    reaches = []

    class Watching(AutoActive):
        def choose(self, margins, reach):
            reaches.append(reach)
            return super().choose(margins, reach)

    learner = informed(numbered(), selection=Watching())
    learner.teach(learner.query()[1], 0)
    for delta in (np.float64(0.5), np.array([0.5, 0.1])):  # the second is none for a model of many
        learner.estimator.delta_ = delta
        learner.teach(learner.query()[1], 0)
    assert reaches == [1.0, 1.25, 1.0]


def test_a_query_stays_until_it_is_answered():
    learner = informed(numbered(), selection=Active(sample_size=3))
    index, x = learner.query()
    learner.teach(np.array([5.0, 5.0]), 1)
    learner.teach(y=0, index=(index + 1) % 30)
    again, same = learner.query()
    assert again == index
    assert same is x
    learner.teach(x.copy(), 1)  # an equal one answers it as well
    assert learner.query()[0] != index
    assert (learner.labels_used, learner.remaining) == (3, 28)


def test_the_same_seed_asks_the_same_questions():
    first, second, other = (
        ActiveLearner(Recorder(), numbered(), selection=Active(sample_size=3), random_state=seed) for seed in (1, 1, 2)
    )
    labels = np.arange(30) % 2
    questions = ask_for(first, labels)
    assert questions == ask_for(second, labels)
    assert questions != ask_for(other, labels)


def test_skipped_examples_are_not_asked_about_again_but_may_be_taught():
    learner = informed(numbered(5))
    skipped, _ = learner.query()
    learner.skip()
    assert (learner.remaining, learner.labels_used) == (4, 0)
    assert skipped not in ask_for(learner, np.zeros(5, int))
    learner.teach(y=1, index=skipped)
    assert learner.labels_used == 5
    refuses(f"without a label, got {skipped}, which has one", learner.teach, y=1, index=skipped)
    with pytest.raises(PoolExhausted, match="all 5 examples of X were labelled or skipped"):
        learner.query()
    refuses(r"skip\(\) must follow query\(\)", learner.skip)


def test_several_labels_are_one_call_and_leave_the_pool():
    X = numbered()
    learner = informed(X)
    learner.teach(y=[1, 0, 1], index=[4, 2, 9])
    learner.teach(np.array([[7.0, 7.0], [8.0, 8.0]]), [0, 1])
    (first, y, _), (second, z, _) = learner.estimator.given
    assert np.array_equal(first, X[[4, 2, 9]])
    assert np.array_equal(second, [[7, 7], [8, 8]])
    assert (y, z) == ([1, 0, 1], [0, 1])
    assert (learner.labels_used, learner.remaining) == (5, 27)
    assert not {4, 2, 9} & set(ask_for(learner, np.zeros(30, int)))


def test_an_example_of_the_pool_may_be_taught_in_a_form_of_ones_own():
    learner = informed(numbered())
    index, x = learner.query()
    learner.teach(x / 2, 1, index=index)
    assert np.array_equal(learner.estimator.given[0][0], [x / 2])
    assert learner.remaining == 29
    _, x = learner.query()
    learner.teach(x, 0, index=index - 1)  # it counts as that one, as it was said to be
    assert np.array_equal(learner.estimator.given[1][0], [x])
    assert learner.query()[1] is x


def test_the_budget_ends_queries_and_lessons():
    learner = informed(numbered(), selection=Active(budget=3))
    learner.teach(y=[0, 1], index=[0, 1])
    assert learner.remaining == 1
    with pytest.raises(LabelBudgetExhausted, match="budget=3 of the selection does not allow 2 more labels, 2"):
        learner.teach(y=[0, 1], index=[2, 3])
    learner.teach(learner.query()[1], 0)
    assert learner.remaining == 0
    with pytest.raises(LabelBudgetExhausted, match="budget=3 of the selection does not allow 1 more labels, 3"):
        learner.query()
    assert len(learner.estimator.given) == 2
    assert issubclass(LabelBudgetExhausted, RuntimeError)


def test_a_lesson_that_fails_changes_nothing():
    X = np.array([[0.0, 1.0], [1.0, np.nan], [1.0, 1.0]])
    learner = ActiveLearner(LaRankClassifier(gamma=0.1), X, random_state=0)
    refuses("NaN", learner.teach, y="bad", index=1)
    assert (learner.labels_used, learner.remaining) == (0, 3)


def test_classes_go_to_the_first_step_alone():
    learner = informed(numbered(), classes=[0, 1, 2], selection=Active(budget=3))
    ask_for(learner, np.zeros(30, int))
    assert [list(others) for _, _, others in learner.estimator.given] == [["classes"], [], []]
    assert learner.estimator.given[0][2]["classes"].tolist() == [0, 1, 2]


def test_the_pool_is_neither_copied_nor_changed():
    X = numbered()
    X.setflags(write=False)
    learner = informed(X)
    _, x = learner.query()
    assert np.shares_memory(x, X)
    learner.teach(x, 1)


LEARNERS = [
    ({"selection": "gradient"}, r"selection must not depend on labels .* 'random', 'active' and 'autoactive' do"),
    ({"selection": Gradient()}, r"selection must not depend on labels .*; got Gradient\(sample_size=50, "),
    ({"selection": "nearest"}, r"selection must be one of .*; got 'nearest'"),
    ({"estimator": LogisticRegression()}, r"estimator must be an object with partial_fit, .*; got LogisticReg"),
    ({"estimator": LaRankClassifier(tol=0.1)}, r"an object with partial_fit, .*; tol must be None"),
    ({"estimator": LaRankClassifier}, r"estimator must be an object with partial_fit, .*; got <class"),
    ({"estimator": LaRankClassifier("precomputed")}, r"estimator must compute its kernel, got kernel='precomp"),
    ({"X": csc_matrix(np.eye(3))}, r"X must be a CSR matrix if it is sparse, got format 'csc'; X.tocsr\(\) would"),
    ({"X": np.zeros(3)}, r"X must have two dimensions, or be a sequence of objects; got shape \(3,\)"),
    ({"X": np.zeros((0, 3))}, r"X must hold at least one example, got none"),
    ({"X": []}, r"X must hold at least one example, got none"),
    ({"X": "abc"}, r"X must be an array, a CSR matrix, a data frame or a sequence, got str"),
    ({"X": 3}, r"X must be an array, .* got int"),
    ({"random_state": "seed"}, r"'seed' cannot be used to seed"),
]
REFUSED_BEFORE_A_LEARNER = [
    (label_margin, (np.zeros((2, 3)), np.array([0, 3])), "labels must be numbers of classes, 0 to 2; got 3"),
    (label_margin, (np.zeros((2, 3)), np.array([0, -1])), "labels must be numbers of classes, 0 to 2; got -1"),
    (label_margin, (np.zeros(2), np.array([0, 2])), "labels must be numbers of classes, 0 to 1; got 2"),
    (strategy_named, ("near",), "selection must be one of 'random', 'gradient', 'active', 'autoactive'; got 'near'"),
    (strategy_named, (3,), r"selection must be one of .* or a strategy such as Active\(sample_size=50\); got 3"),
    (strategy_named, (Active,), r"or a strategy such as .*; got <class"),
    (Active, (0,), "sample_size must be an integer >= 1; got 0"),
    (Active, (2.5,), "sample_size must be an integer >= 1; got 2.5"),
    (Random, (0,), "budget must be an integer >= 1; got 0"),
    (lambda: AutoActive(enough=0), (), "enough must be an integer >= 1; got 0"),
    (pool(10).remove, (-1,), "number must be in the pool, got -1"),
    (pool(10).remove, (10,), "number must be in the pool, got 10"),
    *(
        (lambda given=given: ActiveLearner(**{"estimator": Recorder(), "X": numbered(), **given}), (), said)
        for given, said in LEARNERS
    ),
]


@pytest.mark.parametrize(("call", "arguments", "message"), REFUSED_BEFORE_A_LEARNER)
def test_wrong_margins_strategies_and_learners_are_refused(call, arguments, message):
    refuses(message, call, *arguments)


@pytest.mark.parametrize(("decisions", "message"), [(np.full(30, np.nan), "finite numbers, got nan"), (0.0, "shape")])
def test_decisions_that_are_none_are_refused(decisions, message):
    learner = informed(numbered())
    learner.estimator.decision_function = lambda X: np.atleast_1d(decisions)
    refuses(rf"estimator.decision_function must return .*{message}", learner.query)


# With real estimators and all kinds of data


def two_moons(size=300):
    random = np.random.RandomState(0)
    angle, y = random.uniform(0, np.pi, size), random.randint(2, size=size)
    X = np.column_stack([np.cos(angle), np.sin(angle)]) * np.where(y, 1, -1)[:, None] + np.outer(y, [1, -0.5])
    return X + random.normal(scale=0.1, size=X.shape), np.array(["left", "right"])[y]


@cache
def questions_of(kind):
    """Return the indices that a learner asks about in a pool of this kind, one by one and in batches."""
    X, y = two_moons()
    model, asked = LaRankClassifier(C=10, gamma=2.0, random_state=0), []
    learner = ActiveLearner(model, kind(X), selection=Active(sample_size=10, budget=45), random_state=0)
    for number in [None] * 25 + [5] * 4:
        index, x = learner.query(number)
        learner.teach(x, y[index])
        asked.extend(np.atleast_1d(index).tolist())
    assert (learner.labels_used, learner.remaining) == (45, 0)
    return asked


@pytest.mark.parametrize("kind", [csr_matrix, csr_array, pandas.DataFrame, polars.DataFrame, np.ndarray.tolist])
@pytest.mark.filterwarnings("error")
def test_the_kind_of_pool_does_not_change_the_questions(kind):
    # Batches from frames and lists are spread by their decisions, because their rows have no distances.
    same = 45 if kind in (csr_matrix, csr_array) else 25
    assert questions_of(np.asarray)[:same] == questions_of(kind)[:same]


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix, csr_array, pandas.DataFrame, np.ndarray.tolist])
def test_an_equal_example_answers_the_question_and_another_does_not(kind):
    X, y = two_moons(20)
    learner = ActiveLearner(LaRankClassifier(gamma=2.0, random_state=0), kind(X), random_state=0)
    for _ in range(3):
        index, x = learner.query()
        learner.teach(x.copy(), y[index])
    assert learner.remaining == 17
    index, x = learner.query()
    learner.teach(kind(X[:1] + 7) if not isinstance(x, list | np.ndarray) else X[0] + 7, y[0])
    assert (learner.remaining, learner.labels_used, learner.query()[0]) == (17, 4, index)


@pytest.mark.parametrize("kind", [list, np.array, tuple, lambda words: np.array(words, object)])
def test_a_pool_of_words_with_a_kernel_of_ones_own(kind):
    words = ["aa", "ab", "aaa", "bb", "bbb", "ba", "aaaa", "bbbb", "aab", "bba"]
    labels = [max("ab", key=word.count) if word.count("a") != word.count("b") else "b" for word in words]

    def kernel(left, right):
        return [[a.count("a") * b.count("a") + a.count("b") * b.count("b") for b in right] for a in left]

    model = LaRankClassifier(kernel, random_state=0)
    learner = ActiveLearner(model, kind(words), selection=Active(sample_size=3), random_state=0)
    while learner.remaining:
        index, word = learner.query()
        learner.teach(str(word), labels[index])  # equal, though not the same object
    assert learner.labels_used == 10
    learner.teach("aaaaa", "a")
    assert learner.estimator.predict(["aaaaaa", "bbbbbb"]).tolist() == ["a", "b"]


def test_a_matrix_of_kernel_values_works_the_way_the_error_says():
    X, y = two_moons(60)
    K = np.exp(-2 * ((X[:, None] - X) ** 2).sum(axis=2))
    numbers = list(range(len(K)))
    model = LaRankClassifier(lambda a, b: K[np.ix_(a, b)], C=10, random_state=0)
    ask_for(ActiveLearner(model, numbers, selection=Active(budget=40), random_state=0), y)
    assert model.score(numbers, y) > 0.9


def test_a_new_class_may_appear_in_an_answer():
    X, y = two_moons()
    model = LaRankClassifier(gamma=2.0, random_state=0)
    learner = ActiveLearner(model, X, selection=Active(budget=30), random_state=0)
    ask_for(learner, np.where(X[:, 0] > 1.5, "far", y))
    assert learner.estimator.classes_.tolist() == ["far", "left", "right"]


def test_a_model_trained_before_chooses_from_the_first_question_on():
    X, y = two_moons()
    model = LaRankClassifier(C=10, gamma=2.0, random_state=0).partial_fit(X[:40], y[:40])
    distance = np.abs(model.decision_function(X[40:]))
    learner = ActiveLearner(model, X[40:], selection=Active(sample_size=None), random_state=0)
    assert learner.query()[0] == distance.argmin()


@cache
def error_on_letters(strategy, seed):
    """Return the error on six letters that look alike, after 80 labels."""
    letter = load_letter()
    train, test = (np.isin(y, list("BDEFPR")) for y in (letter.y_train, letter.y_test))
    X, y = letter.X_train[train].astype(np.float32), letter.y_train[train]
    model = LaRankClassifier(kernel="rbf", C=10, gamma=0.025, n_jobs=1, random_state=seed)
    ask_for(ActiveLearner(model, X, selection=strategy(budget=80), random_state=seed), y)
    return 1 - model.score(letter.X_test[test], letter.y_test[test])


@pytest.mark.parametrize("strategy", [Active, AutoActive])
def test_chosen_labels_teach_more_than_random_ones(strategy):
    chosen, random = (np.mean([error_on_letters(each, seed) for seed in range(3)]) for each in (strategy, Random))
    assert chosen < 0.9 * random


# Several questions at once


def test_a_batch_is_of_different_examples_and_stays_until_it_is_answered():
    X = numbered(60)
    learner = informed(X)
    numbers, rows = learner.query(10)
    assert len(set(numbers.tolist())) == 10
    assert np.array_equal(rows, X[numbers])
    assert learner.query(10)[0].tolist() == numbers.tolist() == list(learner.asked)
    assert learner.query()[0] == numbers[0]
    learner.teach(rows, [0, 1] * 5)
    assert learner.asked == ()
    assert learner.labelled == dict(zip(numbers.tolist(), [0, 1] * 5, strict=True))
    assert not set(learner.query(10)[0].tolist()) & set(numbers.tolist())


def test_what_is_left_of_a_batch_comes_first():
    learner = informed(numbered(60))
    numbers, rows = learner.query(4)
    learner.teach(rows[2], 1)
    learner.teach(y=0, index=int(numbers[0]))
    learner.skip(int(numbers[3]))
    assert learner.asked == (numbers[1],)
    assert learner.skipped == (numbers[3],)
    more, _ = learner.query(3)
    assert more[0] == numbers[1]
    assert len(set(more.tolist()) - set(numbers.tolist())) == 2


@pytest.mark.parametrize("strategy", [Active, AutoActive, Random, partial(Active, sample_size=None)])
def test_a_batch_ends_with_the_pool_and_with_the_budget(strategy):
    learner = informed(numbered(7), selection=strategy())
    assert sorted(learner.query(10)[0].tolist()) == list(range(7))
    learner = informed(numbered(7), selection=strategy(budget=3))
    assert len(learner.query(10)[0]) == 3


def test_a_batch_has_no_twins_where_others_promise_as_much():
    places = np.repeat(np.arange(10.0), 20)
    X = np.column_stack([np.full(200, 0.1), places])  # all equally near to the boundary, twenty times ten places
    numbers, _ = informed(X, selection=Active(sample_size=1)).query(10)
    assert len(set(places[numbers].tolist())) >= 8
    single = informed(X, selection="random").query(10)[0]
    assert len(set(places[single].tolist())) < 8


# Taking back


def letters(size=300):
    letter = load_letter()
    return letter.X_train[:size].astype(float), letter.y_train[:size]


def taught(labels, **settings):
    X, y = letters()
    learner = ActiveLearner(LaRankClassifier(C=10, gamma=0.02, random_state=0), X, random_state=0, **settings)
    for _ in range(labels):
        index, x = learner.query()
        learner.teach(x, y[index])
    return learner, X, y


def decisions(learner, X):
    return np.asarray(learner.estimator.decision_function(X))


def test_everything_can_be_undone_in_the_order_in_which_it_was_said():
    learner, X, y = taught(12, selection=Active(budget=40))
    model, before, labelled = learner.estimator, decisions(learner, X), learner.labelled
    first = next(iter(labelled))
    index, x = learner.query()
    learner.teach(x, "Z")
    learner.undo()
    assert learner.estimator is model
    assert np.array_equal(decisions(learner, X), before)
    assert (learner.labels_used, learner.query()[0], index in learner.labelled) == (12, index, False)
    numbers, _ = learner.query(3)
    learner.skip()
    learner.teach(y=y[numbers[1:]], index=numbers[1:])
    learner.correct(first, "Z")
    learner.teach(np.zeros(16), "Q")
    assert learner.labels_used == 15
    learner.undo()
    assert learner.labelled[first] == "Z"
    learner.undo()
    assert learner.labelled[first] == y[first]
    learner.undo()
    assert learner.asked == tuple(numbers[1:])
    learner.undo()
    assert learner.asked == tuple(numbers)
    assert learner.skipped == ()
    assert learner.labelled == labelled
    assert np.array_equal(decisions(learner, X), before)
    for _ in range(12):
        learner.undo()
    assert (learner.labels_used, learner.remaining, learner.labelled) == (0, 40, {})
    assert not hasattr(learner.estimator, "classes_")
    refuses(r"undo\(\) must follow teach\(\), skip\(\) or correct\(\)", learner.undo)


def test_a_corrected_label_is_as_if_it_had_been_given_at_once():
    right, X, y = taught(20, selection="random")
    wrong = ActiveLearner(LaRankClassifier(C=10, gamma=0.02, random_state=0), X, selection="random", random_state=0)
    for place in range(20):
        index, x = wrong.query()
        wrong.teach(x, "Z" if place == 7 else y[index])
    mistaken = list(wrong.labelled)[7]
    wrong.correct(mistaken, y[mistaken])
    assert wrong.labelled == right.labelled
    assert np.array_equal(decisions(wrong, X), decisions(right, X))


def test_a_correction_keeps_what_was_set_of_a_parameter_that_a_subclass_hides():
    class Mine(LaRankClassifier):
        def __init__(self):
            super().__init__(C=10, gamma=0.02, random_state=0)

    X, y = letters(40)
    learner = ActiveLearner(Mine(), X, random_state=0)
    learner.teach(y=["A", *y[1:20]], index=np.arange(20))
    learner.estimator.C = 0.1
    learner.correct(0, y[0])
    assert learner.estimator.C == 0.1


LESSONS = [
    ({"x": np.zeros(2)}, r"y must be a label or an array of labels, got nothing; skip\(\) leaves"),
    ({"x": np.zeros(2), "y": None}, r"y must be a label or an array of labels, got None"),
    ({"y": 1}, r"x must be an example, got nothing; without it, index must name one"),
    ({"y": 1, "index": 300}, r"index must be from 0 to 299, got 300"),
    ({"y": 1, "index": -1}, r"index must be from 0 to 299, got -1"),
    ({"y": 1, "index": 1.5}, r"index must be an integer or an array of integers, got 1.5"),
    ({"y": [1, 0], "index": [3, 3]}, r"index must not name an example twice, got \[3, 3\]"),
    ({"y": [1, 0], "index": 3}, r"index and y must be of the same shape, got \(\) and \(2,\)"),
    ({"y": [], "x": np.zeros((0, 2))}, r"y must be a label or a one-dimensional array .* got shape \(0,\)"),
    ({"y": [], "index": []}, r"y must be a label or a one-dimensional array .* got shape \(0,\)"),
    ({"y": [[1]], "index": [[3]]}, r"y must be a label or a one-dimensional array .* got shape \(1, 1\)"),
    ({"y": [1, 0], "x": np.zeros((3, 2))}, r"y must be one label per example, got 2 for 3 examples"),
    ({"y": 1, "x": np.zeros((1, 2)), "index": True}, r"index must be an integer .* got True"),
]
REFUSED = [
    *((lambda learner, lesson=lesson: learner.teach(**lesson), message) for lesson, message in LESSONS),
    *(
        (lambda learner, n=n: learner.query(n), f"n must be an integer >= 1; got {n!r}")
        for n in (0, -1, 2.5, "3", True)
    ),
    (lambda learner: learner.advice(0), "further must be"),
    (lambda learner: learner.advice(1.5), "further must be"),
    (lambda learner: learner.advice(9, worthwhile=-1), "worthwhile must be"),
    (lambda learner: learner.correct(299, "A"), "index must be that of an example with a label, .*labelled`; got 299"),
    (lambda learner: learner.correct("3", "A"), "index must be an integer or an array of integers, got '3'"),
    (lambda learner: learner.correct(None, "A"), "index must be an integer .* got None"),
    (
        lambda learner: [learner.skip(5), learner.skip(5)],
        "index must be that of an example that was not skipped, got 5",
    ),
    (lambda learner: learner.correct(0, None), r"label must be one label, got None; undo\(\) takes one back"),
    (lambda learner: learner.correct(0, ["A", "B"]), r"label must be one label, got \['A', 'B'\]"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_calls_that_make_no_sense_are_refused_and_change_nothing(call, message):
    learner, X, _ = taught(0)
    learner.teach(y=["A", "B"], index=[0, 1])
    before = decisions(learner, X)
    refuses(message, call, learner)
    assert np.array_equal(decisions(learner, X), before)
    assert learner.labelled == {0: "A", 1: "B"}


def test_a_correction_that_fails_changes_nothing():
    X, y = letters(40)
    learner = ActiveLearner(SGDClassifier(random_state=0), X, classes=sorted(set(y)), random_state=0)
    learner.teach(y=y[:5], index=np.arange(5))
    before = learner.estimator.coef_.copy()
    refuses("classes", learner.correct, 2, "no letter")
    learner.correct(2, y[2])  # it has this label already
    assert np.array_equal(learner.estimator.coef_, before)
    assert learner.labelled[2] == y[2]


# Files


@pytest.mark.parametrize("lessons", [0, 1, 25])
@pytest.mark.parametrize("is_asked", [False, True])
def test_a_saved_learner_goes_on_with_the_same_questions(tmp_path, lessons, is_asked):
    learner, X, y = taught(lessons, selection=Active(budget=60))
    if lessons:
        learner.skip() if learner.asked else (learner.query(), learner.skip())
    if is_asked:
        learner.query(4)
    learner.save(tmp_path / "session.larank")
    again = ActiveLearner.load(tmp_path / "session.larank", X)
    assert (again.labelled, again.asked, again.skipped) == (learner.labelled, learner.asked, learner.skipped)
    for _ in range(10):
        index, x = learner.query()
        other, z = again.query()
        assert index == other
        learner.teach(x, y[index])
        again.teach(z, y[index])
    assert (learner.remaining, learner.labels_used) == (again.remaining, again.labels_used)
    assert learner.advice() == again.advice()
    again.undo()
    learner.undo()
    assert np.allclose(decisions(learner, X), decisions(again, X))


def test_an_estimator_of_others_is_given_again_and_taught_again(tmp_path):
    X, y = letters(100)
    classes = sorted(set(y))
    learner = ActiveLearner(SGDClassifier(random_state=0), X, classes=classes, random_state=0)
    learner.teach(y=y[:20], index=np.arange(20))
    learner.teach(np.zeros(16), "A")
    learner.save(tmp_path / "session.larank")
    with pytest.raises(ValueError, match=r"estimator must be given, as it was before the first lesson: .*session"):
        ActiveLearner.load(tmp_path / "session.larank", X)
    again = ActiveLearner.load(tmp_path / "session.larank", X, estimator=SGDClassifier(random_state=0))
    assert np.array_equal(again.estimator.coef_, learner.estimator.coef_)
    assert again.query(5)[0].tolist() == learner.query(5)[0].tolist()


def test_a_model_trained_before_is_in_the_file_and_what_undo_returns_to(tmp_path):
    X, y = letters()
    model = LaRankClassifier(C=10, gamma=0.02, random_state=0).partial_fit(X[:50], y[:50])
    before = model.decision_function(X)
    learner = ActiveLearner(model, X[50:], random_state=0)
    learner.teach(y=y[60:70], index=np.arange(10, 20))
    learner.save(tmp_path / "session.larank")
    again = ActiveLearner.load(tmp_path / "session.larank", X[50:])
    assert np.allclose(decisions(again, X), decisions(learner, X))
    again.undo()
    learner.undo()
    assert np.allclose(decisions(again, X), before)
    assert np.array_equal(decisions(learner, X), before)


def test_another_pool_is_refused(tmp_path):
    learner, X, _ = taught(10)
    learner.save(tmp_path / "session.larank")
    with pytest.raises(ValueError, match=r"X must be the pool of .*session.larank, of 300 examples; got 299"):
        ActiveLearner.load(tmp_path / "session.larank", X[:-1])
    with pytest.raises(ValueError, match=r"X must be the pool of .*, but examples that were asked about are others"):
        ActiveLearner.load(tmp_path / "session.larank", X[::-1].copy())
    learner, rows = ActiveLearner(LaRankClassifier(), csr_matrix(X), random_state=0), csr_matrix(X[::-1])
    learner.query()
    learner.save(tmp_path / "session.larank")
    assert ActiveLearner.load(tmp_path / "session.larank", csr_matrix(X)).asked == learner.asked
    with pytest.raises(ValueError, match=r"but examples that were asked about are others in it"):
        ActiveLearner.load(tmp_path / "session.larank", rows)


def test_other_files_are_refused(tmp_path):
    learner, X, _ = taught(10)
    larank.save(learner.estimator, tmp_path / "model.larank")
    with pytest.raises(ValueError, match=r"holds a LaRankClassifier and no labels; larank.load reads it"):
        ActiveLearner.load(tmp_path / "model.larank", X)
    learner.save(tmp_path / "session.larank")
    record = larank.load(tmp_path / "session.larank")
    record.asked_ = [next(iter(learner.labelled))]
    larank.save(record, tmp_path / "odd.larank")
    with pytest.raises(ValueError, match=r"is damaged: its questions and answers are not those of its pool"):
        ActiveLearner.load(tmp_path / "odd.larank", X)
    for name, value in (
        ("watch_", {**record.watch_, "numbers": record.watch_["numbers"][:0]}),
        ("random_state_", ["other", *record.random_state_[1:]]),
        ("model_", LaSVMClassifier("linear").fit(np.eye(2), ["A", "B"])),
    ):
        damaged = copy.copy(record)
        setattr(damaged, name, value)
        refuses(name, larank.save, damaged, tmp_path / "odd.larank")
    for events in ([["lesson", [1], [], None]], [["skip", 300]], [["correction", 3, "A"]], [["praise", 3]], ["skip"]):
        record.events_ = events
        refuses(r"events_", larank.save, record, tmp_path / "odd.larank")


def test_the_command_line_shows_what_is_in_a_file(tmp_path):
    taught(3)[0].save(tmp_path / "session.larank")
    told = CliRunner().invoke(cli.app, ["info", str(tmp_path / "session.larank")])
    assert "LabellingRecord" in told.output


def test_what_cannot_be_saved_is_named(tmp_path):
    class Farthest(Active):
        pass

    learner, _, _ = taught(3, selection=Farthest())
    with pytest.raises(TypeError, match="the parameter 'selection' is a Farthest, which cannot be saved"):
        learner.save(tmp_path / "session.larank")


# Advice


def test_advice_comes_when_there_is_something_to_go_by():
    learner, _, y = taught(3)
    early = learner.advice()
    assert (early.expected_gain, early.enough) == (None, False)
    assert "too early to tell" in str(early)
    while learner.labels_used < 200:
        numbers, rows = learner.query(10)
        learner.teach(rows, y[numbers])
    late = learner.advice(50)
    assert 0 <= late.agreement <= 1
    assert 0 <= late.stability <= 1
    assert 0 < late.expected_gain <= 1
    assert re.match(r"203 labels were given\. The model would have given \d+% .* 50 more would mend some", str(late))
    assert learner.advice(50, worthwhile=1).enough
    assert not learner.advice(50, worthwhile=0).enough
    assert learner.advice(5).expected_gain < late.expected_gain


def test_agreement_counts_what_the_model_would_have_said():
    X = np.column_stack([np.repeat([-1.0, 1.0], 100), np.random.RandomState(0).randn(200)])
    y = np.repeat(["no", "yes"], 100)
    learner = ActiveLearner(LaRankClassifier(gamma=1.0, random_state=0), X, selection="random", random_state=0)
    learner.teach(y=["no", "yes"], index=[0, 199])
    assert learner.advice().agreement is None
    for right in (True, True, True, False):
        index, x = learner.query()
        learner.teach(x, y[index] if right else {"no": "yes", "yes": "no"}[y[index]])
    assert learner.advice().agreement == 0.75
    learner.undo()
    assert learner.advice().agreement == 1


def test_a_pool_of_one_example_comes_back(tmp_path):
    learner = ActiveLearner(LaRankClassifier(), np.ones((1, 2)), random_state=0)
    learner.save(tmp_path / "session.larank")
    assert ActiveLearner.load(tmp_path / "session.larank", np.ones((1, 2))).query()[0] == 0


def test_an_estimator_given_again_takes_the_place_of_the_one_in_the_file(tmp_path):
    learner, X, _ = taught(10)
    learner.save(tmp_path / "session.larank")
    again = ActiveLearner.load(tmp_path / "session.larank", X, estimator=LaRankClassifier(C=7, random_state=0))
    assert again.estimator.C == 7
    assert again.labels_used == 10


def test_a_record_whose_questions_need_labels_is_not_saved(tmp_path):
    taught(3)[0].save(tmp_path / "session.larank")
    record = larank.load(tmp_path / "session.larank").set_params(selection="gradient")
    with pytest.raises(ValueError, match="selection must not depend on labels"):
        larank.save(record, tmp_path / "other.larank")
