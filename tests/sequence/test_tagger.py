"""`SequenceTagger` as a user meets it; the compiled core has tests of its own."""

import itertools
import pickle
import re
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict

from forging import joined, split
from larank import MemoryLimitError, SequenceTagger
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
from references.chains import Chain, corpus, hooks, stretches

WORDS = {
    "DET": ["the", "a", "this", "every"],
    "ADJ": ["big", "old", "red", "the-like"],
    "NOUN": ["dog", "cat", "house", "old", "run"],
    "VERB": ["sees", "run", "has", "house"],
}
TAGS = [("DET", "NOUN", "VERB"), ("DET", "ADJ", "NOUN", "VERB", "DET", "NOUN"), ("NOUN", "VERB"), ("VERB",)]


def sentences(count, seed=0):
    random = np.random.RandomState(seed)
    y = [list(TAGS[random.randint(len(TAGS))]) for _ in range(count)]
    X = [[WORDS[tag][random.randint(len(WORDS[tag]))] for tag in tags] for tags in y]
    return X, y


def chunked(count, scheme, seed=0):
    """Words and well-formed tags of entities X and Y."""
    random = np.random.RandomState(seed)
    X, y = [], []
    for _ in range(count):
        words, tags = [], []
        for _ in range(random.randint(1, 5)):
            kind, length = "XY"[random.randint(2)], random.randint(0, 4)
            words += [f"{kind.lower()}{random.randint(6)}" for _ in range(length)] or [f"o{random.randint(4)}"]
            tags += [f"B-{kind}", *[f"I-{kind}"] * (length - 1)] if length else ["O"]
        X.append(words)
        y.append(tags)
    return X, repaired(y, scheme)


def noise(count, length=10, tags=5):
    """Words that say nothing about their tags."""
    random = np.random.RandomState(0)
    X = [[f"w{random.randint(50)}" for _ in range(length)] for _ in range(count)]
    return X, [[f"L{random.randint(tags)}" for _ in words] for words in X]


def assert_same_weights(one, other, atol=0.0):
    np.testing.assert_allclose(one.coef_.toarray(), other.coef_.toarray(), rtol=0, atol=atol)
    np.testing.assert_allclose(one.transitions_, other.transitions_, rtol=0, atol=atol)


@contextmanager
def unchanged(tagger, X):
    """Check that what is done here, which may teach features, changes neither labels, weights nor predictions."""
    before, weights, classes = tagger.predict(X).tolist(), tagger.coef_.toarray(), tagger.classes_.tolist()
    yield
    assert (tagger.predict(X).tolist(), tagger.classes_.tolist()) == (before, classes)
    np.testing.assert_array_equal(tagger.coef_.toarray()[: len(weights)], weights)


SETTINGS = [
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


@pytest.fixture(scope="module")
def fitted():
    """A first-order tagger that tests question and do not train."""
    return SequenceTagger(random_state=0).fit(*sentences(60))


@pytest.fixture
def file_of(tmp_path):
    def write(X, y):
        write_conll(tmp_path / "file.txt", X, y)
        return ConllFile(tmp_path / "file.txt")

    return write


# ---- Learning ----


@settings
def test_it_learns_and_predicts_one_label_per_token(settings):
    other, truth = sentences(100, seed=1)
    tagger = SequenceTagger(random_state=0, **settings).fit(*sentences(200))
    assert tagger.classes_.tolist() == ["ADJ", "DET", "NOUN", "VERB"]
    predicted = tagger.predict(other)
    assert [len(labels) for labels in predicted] == [len(words) for words in other]
    assert tagger.score(other, truth) == np.mean(np.hstack(predicted) == np.hstack(truth)) > 0.9


@settings
def test_parts_of_a_stream_equal_one_fit_and_copies_continue_as_the_original(settings, tmp_path):
    X, y = sentences(90)
    whole = SequenceTagger(random_state=0, shuffle=False, **{**settings, "epochs": 1}).fit(X, y)
    parts = SequenceTagger(random_state=0, **settings)
    for begin in range(0, 90, 25):
        parts.partial_fit(X[begin : begin + 25], y[begin : begin + 25])
    assert (parts.classes_.tolist(), parts.feature_names()) == (whole.classes_.tolist(), whole.feature_names())
    assert_same_weights(parts, whole, atol=1e-12)
    for tagger in (parts, SequenceTagger(random_state=0, **settings).fit(X, y)):
        save(tagger, tmp_path / "tagger.larank")
        copies = [load(tmp_path / "tagger.larank"), pickle.loads(pickle.dumps(tagger))]
        for copy in copies:
            assert copy.predict(X).tolist() == tagger.predict(X).tolist()
            assert copy.classes_.tolist() == tagger.classes_.tolist()
            np.testing.assert_equal(copy.result_.to_dict(), tagger.result_.to_dict())
            assert_same_weights(copy, tagger)
        sent = pickle.dumps(tagger._for_prediction())
        assert pickle.loads(sent).predict(X).tolist() == tagger.predict(X).tolist()
        if tagger.solver == "larank":  # other solvers keep no support patterns
            assert len(sent) < 0.8 * len(pickle.dumps(tagger))
        for model in (tagger, *copies):
            model.partial_fit(*sentences(40, seed=9))
        for copy in copies:
            assert_same_weights(copy, tagger, atol=1e-9)
            np.testing.assert_allclose(copy.result_.dual, tagger.result_.dual, rtol=1e-9)


@pytest.fixture(scope="module")
def chunks():
    """Sentences and labels of CoNLL-2000."""
    try:
        path = data_directory() / "conll2000" / "train.txt.xz"
    except FileNotFoundError:
        path = Path("absent")
    if not path.exists():
        pytest.skip("needs conll2000 (LARANK_DATA)")
    block = next(ConllFile(path).blocks(22_000))
    return block.sentences(), [list(map(str, labels)) for labels in np.split(block.labels, block.starts[1:-1])]


def test_sentences_one_by_one_cost_an_averaged_perceptron_no_accuracy(chunks):
    X, y = chunks
    tagger = SequenceTagger(solver="perceptron", average=True, random_state=0, n_jobs=1).fit(X[:600], y[:600])
    accuracy = tagger.score(X[640:900], y[640:900])
    for i in range(600, 640):
        tagger.partial_fit(X[i : i + 1], y[i : i + 1])
    assert tagger.score(X[640:900], y[640:900]) > accuracy - 0.0005


@pytest.mark.parametrize(
    "settings", [{}, {"inference": "greedy"}, {"solver": "passive-aggressive", "average": True}], ids=str
)
def test_one_sentence_costs_no_accuracy_and_a_correction_is_learnt(settings, chunks):
    X, y = chunks
    held, truth = X[600:900], y[600:900]
    fitted = SequenceTagger(random_state=0, n_jobs=1, **settings).fit(X[:600], y[:600], certify=False)
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


@pytest.mark.parametrize(("begin", "count"), [(SequenceTagger.fit, 12), (SequenceTagger.partial_fit, 300)])
def test_later_sentences_teach_new_labels_and_features(begin, count):
    tagger = begin(SequenceTagger(random_state=0), *sentences(300))
    features, labels = tagger.coef_.shape
    words, tags = ["the", "Titanic", "sank"], ["DET", "SHIP", "VERB"]
    tagger.partial_fit([words] * count, [tags] * count)
    assert tagger.coef_.shape[0] > features
    assert tagger.coef_.shape[1] == labels + 1 == tagger.transitions_.shape[2]
    assert tagger.predict([words]).tolist() == [tags]


@pytest.mark.parametrize(("label", "other"), [("NOUN", "DET"), (3, 5)])
def test_one_label_is_refused_by_fit_and_may_begin_a_stream(label, other, file_of):
    X, y = [["a", "dog"], [], ["cat"]], [[label, label], [], [label]]
    tagger = SequenceTagger(random_state=0).fit(*sentences(20))
    with unchanged(tagger, X):
        file = file_of(X[::2], [list(map(str, tags)) for tags in y[::2]])
        for data, found in (((X, y), label), ((file,), str(label))):
            with pytest.raises(ValueError, match=f"y must hold at least two classes, got one class: {found!r}$"):
                tagger.fit(*data)
        two = X, [[other, label], [], [label]]
        with pytest.raises(ValueError, match="sample_weight must leave at least two labels in sequences with a weight"):
            tagger.fit(*two, [0, 1, 1])
    tagger.fit(*two, [1, 0, 0])
    stream = SequenceTagger(random_state=0).partial_fit(X, y)
    assert stream.predict([["dog"]])[0] == [label]
    assert len(stream.partial_fit([["a"]] * 9, [[other]] * 9).classes_) == 2


@pytest.mark.parametrize("settings", [{}, {"average": False}, {"inference": "greedy", "order": 3}], ids=str)
def test_weights_that_take_more_than_the_limit_are_refused_before_they_are_made(settings):
    X, y = ([[f"{letter}{n}"] for n in range(3000)] for letter in "wL")
    tagger = SequenceTagger(templates=["word[0]"], memory_limit=1e8, random_state=0, **settings)
    why = (
        r"memory_limit must be at least (\d+) bytes for the weights of 3000 features x 3000 labels and (\d) x 3001 x "
        r"3000 of pairs of labels, (\d) times.*, got 1e\+08; fewer labels or templates take less"
    )
    with pytest.raises(MemoryLimitError, match=why) as error:
        tagger.fit(X, y)
    needed, order, arrays = map(int, re.fullmatch(why, str(error.value)).groups())
    assert (order, arrays) == (settings.get("order", 1), 3 if settings.get("average", True) else 1)
    assert needed == arrays * (3000 + order * 3001) * 3000 * 8
    assert not hasattr(tagger, "classes_")
    tagger.fit(*sentences(20))
    with unchanged(tagger, sentences(5)[0]), pytest.raises(MemoryLimitError, match=r"must be at least \d+ bytes"):
        tagger.partial_fit(X, y)
    tagger.partial_fit(*sentences(5))
    state = tagger.__getstate__()  # as if it had been saved with more labels
    many = {"labels": [f"L{n:04}" for n in range(4000)], "transitions": np.zeros((order, 4001, 4000))}
    with pytest.raises(MemoryLimitError, match=r"memory_limit must be at least \d+ bytes .* x 4000 labels"):
        SequenceTagger.__new__(SequenceTagger).__setstate__({**state, "_state": {**state["_state"], **many}})


# ---- What tokens may be ----


@pytest.mark.parametrize("lengths", [(1, 2, 3, 4), (3, 3, 3, 3), (1, 1, 1, 1)], ids=str)
def test_sequences_of_labels_are_an_array_of_lists(lengths, file_of):
    X = [[["a", "b"][k % 2] for k in range(length)] for length in lengths] * 4
    y = [[word.upper() for word in words] for words in X]
    for i in (0, 8):
        y[i] = ["B", *y[i][1:]]  # one label alone is refused
    tagger, file = SequenceTagger(random_state=0).fit(X, y), file_of(X, y)
    validated = cross_val_predict(SequenceTagger(random_state=0), X, y, cv=4)
    search = GridSearchCV(SequenceTagger(random_state=0), {"C": [1e-9, 0.1]}, cv=2).fit(*sentences(40))
    assert search.best_params_ == {"C": 0.1}
    whole = [*map(tagger.predict, (X, np.array(X, dtype=object), file)), *tagger.predict_blocks(file)]
    whole += [validated, search.predict(X)]
    for found, expected in [*((found, X) for found in whole), (tagger.predict(X[:1]), X[:1]), (tagger.predict([]), [])]:
        assert (found.dtype, found.shape) == (object, (len(expected),))
        assert all(type(labels) is list and type(labels[0]) is str for labels in found)
        assert list(map(len, found)) == list(map(len, expected))
    assert validated[-1] == y[-1]


def test_templates_names_and_dicts_make_the_same_model():
    X, y = sentences(50)
    text = SequenceTagger(templates=["word[0]", "word[-1]"], shuffle=False, random_state=0).fit(X, y)
    pairs = [list(zip(words, ["<s-1>", *words[:-1]], strict=True)) for words in X]
    names = [[[f"word[0]={word}", f"word[-1]={before}"] for word, before in words] for words in pairs]
    dicts = [[{"word[0]": word, "word[-1]": before} for word, before in words] for words in pairs]
    for tokens in (names, dicts):
        tagger = SequenceTagger(shuffle=False, random_state=0).fit(tokens, y)
        assert tagger.feature_names() == text.feature_names()
        assert_same_weights(tagger, text)


def test_dense_sparse_and_named_numbers_make_the_same_model():
    def trained(X, y):
        return SequenceTagger(shuffle=False, random_state=0).fit(X, y)

    random = np.random.RandomState(0)
    rows = random.randint(-8, 9, (60, 5)) / 8 * (random.rand(60, 5) < 0.6)  # exact in float32
    lengths, y = [4, 6, 10, 20, 20], random.randint(3, size=60)
    parts, nested = (np.split(whole, np.cumsum(lengths)[:-1]) for whole in (rows, y))
    dense = trained((rows, lengths), y)
    for other in (trained((csr_matrix(rows), lengths), y), trained((rows, lengths), nested)):
        assert_same_weights(other, dense)
    assert_same_weights(trained((rows.astype(np.float32), lengths), y), dense, atol=1e-7)
    named = trained([[{f"x{j}": v for j, v in enumerate(row)} for row in part] for part in parts], nested)
    order = [named.feature_names().index(f"x{j}") for j in range(5)]
    np.testing.assert_allclose(named.coef_.toarray()[order], dense.coef_.toarray(), atol=1e-12)


def test_the_score_of_a_file_looks_up_each_label_and_not_each_token(file_of, monkeypatch):
    X, y = sentences(80)
    tagger = SequenceTagger(random_state=0).fit(X, y)
    y[60] = ["UNSEEN"] * len(y[60])  # it arrives with a later block
    expected, known, looked_up = tagger.score(X, y), LabelNumbers.known, []
    monkeypatch.setattr(
        LabelNumbers, "known", lambda self, labels: looked_up.append(len(labels)) or known(self, labels)
    )
    monkeypatch.setattr("larank.sequence.tagger._PREDICTION_TOKENS", 20)
    assert tagger.score(file_of(X, y)) == expected
    assert looked_up[-1] == len({label for labels in y for label in labels}) == max(looked_up)
    assert len(looked_up) <= looked_up[-1]


@pytest.mark.parametrize(
    ("settings", "memory_limit"),
    [({"n_jobs": 1}, 2e9), ({"n_jobs": 2}, 1.0), ({"solver": "passive-aggressive", "epochs": 1}, 1.0)],
    ids=str,
)
def test_a_file_makes_the_same_model_as_lists(settings, memory_limit, file_of, monkeypatch):
    monkeypatch.setattr("larank.sequence.corpora._BLOCK_TOKENS", 30)
    X, y = sentences(80)
    file = file_of(X, y)
    # No support pattern is evicted in either case: the perceptrons have none.
    make = {"shuffle": False, "random_state": 0, "epochs": 3, "solver": "perceptron", **settings}
    held = SequenceTagger(**make).fit(X, y)
    read = SequenceTagger(memory_limit=memory_limit, **make).fit(file)
    assert_same_weights(held, read)
    assert read.result_.primal == pytest.approx(held.result_.primal, nan_ok=True)
    assert read.result_.dual == pytest.approx(held.result_.dual, nan_ok=True)
    assert read.predict(file).tolist() == held.predict(X).tolist()
    assert read.score(file) == held.score(X, y)
    assert [path for block in read.predict_blocks(file) for path in block] == held.predict(X).tolist()


def test_limits_on_memory_and_patterns_are_kept_with_a_dual_that_is_a_lower_bound(file_of):
    X, y = noise(300)
    little = SequenceTagger(memory_limit=100_000, random_state=0).fit(file_of(X, y))
    assert hooks.bytes(little._learner.session) <= 100_000
    few = SequenceTagger(max_support=20, random_state=0).fit(X, y)
    assert few.result_.support_patterns == 20
    for tagger in (little, few):
        assert tagger.result_.operations["frozen"] > 0
        assert tagger.result_.gap >= 0
    assert few.partial_fit(X, y).result_.support_patterns == 20


# ---- Certificate ----


def test_label_costs_are_those_of_the_objective():
    data, costs = corpus(0, sequences=12), {(0, 1): 5.0, (1, 0): 0.25}
    X, y = (data.X, np.diff(data.starts)), data.labels
    tagger = SequenceTagger(label_costs=costs, random_state=0).fit(X, y)
    chain = Chain(1, 3, 3, np.array([[costs.get((a, b), float(a != b)) for b in range(3)] for a in range(3)]))
    w = np.concatenate([tagger.coef_.toarray().ravel(), tagger.transitions_.ravel()])
    patterns = [stretches(*data.sequence(i), 1, "exact")[0] for i in range(len(data))]
    losses = sum(chain.h(w, x, chain.worst(w, x)) for x in patterns)
    assert losses > 1
    assert tagger.result_.primal == pytest.approx(w @ w / 2 + tagger.C * losses)
    _, optimum = chain.optimum(patterns, np.full(len(data), 0.5))
    result = tagger.set_params(C=0.5, tol=1e-5).fit(X, y).result_
    assert (result.primal, result.dual) == pytest.approx((optimum, optimum), rel=1e-5)
    with pytest.warns(UserWarning, match="label_costs names labels that y does not hold: 'NUON'"):
        SequenceTagger(label_costs={("NUON", "VERB"): 2.0}).fit(*FEW)


@pytest.mark.parametrize("inference", ["exact", "greedy"])
def test_the_gap_closes_and_the_dual_never_decreases(inference, monkeypatch):
    X, y = sentences(60)
    result = SequenceTagger(inference, tol=1e-3, C=1.0, random_state=0).fit(X, y).result_
    assert result.status == "converged"
    assert 0 <= result.relative_gap <= 1e-3
    monkeypatch.setattr("larank.sequence.training._FEWEST_BETWEEN", 1)
    monkeypatch.setattr("larank.sequence.training._STEP_TOKENS", 5)
    short = SequenceTagger(inference, C=1.0, max_iter=3, random_state=0).fit(X, y).result_
    assert short.dual <= result.primal * (1 + 1e-12)
    assert short.primal >= result.dual * (1 - 1e-12)
    assert len(short.history) > 20
    assert (np.diff([point.dual for point in short.history]) >= -1e-9).all()


def overlapping(count, length=12, tags=6):
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


def test_a_small_gap_does_not_take_many_searches():
    X, y = overlapping(60)
    tagger = SequenceTagger(C=1.0, tol=1e-4, max_iter=250, random_state=0).fit(X, y)
    assert tagger.result_.status == "converged"
    assert tagger.result_.argmax_calls <= 250 * len(X)
    assert (np.diff([point.dual for point in tagger.result_.history]) >= -1e-9 * tagger.result_.dual).all()


def test_a_gap_closes_within_a_limit_on_memory_that_leaves_no_room_for_a_working_set():
    X, y = sentences(40)
    plenty = SequenceTagger(tol=1e-3, random_state=0).fit(X, y)
    little = SequenceTagger(tol=1e-3, memory_limit=30_000, random_state=0).fit(X, y)
    assert plenty.result_.operations["visit_again"] > 0
    assert little.result_.operations["visit_again"] == 0
    assert little.result_.status == "converged"
    assert little.result_.primal == pytest.approx(plenty.result_.primal, rel=2e-3)


@pytest.mark.parametrize("memory_limit", [2e9, 1.0])
def test_a_file_cut_short_by_time_is_certified_for_the_fraction_that_was_read(memory_limit, file_of):
    tagger = SequenceTagger(time_limit=1e-9, memory_limit=memory_limit, n_jobs=1, random_state=0)
    with pytest.warns(TrainingWarning, match="after time_limit"):
        tagger.fit(file_of(*sentences(3000)))
    assert tagger.result_.exact
    assert tagger.result_.gap >= 0
    assert 0 < tagger.result_.iterations < 1 == tagger.n_iter_


# ---- Constraints ----


@pytest.mark.parametrize("scheme", ["BIO", "BILOU"])
@pytest.mark.parametrize("settings", [{}, {"order": 2}, {"inference": "greedy"}, {"inference": "greedy", "order": 3}])
def test_predicted_tags_are_well_formed(scheme, settings):
    tagger = SequenceTagger(constraints=scheme, random_state=0, C=0.01, **settings).fit(*chunked(60, scheme))
    random = np.random.RandomState(1)
    strange = [
        [f"{'oxy'[random.randint(3)]}{random.randint(9)}" for _ in range(random.randint(1, 7))] for _ in range(200)
    ]
    predicted = tagger.predict(strange).tolist()
    assert predicted == repaired(predicted, scheme)


@pytest.mark.parametrize("inference", ["exact", "greedy"])
def test_a_function_may_constrain(inference):
    pairs = {(None, "A"), ("A", "B"), ("B", "A"), ("B", None)}
    tagger = SequenceTagger(inference, constraints=lambda p, y: (p, y) in pairs)
    tagger.fit([["x", "y"]] * 2, [["A", "B"]] * 2)
    assert tagger.predict([["x", "y"] * 3, ["x", "x"]]).tolist() == [["A", "B"] * 3, ["A", "B"]]
    with pytest.raises(ValueError, match="sequence 1 of 3 tokens has none"):
        tagger.predict([["x", "y"], ["x", "y", "x"]])
    with pytest.raises(ValueError, match="must allow some labels"):
        tagger.explain(["x"])
    with pytest.raises(ValueError, match=r"must allow some labels for X\[0\], got none"):
        tagger.predict_nbest([["x"]])


def test_constraints_take_part_in_training():
    """What is forbidden is no competitor: its transition is never pushed down."""
    X, y = chunked(60, "BIO")
    free = SequenceTagger(random_state=0, C=10.0).fit(X, y)
    bound = SequenceTagger(random_state=0, C=10.0, constraints="BIO").fit(X, y)
    o, inside = (free.classes_.tolist().index(tag) for tag in ("O", "I-X"))
    assert free.transitions_[0, 1 + o, inside] < 0
    assert bound.transitions_[0, 1 + o, inside] == 0


@pytest.mark.parametrize(("scheme", "prefixes"), [("BIO", "BI"), ("BILOU", "BILU")])
def test_a_scheme_allows_the_tags_that_need_no_repair(scheme, prefixes):
    labels = ["O", *(f"{prefix}-{kind}" for prefix in prefixes for kind in "XY")]
    allowed = follows(scheme, labels)
    for length in (1, 2, 3):
        for numbers in itertools.product(range(len(labels)), repeat=length):
            tags = [labels[number] for number in numbers]
            found = allowed.ends[numbers[-1]] and all(
                allowed.after[0 if a is None else 1 + a, b] for a, b in itertools.pairwise((None, *numbers))
            )
            assert found == (repaired([tags], scheme) == [tags]), tags


# ---- n best, explanations, weights ----


@pytest.mark.parametrize("inference", ["exact", "greedy"])
@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("constraints", [None, "BIO"])
def test_paths_confidences_and_explanations_tell_the_same(inference, order, constraints):
    X, y = chunked(40, "BIO")
    tagger = SequenceTagger(inference, order=order, constraints=constraints, random_state=0).fit(X[:30], y[:30])
    X = [*X[30:], *(x[:3] for x in X[30:])]
    for x, labels, tokens in zip(X, tagger.predict(X), tagger.predict_confidence(X), strict=True):
        is_short = len(x) < 4
        told, paths = tagger.explain(x, top=1000), tagger.predict_nbest([x], 1000 if is_short else 6)[0]
        scores, margins = [path.score for path in paths], [token.margin for token in told.tokens]
        assert labels == paths[0].labels == told.labels == [token.label for token in tokens]
        assert [token.margin for token in tokens] == pytest.approx(margins, abs=1e-9)
        assert {token.probability for token in tokens} == {None}
        assert scores == sorted(scores, reverse=True)
        if is_short:
            every = map(list, itertools.product(tagger.classes_.tolist(), repeat=len(x)))
            possible = [path for path in every if constraints is None or repaired([path]) == [path]]
            assert sorted(path.labels for path in paths) == sorted(possible)
        assert is_short or len(paths) == 6 == len({tuple(path.labels) for path in paths})
        if inference == "exact":
            assert told.score == pytest.approx(scores[0])
            assert min(margins) == pytest.approx(paths[0].margin)
            differences = [a - b for a, b in itertools.pairwise(scores)]
            assert [path.margin for path in paths[: len(differences)]] == pytest.approx(differences)
            assert paths[-1].margin == np.inf or not is_short
            continue
        assert scores[0] == 0
        last = [path.score for path in paths[1:] if path.labels[:-1] == labels[:-1]]
        if last:  # with another last label, the margin of that label is what is given away
            assert -max(last) == pytest.approx(margins[-1])
        for token in told.tokens:
            if token.runner_up is not None:
                total = sum(found.difference for found in (*token.features, *token.transitions))
                assert total == pytest.approx(token.margin)
                assert token.runner_up != token.label


def test_an_explanation_can_be_read(fitted):
    text = str(fitted.explain(["the", "dog", "sees"]))
    assert all(part in text for part in ("the: DET, before", "nothing 1 before", "word[0]=dog"))
    tagger = SequenceTagger(constraints="BILOU", random_state=0).fit([["a", "b"]] * 3, [["B-X", "L-X"]] * 3)
    explanation = tagger.explain(["a", "b"])
    assert str(explanation).splitlines()[0] == "a: B-X, no other label is allowed"
    assert (explanation.tokens[0].runner_up, explanation.tokens[0].margin) == (None, np.inf)


def test_weights_name_what_speaks_for_a_label(fitted):
    column, names = fitted.classes_.tolist().index("DET"), fitted.feature_names()
    by_name = {weight.name: weight.weight for weight in fitted.weights("DET", top=500)}
    assert by_name["word[0]=the"] > 0
    assert by_name["nothing 1 before"] == fitted.transitions_[0, 0, column]
    for name in by_name.keys() & set(names):
        assert by_name[name] == fitted.coef_[names.index(name), column]
    sizes = list(map(abs, by_name.values()))
    assert sizes == sorted(sizes, reverse=True)


# ---- Saving ----


@pytest.mark.parametrize("value", [-1.7e308, 1e200, np.nan])
@pytest.mark.parametrize("average", [False, True])
def test_a_damaged_tagger_is_refused_when_it_is_loaded(average, value, tmp_path):
    """The digest of the file is right, so the values themselves are checked."""
    path = tmp_path / "tagger.larank"
    save(SequenceTagger(solver="perceptron", average=average, random_state=0).fit(*sentences(10)), path)
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


def all_but(*pair):
    return {"constraints": lambda *labels: labels != pair}


@pytest.mark.parametrize(
    ("X", "y", "parameters", "message"),
    [
        (*FEW, {"order": 20}, "order must be lower for exact inference with 3 labels"),
        (*FEW, {"constraints": "IOB"}, "constraints must be 'BIO', 'BILOU', a function"),
        (*FEW, {"constraints": "BIO"}, "constraints='BIO' knows labels 'O', 'B-...', 'I-...'; got"),
        (*FEW, {"constraints": lambda p, y: False}, "constraints must allow some sequence"),
        (*FEW, all_but("DET", "NOUN"), r"but 3 are not allowed: 'NOUN' after 'DET' at y\[0\]\[1\]; "),
        (*FEW, all_but("VERB", None), "the end after 'VERB'"),
        (*FEW, {"label_costs": {("DET", "NOUN"): -1.0}}, "label_costs.* must be a finite number >= 0"),
        (*FEW, {"label_costs": {"DET": 1.0}}, "label_costs must have pairs"),
        (*FEW, {"label_costs": {("DET", "DET"): 1.0}}, "label_costs must be 0 for a label in its own place"),
        (*FEW, {"label_costs": 3}, "label_costs must map"),
        (*FEW, {"label_costs": {("D", "N"): 2}, "solver": "perceptron"}, "label_costs acts with"),
        (*FEW, {"templates": ["word[0"]}, "the template 'word\\[0' cannot be read"),
        (*FEW, {"templates": [1]}, r"templates must be str, such as 'word\[0\]'; got 1"),
        (*FEW, {"templates": 3}, "templates must be 'general', 'words', 'chunking', or a sequence"),
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
def test_what_is_wrong_is_named_with_its_place(X, y, parameters, message):
    tagger = SequenceTagger(**parameters)
    with pytest.raises((TypeError, ValueError), match=message):
        tagger.fit(X, y)
    assert not hasattr(tagger, "classes_")


# Calls of a tagger trained with FEW, with a function that makes a file of lines.
CALLS = [
    (lambda t, file: t.fit(*FEW, sample_weight=[1, 1]), "one entry per example"),
    (lambda t, file: t.fit(*FEW, sample_weight=[0, 0, 0]), "above zero"),
    (lambda t, file: t.set_params(order=2).partial_fit(*FEW), "order must stay as it was"),
    (lambda t, file: t.weights("XYZ"), "label must be one of"),
    (lambda t, file: t.weights("NOUN", -1), "top must be an integer >= 1, got -1"),
    (lambda t, file: t.score([], []), "X must hold at least one token for a score, got none"),
    (lambda t, file: t.predict_entities(FEW[0]), "entities are found by labels such as B-NP, I-NP and O; got"),
    (lambda t, file: t.calibrate([[]], [[]]), "X must hold at least one token to calibrate with, got none"),
    (lambda t, file: t.calibrate(FEW[0]), "y must hold the labels of X"),
    (lambda t, file: t.calibrate([["a"]], [["Q"]]), r"y must hold labels of the tagger, \['DET', .*; got \['Q'\]"),
    (lambda t, file: t.fit(file("the DET"), [["DET"]]), "y must be None for a ConllFile"),
    (lambda t, file: t.fit(file("the DET"), sample_weight=[1]), "sample_weight must be None for a ConllFile"),
    (lambda t, file: t.fit(file("the DET", label=None)), "must have a column of labels"),
    (lambda t, file: t.fit(file("the DET\ndog")), "line 2: 1 column"),
    (
        lambda t, file: t.set_params(constraints="BIO").fit(file("a B-X\nb I-Y")),
        r"1 is not allowed: 'I-Y' after 'B-X' at .*train\.txt, line 2; repair",
    ),
    (lambda t, file: SequenceTagger().explain(["a"]), "not fitted"),
    (lambda t, file: SequenceTagger().predict_confidence(["a"]), "not fitted"),
    (lambda t, file: SequenceTagger().calibrate(*FEW), "not fitted"),
    (lambda t, file: SequenceTagger().coef_, "once the tagger is fitted"),
]


@pytest.mark.parametrize(("call", "message"), CALLS)
def test_what_a_tagger_cannot_do_is_named_and_changes_nothing(call, message, tmp_path):
    def file(lines, **columns):
        (tmp_path / "train.txt").write_text(f"{lines}\n")
        return ConllFile(tmp_path / "train.txt", **columns)

    tagger = SequenceTagger(random_state=0).partial_fit(*FEW)
    special = {"line 2: 1 column": DataFormatError, "not fitted": NotFittedError}
    with unchanged(tagger, FEW[0]), pytest.raises(special.get(message, (ValueError, AttributeError)), match=message):
        call(tagger, file)


@pytest.mark.parametrize(
    "wrong", ["broken\n", "new I-Q\n", ("new", "I-Z"), ("x1 x2", "O I-X"), ("x1", "VERB"), ("x1", "O O")], ids=str
)
def test_a_failed_call_leaves_the_model_as_it_was(wrong, file_of, monkeypatch):
    """A tuple is a sentence and its tags, a text the last line of a file of new words and tags."""
    monkeypatch.setattr("larank.sequence.corpora._BLOCK_TOKENS", 20)
    X, y = chunked(40, "BIO")
    words, tags = [["new", "newer"]], [["B-Z", "I-Z"]]
    tagger, data = SequenceTagger(constraints="BIO", random_state=0).fit(X, y), [[text.split()] for text in wrong]
    if isinstance(wrong, str):
        data = [file_of(words * 30, tags * 30)]
        with data[0].path.open("a") as opened:
            opened.write(wrong)
    message = r"file\.txt, line 91" if isinstance(wrong, str) else r"constraints|y\[0\]"
    with unchanged(tagger, X), pytest.raises(ValueError, match=message):
        tagger.partial_fit(*data)
    assert tagger.predict(words)
    again = pickle.loads(pickle.dumps(tagger))
    assert again.predict(X).tolist() == tagger.predict(X).tolist()
    assert tagger.partial_fit(words, tags).predict(X).tolist() == again.partial_fit(words, tags).predict(X).tolist()
    assert_same_weights(tagger, again)
    assert "B-Z" in tagger.classes_


def test_estimates_of_the_primal_objective_are_made_in_the_first_epoch_only():
    X, y = sentences(60)
    tagger = SequenceTagger(max_iter=4, random_state=0).fit(X, y)
    assert any(point.primal > 0 for point in tagger.result_.history if not point.exact)
    assert not any(point.primal < point.dual for point in tagger.result_.history)
    assert tagger.result_.gap >= 0
    assert np.isnan(tagger.set_params(certify=False).fit(X, y).result_.gap)
    assert tagger.partial_fit(X, y).result_.primal > 0
    for parameters in ({"solver": "perceptron"}, {"solver": "passive-aggressive", "epochs": 2}):
        assert not SequenceTagger(**parameters).fit(X, y).result_.has_objective
    assert SequenceTagger(solver="passive-aggressive").fit(X, y).result_.gap >= 0


def test_labels_are_kept_as_they_are():
    X = [["a", "b"], ["b", "a"]]
    for first, second in (("D", "D\0"), (("D", 1), ("N", 2)), (b"D", b"D\0")):  # arrays would change them
        tagger = SequenceTagger(random_state=0).fit(X, [[first, second], [second, first]])
        assert tagger.classes_.shape == (2,)
        assert tagger.classes_.tolist() == [first, second]
        assert tagger.coef_.shape[1] == 2
        assert tagger.predict([["a", "b"]]).tolist() == [[first, second]]
    rows = np.eye(3)[[0, 1, 2, 0, 1]], [3, 2]
    predicted = SequenceTagger(random_state=0).fit(rows, np.array([7, 8, 9, 7, 8])).predict(rows)
    assert predicted.dtype.kind == "i"
    assert predicted.tolist() == [7, 8, 9, 7, 8]


def test_series_and_arrays_are_sequences_whatever_their_index():
    X, y = sentences(20)
    expected = SequenceTagger(random_state=0).fit(X, y).predict(X).tolist()
    whole = [pd.Series(part, index=range(5, 25)) for part in (X, y)]
    for words, tags in (whole, *([list(map(kind, part)) for part in (X, y)] for kind in (pd.Series, np.array))):
        assert SequenceTagger(random_state=0).fit(words, tags).predict(words).tolist() == expected
    pair = np.array(["a", "b"]), np.array(["b", "b"])  # two sequences, and not rows with lengths
    tags = np.array(["D", "N"]), np.array(["N", "N"])
    assert SequenceTagger(random_state=0).fit(pair, tags).predict(pair).tolist() == [["D", "N"], ["N", "N"]]
    with pytest.raises(TypeError, match="X is a DataFrame"):
        SequenceTagger().fit(pd.DataFrame({"word": ["a"]}), [["D"]])


def test_thousands_of_best_paths_are_distinct_and_in_order():
    X, y = noise(20, length=30, tags=20)
    tagger = SequenceTagger(random_state=0).fit(X, y)
    paths = tagger.predict_nbest(X[:1], 5000)[0]
    scores = [path.score for path in paths]
    assert scores == sorted(scores, reverse=True)
    assert len({tuple(path.labels) for path in paths}) == 5000


@pytest.mark.parametrize(
    "parameters", [{}, {"solver": "perceptron", "average": True}, {"inference": "greedy"}], ids=str
)
def test_a_copy_learns_what_the_model_itself_would_have_learnt(parameters):
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


def test_a_tagger_cannot_be_read_by_the_call_that_trains_it():
    tagger = SequenceTagger(random_state=0).fit(*sentences(40))
    with tagger._learner.in_place(), pytest.raises(RuntimeError, match="by the call that trains it"):
        tagger.predict([["dog"]])


# Sequences without tokens


@pytest.mark.parametrize("inference", ["exact", "greedy"])
def test_empty_sequences_have_empty_labels_and_change_nothing(inference):
    X, y = sentences(20)
    gaps, tagger = (
        SequenceTagger(inference, shuffle=False, random_state=0).fit([*gap, *X, *gap], [*gap, *y, *gap])
        for gap in ([[]], [])
    )
    assert_same_weights(gaps, tagger)
    assert tagger.predict([[], *X, []]).tolist() == [[], *tagger.predict(X).tolist(), []]
    assert tagger.predict([[]]).tolist() == [[]]
    assert tagger.predict_nbest([[], X[0]], n=1)[0] == [RankedPath([], 0.0, np.inf)]
    assert tagger.predict_confidence([[], X[0], []])[0::2] == [[], []]
    assert tagger.score([[], *X], [[], *y]) == tagger.score(X, y)
    assert tagger.explain([]).tokens == ()
    tagger.partial_fit([[], X[0]], [[], y[0]], sample_weight=np.ones(2))
    rows = SequenceTagger(inference, random_state=0).fit((np.eye(4), [0, 2, 0, 2]), [0, 1, 0, 1])
    assert rows.predict((np.eye(4), [4, 0])).tolist() == [0, 1, 0, 1]


# Labels that are not allowed


@pytest.mark.parametrize("is_file", [False, True])
def test_all_labels_that_are_not_allowed_are_named_before_training_or_repaired(is_file, file_of):
    X, y = [["a", "b", "c"], ["d"]] * 15, [["I-X", "I-X", "O"], ["B-X"]] * 15
    data, where = ((file_of(X, y),), r".*file.txt, line \d+") if is_file else ((X, y), r"y\[\d+\]\[0\]")
    with pytest.raises(LabelsNotAllowedError, match=r"15 are not allowed: .*; and 5 more; repair=True") as refused:
        SequenceTagger(constraints="BIO", random_state=0).fit(*data)
    assert len(refused.value.places) == 15
    assert all(re.fullmatch(f"'I-X' at the beginning at {where}", place) for place in refused.value.places)
    for scheme, first in (("BIO", ["B-X", "I-X", "O"]), ("BILOU", ["B-X", "L-X", "O"])):
        with pytest.warns(UserWarning, match=r"\d+ labels were mended, as conlleval reads them: 'B-X' for 'I-X' at "):
            tagger = SequenceTagger(constraints=scheme, repair=True, random_state=0).fit(*data)
        assert tagger.predict(X[:1]).tolist() == [first]
        assert "I-X" not in tagger.classes_ or scheme == "BIO"


def test_wrong_labels_alone_are_repaired_by_every_call_that_takes_them(file_of, recwarn):
    X, y = chunked(40, "BIO")
    wrong = [[re.sub("^B", "I", tags[0]), *tags[1:]] for tags in y]
    tagger, plain = (SequenceTagger(constraints="BIO", repair=r, random_state=0).fit(X, y) for r in (True, False))
    assert not [warning for warning in recwarn if "mended" in str(warning.message)]
    assert tagger.predict(X).tolist() == plain.predict(X).tolist()
    expected = tagger.score(X, y)
    for data, where in (((X, wrong), r"y\[\d+\]\[\d+\]"), ((file_of(X, wrong),), r".*file.txt, line \d+")):
        for call in (SequenceTagger.score, SequenceTagger.fit, SequenceTagger.partial_fit, SequenceTagger.calibrate):
            copy = pickle.loads(pickle.dumps(tagger))
            place = where if call is SequenceTagger.score else ""
            with pytest.warns(UserWarning, match=f"were mended, as conlleval reads them: 'B-.' for 'I-.' at {place}"):
                found = call(copy, *data)
            assert found == (expected if call is SequenceTagger.score else copy)


# Confidence


def test_a_path_without_an_entity_is_behind_by_its_margin():
    X, y = chunked(40, "BIO")
    tagger = SequenceTagger(constraints="BIO", random_state=0).fit(X[:30], y[:30])
    short = [x[:4] for x in X[30:]]
    for paths, found in zip(tagger.predict_nbest(short, n=10_000), tagger.predict_entities(short), strict=True):
        assert [entity[:3] for entity in found] == entities(paths[0].labels)
        for entity in found:
            without = [path.score for path in paths if entity[:3] not in entities(path.labels)]
            assert paths[0].score - max(without) >= entity.margin - 1e-9


def test_calibration_makes_probabilities_of_margins_and_is_saved(file_of, tmp_path):
    X, y = chunked(300, "BIO")
    random = np.random.RandomState(0)
    noisy = [["O" if random.rand() < 0.2 else tag for tag in tags] for tags in y]
    tagger = SequenceTagger(random_state=0).fit(X[:100], noisy[:100])
    assert tagger.calibrate(X[100:200], noisy[100:200]) is tagger
    in_memory = tagger.calibration_
    assert np.array_equal(tagger.calibrate(file_of(X[100:200], noisy[100:200])).calibration_, in_memory)
    assert tagger.predict_confidence(file_of(X[100:200], noisy[100:200])) == tagger.predict_confidence(X[100:200])
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
