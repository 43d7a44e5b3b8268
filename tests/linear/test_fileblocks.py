"""Files and blocks larger than memory: the optimum of all rows, whatever the blocks, and nothing left behind."""

import contextlib
import errno
import gzip
import itertools
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from test_sdm import clusters, small_problems, svc

import larank
from checks import interrupt_when_training, unchanged
from larank import SDM, MemoryLimitError
from larank.data import ExampleFile, write_svmlight
from larank.data.files import file_to_write, temporary_folder
from larank.data.rowstore import place_of
from larank.training import TrainingWarning
from properties import draws
from references import optima
from references.optima import FORMULATIONS

formulations = pytest.mark.parametrize("formulation", FORMULATIONS)
SMALL = 2400.0  # bytes that hold the weights of six features and four classes, and a row or two


@pytest.fixture(autouse=True)
def no_debris(tmp_path_factory, monkeypatch):
    """Temporary folders are in one of their own, which is empty in the end."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not list(folder.iterdir())


def cut(X, y, ends, weight=None):
    """Blocks of these rows, as the user's own iterable."""
    parts = [slice(first, last) for first, last in zip([0, *ends], [*ends, len(y)], strict=True)]
    return [(X[part], y[part], None if weight is None else weight[part]) for part in parts]


def assert_same_optimum(model, other, rel=2e-4):
    assert model.result_.status == "converged"
    assert model.result_.primal == pytest.approx(other.result_.primal, rel=rel)
    assert model.result_.dual == pytest.approx(other.result_.dual, rel=rel)
    np.testing.assert_array_equal(model.classes_, other.classes_)


@draws(15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(small_problems(), st.sampled_from(FORMULATIONS), st.booleans(), st.booleans(), st.data())
def test_the_optimum_is_that_of_a_general_qp_solver(problem, formulation, cooling, is_sparse, data):
    """However rows are divided: unequally, into empty blocks, into such that miss a class, row by row."""
    X, y, weight, C, intercept = problem
    ends = sorted(data.draw(st.lists(st.integers(0, len(y)), max_size=4)))
    limit = data.draw(st.sampled_from([1700.0, 2600.0, 1e6]))
    model = svc(formulation, C=min(C, 10.0), tol=1e-4, solver=SDM(cooling=cooling), memory_limit=limit)
    model.set_params(fit_intercept=intercept > 0, intercept_scaling=intercept or 1.0)
    model.fit(cut(sparse.csr_matrix(X) if is_sparse else X, y, ends, weight))
    labels = np.searchsorted(model.classes_, y)
    Z = optima.with_constant(X, intercept)
    _, best = optima.optimum(formulation, Z, labels, min(C, 10.0) * weight, len(model.classes_))
    assert model.result_.status == "converged"
    assert best * (1 - 1e-6) <= model.result_.primal <= best * (1 + 1.1e-4)
    assert best * (1 - 1.1e-4) <= model.result_.dual <= best * (1 + 1e-6)


@pytest.mark.parametrize(
    ("formulation", "name", "limit"),
    [("weston-watkins", "a.svm", SMALL), ("crammer-singer", "a.svm.gz", 10_000.0), ("one-vs-rest", "a.csv", 2e9)],
)
def test_a_file_has_the_optimum_of_its_examples(formulation, limit, name, tmp_path):
    """Read row by row, in some blocks, in one block."""
    X, y = clusters(examples=90, empty=0.3)
    X, path = np.round(X, 4), tmp_path / name
    if name.endswith("csv"):
        np.savetxt(path, np.column_stack([X, y]), "%.4f", ",")
    else:
        write_svmlight(tmp_path / "a.svm", sparse.csr_matrix(X), y)
        if name.endswith("gz"):
            path.write_bytes(gzip.compress((tmp_path / "a.svm").read_bytes()))
    model = svc(formulation, C=0.1, tol=1e-4, memory_limit=limit).fit(path)
    inside = svc(formulation, C=0.1, tol=1e-5).fit(X, y)
    assert_same_optimum(model, inside)
    np.testing.assert_allclose(model.coef_, inside.coef_, atol=2e-2)
    assert model.result_.operations["blocks_read"] > (40 if limit == SMALL else 0)
    W = np.column_stack([model.coef_, model.intercept_])
    primal = optima.primal(formulation, W, optima.with_constant(X, 1.0), y, np.full(90, 0.1))
    assert model.result_.primal == pytest.approx(primal, rel=1e-9)


@pytest.mark.parametrize(
    ("formulation", "class_weight"),
    [("crammer-singer", None), ("weston-watkins", "balanced"), ("one-vs-rest", {1: 3.0}), ("one-vs-rest", "balanced")],
)
def test_weights_act_as_in_memory(formulation, class_weight):
    X, y = clusters(examples=92)
    y[:20], weight = 0, np.linspace(0, 2, 92)
    inside = svc(formulation, class_weight=class_weight, C=0.1, tol=1e-5)
    model = clone(inside).set_params(tol=1e-4, memory_limit=12_000.0)
    assert_same_optimum(model.fit(cut(X, y, [7, 8, 60], weight)), inside.fit(X, y, weight))


@pytest.mark.parametrize(
    ("C", "stop", "tol", "dtype"),
    [(0.01, "gap", 1e-3, float), (1.0, "violation", 1e-2, float), (1.0, "gap", 1e-3, np.float32)],
)
def test_costs_that_are_raised_in_stages_end_at_the_same_optimum_also_in_an_iterator_of_float32(C, stop, tol, dtype):
    X, y = clusters(examples=60, features=6)
    model = svc(C=C, stop=stop, tol=tol, memory_limit=20_000.0).fit(iter(cut(X.astype(dtype), y, [30])))
    assert model.coef_.dtype == dtype
    assert_same_optimum(model, svc(C=C, tol=1e-6).fit(X, y), rel=1e-2 if dtype is float else 2e-3)


@pytest.mark.parametrize(
    ("dtype", "layout"),
    [(np.float32, "whole"), (np.float64, "slice"), (np.float64, "columns"), (np.int16, "whole")],
)
def test_a_memory_mapped_array_is_read_in_blocks(dtype, layout, tmp_path, monkeypatch):
    X, y = clusters(examples=120)
    whole = np.memmap(tmp_path / "X", dtype, "w+", shape=(150, 6))
    whole[30:] = np.round(X) if dtype == np.int16 else np.round(X * 8) / 8
    whole.flush()
    mapped = np.memmap(tmp_path / "X", dtype, "r", shape=(150, 6))
    mapped, y = (mapped[30:], y) if layout != "whole" else (mapped, np.concatenate([y[:30], y]))
    mapped = mapped[:, 1:] if layout == "columns" else mapped
    monkeypatch.setattr(larank.linear.sdm, "is_mapped", lambda X, memory_limit: isinstance(X, np.memmap))
    assert (place_of(mapped) is not None) == (dtype != np.int16 and layout != "columns")
    assert place_of(np.memmap(tmp_path / "X", dtype, "c", shape=(150, 6))) is None  # the file may have other values
    with pytest.raises(ValueError, match=rf"y must have a value for each row of X, {len(y)}; got shape \(10,\)"):
        svc(memory_limit=8000.0).fit(mapped, y[:10])
    model = svc(C=0.05, tol=1e-3, memory_limit=8000.0).fit(mapped, y)
    inside = svc(C=0.05, tol=1e-5).fit(np.array(mapped), y)
    assert not hasattr(model, "dual_coef_")
    assert hasattr(inside, "dual_coef_")
    assert_same_optimum(model, inside, rel=2e-3)


def test_the_seed_decides_the_model():
    X, y = clusters(examples=90, noise=2.0)
    model = svc(C=0.1, tol=1e-2, memory_limit=12_000.0)
    fits = [model.set_params(random_state=seed).fit(cut(X, y, [30])).coef_ for seed in (0, 0, 1)]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert (fits[0] != fits[2]).any()


def test_labels_and_features_may_come_in_the_last_block(tmp_path):
    lines = [f"{'ab'[i % 2]} {i % 3 + 1}:1.5" for i in range(40)] + ["c 9:2", "a"]
    (tmp_path / "a.svm").write_text("\n".join(lines) + "\n")
    model = svc(tol=1e-3, memory_limit=3500.0).fit(tmp_path / "a.svm")
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.n_features_in_ == 9
    X, y = larank.data.read(tmp_path / "a.svm")
    assert_same_optimum(model, svc(tol=1e-5).fit(X, y), rel=2e-3)
    assert model.predict(X[40:41]).tolist() == ["c"]


def test_a_file_may_say_how_wide_it_is_and_count_from_zero(tmp_path):
    (tmp_path / "a.svm").write_text("1 0:1\n2 1:1\n")
    assert svc().fit(ExampleFile(tmp_path / "a.svm", n_features=5, zero_based=True)).coef_.shape == (1, 5)


def test_a_model_of_a_file_is_saved_and_has_no_coefficients_of_examples(tmp_path):
    X, y = clusters(examples=60)
    model = svc(tol=1e-3).fit(X, y).fit(cut(X, y, [30]))
    assert not any(hasattr(model, name) for name in ("dual_coef_", "support_", "costs_", "rest_costs_"))
    assert 0 < model.result_.support_patterns <= 60
    larank.save(model, tmp_path / "a.larank")
    np.testing.assert_array_equal(larank.load(tmp_path / "a.larank").predict(X), model.predict(X))


X10, y10 = clusters(examples=10)
TWO = np.ones((2, 6)), y10[:2]
# What is in the second block, the words that must be there.
WRONG_BLOCKS = {
    "another width": ((TWO[0][:, :5], TWO[1]), "5 features"),
    "NaN": ((np.full((2, 6), np.nan), TWO[1]), "NaN"),
    "a negative weight": ((*TWO, [1, -1]), "sample_weight must be finite and not negative"),
    "sparse after dense": ((sparse.csr_matrix(TWO[0]), TWO[1]), "dense"),
    "another precision": ((TWO[0].astype("f4"), TWO[1]), "precision of the first"),
    "labels of another type": ((TWO[0], np.array(["a", "b"])), "type"),
}
# Parameters, blocks, more arguments of `fit`, the words that must be there.
REFUSED = {
    **{what: ({}, [(X10, y10), wrong], {}, f"block 2.*{words}") for what, (wrong, words) in WRONG_BLOCKS.items()},
    "no block": ({}, [], {}, "one example"),
    "one class": ({}, [(X10, y10 * 0)], {}, "two classes, got one: 0"),
    "one class with weight": ({}, [(X10, y10, (y10 == 0).astype(float))], {}, "leave at least two classes"),
    "a warm start": ({"warm_start": True}, [(X10, y10)], {}, "warm_start"),
    "hard margins": ({"C": np.inf}, [(X10, y10)], {}, "C must be finite"),
    "threads": ({"n_jobs": 2}, [(X10, y10)], {}, "n_jobs must be None or 1 with a file or blocks; got 2"),
    "a checkpoint": ({}, [(X10, y10)], {"checkpoint": "c"}, "checkpoint"),
    "weights": ({}, [(X10, y10)], {"sample_weight": np.ones(10)}, "sample_weight must be None"),
    "labels": ({}, "a.svm", {"y": y10}, "y must be None"),
    "a damaged line": ({"memory_limit": SMALL}, "a.svm", {}, r"a\.svm.*line 151"),
    "a large C": ({"C": 1e100}, [(X10, y10)], {}, r"must sum to at most 1e\+100 over all examples, got 1e\+101"),
    "too little memory": ({"memory_limit": 1000.0}, [(X10, y10)], {}, "block 1: memory_limit=1e"),
}


@pytest.mark.parametrize(("parameters", "blocks", "more", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_with_blocks_or_cannot_act_on_them_is_refused(parameters, blocks, more, message, tmp_path):
    (tmp_path / "a.svm").write_text("".join(f"{i % 2} {'3:x' if i == 150 else f'1:{i}'}\n" for i in range(200)))
    model = svc(tol=1e-3).fit(X10, y10).set_params(**{"memory_limit": 3000.0, **parameters})
    error = MemoryLimitError if "block 1: memory_limit" in message else ValueError
    with unchanged(model, X10), pytest.raises(error, match=message):
        model.fit(tmp_path / blocks if isinstance(blocks, str) else blocks, **more)


@pytest.mark.parametrize("error", [OSError("gone"), KeyboardInterrupt()])
def test_a_reader_that_fails_or_is_interrupted_leaves_nothing_behind(error):
    def failing():
        yield clusters(examples=40)
        raise error

    with pytest.raises(type(error)):
        svc().fit(failing())


@pytest.mark.parametrize("status", ["interrupted", "time_limit"])
def test_an_early_end_leaves_a_valid_model_and_nothing_behind(status):
    X, y = clusters(examples=3000, noise=3.0)
    time_limit, pressed = (
        (0.3, contextlib.nullcontext()) if status == "time_limit" else (None, interrupt_when_training())
    )
    model = svc(C=100.0, tol=1e-13, memory_limit=100_000.0, time_limit=time_limit)
    with pressed, pytest.warns(TrainingWarning, match=status.removesuffix("ed")):
        model.fit(cut(X, y, [1000]))
    assert model.result_.status == status
    assert np.isfinite(model.decision_function(X)).all()
    assert model.result_.primal >= model.result_.dual


def test_peak_memory_stays_near_the_limit(tmp_path):
    """Values of 24 MB with a limit of 6 MB; what a first fit and the reader of files need is there before."""
    code = """
import sys, numpy as np
from pathlib import Path
from larank import LinearMulticlassSVC
def status(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(key)))
random = np.random.default_rng(0)
def blocks(n):
    for _ in range(n):
        X = random.normal(size=(1000, 50))
        yield X, (X[:, 0] + random.normal(size=1000) > 0).astype(int)
model = LinearMulticlassSVC(tol=0.1, random_state=0, memory_limit=6e6).fit(blocks(2))
before = status("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
model.fit(blocks(60))
assert model.result_.status == "converged"
print(status("VmHWM") - before)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 6e6 + 10e6


@contextlib.contextmanager
def full_disk():
    """Yield a function that limits the size of files; a larger one is an error, which is yielded too."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with pytest.raises(OSError, match="File too large") as error:
            yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1])), error
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert error.value.errno == errno.EFBIG


@pytest.mark.parametrize("most", [100, 60_000, None], ids=["rows", "later rows", "coefficients"])
def test_a_full_disk_is_an_error_that_names_the_file(no_debris, most, monkeypatch):
    X, y = clusters(examples=3000)
    model = svc(C=1.0, memory_limit=1e5)
    with full_disk() as (limit_to, error):
        if most is None:
            monkeypatch.setattr("larank.linear.fileblocks.file_to_write", lambda p: [limit_to(0), file_to_write(p)][1])
        else:
            limit_to(most)
        model.fit(iter(cut(X, y, range(50, 3000, 50))))
    assert str(error.value.filename).startswith(str(no_debris))
    assert ("coefficients-" in str(error.value.filename)) == (most is None)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("most", [20_000, 130_000], ids=["rows", "coefficients"])
def test_more_temporary_files_than_disk_limit_are_an_error_that_names_it(no_debris, most):
    X, y = clusters(examples=2000)  # 120 kB with labels and weights
    assert X.nbytes + 12 * len(y) < 130_000
    model = svc(C=1.0, memory_limit=1e5, disk_limit=most)
    with pytest.raises(ValueError, match=rf"^disk_limit={most} .* {most} bytes in {no_debris}, but at least .* TMPDIR"):
        model.fit(iter(cut(X, y, range(50, 2000, 50))))
    assert not hasattr(model, "coef_")
    model = svc(C=1.0, memory_limit=1e5, disk_limit=1e6, max_iter=2)
    with pytest.warns(TrainingWarning, match="max_iter"):
        model.fit(iter(cut(X, y, range(50, 2000, 50))))


def test_a_stream_without_end_may_fill_half_of_a_disk(no_debris, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100_000))
    with pytest.raises(ValueError, match=r"^disk_limit=None lets .* 50000 bytes, half of what was free in"):
        svc(memory_limit=1e5).fit(itertools.repeat(clusters()))


KILLED = """
import os, signal
import numpy as np
from larank import LinearMulticlassSVC

def blocks():
    random = np.random.RandomState(0)
    while True:
        yield random.randn(50, 4), np.arange(50) % 3
        if any(os.scandir(os.environ["TMPDIR"])):
            os.kill(os.getpid(), signal.SIGKILL)

LinearMulticlassSVC().fit(blocks())
"""


def test_the_folder_of_a_killed_fit_is_removed_by_the_next_one(no_debris, monkeypatch):
    ended = subprocess.run([sys.executable, "-c", KILLED], env={**os.environ, "TMPDIR": str(no_debris)}, check=False)
    assert ended.returncode == -signal.SIGKILL
    (left,) = no_debris.iterdir()
    X, y = clusters()
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: left.stat().st_uid + 1)  # another user
        svc().fit(iter(cut(X, y, [50])))
    assert left.exists()
    svc().fit(iter(cut(X, y, [50])))
    assert not left.exists()


def test_the_folder_of_a_fit_that_goes_on_stays(no_debris):
    X, y = clusters()
    with temporary_folder() as folder:
        (folder.path / "values").write_bytes(b"rows")
        svc().fit(iter(cut(X, y, [50])))
        assert (folder.path / "values").read_bytes() == b"rows"
    (no_debris / "larank-fit-new").mkdir()  # by a process that is about to lock it
    svc().fit(iter(cut(X, y, [50])))
    (no_debris / "larank-fit-new").rmdir()
