"""Block steps: on NumPy here, and with the same claims on PyTorch and on a GPU where they are."""

import gc
import importlib.util
import math
import signal
import sys
import types
import weakref
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

import larank
from checks import coefficients
from larank import LaRankClassifier, MulticlassSVC
from larank.blocks import device as devices
from larank.blocks.device import DeviceKernel, DeviceMemoryError, HostDevice, device_for
from larank.blocks.kernels import kernel_for, with_bias
from larank.data import load_letter
from larank.kernel.blockstep import Ascent, Constraints, ascended, projected
from larank.kernel.blockwise import Blockwise
from larank.kernel.stream import Examples
from larank.training import CertificateWarning, TrainingWarning
from references import optima

LETTER = load_letter()
X, Y = (LETTER.X_train[:600] / 15).astype(np.float32), LETTER.y_train[:600]
FORMULATIONS = ("crammer-singer", "weston-watkins")


def _devices():
    found = ["cpu"]
    if importlib.util.find_spec("torch") and importlib.util.find_spec("array_api_compat"):
        import torch

        found.append(torch.device("cpu"))
        if torch.cuda.is_available():
            found.append("cuda")
    return found


DEVICES = _devices()
on_devices = pytest.mark.parametrize("device", DEVICES, ids=repr)


@pytest.fixture(autouse=True)
def one_thread():
    """Products of small blocks are not worth several, which wait for each other."""
    with threadpool_limits(1):
        yield


def limits(there, labels, costs, n_classes, formulation):
    margins = (1 - np.eye(n_classes))[labels]
    return Constraints.of(there, np.float64, labels, costs, margins, formulation)


def problems(seed, n=12, n_classes=3):
    random = np.random.default_rng(seed)
    points = random.normal(size=(n, 4))
    labels = np.concatenate([np.arange(n_classes), random.integers(0, n_classes, n - n_classes)]).astype(np.int32)
    costs = random.uniform(0.2, 3.0, n)
    K = np.exp(-0.3 * ((points[:, None] - points) ** 2).sum(axis=2))
    return points, labels, costs, K


def dual_of(beta, K, labels):
    delta = 1 - np.eye(beta.shape[1])
    return -(delta[labels] * beta).sum() - 0.5 * (beta * (K @ beta)).sum()


# The step


@on_devices
@pytest.mark.parametrize("formulation", FORMULATIONS)
@given(seed=st.integers(0, 10**6), size=st.floats(1e-3, 1e3))
def test_a_projection_is_within_the_constraints_and_no_other_point_is_nearer(device, formulation, seed, size):
    there, random = device_for(device), np.random.default_rng(seed)
    labels, costs = random.integers(0, 4, 6), random.uniform(0.1, 5, 6)
    on = limits(there, labels, costs, 4, formulation)
    V = size * random.normal(size=(6, 4))
    found = there.get(projected(there.xp, there.put(V, np.float64), on))
    np.testing.assert_allclose(found.sum(axis=1), 0, atol=1e-9 * size)
    is_label = np.arange(4) == labels[:, None]
    assert (found[~is_label] <= 1e-12).all()
    if formulation == "crammer-singer":
        assert (found[is_label] <= costs * (1 + 1e-9) + 1e-12).all()
    else:
        assert (found >= np.where(is_label, -np.inf, -costs[:, None]) - 1e-9).all()
    for _ in range(20):  # <V - P, Z - P> <= 0 for every feasible Z
        others = -random.dirichlet(np.ones(3), 6) * (costs * random.uniform(0, 1, 6))[:, None]
        Z = np.zeros((6, 4))
        Z[~is_label] = others.ravel()
        Z[is_label] = -others.sum(axis=1)
        assert (((V - found) * (Z - found)).sum(axis=1) <= 1e-7 * size * (1 + costs)).all()


@on_devices
@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("classes", [2, 30, 300])
def test_a_projection_is_exact_with_many_classes_and_heavy_tails(device, formulation, classes):
    there, random = device_for(device), np.random.default_rng(classes)
    labels, costs = random.integers(0, classes, 20), random.uniform(0.1, 5, 20)
    V = random.standard_cauchy((20, classes))
    on = limits(there, labels, costs, classes, formulation)
    found = there.get(projected(there.xp, there.put(V, np.float64), on))
    is_label = np.arange(classes) == labels[:, None]
    lower = np.where(is_label, -np.inf, -costs[:, None] if formulation == "weston-watkins" else -np.inf)
    upper = np.where(is_label, np.inf if formulation == "weston-watkins" else costs[:, None], 0.0)
    low, high = np.full((20, 1), V.min() - 10), np.full((20, 1), V.max() + 10 * classes)
    for _ in range(200):
        middle = (low + high) / 2
        is_low = np.clip(V - middle, lower, upper).sum(axis=1, keepdims=True) > 0
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    np.testing.assert_allclose(found, np.clip(V - low, lower, upper), atol=1e-9 * np.abs(V).max())


@on_devices
@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("seed", range(4))
def test_block_steps_on_everybody_reach_the_optimum_of_a_general_solver(device, formulation, seed):
    there = device_for(device)
    _, labels, costs, K = problems(seed)
    on = limits(there, labels, costs, 3, formulation)
    beta, k = there.zeros((12, 3), np.float64), there.put(K, np.float64)
    total = 0.0
    for _ in range(60):
        d, gain, _, _ = ascended(there, k, beta, on.margins + k @ beta, on)
        beta, total = beta + d, total + gain
    best = optima.kernel_optimum(K, labels, costs, 1 - np.eye(3), formulation)
    assert total == pytest.approx(best, rel=1e-6)
    assert dual_of(there.get(beta), K, labels) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@given(seed=st.integers(0, 10**6), blocks=st.integers(1, 12), shift=st.floats(-2.0, 0.0), steps=st.integers(1, 120))
def test_no_block_step_lowers_the_dual_whatever_the_matrix(formulation, seed, blocks, shift, steps):
    there, random = HostDevice(), np.random.default_rng(seed)
    _, labels, costs, K = problems(seed)
    K = K + shift * np.eye(len(K))  # indefinite where it is below the smallest eigenvalue
    on = limits(there, labels, costs, 3, formulation)
    beta, before = np.zeros((12, 3)), 0.0
    for _ in range(6):
        B = random.choice(12, blocks, replace=False)
        d, gain, _, _ = ascended(there, K[np.ix_(B, B)], beta[B], (on.margins + K @ beta)[B], on.at(B), steps)
        beta[B] += d
        after = dual_of(beta, K, labels)
        assert gain >= 0
        assert after == pytest.approx(before + gain, abs=1e-9)
        before = after


def test_a_wrong_eigenvalue_is_made_good_by_a_plain_step(monkeypatch):
    _, labels, costs, K = problems(1)
    on = limits(HostDevice(), labels, costs, 3, "crammer-singer")
    monkeypatch.setattr("larank.kernel.blockstep._largest_eigenvalue", lambda *_: 0.0)
    d, gain, _, is_plain = ascended(HostDevice(), K, np.zeros((12, 3)), on.margins, on)
    assert is_plain
    assert gain > 0
    assert dual_of(d, K, labels) == pytest.approx(gain)


class Tape:
    """Records what PyTorch computes and plays it again without the Python that asked for it, as a CUDA graph does."""

    def __init__(self, work):
        from torch.utils._python_dispatch import TorchDispatchMode

        calls = self.calls = []

        class Recorder(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                out = function(*args, **(kwargs or {}))
                calls.append((function, args, kwargs or {}, out))
                return out

        with Recorder():
            work()

    def play(self):
        from torch.utils._pytree import tree_flatten, tree_map

        now = {}  # in place of what was computed while it was recorded
        for function, args, kwargs, out in self.calls:
            args, kwargs = tree_map(partial(self._latest, now), (args, kwargs))
            again = function(*args, **kwargs)
            now |= {id(old): new for old, new in zip(*(tree_flatten(each)[0] for each in (out, again)), strict=True)}

    @staticmethod
    def _latest(now, value):
        return now.get(id(value), value)


@pytest.mark.skipif(len(DEVICES) == 1, reason="PyTorch is not installed")
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_gradients_that_are_recorded_can_be_played_on_other_blocks(formulation):
    there = device_for(DEVICES[1])
    _, labels, costs, K = problems(0)
    on = limits(there, labels, costs, 3, formulation)
    ascent = Ascent(there, on)
    there.recorded = lambda work: Tape(work).play
    ascent.record()
    tape = ascent._play.__self__
    assert not any("item" in str(call[0]) or "local_scalar" in str(call[0]) for call in tape.calls)  # would wait
    for seed in range(5):
        _, labels, costs, K = problems(seed)
        on, k = limits(there, labels, costs, 3, formulation), there.put(K, np.float64)
        arguments = k, there.zeros((12, 3), np.float64), on.margins, on, 60, 0.0
        played, recorded = ascended(there, *arguments, ascent), ascended(there, *arguments)
        assert played[1] == recorded[1]
        assert played[2] == recorded[2]
        np.testing.assert_array_equal(there.get(played[0]), there.get(recorded[0]))


def test_a_recording_that_does_nothing_is_not_played():
    there = HostDevice()
    _, labels, costs, _ = problems(0)
    ascent = Ascent(there, limits(there, labels, costs, 3, "crammer-singer"))
    there.recorded = lambda work: lambda: None
    ascent.record()
    assert ascent._play is None


def test_memory_of_a_block_step_goes_without_a_collection():
    _, labels, costs, _ = problems(0)
    ascent = Ascent(HostDevice(), limits(HostDevice(), labels, costs, 3, "crammer-singer"))
    ascent.record()
    gone, was_enabled = weakref.ref(ascent), gc.isenabled()
    gc.disable()
    try:
        del ascent
        assert gone() is None
    finally:
        if was_enabled:
            gc.enable()


@on_devices
def test_what_is_kept_for_full_blocks_changes_nothing(device, monkeypatch):
    model = LaRankClassifier(C=10, gamma=1.0, device=device, random_state=0)
    kept = model.fit(X, Y).dual_coef_
    monkeypatch.setattr(Blockwise, "_ascent_for", lambda self, on: None)
    assert (model.fit(X, Y).dual_coef_ != kept).nnz == 0


# Kernels


@on_devices
@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "sigmoid"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernel_values_are_those_of_the_host(device, name, dtype):
    kernel = with_bias(kernel_for(name, gamma=0.3, degree=3, coef0=0.5))
    A, B = X[:30].astype(dtype), X[30:50].astype(dtype)
    values = DeviceKernel(device_for(device), kernel, np.dtype(dtype), A)
    found = values.device.get(values.values(values.rows(A), values.rows(B)))
    D = ((A[:, None].astype(float) - B) ** 2).sum(axis=2)
    P = A.astype(float) @ B.T.astype(float)
    expected = {"linear": P, "poly": (0.3 * P + 0.5) ** 3, "rbf": np.exp(-0.3 * D), "sigmoid": np.tanh(0.3 * P + 0.5)}
    np.testing.assert_allclose(found, expected[name] + 1, rtol=1e-5 if dtype == np.float32 else 1e-12)


def test_a_large_gamma_of_large_distances_is_no_overflow():
    kernel = kernel_for("rbf", gamma=1e12)
    points = 1e14 * np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    values = DeviceKernel(HostDevice(), kernel, np.dtype(np.float32), points)
    found = values.values(values.rows(points[:10]), values.rows(points[10:]))
    assert (found == 0).all()


def test_distances_far_from_the_origin_are_precise():
    moved = X[:200] + np.float32(1000)
    near = LaRankClassifier(gamma=1.0, C=10, device="cpu", random_state=0).fit(moved, Y[:200])
    far = LaRankClassifier(gamma=1.0, C=10, random_state=0).fit(moved, Y[:200])
    assert near.score(moved, Y[:200]) > 0.95
    assert far.score(moved, Y[:200]) > 0.95


# Corners


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_rows_of_zeros_hold_nobody_up(kernel):
    some = X[:300].copy()
    some[::20] = 0
    here, there = (
        LaRankClassifier(kernel, C=1, epochs=1, degree=2, device=device, certify=True, random_state=0).fit(
            some, Y[:300]
        )
        for device in (None, "cpu")
    )
    assert there.result_.dual > 0.95 * here.result_.dual
    nothing = MulticlassSVC("linear", device="cpu", random_state=0).fit(0 * some, Y[:300])
    assert nothing.result_.primal == pytest.approx(300, rel=1e-6)
    assert nothing.result_.dual == pytest.approx(300, rel=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("C", [1e6, 1e8])
def test_a_large_cost_does_not_hide_small_coefficients(dtype, C):
    random = np.random.default_rng(0)
    points = random.normal(size=(400, 5)).astype(dtype)
    labels = (points @ random.normal(size=(5, 3))).argmax(axis=1)
    here, there = (
        LaRankClassifier(gamma=0.2, C=C, device=device, certify=True, random_state=0).fit(points, labels)
        for device in (None, "cpu")
    )
    assert there.result_.dual > 0.5 * here.result_.dual
    assert there.score(points, labels) > 0.98
    exact = MulticlassSVC(gamma=0.2, C=C, tol=0.01, device="cpu", random_state=0).fit(points.astype(float), labels)
    assert exact.result_.relative_gap <= 0.01


def test_one_heavy_example_does_not_hide_the_others():
    weight = np.ones(300)
    weight[7] = 1e6
    data = X[:300].astype(np.float64), Y[:300], weight
    here, there = (
        MulticlassSVC(gamma=1.0, device=device, random_state=0).fit(*data).result_ for device in (None, "cpu")
    )
    assert there.primal == pytest.approx(here.primal, rel=2e-3)


def test_the_violation_is_that_of_coefficients_at_their_bounds():
    for kind, limit in ((MulticlassSVC, 0.1), (LaRankClassifier, 0.6)):
        more = {"certify": True} if kind is LaRankClassifier else {}
        model = kind(gamma=1.0, C=1.0, device="cpu", random_state=0, **more).fit(X.astype(np.float64), Y)
        assert model.result_.violation < limit


def test_a_stream_moves_between_device_and_host(tmp_path):
    settings = {"C": 1.0, "gamma": 1.0, "random_state": 0}
    here = LaRankClassifier(**settings).partial_fit(X[:300], Y[:300])
    larank.save(here, tmp_path / "here.larank")
    there = larank.load(tmp_path / "here.larank").set_params(device="cpu").partial_fit(X[300:], Y[300:])
    assert there.result_.dual > here.result_.dual
    larank.save(there, tmp_path / "there.larank")
    back = larank.load(tmp_path / "there.larank").set_params(device=None).partial_fit(X[:5] + 0.05, Y[:5])
    assert back.result_.dual > 0.99 * there.result_.dual
    assert back.result_.operations["optimize"] > 0


# The exact machine


@on_devices
@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_the_optimum_and_the_certificate_are_those_of_the_compiled_solver(device, formulation, kernel):
    settings = {"kernel": kernel, "formulation": formulation, "gamma": 1.0, "C": 2.0, "tol": 1e-4, "random_state": 0}
    weight = np.random.default_rng(0).uniform(0, 2, 200)
    data = X[:200].astype(np.float64), Y[:200], weight
    here = MulticlassSVC(**settings).fit(*data)
    there = MulticlassSVC(device=device, **settings).fit(*data)
    assert there.result_.status == "converged"
    assert there.result_.relative_gap <= 1e-4
    assert there.result_.exact
    assert there.result_.dual <= here.result_.primal * (1 + 1e-9)
    assert here.result_.dual <= there.result_.primal * (1 + 1e-9)
    np.testing.assert_allclose(there.decision_function(X[:50]), here.decision_function(X[:50]), atol=0.05)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), formulation=st.sampled_from(FORMULATIONS), intercept=st.booleans())
def test_the_optimum_is_that_of_a_general_solver(seed, formulation, intercept):
    points, labels, costs, _ = problems(seed, n=15)
    delta = np.random.default_rng(seed).uniform(0.5, 2, (3, 3)) * (1 - np.eye(3))
    model = MulticlassSVC(
        formulation=formulation,
        gamma=0.3,
        C=1.0,
        fit_intercept=intercept,
        cost_matrix=delta,
        tol=1e-6,
        device="cpu",
        random_state=0,
    ).fit(points, labels, costs)
    K = np.exp(-0.3 * ((points[:, None] - points) ** 2).sum(axis=2)) + intercept
    best = optima.kernel_optimum(K, labels, costs, delta, formulation)
    assert model.result_.dual == pytest.approx(best, rel=2e-5)
    assert model.result_.primal == pytest.approx(best, rel=2e-5)
    beta = coefficients(model, 15)
    primal, dual, _ = optima.kernel_certificate(beta, K, labels, costs, delta, formulation, model.scale_)
    assert model.result_.primal == pytest.approx(primal, rel=1e-9)
    assert model.result_.dual == pytest.approx(dual, rel=1e-9)


def test_a_path_raises_costs():
    models = MulticlassSVC(gamma=1.0, device="cpu", random_state=0).path(X[:300], Y[:300], [1, 10, 0.1])
    for model in models:
        alone = MulticlassSVC(gamma=1.0, C=model.C, random_state=0).fit(X[:300], Y[:300])
        assert model.result_.relative_gap <= 1e-3
        assert model.result_.primal == pytest.approx(alone.result_.primal, rel=2e-3)


# Streams


@on_devices
@pytest.mark.parametrize("formulation", ["kernel", "linear"])
def test_one_pass_is_close_to_the_optimum_and_certified(device, formulation):
    kernel = {"kernel": "linear"} if formulation == "linear" else {"gamma": 1.0}
    model = LaRankClassifier(C=10, device=device, epochs=1, certify=True, random_state=0, **kernel).fit(X, Y)
    best = MulticlassSVC(C=10, random_state=0, **kernel).fit(X, Y).result_
    assert model.result_.exact
    assert 0.9 * best.dual < model.result_.dual <= best.primal * (1 + 1e-6)
    assert model.result_.primal >= best.dual
    K = X @ X.T.astype(float) if kernel == {"kernel": "linear"} else None
    if K is None:
        K = np.exp(-((X[:, None].astype(float) - X) ** 2).sum(axis=2))
    beta = coefficients(model, 600)
    labels = np.searchsorted(model.classes_, Y)
    primal, dual, _ = optima.kernel_certificate(beta, K, labels, np.full(600, 10.0), 1 - np.eye(26))
    assert model.result_.primal == pytest.approx(primal, rel=1e-5)
    assert model.result_.dual == pytest.approx(dual, rel=1e-5)
    np.testing.assert_allclose(beta.sum(axis=1), 0, atol=1e-10)
    assert beta.max() <= 10


def test_passes_close_the_gap():
    model = LaRankClassifier(C=1, gamma=1.0, stop="gap", tol=0.01, device="cpu", random_state=0).fit(X[:300], Y[:300])
    assert model.result_.status == "converged"
    assert model.result_.relative_gap <= 0.01


@pytest.mark.parametrize(("size", "rows"), [(1, 60), (7, 119), (100, 600), (600, 600)])
def test_a_stream_in_any_split_is_a_good_model(size, rows):
    model = LaRankClassifier(C=10, gamma=1.0, device="cpu", random_state=0)
    for first in range(0, rows, size):
        model.partial_fit(X[first : first + size], Y[first : first + size])
    assert set(model.classes_) == set(Y[:rows])
    assert model.score(X[:rows], Y[:rows]) > 0.9
    labels = np.searchsorted(model.classes_, Y[:rows])
    K = np.exp(-((X[:rows, None].astype(float) - X[:rows]) ** 2).sum(axis=2))
    beta = coefficients(model, rows)
    delta = 1 - np.eye(len(model.classes_))
    primal, dual, _ = optima.kernel_certificate(beta, K, labels, np.full(rows, 10.0), delta)
    assert 0 < dual <= primal
    assert model.result_.dual == pytest.approx(dual, rel=1e-4)


def test_violators_that_a_chunk_leaves_out_are_counted_and_join_later(monkeypatch, tmp_path):
    settings = {"C": 10, "gamma": 1.0, "device": "cpu", "random_state": 0}
    everybody = LaRankClassifier(epochs=1, **settings).fit(X, Y)
    assert everybody.result_.operations["left_out"] == 0
    monkeypatch.setattr("larank.kernel.blockwise._NEWCOMERS", 60)
    once, often = (LaRankClassifier(epochs=epochs, **settings).fit(X, Y) for epochs in (1, 10))
    assert once.result_.operations["left_out"] > 0
    assert once.result_.support_patterns < often.result_.support_patterns
    assert often.result_.dual == pytest.approx(everybody.result_.dual, rel=0.05)
    larank.save(once, tmp_path / "model.larank")
    assert larank.load(tmp_path / "model.larank").result_.operations == once.result_.operations


@on_devices
def test_a_seed_makes_the_model(device):
    settings = {"C": 10, "gamma": 1.0, "device": device}
    first, second = (LaRankClassifier(random_state=3, **settings).fit(X, Y) for _ in range(2))
    assert (first.dual_coef_ != second.dual_coef_).nnz == 0
    third, fourth = (MulticlassSVC(random_state=3, **settings).fit(X[:200], Y[:200]) for _ in range(2))
    assert (third.dual_coef_ != fourth.dual_coef_).nnz == 0


def test_a_saved_stream_goes_on_as_the_one_in_memory(tmp_path):
    points = X.astype(np.float64)  # whose rounding makes and breaks no pattern
    whole = LaRankClassifier(C=10, gamma=1.0, device="cpu", random_state=0).partial_fit(points[:300], Y[:300])
    larank.save(whole, tmp_path / "model.larank")
    loaded = larank.load(tmp_path / "model.larank")
    assert loaded.device == "cpu"
    for model in (whole, loaded):
        model.partial_fit(points[300:], Y[300:])
    np.testing.assert_array_equal(whole.support_, loaded.support_)
    np.testing.assert_allclose(whole.decision_function(X), loaded.decision_function(X), atol=1e-3)


@on_devices
def test_a_model_predicts_on_either_side(device):
    model = LaRankClassifier(C=10, gamma=1.0, device=device, random_state=0).fit(X, Y)
    there = model.decision_function(X)
    here = model.set_params(device=None).decision_function(X)
    np.testing.assert_allclose(there, here, atol=1e-4)
    assert model.partial_fit(X[:10], Y[:10]).score(X, Y) > 0.9  # the compiled machine goes on from it


def test_bytes_are_taken_as_they_are():
    data = LETTER.X_train[:400].astype(np.uint8)
    model = LaRankClassifier(C=10, gamma=0.02, device="cpu", random_state=0).fit(data, LETTER.y_train[:400])
    assert model.support_vectors_.dtype == np.uint8
    np.testing.assert_array_equal(model.support_vectors_, data[model.support_])


# Arrays of other libraries


@pytest.mark.skipif(len(DEVICES) == 1, reason="PyTorch is not installed")
@pytest.mark.parametrize("device", DEVICES[1:], ids=repr)
@pytest.mark.parametrize("kind", [LaRankClassifier, MulticlassSVC])
def test_device_arrays_are_taken_in_place_and_answered_in_kind(device, kind):
    import torch

    labels = np.unique(Y, return_inverse=True)[1]
    there, y = torch.as_tensor(X, device=device), torch.as_tensor(labels, device=device)
    for gamma in ("scale", 1.0):
        model = kind(C=10, gamma=gamma, device=device, random_state=0).fit(there, y)
        same = kind(C=10, gamma=gamma, device=device, random_state=0).fit(X, labels)
        assert isinstance(model.support_vectors_, np.ndarray)
        np.testing.assert_allclose(model.gamma_, same.gamma_, rtol=1e-6)
        answers = model.predict(there), model.decision_function(there)
        for answer in answers:
            assert isinstance(answer, torch.Tensor)
            assert answer.device.type == torch.device(device).type
        assert model.score(there, y) > 0.9
        assert np.mean(np.asarray(answers[0].cpu()) == same.predict(X)) > 0.95
    with pytest.raises(ValueError, match=r"X has 15 features, but .* is expecting 16"):
        model.predict(there[:, :15])
    with pytest.raises(ValueError, match="NaN or infinity"):
        model.predict(there * float("nan"))
    with pytest.raises(ValueError, match=r"squared norm is at most 1e\+30 in float32"):
        model.predict(there * 1e20)
    with pytest.raises(ValueError, match="dense tensor"):
        model.predict(there.to_sparse())
    for dtype in (torch.bfloat16, torch.int64, torch.bool):
        assert model.predict(there.to(dtype)).shape == (600,)
    attached = kind(gamma=1.0, device=device, random_state=0).fit(there.clone().requires_grad_(True), y)
    assert attached.score(there, y) > 0.8
    with pytest.raises(ValueError, match=r"two dimensions.*got shape"):
        model.fit(there[0], y)
    if kind is LaRankClassifier:
        assert model.partial_fit(there[:50], y[:50]).score(there, y) > 0.9
    words = kind(gamma=1.0, device=device, random_state=0).fit(there, Y)
    assert isinstance(words.predict(there), np.ndarray)


class Elsewhere(np.ndarray):
    """An array that is as strict as one of CuPy: it has nothing to do with arrays of the host but by `get`."""

    __module__ = "cupy"
    device = nullcontext()

    def get(self):
        return np.array(self.view(np.ndarray))

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        refuse_host_arrays(inputs)
        out = kwargs.pop("out", None)
        there = {"out": tuple(each.view(np.ndarray) for each in out)} if out else {}
        found = getattr(ufunc, method)(*(to_host(each) for each in inputs), **there, **kwargs)
        return out[0] if out else elsewhere(found)

    def __array_function__(self, function, types, args, kwargs):
        refuse_host_arrays(args)
        args = [[to_host(each) for each in one] if isinstance(one, list) else to_host(one) for one in args]
        return elsewhere(function(*args, **kwargs))

    def __setitem__(self, places, values):
        refuse_host_arrays([values])
        super().__setitem__(places, to_host(values))


def to_host(value):
    return value.view(np.ndarray) if isinstance(value, Elsewhere) else value


def elsewhere(values):
    return np.asarray(values).view(Elsewhere)


def refuse_host_arrays(values):
    for value in values:
        if type(value) is np.ndarray and value.ndim:
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")


@pytest.fixture
def a_stand_in_for_cupy(monkeypatch):
    """CuPy's face on NumPy's arrays: shows that its calls are there and nothing is mixed, not that a GPU works."""
    cupy = types.ModuleType("cupy")
    for name in (
        "where",
        "sort",
        "sum",
        "max",
        "min",
        "abs",
        "minimum",
        "maximum",
        "cumsum",
        "argsort",
        "stack",
        "exp",
    ):
        setattr(cupy, name, getattr(np, name))
    cupy.concatenate, cupy.take_along_axis, cupy.tanh = np.concatenate, np.take_along_axis, np.tanh
    cupy.asarray = lambda values, dtype=None: elsewhere(np.array(to_host(values), dtype))
    cupy.zeros = lambda shape, dtype: elsewhere(np.zeros(shape, dtype))
    cupy.asnumpy = lambda array: array.get()
    cupy.get_default_memory_pool = lambda: SimpleNamespace(free_all_blocks=lambda: None)
    cupy.__version__ = "0"
    one = SimpleNamespace(getDeviceCount=lambda: 1, CUDARuntimeError=RuntimeError)
    memory = SimpleNamespace(OutOfMemoryError=MemoryError)
    cupy.cuda = SimpleNamespace(Device=lambda number: SimpleNamespace(use=lambda: None), runtime=one, memory=memory)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(devices.CupyDevice, "patterns_at_once", 256)
    monkeypatch.setattr(devices.CupyDevice, "examples_at_once", 2048)
    return cupy


def test_cupy_is_called_as_it_wants_to_be(a_stand_in_for_cupy):
    settings = {"C": 10, "gamma": 1.0, "random_state": 0}
    some, labels = X[:400], Y[:400]  # more patterns than the stand-in takes at once
    there, here = (LaRankClassifier(device=device, **settings).fit(some, labels) for device in ("cuda", "cpu"))
    assert there.result_.dual == pytest.approx(here.result_.dual, rel=1e-4)
    for formulation in FORMULATIONS:
        exact = MulticlassSVC(device="cuda", formulation=formulation, tol=0.01, **settings).fit(X[:80], Y[:80])
        assert exact.result_.status == "converged"
    data = a_stand_in_for_cupy.asarray(some)
    in_place = LaRankClassifier(device="cuda", **settings).fit(data, labels)
    assert (in_place.dual_coef_ != there.dual_coef_).nnz == 0
    scores = in_place.decision_function(data)
    assert isinstance(scores, Elsewhere)
    np.testing.assert_allclose(scores.get(), there.decision_function(some), atol=1e-6)


# Memory


def session(memory_limit, formulation="crammer-singer"):
    values = DeviceKernel(HostDevice(), kernel_for("rbf", gamma=1.0), np.dtype(np.float32), X)
    made = Blockwise(values, memory_limit, 0.01, 0, keeps_originals=False)
    labels = np.unique(Y, return_inverse=True)[1].astype(np.int32)
    made.set_margins(np.eye(26))
    made.set_formulation(formulation)
    return made, Examples(X, np.arange(600), labels, np.full(600, 2.0))


def test_kernel_values_that_there_is_no_room_for_are_computed_again():
    duals = []
    for limit in (1e9, 1e6):
        made, examples = session(limit)
        for first in range(0, 600, 200):
            for _ in made.process(examples.at(np.arange(first, first + 200))):
                pass
        while not made.finish_some():
            pass
        duals.append(made.dual)
        assert ("without" in made.plan()) == (limit == 1e6)
    assert duals[0] == pytest.approx(duals[1], rel=1e-3)


def test_scores_stay_those_of_the_coefficients_while_patterns_come_and_go():
    made, examples = session(1e9)
    for first in range(0, 600, 100):
        for _ in made.process(examples.at(np.arange(first, first + 100))):
            assert made.dual >= 0
        made.prune()
        kept = made.member_scores()
        made.refresh()
        np.testing.assert_allclose(kept, made.member_scores(), atol=1e-4)
    assert made.counters.forgotten > 0


class Small(HostDevice):
    """A device that has no memory for many patterns."""

    def zeros(self, shape, dtype):
        if math.prod(shape) > 40_000:
            raise MemoryError
        return super().zeros(shape, dtype)


def test_a_device_without_memory_tells_the_plan_and_leaves_the_model_as_it_was(monkeypatch):
    model = LaRankClassifier(C=10, gamma=1.0, device="cpu", random_state=0).partial_fit(X[:50], Y[:50])
    before = model.decision_function(X)
    monkeypatch.setattr(devices, "HostDevice", Small)
    monkeypatch.delattr(model, "_machine")
    with pytest.raises(DeviceMemoryError, match=r"device='cpu' is used up: .* patterns of 16 features, .*memory_limit"):
        model.partial_fit(X, Y)
    monkeypatch.undo()
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert model.partial_fit(X[50:100], Y[50:100]).score(X[:100], Y[:100]) > 0.9


class Broken(HostDevice):
    """A device that stops answering after some copies."""

    left = 40

    def put(self, values, dtype):
        Broken.left -= 1
        if Broken.left < 0:
            raise RuntimeError("the device does not answer")
        return super().put(values, dtype)


def test_a_device_that_fails_in_the_middle_leaves_the_model_as_it_was(monkeypatch):
    model = LaRankClassifier(C=10, gamma=1.0, device="cpu", random_state=0).partial_fit(X[:50], Y[:50])
    before = model.decision_function(X)
    monkeypatch.setattr(devices, "HostDevice", Broken)
    monkeypatch.delattr(model, "_machine")
    with pytest.raises(RuntimeError, match="does not answer"):
        model.partial_fit(X, Y)
    monkeypatch.undo()
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert model.partial_fit(X[50:100], Y[50:100]).score(X[:100], Y[:100]) > 0.9


# Ends


def test_training_ends_when_rounding_hides_what_the_dual_gains():
    random, labels = np.random.RandomState(7), np.arange(9) % 3
    some = 300 + 2 * random.randn(3, 2)[labels] + random.randn(9, 2)
    machine = MulticlassSVC("poly", degree=2, gamma=1, C=100, max_iter=2, time_limit=20, device="cpu", random_state=0)
    with pytest.warns(TrainingWarning):
        result = machine.fit(some.astype(np.float32), labels).result_
    assert result.status in ("max_iter", "precision")
    assert 0 <= result.dual <= result.primal


def test_time_limits_and_interrupts_end_training_with_a_valid_model():
    with pytest.warns(TrainingWarning, match="time_limit=1e-09"):
        model = LaRankClassifier(C=10, gamma=1.0, device="cpu", time_limit=1e-9, random_state=0).fit(X, Y)
    assert model.result_.status == "time_limit"
    assert model.predict(X[:5]).shape == (5,)
    with pytest.warns(TrainingWarning, match="max_iter=1"):
        MulticlassSVC(C=100, gamma=1.0, tol=1e-9, max_iter=1, device="cpu", random_state=0).fit(X, Y)


def test_ctrl_c_ends_training_with_a_valid_model(monkeypatch):
    step = Blockwise.step

    def pressed(self, places):
        if self.counters.blocks == 2:
            signal.raise_signal(signal.SIGINT)
        return step(self, places)

    monkeypatch.setattr(Blockwise, "step", pressed)
    with pytest.warns(TrainingWarning, match="by an interrupt"):
        model = LaRankClassifier(C=10, gamma=1.0, device="cpu", random_state=0).fit(X, Y)
    assert model.result_.status == "interrupted"
    assert len(model.support_)


# Wrong input


@pytest.mark.parametrize(
    ("parameters", "data", "said"),
    [
        ({"device": "cpu"}, csr_matrix(X), "device='cpu' takes dense arrays, got a sparse matrix"),
        (
            {"device": "cpu", "kernel": "laplacian"},
            X,
            "device='cpu' takes kernels of inner products and distances only",
        ),
        ({"device": "cpu", "kernel": lambda A, B: A @ B.T}, X, "inner products and distances only.*got 'a callable"),
        ({"device": "cpu", "memory_limit": 1e4}, X, "memory_limit must be at least .* bytes for .* patterns"),
    ],
)
def test_what_a_device_cannot_do_is_said(parameters, data, said):
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        LaRankClassifier(**parameters).fit(data, Y)


def test_a_device_that_is_not_there_is_named_with_what_would_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "cupy", None)
    said = r"device='cuda:3' is not there: torch is not installed, cupy is not installed.*larank\[gpu\].*device='cpu'"
    with pytest.raises(ValueError, match=said):
        LaRankClassifier(device="cuda:3").fit(X, Y)


def test_checkpoints_need_the_host(tmp_path):
    for kind in (LaRankClassifier, MulticlassSVC):
        with pytest.raises(ValueError, match=r"device=None; got .*device='cpu'"):
            kind(device="cpu").fit(X, Y, checkpoint=tmp_path / "state")


@pytest.mark.parametrize("seed", range(2))
def test_one_block_step_of_enough_gradients_is_at_the_optimum(seed):
    """Momentum that is not begun again where it leads astray leaves 1e-5 of it."""
    random = np.random.default_rng(seed)
    points = random.normal(size=(20, 4))
    labels = np.concatenate([np.arange(3), random.integers(0, 3, 17)]).astype(np.int32)
    costs = random.uniform(6.0, 30.0, 20)
    K = np.exp(-0.1 * ((points[:, None] - points) ** 2).sum(axis=2))
    on = limits(HostDevice(), labels, costs, 3, "crammer-singer")
    _, gain, _, is_plain = ascended(HostDevice(), K, np.zeros((20, 3)), on.margins, on, 400)
    assert gain == pytest.approx(optima.kernel_optimum(K, labels, costs, 1 - np.eye(3), "crammer-singer"), rel=1e-8)
    assert not is_plain


def test_kernel_values_that_have_overflowed_move_nothing():
    _, labels, costs, K = problems(0)
    on = limits(HostDevice(), labels, costs, 3, "crammer-singer")
    with np.errstate(invalid="ignore"):
        d, gain, _, is_plain = ascended(HostDevice(), K * np.inf, np.zeros((12, 3)), on.margins, on)
    assert is_plain
    assert (gain, np.abs(d).max()) == (0, 0)


@on_devices
def test_a_kernel_that_is_not_definite_leaves_the_scale_of_the_coefficients(device):
    model = MulticlassSVC("sigmoid", gamma=0.3, coef0=0.5, C=0.1, device=device, max_iter=30, random_state=0)
    with pytest.warns(CertificateWarning):
        model.fit(X[:100].astype(np.float64), Y[:100])
    assert model.scale_ == 1
    assert model.result_.primal > 0
