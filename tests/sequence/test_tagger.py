"""`SequenceTagger` as a user meets it; the compiled core has tests of its own."""

from __future__ import annotations

import itertools
import math
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict

from forging import joined, split
from larank import MemoryLimitError, SequenceTagger, StructuredModel, StructuredSVC
from larank.data import DataFormatError, data_directory
from larank.data.columns import ConllFile, write_conll
from larank.data.models import ModelFileError, load, save
from larank.publishing import one_model
from larank.sequence.constraints import follows
from larank.sequence.entities import entities, repaired
from larank.sequence.labels import LabelNumbers
from larank.sequence.tagger import RankedPath
from larank.sequence.wronglabels import LabelsNotAllowedError
from larank.training import TrainingWarning
from references.chains import hooks

WORDS = {
    "DET": ["the", "a", "this", "every"],
    "ADJ": ["big", "old", "red", "the-like"],
    "NOUN": ["dog", "cat", "house", "old", "run"],
    "VERB": ["sees", "run", "has", "house"],
}
TAGS = [("DET", "NOUN", "VERB"), ("DET", "ADJ", "NOUN", "VERB", "DET", "NOUN"), ("NOUN", "VERB"), ("VERB",)]


def sentences(count: int, seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    random = np.random.RandomState(seed)
    y = [list(TAGS[random.randint(len(TAGS))]) for _ in range(count)]
    X = [[WORDS[tag][random.randint(len(WORDS[tag]))] for tag in tags] for tags in y]
    return X, y


def chunked(count: int, scheme: str, seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    """Words and well-formed tags of entities X and Y."""
    random = np.random.RandomState(seed)
    X, y = [], []
    for _ in range(count):
        words, tags = list[str](), list[str]()
        for _ in range(random.randint(1, 5)):
            kind, length = "XY"[random.randint(2)], random.randint(0, 4)
            if length == 0:
                words.append(f"o{random.randint(4)}")
                tags.append("O")
                continue
            words += [f"{kind.lower()}{random.randint(6)}" for _ in range(length)]
            tags += _entity(kind, length, scheme)
        X.append(words)
        y.append(tags)
    return X, y


def _entity(kind: str, length: int, scheme: str) -> list[str]:
    if scheme == "BIO":
        return [f"B-{kind}"] + [f"I-{kind}"] * (length - 1)
    return [f"U-{kind}"] if length == 1 else [f"B-{kind}"] + [f"I-{kind}"] * (length - 2) + [f"L-{kind}"]


def no_repeat(previous: Any, label: Any) -> bool:
    return previous != label


SETTINGS: list[dict[str, Any]] = [
    {},
    {"order": 0},
    {"order": 2},
    {"inference": "greedy"},
    {"inference": "greedy", "order": 4, "n_reprocess": 2},
    {"inference": "greedy", "history": "predicted"},
    {"solver": "passive-aggressive"},
    {"solver": "perceptron", "average": True, "epochs": 2},
    {"solver": "perceptron", "inference": "greedy"},
]
settings = pytest.mark.parametrize("settings", SETTINGS, ids=str)


# ---- Learning ----


@settings
def test_it_learns_and_predicts_one_label_per_token(settings: dict[str, Any]) -> None:
    X, y = sentences(200)
    other, truth = sentences(100, seed=1)
    tagger = SequenceTagger(random_state=0, **settings).fit(X, y)
    assert tagger.classes_.tolist() == ["ADJ", "DET", "NOUN", "VERB"]
    assert tagger.score(other, truth) > 0.9
    predicted = tagger.predict(other)
    assert [len(labels) for labels in predicted] == [len(words) for words in other]
    right = [a == b for labels, tags in zip(predicted, truth, strict=True) for a, b in zip(labels, tags, strict=True)]
    assert tagger.score(other, truth) == np.mean(right)


@settings
def test_calls_of_partial_fit_equal_one_fit_in_order(settings: dict[str, Any]) -> None:
    settings = {**settings, "epochs": 1}
    X, y = sentences(90)
    whole = SequenceTagger(random_state=0, shuffle=False, **settings).fit(X, y)
    parts = SequenceTagger(random_state=0, **settings)
    for begin in range(0, 90, 25):
        parts.partial_fit(X[begin : begin + 25], y[begin : begin + 25])
    assert parts.classes_.tolist() == whole.classes_.tolist()
    assert parts.feature_names() == whole.feature_names()
    np.testing.assert_allclose(parts.coef_.toarray(), whole.coef_.toarray(), atol=1e-12)
    np.testing.assert_allclose(parts.transitions_, whole.transitions_, atol=1e-12)


@settings
def test_what_is_sent_for_predictions_is_small_and_predicts_alike(settings: dict[str, Any]) -> None:
    X, y = sentences(300)
    tagger = SequenceTagger(random_state=0, **settings).fit(X, y)
    sent = pickle.loads(pickle.dumps(tagger._for_prediction()))
    assert sent.predict(X).tolist() == tagger.predict(X).tolist()
    if tagger.solver == "larank":  # the others keep no patterns
        assert len(pickle.dumps(sent)) < 0.8 * len(pickle.dumps(tagger))
    tagger.partial_fit(X[:10], y[:10])  # which nobody holds


def test_a_few_sentences_teach_a_fitted_tagger_something_new() -> None:
    X, y = sentences(300)
    tagger = SequenceTagger(random_state=0).fit(X, y)
    tagger.partial_fit([["the", "Titanic", "sank"]] * 12, [["DET", "SHIP", "VERB"]] * 12)
    assert tagger.predict([["the", "Titanic", "sank"]]).tolist() == [["DET", "SHIP", "VERB"]]


def conll2000(part: str) -> ConllFile:
    try:
        path = data_directory() / "conll2000" / f"{part}.txt.xz"
    except FileNotFoundError:
        pytest.skip("needs conll2000 (LARANK_DATA)")
    if not path.exists():
        pytest.skip("needs conll2000 (LARANK_DATA)")
    return ConllFile(path)


AVERAGED: list[dict[str, Any]] = [
    {},
    {"inference": "greedy"},
    {"solver": "passive-aggressive", "average": True},
]


def chunks() -> tuple[list[Any], list[list[str]]]:
    block = next(conll2000("train").blocks(22_000))
    return block.sentences(), [list(map(str, labels)) for labels in np.split(block.labels, block.starts[1:-1])]


def test_sentences_one_by_one_cost_an_averaged_perceptron_no_accuracy() -> None:
    X, y = chunks()
    settings: dict[str, Any] = {"solver": "perceptron", "average": True, "random_state": 0, "n_jobs": 1}
    tagger = SequenceTagger(**settings).fit(X[:600], y[:600])
    accuracy = tagger.score(X[640:900], y[640:900])
    for i in range(600, 640):
        tagger.partial_fit(X[i : i + 1], y[i : i + 1])
    assert tagger.score(X[640:900], y[640:900]) > accuracy - 0.0005


@pytest.mark.parametrize("settings", AVERAGED, ids=str)
def test_one_sentence_costs_no_accuracy_and_a_correction_is_learnt(settings: dict[str, Any]) -> None:
    X, y = chunks()
    held, truth = X[600:900], y[600:900]
    fitted = SequenceTagger(random_state=0, n_jobs=1, certify=False, **settings).fit(X[:600], y[:600])
    accuracy = fitted.score(held, truth)
    repeats = []
    for i in [i for i, labels in enumerate(fitted.predict(held)) if labels != truth[i]][:3]:
        tagger, sentence = pickle.loads(pickle.dumps(fitted)), (held[i : i + 1], truth[i : i + 1])
        assert tagger.partial_fit(*sentence).score(held, truth) > accuracy - 0.001
        repeats.append(1)
        while tagger.predict(sentence[0])[0] != truth[i] and repeats[-1] < 50:
            tagger.partial_fit(*sentence)
            repeats[-1] += 1
    assert np.median(repeats) <= 25


def test_new_labels_and_features_join_a_stream() -> None:
    X, y = sentences(100)
    tagger = SequenceTagger(random_state=0).partial_fit(X, y)
    before = tagger.coef_.shape
    strange = [["wow", *words] for words in X]
    strange_tags = [["INTJ", *tags] for tags in y]
    tagger.partial_fit(strange, strange_tags)
    assert tagger.coef_.shape[0] > before[0]
    assert tagger.coef_.shape[1] == before[1] + 1 == tagger.transitions_.shape[2]
    assert tagger.predict([["wow", "the", "dog", "sees"]]).tolist() == [["INTJ", "DET", "NOUN", "VERB"]]


def test_many_new_labels_widen_the_model() -> None:
    tagger = SequenceTagger(random_state=0)
    for n in range(20):
        tagger.partial_fit([[f"w{n}", "end"]] * 3, [[f"L{n:02}", "END"]] * 3)
    assert tagger.predict([[f"w{n}", "end"] for n in range(20)]).tolist() == [[f"L{n:02}", "END"] for n in range(20)]


@pytest.mark.parametrize("label", ["NOUN", 3])
def test_one_label_is_refused_by_fit_and_may_begin_a_stream(label: Any, tmp_path: Any) -> None:
    X, y = [["a", "dog"], ["cat"]], [[label, label], [label]]
    why = f"y must hold at least two classes, got one class: {label!r}$"
    write_conll(tmp_path / "one.txt", X, [[str(tag) for tag in tags] for tags in y])
    fitted = SequenceTagger(random_state=0).fit(*sentences(20))
    before = fitted.predict(X).tolist()
    with pytest.raises(ValueError, match=why):
        fitted.fit(X, y)
    with pytest.raises(ValueError, match="y must hold at least two classes, got one class: "):
        fitted.fit(ConllFile(tmp_path / "one.txt"))
    assert fitted.predict(X).tolist() == before
    stream = SequenceTagger(random_state=0).partial_fit(X, y)
    assert stream.predict([["dog"]])[0] == [label]
    stream.partial_fit([["a"]] * 9, [["DET" if label == "NOUN" else 5]] * 9)
    assert len(stream.classes_) == 2


def test_weights_of_zero_that_leave_one_label_are_refused() -> None:
    X, y = [["a", "dog"], [], ["cat"]], [["DET", "NOUN"], [], ["NOUN"]]
    with pytest.raises(ValueError, match="sample_weight must leave at least two labels in sequences with a weight"):
        SequenceTagger().fit(X, y, [0, 1, 1])
    SequenceTagger().fit(X, y, [1, 0, 0])


@pytest.mark.parametrize("settings", [{}, {"average": False}, {"inference": "greedy", "order": 3}], ids=str)
def test_weights_that_take_more_than_the_limit_are_refused_before_they_are_made(settings: dict[str, Any]) -> None:
    X = [[f"w{n}"] for n in range(3000)]
    y = [[f"L{n}"] for n in range(3000)]
    tagger = SequenceTagger(templates=["word[0]"], memory_limit=1e8, random_state=0, **settings)
    why = (
        r"memory_limit must be at least (\d+) bytes for the weights of 3000 features x 3000 labels and (\d) x 3001 x "
        r"3000 of pairs of labels, (\d) times.*, got 1e\+08; fewer labels or templates take less"
    )
    with pytest.raises(MemoryLimitError, match=why) as error:
        tagger.fit(X, y)
    needed, order, arrays = map(int, re.fullmatch(why, str(error.value)).groups())  # type: ignore[union-attr]
    assert (order, arrays) == (settings.get("order", 1), 3 if settings.get("average", True) else 1)
    assert needed == arrays * (3000 + order * 3001) * 3000 * 8
    assert not hasattr(tagger, "classes_")
    tagger.fit(*sentences(20))
    before = tagger.predict(sentences(5)[0]).tolist()
    with pytest.raises(MemoryLimitError, match=r"memory_limit must be at least \d+ bytes"):
        tagger.partial_fit(X, y)
    assert tagger.predict(sentences(5)[0]).tolist() == before
    tagger.partial_fit(*sentences(5))


def test_a_saved_tagger_whose_weights_take_more_than_the_limit_is_refused() -> None:
    tagger = SequenceTagger(templates=["word[0]"], average=False, random_state=0).fit(*sentences(20))
    state = tagger.__getstate__()
    state["_state"] = {**state["_state"], "labels": [f"L{n:04}" for n in range(4000)]}
    state["_state"]["transitions"] = np.zeros((1, 4001, 4000))
    state["memory_limit"] = 1e8
    with pytest.raises(MemoryLimitError, match=r"memory_limit must be at least \d+ bytes .* x 4000 labels"):
        SequenceTagger.__new__(SequenceTagger).__setstate__(state)


def test_integer_labels_stay_integers() -> None:
    X = (np.eye(3)[[0, 1, 2, 0, 1]], [3, 2])
    tagger = SequenceTagger(random_state=0).fit(X, np.array([7, 8, 9, 7, 8]))
    predicted = tagger.predict(X)
    assert predicted.dtype.kind == "i"
    assert predicted.tolist() == [7, 8, 9, 7, 8]


# ---- What tokens may be ----


@pytest.mark.parametrize("lengths", [(1, 2, 3, 4), (3, 3, 3, 3), (1, 1, 1, 1)], ids=str)
def test_sequences_of_labels_are_an_array_of_lists(lengths: tuple[int, ...], tmp_path: Any) -> None:
    X = [[["a", "b"][k % 2] for k in range(length)] for length in lengths] * 4
    y = [[{"a": "A", "b": "B"}[word] for word in words] for words in X]
    for i in (0, 8):
        y[i] = ["B", *y[i][1:]]  # one label alone is refused
    tagger = SequenceTagger(random_state=0).fit(X, y)
    write_conll(tmp_path / "words.txt", X, y)
    file = ConllFile(tmp_path / "words.txt")
    some = tagger.predict(X[:1])
    for found in (tagger.predict(X), tagger.predict(np.array(X, dtype=object)), tagger.predict(file), some):
        assert found.dtype == object
        assert found.shape == (1 if found is some else len(X),)
        assert all(type(labels) is list and type(labels[0]) is str for labels in found)
    for block in tagger.predict_blocks(file):
        assert (block.dtype, block.shape) == (object, (len(X),))
    assert tagger.predict([]).shape == (0,)
    predicted = cross_val_predict(SequenceTagger(random_state=0), X, y, cv=4)
    assert (predicted.dtype, predicted.shape) == (object, (len(X),))
    assert [len(labels) for labels in predicted] == list(map(len, X))
    assert predicted[-1] == y[-1]


def test_a_search_over_parameters_works_on_lists() -> None:
    X, y = sentences(40)
    search = GridSearchCV(SequenceTagger(random_state=0), {"C": [1e-9, 0.1]}, cv=2).fit(X, y)
    assert search.best_params_ == {"C": 0.1}
    assert search.predict(X).shape == (40,)


def _template_free() -> dict[str, Any]:
    return {"templates": ["word[0]", "word[-1]"], "shuffle": False, "random_state": 0}


def test_templates_names_and_dicts_make_the_same_model() -> None:
    X, y = sentences(50)
    text = SequenceTagger(**_template_free()).fit(X, y)

    def before(words: list[str], t: int) -> str:
        return words[t - 1] if t else "<s-1>"

    names = [[[f"word[0]={w}", f"word[-1]={before(words, t)}"] for t, w in enumerate(words)] for words in X]
    dicts = [[{"word[0]": w, "word[-1]": before(words, t)} for t, w in enumerate(words)] for words in X]
    for tokens in (names, dicts):
        tagger = SequenceTagger(shuffle=False, random_state=0).fit(tokens, y)
        assert tagger.feature_names() == text.feature_names()
        np.testing.assert_array_equal(tagger.coef_.toarray(), text.coef_.toarray())


def test_dense_sparse_and_named_numbers_make_the_same_model() -> None:
    random = np.random.RandomState(0)
    rows = random.randint(-8, 9, (60, 5)) / 8 * (random.rand(60, 5) < 0.6)  # exact in float32
    lengths = [4, 6, 10, 20, 20]
    y = random.randint(3, size=60)
    make = {"shuffle": False, "random_state": 0}
    dense = SequenceTagger(**make).fit((rows, lengths), y)
    sparse = SequenceTagger(**make).fit((csr_matrix(rows), lengths), y)
    np.testing.assert_array_equal(dense.coef_.toarray(), sparse.coef_.toarray())
    single = SequenceTagger(**make).fit((rows.astype(np.float32), lengths), y)
    np.testing.assert_allclose(single.coef_.toarray(), dense.coef_.toarray())
    starts = np.cumsum([0, *lengths])
    nested = [y[a:b] for a, b in itertools.pairwise(starts)]
    again = SequenceTagger(**make).fit((rows, lengths), nested)
    np.testing.assert_array_equal(again.coef_.toarray(), dense.coef_.toarray())
    tokens = [[{f"x{j}": v for j, v in enumerate(row)} for row in rows[a:b]] for a, b in itertools.pairwise(starts)]
    named = SequenceTagger(**make).fit(tokens, nested)
    order = [named.feature_names().index(f"x{j}") for j in range(5)]
    np.testing.assert_allclose(named.coef_.toarray()[order], dense.coef_.toarray(), atol=1e-12)


def test_the_score_of_a_file_looks_up_each_label_and_not_each_token(tmp_path: Any, monkeypatch: Any) -> None:
    X, y = sentences(80)
    tagger = SequenceTagger(random_state=0).fit(X, y)
    y[60] = ["UNSEEN"] * len(y[60])  # it arrives with a later block
    write_conll(tmp_path / "test.txt", X, y)
    expected, known, looked_up = tagger.score(X, y), LabelNumbers.known, list[int]()

    def counted(self: LabelNumbers, labels: Any) -> Any:
        looked_up.append(len(labels))
        return known(self, labels)

    monkeypatch.setattr(LabelNumbers, "known", counted)
    monkeypatch.setattr("larank.sequence.tagger._PREDICTION_TOKENS", 20)
    assert tagger.score(ConllFile(tmp_path / "test.txt")) == expected
    assert looked_up[-1] == len({label for labels in y for label in labels}) == max(looked_up)
    assert len(looked_up) <= looked_up[-1]


@pytest.mark.parametrize(
    ("settings", "memory_limit"),
    [({"n_jobs": 1}, 2e9), ({"n_jobs": 2}, 1.0), ({"solver": "passive-aggressive", "epochs": 1}, 1.0)],
    ids=str,
)
def test_a_file_makes_the_same_model_as_lists(
    settings: dict[str, Any], memory_limit: float, tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("larank.sequence.corpora._BLOCK_TOKENS", 30)
    X, y = sentences(80)
    write_conll(tmp_path / "train.txt", X, y)
    file = ConllFile(tmp_path / "train.txt")
    # No support pattern is evicted in either case: the perceptrons have none.
    make = {"shuffle": False, "random_state": 0, "epochs": 3, "solver": "perceptron", **settings}
    held = SequenceTagger(**make).fit(X, y)
    read = SequenceTagger(memory_limit=memory_limit, **make).fit(file)
    np.testing.assert_array_equal(held.coef_.toarray(), read.coef_.toarray())
    assert read.result_.primal == pytest.approx(held.result_.primal, nan_ok=True)
    assert read.result_.dual == pytest.approx(held.result_.dual, nan_ok=True)
    assert read.predict(file).tolist() == held.predict(X).tolist()
    assert read.score(file) == held.score(X, y)
    assert [path for block in read.predict_blocks(file) for path in block] == held.predict(X).tolist()


def test_training_from_a_file_keeps_support_patterns_within_the_limit(tmp_path: Any) -> None:
    random = np.random.RandomState(0)
    X = [[f"w{random.randint(50)}" for _ in range(10)] for _ in range(300)]
    y = [[f"L{random.randint(5)}" for _ in range(10)] for _ in range(300)]
    write_conll(tmp_path / "noise.txt", X, y)
    limit = 100_000
    tagger = SequenceTagger(memory_limit=limit, random_state=0).fit(ConllFile(tmp_path / "noise.txt"))
    assert hooks.bytes(tagger._learner.session) <= limit
    assert tagger.result_.operations["frozen"] > 0
    assert tagger.result_.gap >= 0


def test_streams_keep_so_many_patterns_and_a_dual_that_is_a_lower_bound() -> None:
    random = np.random.RandomState(0)
    X = [[f"w{random.randint(50)}" for _ in range(10)] for _ in range(200)]
    y = [[f"L{random.randint(5)}" for _ in range(10)] for _ in range(200)]
    tagger = SequenceTagger(max_patterns=20, random_state=0).fit(X, y)
    assert tagger.result_.support_patterns == 20
    assert tagger.result_.operations["frozen"] > 0
    assert tagger.result_.dual <= tagger.result_.primal
    assert tagger.partial_fit(X, y).result_.support_patterns == 20


# ---- Certificate ----


def _objective(tagger: SequenceTagger, X: list[list[str]], y: list[list[str]], cost: Any = None) -> float:
    """The primal objective by enumeration, from public attributes only."""
    W, T = tagger.coef_.toarray(), tagger.transitions_
    sequences = tagger._learner.encoder.encode(X)
    classes = tagger.classes_.tolist()
    nodes = np.zeros((sequences.n_tokens, len(classes)))
    for t in range(sequences.n_tokens):
        nodes[t] = W[sequences.indices[sequences.indptr[t] : sequences.indptr[t + 1]]].sum(axis=0)

    def score(start: int, path: tuple[int, ...]) -> float:
        pairs = sum(T[s, 1 + path[t - s - 1] if t > s else 0, path[t]] for t in range(len(path)) for s in range(len(T)))
        return float(nodes[np.arange(start, start + len(path)), path].sum() + pairs)

    def loss(truth: tuple[int, ...], path: tuple[int, ...]) -> float:
        charge = cost or (lambda a, b: float(a != b))
        return sum(charge(classes[a], classes[b]) for a, b in zip(truth, path, strict=True))

    total = 0.0
    for i, labels in enumerate(y):
        truth = tuple(classes.index(label) for label in labels)
        start = int(sequences.starts[i])
        own = score(start, truth)
        paths = itertools.product(range(len(classes)), repeat=len(truth))
        total += max(loss(truth, path) + score(start, path) - own for path in paths)
    return float((W**2).sum() + (T**2).sum()) / 2 + tagger.C * total


@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_primal_objective_is_what_enumeration_says(order: int) -> None:
    X, y = sentences(12)
    tagger = SequenceTagger(order=order, random_state=0).fit(X, y)
    assert tagger.result_.exact
    assert tagger.result_.primal == pytest.approx(_objective(tagger, X, y))
    assert tagger.result_.gap >= 0


def test_label_costs_are_those_of_the_objective() -> None:
    X, y = sentences(12)
    costs = {("NOUN", "VERB"): 5.0, ("VERB", "NOUN"): 0.25}
    tagger = SequenceTagger(label_costs=costs, random_state=0).fit(X, y)
    charged = _objective(tagger, X, y, lambda a, b: 0.0 if a == b else costs.get((a, b), 1.0))
    assert tagger.result_.primal == pytest.approx(charged)


@pytest.mark.parametrize("inference", ["exact", "greedy"])
def test_the_gap_closes(inference: str) -> None:
    X, y = sentences(40)
    tagger = SequenceTagger(inference, stop="gap", tol=1e-3, C=1.0, random_state=0).fit(X, y)
    assert tagger.result_.status == "converged"
    assert 0 <= tagger.result_.relative_gap <= 1e-3
    one = SequenceTagger(inference, C=1.0, random_state=0).fit(X, y).result_
    assert one.dual <= tagger.result_.primal * (1 + 1e-12)
    assert one.primal >= tagger.result_.dual * (1 - 1e-12)


def overlapping(count: int, length: int = 12, tags: int = 6) -> tuple[list[list[dict[str, float]]], list[list[int]]]:
    """Noisy labels of tokens with features of their neighbours, many of which are shared."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(count):
        labels = rng.integers(0, tags, length)
        told, other = labels + tags * rng.integers(0, 6, length), rng.integers(0, 40, length)
        words = np.where(rng.random(length) < 0.5, told, other)
        around = [[(o, words[t + o]) for o in (-1, 0, 1) if 0 <= t + o < length] for t in range(length)]
        X.append([{f"{o}={w}": 1.0 for o, w in some} | {f"{o}~{w % 7}": 1.0 for o, w in some} for some in around])
        y.append(labels.tolist())
    return X, y


@pytest.mark.parametrize(("C", "tol"), [(1.0, 1e-4), (10.0, 1e-3)])
def test_a_small_gap_does_not_take_many_searches(C: float, tol: float) -> None:
    X, y = overlapping(60)
    tagger = SequenceTagger(C=C, stop="gap", tol=tol, max_iter=250, random_state=0).fit(X, y)
    assert tagger.result_.status == "converged"
    assert tagger.result_.argmax_calls <= 250 * len(X)
    assert (np.diff([point.dual for point in tagger.result_.history]) >= -1e-9 * tagger.result_.dual).all()


def test_a_gap_closes_within_a_limit_on_memory_that_leaves_no_room_for_a_working_set() -> None:
    X, y = sentences(40)
    plenty = SequenceTagger(stop="gap", tol=1e-3, random_state=0).fit(X, y)
    little = SequenceTagger(stop="gap", tol=1e-3, memory_limit=30_000, random_state=0).fit(X, y)
    assert plenty.result_.operations["visit_again"] > 0
    assert little.result_.operations["visit_again"] == 0
    assert little.result_.status == "converged"
    assert little.result_.primal == pytest.approx(plenty.result_.primal, rel=2e-3)


@pytest.mark.parametrize("inference", ["exact", "greedy"])
def test_the_dual_never_decreases(inference: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("larank.sequence.training._FEWEST_BETWEEN", 1)
    monkeypatch.setattr("larank.sequence.training._STEP_TOKENS", 5)
    X, y = sentences(60)
    duals = [point.dual for point in SequenceTagger(inference, epochs=3, random_state=0).fit(X, y).result_.history]
    assert len(duals) > 20
    assert (np.diff(duals) >= -1e-9).all()


def test_a_weight_of_zero_leaves_a_sequence_out() -> None:
    X, y = sentences(40)
    weights = np.ones(40)
    weights[20:] = 0
    make = {"shuffle": False, "random_state": 0}
    some = SequenceTagger(**make).fit(X[:20], y[:20])
    weighted = SequenceTagger(**make).fit(X, y, sample_weight=weights)
    assert weighted.result_.primal == pytest.approx(some.result_.primal)


def test_weights_are_factors_on_the_cost() -> None:
    X, y = sentences(30)
    make = {"stop": "gap", "tol": 1e-4, "random_state": 0}
    doubled = SequenceTagger(C=0.2, **make).fit(X, y).result_
    weighted = SequenceTagger(C=0.1, **make).fit(X, y, sample_weight=np.full(30, 2.0)).result_
    assert weighted.primal == pytest.approx(doubled.primal, rel=3e-4)


def test_perceptrons_have_no_objective_and_say_so() -> None:
    X, y = sentences(20)
    assert not SequenceTagger(solver="perceptron").fit(X, y).result_.has_objective
    assert not SequenceTagger(solver="passive-aggressive", epochs=2).fit(X, y).result_.has_objective
    assert SequenceTagger(solver="passive-aggressive").fit(X, y).result_.gap >= 0


def test_a_file_cut_short_by_time_is_certified_for_what_was_read(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("larank.sequence.corpora._BLOCK_TOKENS", 20)
    X, y = sentences(100)
    write_conll(tmp_path / "train.txt", X, y)
    for memory_limit in (2e9, 1.0):
        tagger = SequenceTagger(time_limit=1e-9, memory_limit=memory_limit, random_state=0)
        with pytest.warns(TrainingWarning):
            tagger.fit(ConllFile(tmp_path / "train.txt"))
        assert tagger.result_.exact
        assert tagger.result_.gap >= 0


# ---- Constraints ----


@pytest.mark.parametrize("scheme", ["BIO", "BILOU"])
@pytest.mark.parametrize("settings", [{}, {"order": 2}, {"inference": "greedy"}, {"inference": "greedy", "order": 3}])
def test_predicted_tags_are_well_formed(scheme: str, settings: dict[str, Any]) -> None:
    X, y = chunked(60, scheme)
    tagger = SequenceTagger(constraints=scheme, random_state=0, C=0.01, **settings).fit(X, y)
    random = np.random.RandomState(1)
    strange = [
        [f"{'oxy'[random.randint(3)]}{random.randint(9)}" for _ in range(random.randint(1, 7))] for _ in range(200)
    ]
    labels = tagger.classes_.tolist()
    allowed = follows(scheme, labels)
    assert allowed is not None
    for tags in tagger.predict(strange):
        numbers = [labels.index(tag) for tag in tags]
        assert allowed.after[0, numbers[0]]
        assert all(allowed.after[1 + a, b] for a, b in itertools.pairwise(numbers))
        assert allowed.ends[numbers[-1]]


def test_a_function_may_constrain() -> None:
    X, y = [["a", "b", "c"]] * 5, [["A", "B", "C"]] * 5
    tagger = SequenceTagger(constraints=no_repeat, random_state=0).fit(X, y)
    for tags in tagger.predict([["a", "a", "a", "a"], ["b", "b"]]):
        assert all(a != b for a, b in itertools.pairwise(tags))


def test_constraints_take_part_in_training() -> None:
    """What is forbidden is no competitor: its transition is never pushed down."""
    X, y = chunked(60, "BIO")
    free = SequenceTagger(random_state=0, C=10.0).fit(X, y)
    bound = SequenceTagger(random_state=0, C=10.0, constraints="BIO").fit(X, y)
    o, inside = (free.classes_.tolist().index(tag) for tag in ("O", "I-X"))
    assert free.transitions_[0, 1 + o, inside] < 0
    assert bound.transitions_[0, 1 + o, inside] == 0


def test_schemes_say_what_follows_what() -> None:
    bio = follows("BIO", ["O", "B-X", "I-X", "B-Y", "I-Y"])
    assert bio is not None
    assert bio.after.tolist() == [
        [True, True, False, True, False],
        [True, True, False, True, False],
        [True, True, True, True, False],
        [True, True, True, True, False],
        [True, True, False, True, True],
        [True, True, False, True, True],
    ]
    assert bio.ends.all()
    bilou = follows("BILOU", ["O", "B-X", "I-X", "L-X", "U-X", "L-Y", "B-Y"])
    assert bilou is not None
    outside = [True, True, False, False, True, False, True]
    inside = [False, False, True, True, False, False, False]
    end_of_y = [False, False, False, False, False, True, False]
    assert bilou.after.tolist() == [outside, outside, inside, inside, outside, outside, outside, end_of_y]
    assert bilou.ends.tolist() == [True, False, False, True, True, True, False]


# ---- n best, explanations, weights ----


@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_best_path_is_the_prediction_and_margins_are_differences(order: int) -> None:
    X, y = sentences(60)
    tagger = SequenceTagger(order=order, random_state=0).fit(X, y)
    other = sentences(20, seed=5)[0]
    for labels, paths in zip(tagger.predict(other), tagger.predict_nbest(other, 6), strict=True):
        assert paths[0].labels == labels
        assert len(paths) == min(6, 4 ** len(labels))
        assert len({tuple(path.labels) for path in paths}) == len(paths)
        for path, following in itertools.pairwise(paths):
            assert path.margin == pytest.approx(path.score - following.score)
            assert path.margin >= 0
    assert tagger.predict_nbest([["dog"]], 9)[0][-1].margin == np.inf


def test_the_smallest_margin_of_a_token_is_that_of_the_second_path() -> None:
    X, y = sentences(60)
    tagger = SequenceTagger(random_state=0).fit(X, y)
    for words in sentences(20, seed=5)[0]:
        explanation = tagger.explain(words)
        best = tagger.predict_nbest([words], 1)[0][0]
        assert explanation.labels == best.labels
        assert explanation.score == pytest.approx(best.score)
        assert min(token.margin for token in explanation.tokens) == pytest.approx(best.margin)


def test_contributions_add_up_to_the_margin_of_a_greedy_decision() -> None:
    X, y = sentences(60)
    tagger = SequenceTagger("greedy", order=2, random_state=0).fit(X, y)
    for words in sentences(10, seed=5)[0]:
        for token in tagger.explain(words, top=1000).tokens:
            total = sum(found.difference for found in (*token.features, *token.transitions))
            assert total == pytest.approx(token.margin)
            assert token.runner_up != token.label


def test_an_explanation_can_be_read() -> None:
    X, y = sentences(60)
    text = str(SequenceTagger(random_state=0).fit(X, y).explain(["the", "dog", "sees"]))
    assert "the: DET, before" in text
    assert "nothing 1 before" in text
    assert "word[0]=dog" in text


def test_weights_name_what_speaks_for_a_label() -> None:
    X, y = sentences(100)
    tagger = SequenceTagger(random_state=0).fit(X, y)
    found = tagger.weights("DET", top=500)
    column = tagger.classes_.tolist().index("DET")
    names = tagger.feature_names()
    by_name = {weight.name: weight.weight for weight in found}
    for name, weight in by_name.items():
        if name in names:
            assert weight == tagger.coef_[names.index(name), column]
    assert by_name["word[0]=the"] > 0
    assert [abs(w.weight) for w in found] == sorted((abs(w.weight) for w in found), reverse=True)
    assert by_name["nothing 1 before"] == tagger.transitions_[0, 0, column]


# ---- Saving ----


@settings
def test_a_saved_or_pickled_tagger_goes_on_as_the_original(settings: dict[str, Any], tmp_path: Any) -> None:
    X, y = sentences(60)
    more, labels = sentences(40, seed=9)
    tagger = SequenceTagger(random_state=0, **settings).fit(X, y)
    save(tagger, tmp_path / "tagger.larank")
    copies = [load(tmp_path / "tagger.larank"), pickle.loads(pickle.dumps(tagger))]
    for copy in copies:
        assert copy.predict(more).tolist() == tagger.predict(more).tolist()
        assert copy.classes_.tolist() == tagger.classes_.tolist()
        np.testing.assert_equal(copy.result_.to_dict(), tagger.result_.to_dict())
        np.testing.assert_array_equal(copy.coef_.toarray(), tagger.coef_.toarray())
    for model in (tagger, *copies):
        model.partial_fit(more, labels)
    for copy in copies:
        np.testing.assert_allclose(copy.coef_.toarray(), tagger.coef_.toarray(), atol=1e-9)
        np.testing.assert_allclose(copy.result_.dual, tagger.result_.dual, rtol=1e-9)


@pytest.mark.parametrize("value", [-1.7e308, 1e200, np.nan])
@pytest.mark.parametrize("average", [False, True])
def test_a_damaged_tagger_is_refused_when_it_is_loaded(average: bool, value: float, tmp_path: Any) -> None:
    """Its digest is right: what a file holds is checked all the same."""
    X, y = sentences(10)
    path = tmp_path / "tagger.larank"
    save(SequenceTagger(solver="perceptron", average=average, random_state=0).fit(X, y), path)
    content = path.read_bytes()
    for name, array in split(content)[2].items():
        if array.dtype == np.float64 and array.size:
            _, description, arrays = split(content)
            arrays[name].flat[0] = value
            path.write_bytes(joined(description, arrays))
            with pytest.raises(ModelFileError, match=r"is damaged: .*must (be finite|hold numbers from)"):
                load(path)


# ---- Bad input ----

BIO = {"constraints": "BIO"}
MENDING = {"constraints": "BIO", "repair": True}
FEW = [["the", "dog", "sees"]] * 3, [["DET", "NOUN", "VERB"]] * 3


@pytest.mark.parametrize(
    ("X", "y", "parameters", "message"),
    [
        (*FEW, {"order": 20}, "order must be lower for exact inference with 3 labels"),
        (*FEW, {"order": 10**20}, "order must be an integer from 0 to 255"),
        (*FEW, {"constraints": "IOB"}, "constraints must be 'BIO', 'BILOU', a function"),
        (*FEW, {"constraints": "BIO"}, "constraints='BIO' knows labels 'O', 'B-...', 'I-...'; got"),
        (*FEW, {"constraints": lambda p, y: False}, "constraints must allow some sequence"),
        (
            *FEW,
            {"constraints": lambda p, y: (p, y) != ("DET", "NOUN")},
            r"but 3 are not allowed: 'NOUN' after 'DET' at y\[0\]\[1\]; ",
        ),
        (*FEW, {"constraints": lambda p, y: (p, y) != ("VERB", None)}, "the end after 'VERB'"),
        (*FEW, {"label_costs": {("DET", "NOUN"): -1.0}}, "label_costs.* must be a finite number >= 0"),
        (*FEW, {"label_costs": {"DET": 1.0}}, "label_costs must have pairs"),
        (*FEW, {"label_costs": {("DET", "DET"): 1.0}}, "label_costs must be 0 for a label in its own place"),
        (*FEW, {"label_costs": 3}, "label_costs must map"),
        (*FEW, {"label_costs": {("D", "N"): 2}, "solver": "perceptron"}, "label_costs acts with"),
        (*FEW, {"templates": ["word[0"]}, "the template 'word\\[0' cannot be read"),
        (*FEW, {"templates": [1]}, r"templates must be str, such as 'word\[0\]'; got 1"),
        (*FEW, {"templates": 3}, "templates must be 'general', 'words', 'chunking', or a sequence"),
        (*FEW, {"templates": []}, "templates must be 'general', 'words', 'chunking', or a sequence"),
        ([], [], {}, "X must hold at least one token, got no sequence"),
        ([["a"], []], [["A"], ["B"]], {}, r"y\[1\] must have one label per token of X\[1\], 0; got 1"),
        ([["a"], ["b", "c"]], [["A"], ["B"]], {}, r"y\[1\] must have one label per token of X\[1\], 2; got 1"),
        ([["a"], ["b"]], [["A"]], {}, "y must hold one label sequence per sequence of X, 2; got 1"),
        ([["a"]], None, {}, "y must hold the labels of X"),
        ([["a"]], ["A"], {}, r"y\[0\] must be a sequence of labels"),
        ([["a"]], "A", {}, "y must be a sequence of label sequences"),
        ([["a"], ["b"]], [["D"], [None]], {}, r"must not hold None, but y\[1\]\[0\] is"),
        ([["a", "b"]], [["A", 1]], {}, "y must hold labels of one type"),
        ([["a", "b"]], [["D", ["N"]]], {}, r"y\[0\]\[1\] is \['N'\]; a label must be hashable"),
        ([["a", {"b": 1}]], [["A", "B"]], {}, r"X\[0\]\[1\]"),
        ([[()]], [["D"]], {}, r"X\[0\]\[0\] is an empty tuple"),
        ((np.eye(3), [2, 2]), [0, 1, 2], {}, "lengths sum to 4"),
        ((np.eye(2), [2**62, 2**62]), [0, 1], {}, r"lengths\[0\] is 4611686018427387904, but X has 2 rows"),
        ((np.eye(3), [3]), [0, 1], {}, "y must hold one label per row of X, 3"),
        ((np.eye(2), [2]), [1.0, np.nan], {}, r"must not hold nan, but y\[1\] is"),
        ((np.full((2, 2), np.nan), [2]), [0, 1], {}, "must be finite"),
        ([["a", "b"]], [["O", "X"]], BIO, r"got 'X' at y\[0\]\[1\]"),
        ([["a", "b"]], [[1, 2]], BIO, r"got 1 at y\[0\]\[0\]"),
        ([["a"], [], ["b"]], [["O"], [], ["I-X"]], BIO, r"'I-X' at the beginning at y\[2\]\[0\]"),
        ([["a", "b"]], [["O", "NOUN"]], MENDING, r"tags\[0\]\[1\] must be O, or B, .* with a type, got 'NOUN'"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(X: Any, y: Any, parameters: dict[str, Any], message: str) -> None:
    tagger = SequenceTagger(**parameters)
    with pytest.raises((TypeError, ValueError), match=message):
        tagger.fit(X, y)
    assert not hasattr(tagger, "classes_")


QUESTIONS: list[tuple[Callable[[SequenceTagger], Any], str]] = [
    (lambda t: t.fit(*FEW, sample_weight=[1, 1]), "one entry per example"),
    (lambda t: t.fit(*FEW, sample_weight=[0, 0, 0]), "above zero"),
    (lambda t: t.set_params(order=2).partial_fit(*FEW), "order must stay as it was"),
    (lambda t: t.weights("XYZ"), "label must be one of"),
    (lambda t: t.weights("NOUN", -1), "top must be an integer >= 1, got -1"),
    (lambda t: t.score([], []), "X must hold at least one token for a score, got none"),
    (lambda t: t.predict_entities(FEW[0]), "entities are found by labels such as B-NP, I-NP and O; got"),
    (lambda t: t.calibrate([[]], [[]]), "X must hold at least one token to calibrate with, got none"),
    (lambda t: t.calibrate(FEW[0]), "y must hold the labels of X"),
    (lambda t: t.calibrate([["a"]], [["Q"]]), r"y must hold labels of the tagger, \['DET', .*; got \['Q'\]"),
]


@pytest.mark.parametrize(("call", "message"), QUESTIONS)
def test_what_a_trained_tagger_cannot_do_is_named(call: Callable[[SequenceTagger], Any], message: str) -> None:
    tagger = SequenceTagger(random_state=0).partial_fit(*FEW)
    with pytest.raises(ValueError, match=message):
        call(tagger)


def test_questions_before_training_are_refused() -> None:
    for call in (SequenceTagger.explain, SequenceTagger.predict_confidence):
        with pytest.raises(NotFittedError):
            call(SequenceTagger(), ["a"])
    with pytest.raises(NotFittedError):
        SequenceTagger().calibrate(*FEW)
    with pytest.raises(AttributeError, match="once the tagger is fitted"):
        _ = SequenceTagger().coef_


def test_costs_of_labels_that_do_not_occur_are_reported() -> None:
    with pytest.warns(UserWarning, match="label_costs names labels that y does not hold: 'NUON'"):
        SequenceTagger(label_costs={("NUON", "VERB"): 2.0}).fit(*FEW)


def test_files_are_checked(tmp_path: Any) -> None:
    X, y = sentences(3)
    path = tmp_path / "train.txt"
    write_conll(path, X, y)
    with pytest.raises(ValueError, match="y must be None for a ConllFile"):
        SequenceTagger().fit(ConllFile(path), y)
    with pytest.raises(ValueError, match="sample_weight must be None for a ConllFile"):
        SequenceTagger().fit(ConllFile(path), sample_weight=[1, 1, 1])
    with pytest.raises(ValueError, match="must have a column of labels"):
        SequenceTagger().fit(ConllFile(path, label=None))
    path.write_text("the DET\ndog\n")
    with pytest.raises(DataFormatError, match="line 2: 1 column"):
        SequenceTagger().fit(ConllFile(path))
    path.write_text("a B-X\nb I-Y\n")
    with pytest.raises(ValueError, match=r"1 is not allowed: 'I-Y' after 'B-X' at .*train\.txt, line 2; repair"):
        SequenceTagger(constraints="BIO").fit(ConllFile(path))


def test_a_failed_call_leaves_the_model_as_it_was() -> None:
    X, y = chunked(40, "BIO")
    tagger = SequenceTagger(constraints="BIO", random_state=0).fit(X, y)
    before, weights = tagger.predict(X).tolist(), tagger.coef_
    for words, tags in ((["new"], ["I-Z"]), (["x1", "x2"], ["O", "I-X"]), (["x1"], ["VERB"]), (["x1"], ["O", "O"])):
        with pytest.raises(ValueError, match=r"constraints|y\[0\]"):
            tagger.partial_fit([words], [tags])
        assert tagger.predict(X).tolist() == before
        assert tagger.predict([["new", "newer"]])
        np.testing.assert_array_equal(tagger.coef_.toarray()[: weights.shape[0]], weights.toarray())
    tagger.partial_fit([["new"]], [["B-Z"]])
    assert "B-Z" in tagger.classes_


def test_infeasible_constraints_are_reported_for_the_sequence() -> None:
    pairs = {(None, "A"), ("A", "B"), ("B", "A"), ("B", None)}
    for inference in ("exact", "greedy"):
        tagger = SequenceTagger(inference, constraints=lambda p, y: (p, y) in pairs)
        tagger.fit([["x", "y"]] * 2, [["A", "B"]] * 2)
        assert tagger.predict([["x", "y"] * 3]).tolist() == [["A", "B"] * 3]
        with pytest.raises(ValueError, match="sequence 1 of 3 tokens has none"):
            tagger.predict([["x", "y"], ["x", "y", "x"]])
        with pytest.raises(ValueError, match="must allow some labels"):
            tagger.explain(["x"])
        with pytest.raises(ValueError, match=r"must allow some labels for X\[0\], got none"):
            tagger.predict_nbest([["x"]])


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("constraints", [None, "BIO"])
def test_greedy_n_best_paths_are_those_that_give_away_least(order: int, constraints: str | None) -> None:
    X, y = chunked(40, "BIO")
    tagger = SequenceTagger("greedy", order=order, constraints=constraints, random_state=0).fit(X, y)
    labels = tagger.classes_.tolist()
    short = [x[:3] for x in X[:5]]
    for x, ranked in zip(short, tagger.predict_nbest(short, n=1000), strict=True):
        assert ranked[0].labels == tagger.predict([x])[0]
        assert ranked[0].score == 0
        scores = [path.score for path in ranked]
        assert scores == sorted(scores, reverse=True)
        possible = [p for p in itertools.product(labels, repeat=len(x)) if constraints is None or is_bio(p)]
        assert sorted(tuple(path.labels) for path in ranked) == sorted(possible)
        last = [path.score for path in ranked[1:] if path.labels[:-1] == ranked[0].labels[:-1]]
        if last:  # with another last label, that label's margin is what is given away
            assert -max(last) == pytest.approx(tagger.predict_confidence([x])[0][-1].margin)


def is_bio(labels: Any) -> bool:
    return repaired([list(labels)]) == [list(labels)]


# ---- The same problem by other solvers ----


class _Chain(StructuredModel):
    """A first-order chain over one-hot words, by enumeration."""

    def __init__(self, words: int, labels: int) -> None:
        self.words, self.labels = words, labels

    def joint_feature(self, x: Any, y: Any) -> Any:
        emitted = np.zeros((self.words, self.labels))
        pairs = np.zeros((self.labels + 1, self.labels))
        np.add.at(emitted, (list(x), list(y)), 1)
        np.add.at(pairs, ([0, *(label + 1 for label in y[:-1])], list(y)), 1)
        return np.concatenate([emitted.ravel(), pairs.ravel()])

    def loss(self, y_true: Any, y: Any) -> float:
        return float(sum(a != b for a, b in zip(y_true, y, strict=True)))

    def argmax(self, x: Any, w: Any, y_true: Any = None) -> Any:
        def value(y: Any) -> float:
            return float(w @ self.joint_feature(x, y)) + (0.0 if y_true is None else self.loss(y_true, y))

        return max(itertools.product(range(self.labels), repeat=len(x)), key=value)


@pytest.mark.parametrize("solver", ["larank", "svmstruct", "svmstruct-1slack"])
def test_structured_solvers_reach_the_optimum_of_the_tagger(solver: str) -> None:
    random = np.random.RandomState(0)
    X = [tuple(random.randint(5, size=length).tolist()) for length in (1, 2, 3, 3, 4, 2, 3, 1)]
    y = [tuple(int(word + random.randint(2)) % 3 for word in x) for x in X]
    general = StructuredSVC(_Chain(5, 3), solver, C=0.5, stop="gap", tol=1e-5, random_state=0).fit(X, y)
    names = [[[f"w{word}"] for word in x] for x in X]
    tagger = SequenceTagger(C=0.5, stop="gap", tol=1e-5, random_state=0).fit(names, y)
    assert general.result_.primal == pytest.approx(tagger.result_.primal, rel=3e-5)
    assert general.result_.dual == pytest.approx(tagger.result_.dual, rel=3e-5)


def test_estimates_of_the_primal_objective_are_made_in_the_first_epoch_only() -> None:
    X, y = sentences(60)
    tagger = SequenceTagger(epochs=4, random_state=0).fit(X, y)
    estimates = [point for point in tagger.result_.history if not point.exact]
    assert any(point.primal > 0 for point in estimates)
    assert not any(point.primal < point.dual for point in tagger.result_.history)
    assert tagger.result_.gap >= 0
    assert np.isnan(tagger.set_params(certify=False).fit(X, y).result_.gap)
    assert tagger.partial_fit(X, y).result_.primal > 0


def test_a_file_that_fails_on_its_way_leaves_the_model_as_it_was(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("larank.sequence.corpora._BLOCK_TOKENS", 20)
    X, y = chunked(40, "BIO")
    path = tmp_path / "train.txt"
    more = [["new", "newer"]], [["B-Z", "I-Z"]]
    for bad in ("broken\n", "new I-Q\n"):
        tagger = SequenceTagger(constraints="BIO", random_state=0).fit(X, y)
        before, weights, classes = tagger.predict(X).tolist(), tagger.coef_, tagger.classes_.tolist()
        write_conll(path, more[0] * 30, more[1] * 30)
        path.write_text(path.read_text() + bad)
        with pytest.raises(ValueError, match=r"train\.txt, line 91"):
            tagger.partial_fit(ConllFile(path))
        assert tagger.predict(X).tolist() == before
        assert tagger.classes_.tolist() == classes
        np.testing.assert_array_equal(tagger.coef_.toarray()[: weights.shape[0]], weights.toarray())
        again = pickle.loads(pickle.dumps(tagger))
        assert again.predict(X).tolist() == before
        assert tagger.partial_fit(*more).predict(X).tolist() == again.partial_fit(*more).predict(X).tolist()
        np.testing.assert_array_equal(tagger.coef_.toarray(), again.coef_.toarray())


def test_the_share_of_a_file_that_was_learnt_counts_as_passes(tmp_path: Any) -> None:
    X, y = sentences(3000)
    path = tmp_path / "train.txt"
    write_conll(path, X, y)
    with pytest.warns(TrainingWarning, match="after time_limit"):
        tagger = SequenceTagger(time_limit=1e-9, n_jobs=1, random_state=0).fit(ConllFile(path))
    assert 0 < tagger.result_.iterations < 1
    assert tagger.n_iter_ == 1


def test_labels_that_arrays_would_change_are_kept_as_they_are() -> None:
    X = [["a", "b"], ["b", "a"]]
    for first, second in (("D", "D\0"), (("D", 1), ("N", 2)), (b"D", b"D\0")):
        tagger = SequenceTagger(random_state=0).fit(X, [[first, second], [second, first]])
        assert tagger.classes_.shape == (2,)
        assert tagger.classes_.tolist() == [first, second]
        assert tagger.coef_.shape[1] == 2
        assert tagger.predict([["a", "b"]]).tolist() == [[first, second]]


def test_series_with_any_index_are_sequences() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = sentences(20)
    expected = SequenceTagger(random_state=0).fit(X, y).predict(X).tolist()
    index = range(5, 25)
    tagger = SequenceTagger(random_state=0).fit(pandas.Series(X, index=index), pandas.Series(y, index=index))
    assert tagger.predict(pandas.Series(X, index=index)).tolist() == expected
    rows = [pandas.Series(words) for words in X], [pandas.Series(tags) for tags in y]
    assert SequenceTagger(random_state=0).fit(*rows).predict(rows[0]).tolist() == expected
    with pytest.raises(TypeError, match="X is a DataFrame"):
        SequenceTagger().fit(pandas.DataFrame({"word": ["a"]}), [["D"]])


def test_two_arrays_of_words_are_two_sequences() -> None:
    X = np.array(["a", "b"]), np.array(["b", "b"])
    y = np.array(["D", "N"]), np.array(["N", "N"])
    assert SequenceTagger(random_state=0).fit(X, y).predict(X).tolist() == [["D", "N"], ["N", "N"]]


def test_a_label_without_a_rival_is_explained_as_such() -> None:
    tagger = SequenceTagger(constraints="BILOU", random_state=0).fit([["a", "b"]] * 3, [["B-X", "L-X"]] * 3)
    explanation = tagger.explain(["a", "b"])
    assert str(explanation).splitlines()[0] == "a: B-X, no other label is allowed"
    assert (explanation.tokens[0].runner_up, explanation.tokens[0].margin) == (None, np.inf)


def test_thousands_of_best_paths_are_distinct_and_in_order() -> None:
    random = np.random.RandomState(0)
    X = [[f"w{random.randint(50)}" for _ in range(30)] for _ in range(20)]
    y = [[f"l{random.randint(20)}" for _ in words] for words in X]
    tagger = SequenceTagger(random_state=0).fit(X, y)
    paths = tagger.predict_nbest(X[:1], 5000)[0]
    scores = [path.score for path in paths]
    assert scores == sorted(scores, reverse=True)
    assert len({tuple(path.labels) for path in paths}) == 5000


@pytest.mark.parametrize(
    "parameters", [{}, {"solver": "perceptron", "average": True}, {"inference": "greedy"}], ids=str
)
def test_a_copy_learns_what_the_model_itself_would_have_learnt(parameters: dict[str, Any]) -> None:
    X, y = sentences(40)
    alone, read = (SequenceTagger(random_state=0, **parameters).fit(X, y) for _ in range(2))
    for words, tags in zip(X[:5], y[:5], strict=True):
        reader = one_model(read)  # who reads keeps others from learning in place
        before, weights = reader.predict(X).tolist(), read._learner.chain
        for tagger in (alone, read):
            tagger.partial_fit([[*words, "new"]], [[*tags, "NEW"]])
        assert read._learner.chain is not weights
        assert reader.predict(X).tolist() == before
        np.testing.assert_array_equal(read.coef_.toarray(), alone.coef_.toarray())
        assert read.predict(X).tolist() == alone.predict(X).tolist()
    chain = alone._learner.chain
    assert alone.partial_fit([["the"]], [["DET"]])._learner.chain is chain, "what takes longer to copy is not copied"


def test_a_tagger_cannot_be_read_by_the_call_that_trains_it() -> None:
    X, y = sentences(40)
    tagger = SequenceTagger(random_state=0).fit(X, y)
    with tagger._learner.in_place(), pytest.raises(RuntimeError, match="by the call that trains it"):
        tagger.predict(X)


# Sequences without tokens


@pytest.mark.parametrize("inference", ["exact", "greedy"])
def test_empty_sequences_have_empty_labels_and_change_nothing(inference: str) -> None:
    X, y = sentences(20)
    tagger = SequenceTagger(inference, random_state=0).fit(X, y)
    gaps = SequenceTagger(inference, shuffle=False, random_state=0).fit(
        [[], *X, []], [[], *y, []], sample_weight=np.ones(22)
    )
    plain = SequenceTagger(inference, shuffle=False, random_state=0).fit(X, y)
    assert (gaps.coef_ != plain.coef_).nnz == 0
    assert tagger.predict([[], *X, []]).tolist() == [[], *tagger.predict(X).tolist(), []]
    assert tagger.predict([[]]).tolist() == [[]]
    assert tagger.predict_nbest([[], X[0]], n=1)[0] == [RankedPath([], 0.0, math.inf)]
    assert tagger.predict_confidence([[], X[0], []])[0::2] == [[], []]
    assert tagger.score([[], *X], [[], *y]) == tagger.score(X, y)
    assert tagger.explain([]).tokens == ()
    tagger.partial_fit([[], X[0]], [[], y[0]])


def test_rows_may_be_of_sequences_some_of_which_are_empty() -> None:
    tagger = SequenceTagger(random_state=0).fit((np.eye(4), [0, 2, 0, 2]), [0, 1, 0, 1])
    assert tagger.predict((np.eye(4), [4, 0])).tolist() == [0, 1, 0, 1]


# Labels that are not allowed


def wrong_tags(count: int) -> tuple[list[list[str]], list[list[str]]]:
    return [["a", "b", "c"], ["d"]] * count, [["I-X", "I-X", "O"], ["B-X"]] * count


def test_all_labels_that_are_not_allowed_are_named_before_training(tmp_path: Any) -> None:
    X, y = wrong_tags(15)
    write_conll(tmp_path / "train.txt", X, y)
    tagger = SequenceTagger(constraints="BIO", random_state=0)
    for data, where in (((X, y), r"y\[\d+\]\[0\]"), ((ConllFile(tmp_path / "train.txt"),), r".*train.txt, line \d+")):
        with pytest.raises(LabelsNotAllowedError, match=r"15 are not allowed: .*; and 5 more; repair=True") as refused:
            tagger.fit(*data)
        assert len(refused.value.places) == 15
        assert all(re.fullmatch(f"'I-X' at the beginning at {where}", place) for place in refused.value.places)


@pytest.mark.parametrize(("scheme", "first"), [("BIO", ["B-X", "I-X", "O"]), ("BILOU", ["B-X", "L-X", "O"])])
def test_labels_are_mended_as_conlleval_reads_them(scheme: str, first: list[str], tmp_path: Any) -> None:
    X, y = wrong_tags(15)
    write_conll(tmp_path / "train.txt", X, y)
    for data in ((X, y), (ConllFile(tmp_path / "train.txt"),)):
        with pytest.warns(UserWarning, match=r"\d+ labels were mended, as conlleval reads them: 'B-X' for 'I-X' at "):
            tagger = SequenceTagger(constraints=scheme, repair=True, random_state=0).fit(*data)
        assert tagger.predict(X[:1]).tolist() == [first]
        assert "I-X" not in tagger.classes_ or scheme == "BIO"


def test_labels_are_mended_wherever_they_are_given(tmp_path: Any) -> None:
    X, y = chunked(40, "BIO")
    wrong = [[re.sub("^B", "I", tags[0]), *tags[1:]] for tags in y]
    tagger = SequenceTagger(constraints="BIO", repair=True, random_state=0).fit(X, y)
    write_conll(tmp_path / "wrong.txt", X, wrong)
    expected = tagger.score(X, y)
    file = ConllFile(tmp_path / "wrong.txt")
    for data, where in (((X, wrong), r"y\[\d+\]\[\d+\]"), ((file,), r".*wrong.txt, line \d+")):
        said = f"labels were mended, as conlleval reads them: 'B-.' for 'I-.' at {where}"
        with pytest.warns(UserWarning, match=said):
            assert tagger.score(*data) == expected
        for call in (SequenceTagger.fit, SequenceTagger.partial_fit, SequenceTagger.calibrate):
            with pytest.warns(UserWarning, match="labels were mended, as conlleval reads them: 'B-.' for 'I-.' at"):
                call(pickle.loads(pickle.dumps(tagger)), *data)


def test_right_labels_are_mended_without_a_word(recwarn: Any) -> None:
    X, y = chunked(20, "BIO")
    mended = SequenceTagger(constraints="BIO", repair=True, random_state=0).fit(X, y)
    assert not [warning for warning in recwarn if "mended" in str(warning.message)]
    assert mended.predict(X).tolist() == SequenceTagger(constraints="BIO", random_state=0).fit(X, y).predict(X).tolist()


# Confidence


@pytest.mark.parametrize("inference", ["exact", "greedy"])
@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("constraints", [None, "BIO"])
def test_margins_are_those_of_explanations(inference: str, order: int, constraints: str | None) -> None:
    X, y = chunked(40, "BIO")
    tagger = SequenceTagger(inference, order=order, constraints=constraints, random_state=0).fit(X[:30], y[:30])
    for x, tokens in zip(X[30:], tagger.predict_confidence(X[30:]), strict=True):
        assert [token.label for token in tokens] == tagger.predict([x])[0]
        explained = [token.margin for token in tagger.explain(x).tokens]
        assert [token.margin for token in tokens] == pytest.approx(explained, abs=1e-9)
        assert {token.probability for token in tokens} == {None}


def test_a_path_without_an_entity_is_behind_by_its_margin() -> None:
    X, y = chunked(40, "BIO")
    tagger = SequenceTagger(constraints="BIO", random_state=0).fit(X[:30], y[:30])
    short = [x[:4] for x in X[30:]]
    for paths, found in zip(tagger.predict_nbest(short, n=10_000), tagger.predict_entities(short), strict=True):
        assert [entity[:3] for entity in found] == entities(paths[0].labels)
        for entity in found:
            without = [path.score for path in paths if entity[:3] not in entities(path.labels)]
            assert paths[0].score - max(without) >= entity.margin - 1e-9


def test_calibration_makes_probabilities_of_margins_and_is_saved(tmp_path: Any) -> None:
    X, y = chunked(300, "BIO")
    random = np.random.RandomState(0)
    noisy = [["O" if random.rand() < 0.2 else tag for tag in tags] for tags in y]
    tagger = SequenceTagger(random_state=0).fit(X[:100], noisy[:100])
    assert tagger.calibrate(X[100:200], noisy[100:200]) is tagger
    sure = [token for tokens in tagger.predict_confidence(X[200:]) for token in tokens]
    right = np.mean([token.label == tag for token, tag in zip(sure, itertools.chain(*noisy[200:]), strict=True)])
    assert np.mean([token.probability for token in sure]) == pytest.approx(right, abs=0.05)
    by_margin = [token.probability for token in sorted(sure, key=lambda token: token.margin)]
    assert by_margin == sorted(by_margin)
    save(tagger, tmp_path / "tagger.larank")
    loaded = load(tmp_path / "tagger.larank")
    assert loaded.predict_entities(X[200:210]) == tagger.predict_entities(X[200:210])
    assert all(0 < entity.probability < 1 for found in loaded.predict_entities(X[200:]) for entity in found)
    tagger.partial_fit(X[:1], noisy[:1])
    assert tagger.predict_confidence(X[:1])[0][0].probability is None


def test_a_file_can_be_calibrated_with(tmp_path: Any) -> None:
    X, y = chunked(60, "BIO")
    write_conll(tmp_path / "held.txt", X[30:], y[30:])
    tagger = SequenceTagger(random_state=0).fit(X[:30], y[:30])
    in_memory = tagger.calibrate(X[30:], y[30:]).calibration_
    assert np.array_equal(tagger.calibrate(ConllFile(tmp_path / "held.txt")).calibration_, in_memory)
    assert tagger.predict_confidence(ConllFile(tmp_path / "held.txt")) == tagger.predict_confidence(X[30:])
