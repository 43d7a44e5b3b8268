"""The estimator on streams: files and blocks make the model of arrays, failures leave it alone, memory is bounded."""

import contextlib
import gzip
import itertools
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from checks import assert_same_model, clouds, interrupt_when_training, splits, unchanged
from larank import LinearSGDClassifier, MemoryLimitError
from larank.data import DataFormatError, ExampleFile, write_svmlight
from larank.training import TrainingWarning

ALGORITHMS = ("asgd", "sgdqn", "svmsgd2", "sgd", "olbfgs")
METHODS = ("fit", "partial_fit")
every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)


def sgd(**parameters):
    return LinearSGDClassifier(**{"random_state": 0, **parameters})


def in_order(**parameters):
    """Return an estimator whose model depends on the examples and their order alone."""
    return sgd(**{"t0": 1e4, "shuffle": False, **parameters})


def of_arrays(X, y, sample_weight=None, **parameters):
    """Return the model of `in_order` for arrays; a certificate would shrink its weights."""
    return in_order(**parameters).fit(X, y, sample_weight, certify=False)


def examples(n=240, classes=3):
    """Rows with four of eight features each, so that any part of them is as sparse as the whole."""
    random = np.random.default_rng(0)
    X, y = clouds(n=n, classes=classes, features=8)
    X = np.round(X, 4)
    X[np.arange(8) // 4 == random.integers(0, 2, n)[:, None]] = 0
    return X, y


def blocks(X, y, size=50):
    return [(X[first : first + size], y[first : first + size]) for first in range(0, X.shape[0], size)]


def write_csv(path, X, y):
    lines = [",".join([*map(repr, x), str(label)]) for x, label in zip(X.tolist(), y.tolist(), strict=True)]
    with gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w") as file:
        file.write("\n".join(lines) + "\n")


def endless(rows=1000, features=10):
    """Blocks without end, each drawn anew."""
    random = np.random.default_rng(0)
    while True:
        X = random.normal(size=(rows, features))
        yield X, (X[:, 0] + random.normal(size=rows) > 0).astype(int)


@pytest.fixture
def no_thread_left():
    yield
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("larank-reading")]


pytestmark = pytest.mark.usefixtures("no_thread_left")


@pytest.mark.parametrize(
    ("name", "memory_limit", "max_iter"),
    [("a.svm", 30_000.0, 3), ("a.svm.gz", 2e9, 1), ("a.csv", 2e9, 3), ("a.csv.gz", 30_000.0, 1)],
)
@every_algorithm
def test_a_file_makes_the_model_of_its_examples(name, memory_limit, max_iter, algorithm, tmp_path):
    X, y = examples()
    if ".svm" in name:
        write_svmlight(tmp_path / name, X, y)
        X = sparse.csr_matrix(X)
    else:
        X = np.where(X == 0, 0.5, X)
        write_csv(tmp_path / name, X, y)
    make = {"algorithm": algorithm, "max_iter": max_iter, "alpha": 1e-2}
    expected = of_arrays(X, y, **make)
    for source in (tmp_path / name, str(tmp_path / name), ExampleFile(tmp_path / name)):
        model = in_order(**make, memory_limit=memory_limit).fit(source)
        assert_same_model(model, expected, atol=1e-9)
    assert model.result_.operations == expected.result_.operations
    assert model.result_.iterations == max_iter


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@every_algorithm
def test_blocks_of_any_size_make_the_model_of_their_examples(layout, algorithm):
    X, y = examples()
    X = layout(X if layout is sparse.csr_matrix else np.where(X == 0, 0.5, X))
    names = np.array(["ash", "elm", "oak"])[y]
    expected = of_arrays(X, names, algorithm=algorithm, max_iter=2)
    for size, memory_limit in itertools.product((3, 50, 240), (2e9, 30_000.0)):
        model = in_order(algorithm=algorithm, max_iter=2, memory_limit=memory_limit).fit(blocks(X, names, size))
        assert_same_model(model, expected, atol=1e-9)


@pytest.mark.parametrize("kind", ["file", "blocks", "generator", "arrays"])
def test_partial_fit_takes_what_fit_takes(kind, tmp_path):
    X, y = examples()
    expected = of_arrays(sparse.csr_matrix(X), y, max_iter=1)
    model = in_order()
    for number, rows in enumerate(splits(len(y), 60, 150)):
        part, path = (sparse.csr_matrix(X[rows]), y[rows]), tmp_path / f"{number}.svm"
        write_svmlight(path, *part)
        given = {"file": (path,), "blocks": (blocks(*part, 7),), "generator": (iter(blocks(*part, 7)),), "arrays": part}
        model.partial_fit(*given[kind])
    assert_same_model(model, expected, atol=1e-9)


@pytest.mark.parametrize("factors", [None, {0: 1.0, 1: 3.0, 2: 0.5, 7: 9.0}])
def test_weights_of_examples_come_with_the_blocks_and_those_of_classes_act(factors):
    X, y = examples()
    weight = np.random.default_rng(1).choice([0.0, 0.5, 2.0], len(y))
    X = np.where(X == 0, 0.5, X)
    whole = weight if factors is None else weight * [factors[label] for label in y.tolist()]
    expected = of_arrays(X, y, sample_weight=whole, max_iter=1)
    weighted = [(X[rows], y[rows], weight[rows]) for rows in splits(len(y), 50, 120)]
    for method in METHODS:
        assert_same_model(getattr(in_order(class_weight=factors), method)(weighted), expected, atol=1e-9)


def test_the_seed_decides_the_order_within_buffers():
    X, y = examples()
    first, again, other = (sgd(t0=1e3, random_state=seed).fit(blocks(X, y)) for seed in (0, 0, 1))
    assert_same_model(again, first)
    assert np.abs(other.coef_ - first.coef_).max() > 1e-9
    assert np.abs(sgd(t0=1e3, shuffle=False).fit(blocks(X, y)).coef_ - first.coef_).max() > 1e-9


def test_the_first_step_is_searched_for_on_the_first_buffer():
    X, y = clouds(n=4000, classes=3, features=5)
    model = sgd().fit(blocks(X, y, 500))
    assert model.result_.operations["visits"] == 4000
    assert model.result_.operations["search_visits"] >= 3000
    assert model.score(X, y) > sgd().fit(X, y).score(X, y) - 0.02
    later = model.t0_
    assert model.partial_fit(blocks(X, y, 500)).t0_ == later


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
def test_the_certificate_of_a_stream_is_an_estimate_and_says_so(loss):
    X, y = clouds(n=20_000, classes=3)
    model = sgd(loss=loss).fit(blocks(X, y, 1000))
    whole = sgd(loss=loss, max_iter=1).fit(X, y)
    assert not model.result_.exact
    assert whole.result_.exact
    # Each loss is computed with the weights before its step, so the estimate is higher.
    assert 1 <= model.result_.primal / whole.result_.primal <= 1.15
    assert model.result_.gap >= 0
    assert 0 <= model.result_.history[-1].online_error - (1 - whole.score(X, y)) <= 0.03


@every_algorithm
@pytest.mark.parametrize("formulation", ["joint", "one-vs-rest"])
def test_features_and_classes_may_join_within_a_file(algorithm, formulation, tmp_path):
    random = np.random.default_rng(0)
    y = np.r_[np.arange(2000) % 2, np.arange(1000) % 4]
    X = random.normal(size=(4, 6))[y] * 2 + random.normal(size=(3000, 6))
    X[:1500, 4:] = 0
    write_svmlight(tmp_path / "a.svm", X, y)
    model = sgd(algorithm=algorithm, formulation=formulation, loss="log_loss", alpha=1e-3, memory_limit=3e5)
    model.fit(tmp_path / "a.svm")
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert model.coef_.shape == (4, 6)
    assert model.coef_[:, 4:].any()
    assert model.set_params(max_iter=5).fit(tmp_path / "a.svm").score(X, y) > (0.5 if algorithm == "olbfgs" else 0.8)


def test_a_later_call_may_have_fewer_features_in_sparse_blocks_and_no_more(tmp_path):
    X, y = examples()
    stored = sparse.csr_matrix(X)
    model = in_order().fit([(stored, y)])
    expected = in_order().fit([(stored, y)]).partial_fit(sparse.csr_matrix(np.where(np.arange(8) < 5, X, 0)), y)
    assert_same_model(model.partial_fit([(stored[:, :5], y)]), expected, atol=1e-12)
    wide = sparse.hstack([stored, stored], format="csr")
    with unchanged(model, stored), pytest.raises(ValueError, match=r"block 1: X has 16 features, but .* expecting 8"):
        model.partial_fit([(wide, y)])


def test_labels_that_were_not_announced_are_refused_with_their_place(tmp_path):
    X, y = examples()
    write_svmlight(tmp_path / "a.svm", X, np.r_[y[:200] % 2, y[200:]])
    model = in_order(memory_limit=8000.0).partial_fit(X[:60], y[:60] % 2, classes=[0, 1])
    said = r"a.svm, lines \d+ to \d+: y must hold labels out of classes=\[0, 1\], as announced; got 2"
    with unchanged(model, X), pytest.raises(ValueError, match=said):
        model.partial_fit(tmp_path / "a.svm")


def damaged(path, X, y):
    """Write a file whose line 2345 is wrong."""
    write_svmlight(path, X, y) if ".svm" in path.name else write_csv(path, X, y)
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt") as file:
        lines = file.readlines()
    lines[2344] = "1 7:1 3:1\n" if ".svm" in path.name else "1,2,x,4,5,6,7,8,0\n"
    with opened(path, "wt") as file:
        file.writelines(lines)
    return path


def failing(X, y, after):
    yield from itertools.islice(itertools.cycle(blocks(X, y)), after)
    raise ZeroDivisionError("mine")


@pytest.mark.parametrize("source", ["a.svm", "a.svm.gz", "a.csv", "a.csv.gz", 0, 1, 30])
@pytest.mark.parametrize("method", METHODS)
def test_a_damaged_line_and_an_iterator_that_raises_leave_the_model_as_it_was(source, method, tmp_path):
    X, y = examples(n=3000)
    is_file = isinstance(source, str)
    path = damaged(tmp_path / source, X, y) if is_file else None
    error, message = (DataFormatError, "line 2345") if is_file else (ZeroDivisionError, "mine")
    fresh = in_order(memory_limit=50_000.0)
    model = of_arrays(X[:100], y[:100], memory_limit=50_000.0)
    for each, kept in ((fresh, contextlib.nullcontext()), (model, unchanged(model, X))):
        with kept, pytest.raises(error, match=message):
            getattr(each, method)(path if is_file else failing(X, y, source))
    assert vars(fresh) == vars(in_order(memory_limit=50_000.0))
    expected = of_arrays(X[:100], y[:100]).partial_fit(X[100:200], y[100:200])
    assert_same_model(model.partial_fit(X[100:200], y[100:200]), expected)


X0, y0 = examples()
BLOCKS, FILES = blocks(X0, y0), (Path("a.svm"), "a.svm", ExampleFile("a.svm"))
WIDE = sparse.csr_matrix((np.ones(3), ([0, 1, 2], [0, 1, 50_000])), shape=(3, 50_001))
OWN_LABELS = "y must be None where X is a file, which has its own labels"
OWN_WEIGHTS = r"sample_weight must be None where X is a stream: blocks .* bring"
EMPTY = ([], iter([]), [(X0[:0], y0[:0])], "empty.svm")
ONE_CLASS, TOO_WIDE = [(X0, np.full(240, "oak"))], [(sparse.csr_matrix(X0), y0), (WIDE, [0, 1, 2])]
# Methods, parameters, what is trained on, words of the error.
REFUSED = [
    *((method, {}, {"X": path, "y": y0}, OWN_LABELS) for method in METHODS for path in FILES),
    *((method, {}, {"X": path, "sample_weight": y0}, OWN_WEIGHTS) for method in METHODS for path in (*FILES, BLOCKS)),
    *((method, {}, {"X": none}, "at least one example|no examples|without") for method in METHODS for none in EMPTY),
    ("fit", {"class_weight": "balanced"}, {"X": BLOCKS}, "class_weight must be a dict or None with a stream; got"),
    ("fit", {"warm_start": True}, {"X": BLOCKS}, "warm_start must be False with a stream; got True. Continue with"),
    ("fit", {}, {"X": ONE_CLASS}, "the stream must hold at least two classes, got one: 'oak'"),
    (
        "fit",
        {"max_iter": 2},
        {"X": (part for part in BLOCKS)},
        "max_iter=2 needs a stream that can be read again",
    ),
    ("fit", {}, {"X": BLOCKS, "validation": (X0[:, :5], y0)}, "validation must have the features of the stream, 8"),
    ("fit", {}, {"X": BLOCKS, "validation": (X0, y0 + 9)}, "validation must have labels that the stream has too"),
    ("fit", {"memory_limit": 1e5}, {"X": TOO_WIDE}, "block 2: memory_limit=1e.05 bytes do not hold .* 50001 features"),
]


@pytest.mark.parametrize(("method", "parameters", "examples", "message"), REFUSED)
def test_what_cannot_act_on_a_stream_is_refused(method, parameters, examples, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_svmlight(FILES[0], X0, y0)
    Path("empty.svm").write_text("# nothing\n")
    with pytest.raises(MemoryLimitError if "memory_limit" in parameters else ValueError, match=message):
        getattr(sgd(**parameters), method)(**examples)
    with pytest.raises(FileNotFoundError):
        getattr(sgd(), method)("missing.svm")


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (lambda X, y: (X[:, :5], y), r"block 3.*: X has 5 features, but .* expecting 8"),
        (lambda X, y: (np.where(X > 2, np.nan, X), y), r"block 1 to block 5: .*column 2.*Input X contains NaN"),
        (lambda X, y: (X, np.array(["a", "b"])[y % 2]), r"block 3.*labels of the same type"),
        (lambda X, y: (X, y, -np.ones(len(y))), r"block 3.*sample_weight must be finite and not negative"),
    ],
)
def test_a_wrong_block_is_named_and_leaves_the_model_as_it_was(block, message):
    X, y = examples()
    model = of_arrays(X, y)
    parts = blocks(X, y)
    parts[2] = block(*parts[2])
    for method in ("fit", "partial_fit"):
        with unchanged(model, X), pytest.raises(ValueError, match=message):
            getattr(model, method)(parts)


@pytest.mark.parametrize("t0", [None, 1e5])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("status", ["time_limit", "interrupted"])
def test_an_early_end_of_a_stream_leaves_a_valid_model(method, t0, status):
    is_interrupted = status == "interrupted"
    model = sgd(t0=t0, time_limit=None if is_interrupted else 0.2, memory_limit=1e6)
    pressed = interrupt_when_training() if is_interrupted else contextlib.nullcontext()
    with pressed, pytest.warns(TrainingWarning, match="time_limit|interrupt"):
        getattr(model, method)(endless())
    assert model.result_.status == status
    X, y = next(endless())
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(model.result_.primal)
    assert is_interrupted or model.score(X, y) > 0.7


def test_a_time_limit_within_the_search_for_the_first_step_leaves_a_valid_model():
    X, y = next(endless())
    model = sgd(time_limit=1e-9)
    with pytest.warns(TrainingWarning, match="time_limit"):
        model.fit([(X, y)])
    assert model.result_.status == "time_limit"
    assert np.isfinite(model.decision_function(X)).all()
    assert model.set_params(time_limit=None).partial_fit([(X, y)]).result_.status == "completed"


def peak_of(call):
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("t0", [None, 1e5])
def test_a_stream_of_a_million_examples_is_trained_on_in_bounded_memory(t0):
    """Eighty megabytes go by."""
    model = sgd(t0=t0, memory_limit=4e6)
    assert peak_of(lambda: model.fit(itertools.islice(endless(rows=5000), 200))) < 2 * 4e6
    assert model.result_.operations["visits"] == 10**6
    assert model.score(*next(endless())) > 0.7


def test_a_file_is_never_in_memory_as_a_whole(tmp_path):
    random = np.random.default_rng(0)
    X = sparse.random(20_000, 200, 0.1, format="csr", random_state=random)
    write_svmlight(tmp_path / "a.svm", X, (X @ random.normal(size=200) > 0).astype(int))
    size = (tmp_path / "a.svm").stat().st_size
    assert peak_of(lambda: sgd(memory_limit=size / 8).fit(tmp_path / "a.svm")) < size / 2
