"""Block steps: on NumPy here, and with the same claims on PyTorch and on a GPU where they are."""

import gc
import importlib.util
import math
import sys
import types
import weakref
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace

import numpy as np
import overlapping
import pytest
from hypothesis import given
from hypothesis import strategies as st
from overlapping import rbf
from sklearn.base import clone
from threadpoolctl import threadpool_limits

import larank
from checks import VARIANTS, interrupt_when_training
from larank import BlockSteps, LaRankClassifier, MulticlassSVC
from larank.blocks import device as devices
from larank.blocks.device import DeviceKernel, DeviceMemoryError, HostDevice, device_for
from larank.blocks.kernels import kernel_for, with_bias
from larank.data import load_letter
from larank.kernel.blockstep import Ascent, Constraints, ascended, projected
from larank.kernel.blockwise import Blockwise
from larank.kernel.stream import Examples
from larank.training import CertificateWarning, TrainingWarning
from properties import draws
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


def larank_on(device, **parameters):
    """On the compiled machine if `device` is None."""
    return LaRankClassifier(**{"C": 10, "gamma": 1.0, "solver": solver_on(device), "random_state": 0, **parameters})


def solver_on(device):
    return "larank" if device is None else BlockSteps(device)


@pytest.fixture(autouse=True)
def one_thread():
    """Products of small blocks are not worth several, which wait for each other."""
    with threadpool_limits(1):
        yield


def problems(seed, n=12, n_classes=3):
    random = np.random.default_rng(seed)
    points = random.normal(size=(n, 4))
    labels = np.concatenate([np.arange(n_classes), random.integers(0, n_classes, n - n_classes)]).astype(np.int32)
    return points, labels, random.uniform(0.2, 3.0, n), rbf(points)


def limits(there, labels, costs, n_classes, formulation):
    margins = (1 - np.eye(n_classes))[labels]
    return Constraints.of(there, np.float64, labels, costs, margins, formulation)


def limited(there, seed, formulation="crammer-singer"):
    """Return a problem, and what bounds its coefficients on a device."""
    _, labels, costs, K = problems(seed)
    return labels, costs, K, limits(there, labels, costs, 3, formulation)


assert_certificate = partial(overlapping.assert_certificate, violated=1, kappa=1e-6)


def dual_of(beta, K, labels):
    delta = 1 - np.eye(beta.shape[1])
    return -(delta[labels] * beta).sum() - 0.5 * (beta * (K @ beta)).sum()


# The step


@on_devices
@pytest.mark.parametrize("formulation", FORMULATIONS)
@given(
    seed=st.integers(0, 10**6), size=st.floats(1e-3, 1e3), classes=st.sampled_from([2, 4, 30, 300]), tail=st.booleans()
)
def test_a_projection_is_the_nearest_point_within_the_constraints(device, formulation, seed, size, classes, tail):
    """It subtracts a number from all classes of an example and clips; bisection finds the number."""
    there, random = device_for(device), np.random.default_rng(seed)
    labels, costs = random.integers(0, classes, 6), random.uniform(0.1, 5, 6)
    V = size * (random.standard_cauchy if tail else random.standard_normal)((6, classes))
    on = limits(there, labels, costs, classes, formulation)
    found = there.get(projected(there.xp, there.put(V, np.float64), on))
    is_label, is_ww = np.arange(classes) == labels[:, None], formulation == "weston-watkins"
    lower = np.where(is_label, -np.inf, -costs[:, None] if is_ww else -np.inf)
    upper = np.where(is_label, np.inf if is_ww else costs[:, None], 0.0)
    low, high = np.full((6, 1), V.min() - 10), np.full((6, 1), V.max() + 10 * classes)
    for _ in range(200):
        middle = (low + high) / 2
        is_low = np.clip(V - middle, lower, upper).sum(axis=1, keepdims=True) > 0
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    np.testing.assert_allclose(found, np.clip(V - low, lower, upper), atol=1e-9 * np.abs(V).max())
    np.testing.assert_allclose(found.sum(axis=1), 0, atol=1e-9 * (np.abs(V).max() if tail else size))
    assert (found <= upper * (1 + 1e-9) + 1e-12).all()
    assert (found >= lower - 1e-9).all()


@on_devices
@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("seed", range(4))
def test_block_steps_on_everybody_reach_the_optimum_of_a_general_solver(device, formulation, seed):
    there = device_for(device)
    labels, costs, K, on = limited(there, seed, formulation)
    beta, k, total = there.zeros((12, 3), np.float64), there.put(K, np.float64), 0.0
    for _ in range(60):
        d, gain, _, _ = ascended(there, k, beta, on.margins + k @ beta, on)
        beta, total = beta + d, total + gain
    best = optima.kernel_optimum(K, labels, costs, 1 - np.eye(3), formulation)
    assert (total, dual_of(there.get(beta), K, labels)) == pytest.approx((best, best), rel=1e-6)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@given(seed=st.integers(0, 10**6), blocks=st.integers(1, 12), shift=st.floats(-2.0, 0.0), steps=st.integers(1, 120))
def test_no_block_step_lowers_the_dual_whatever_the_matrix(formulation, seed, blocks, shift, steps):
    there, random = HostDevice(), np.random.default_rng(seed)
    labels, _, K, on = limited(there, seed, formulation)
    K = K + shift * np.eye(len(K))  # indefinite where it is below the smallest eigenvalue
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
    labels, _, K, on = limited(HostDevice(), 1)
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
    ascent = Ascent(there, limited(there, 0, formulation)[-1])
    there.recorded = lambda work: Tape(work).play
    ascent.record()
    tape = ascent._play.__self__
    assert not any("item" in str(call[0]) or "local_scalar" in str(call[0]) for call in tape.calls)  # would wait
    for seed in range(5):
        _, _, K, on = limited(there, seed, formulation)
        arguments = there.put(K, np.float64), there.zeros((12, 3), np.float64), on.margins, on, 60, 0.0
        played, recorded = ascended(there, *arguments, ascent), ascended(there, *arguments)
        assert played[1:3] == recorded[1:3]
        np.testing.assert_array_equal(there.get(played[0]), there.get(recorded[0]))


def test_a_recording_that_does_nothing_is_not_played():
    there = HostDevice()
    _, _, K, on = limited(there, 0)
    ascent = Ascent(there, on)
    there.recorded = lambda work: lambda: None
    ascent.record()
    arguments = K, np.zeros((12, 3)), on.margins, on, 60, 0.0
    np.testing.assert_array_equal(ascended(there, *arguments, ascent)[0], ascended(there, *arguments)[0])


def test_memory_of_a_block_step_goes_without_a_collection():
    ascent = Ascent(HostDevice(), limited(HostDevice(), 0)[-1])
    ascent.record()
    gone = weakref.ref(ascent)
    gc.disable()
    try:
        del ascent
        assert gone() is None
    finally:
        gc.enable()


@on_devices
def test_what_is_kept_for_full_blocks_changes_nothing(device, monkeypatch):
    model = larank_on(device)
    kept = model.fit(X[:300], Y[:300]).dual_coef_
    monkeypatch.setattr(Blockwise, "_ascent_for", lambda self, on: None)
    assert (model.fit(X[:300], Y[:300]).dual_coef_ != kept).nnz == 0


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


# Corners


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_rows_of_zeros_hold_nobody_up(kernel):
    some, settings = X[:300].copy(), {"kernel": kernel, "C": 1, "max_iter": 1, "degree": 2}
    some[::20] = 0
    here, there = (
        larank_on(device, **settings, gamma="scale").fit(some, Y[:300], certify=True) for device in (None, "cpu")
    )
    assert there.result_.dual > 0.95 * here.result_.dual
    nothing = MulticlassSVC("linear", solver=BlockSteps("cpu"), random_state=0).fit(0 * some, Y[:300])
    assert nothing.result_.primal == pytest.approx(300, rel=1e-6)
    assert nothing.result_.dual == pytest.approx(300, rel=1e-3)


@pytest.mark.parametrize(("C", "dtype"), [(1e6, np.float64), (1e8, np.float32)])
def test_a_large_cost_does_not_hide_small_coefficients(C, dtype):
    random = np.random.default_rng(0)
    points = random.normal(size=(400, 5)).astype(dtype)
    labels = (points @ random.normal(size=(5, 3))).argmax(axis=1)
    here, there = (larank_on(each, C=C, gamma=0.2).fit(points, labels, certify=True) for each in (None, "cpu"))
    assert there.result_.dual > 0.5 * here.result_.dual
    assert there.score(points, labels) > 0.98
    exact = MulticlassSVC(gamma=0.2, C=C, tol=0.01, solver=BlockSteps("cpu"), random_state=0).fit(
        points.astype(float), labels
    )
    assert exact.result_.relative_gap <= 0.01


def test_one_heavy_example_does_not_hide_the_others():
    weight = np.ones(300)
    weight[7] = 1e6
    data = X[:300].astype(np.float64), Y[:300], weight
    here, there = (
        MulticlassSVC(gamma=1.0, solver=solver, random_state=0).fit(*data).result_
        for solver in ("active-set", BlockSteps("cpu"))
    )
    assert there.primal == pytest.approx(here.primal, rel=2e-3)


def test_a_saved_stream_goes_on_and_moves_between_device_and_host(tmp_path):
    points = X.astype(np.float64)  # whose rounding makes and breaks no pattern

    def saved(model):
        larank.save(model, tmp_path / "model.larank")
        return larank.load(tmp_path / "model.larank")

    here = LaRankClassifier(C=1.0, gamma=1.0, random_state=0).partial_fit(points[:200], Y[:200])
    there = saved(here).set_params(solver=BlockSteps("cpu")).partial_fit(points[200:400], Y[200:400])
    assert there.result_.dual > here.result_.dual
    loaded = saved(there)
    assert loaded.solver == BlockSteps("cpu")
    for model in (there, loaded):
        model.partial_fit(points[400:], Y[400:])
    np.testing.assert_array_equal(there.support_, loaded.support_)
    np.testing.assert_allclose(there.decision_function(X), loaded.decision_function(X), atol=1e-3)
    back = saved(there).set_params(solver="larank").partial_fit(points[:5] + 0.05, Y[:5])
    assert back.result_.dual > 0.99 * there.result_.dual
    assert back.result_.operations["optimize"] > 0


# The exact machine


@on_devices
@draws(15)
@given(
    seed=st.integers(0, 10**6),
    kernel=st.sampled_from(["rbf", "poly", "linear"]),
    formulation=st.sampled_from(FORMULATIONS),
    intercept=st.booleans(),
)
def test_the_optimum_is_that_of_a_general_solver(device, seed, kernel, formulation, intercept):
    points, labels, costs, values = problems(seed, n=15)
    delta = np.random.default_rng(seed).uniform(0.5, 2, (3, 3)) * (1 - np.eye(3))
    model = MulticlassSVC(
        kernel, formulation=formulation, gamma=0.3, tol=1e-6, solver=BlockSteps(device), random_state=0
    )
    model.set_params(fit_intercept=intercept, label_costs=delta).fit(points, labels, costs)
    products = points @ points.T
    K = {"rbf": values, "poly": (0.3 * products) ** 3, "linear": products}[kernel] + intercept
    best = optima.kernel_optimum(K, labels, costs, delta, formulation)
    assert model.result_.status == "converged"
    assert (model.result_.dual, model.result_.primal) == pytest.approx((best, best), rel=2e-5)
    assert_certificate(model, K, labels, costs, delta)


def test_a_path_raises_costs():
    models = MulticlassSVC(gamma=1.0, solver=BlockSteps("cpu"), random_state=0).path(X[:200], Y[:200], [1, 10, 0.1])
    for model in models:
        alone = MulticlassSVC(gamma=1.0, C=model.C, random_state=0).fit(X[:200], Y[:200])
        assert model.result_.relative_gap <= 1e-3
        assert model.result_.primal == pytest.approx(alone.result_.primal, rel=2e-3)


# Streams


@on_devices
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_one_pass_is_close_to_the_optimum_and_certified(device, kernel):
    settings = {"kernel": kernel, "gamma": 1.0, "C": 10, "random_state": 0}
    model = LaRankClassifier(solver=BlockSteps(device), max_iter=1, **settings).fit(X[:400], Y[:400], certify=True)
    best = MulticlassSVC(**settings).fit(X[:400], Y[:400]).result_
    assert 0.9 * best.dual < model.result_.dual <= best.primal * (1 + 1e-6)
    assert model.result_.primal >= best.dual
    some = X[:400].astype(float)
    K = some @ some.T if kernel == "linear" else rbf(some, gamma=1.0)
    beta = assert_certificate(model, K, Y[:400], 10.0, close=1e-5)
    np.testing.assert_allclose(beta.sum(axis=1), 0, atol=1e-10)
    assert beta.max() <= 10


@pytest.mark.parametrize(("size", "rows"), [(1, 40), (7, 119), (100, 300), (600, 600)])
def test_a_stream_in_any_split_is_a_good_model(size, rows):
    model = larank_on("cpu")
    for first in range(0, rows, size):
        model.partial_fit(X[first : first + size], Y[first : first + size])
    classes, labels = np.unique(Y[:rows], return_inverse=True)
    assert model.classes_.tolist() == classes.tolist()
    assert model.score(X[:rows], Y[:rows]) > 0.9
    objective = VARIANTS["LaRankClassifier"][""][1]
    primal, dual = objective.certificate(model, rbf(X[:rows].astype(float), gamma=1.0), labels, np.full(rows, 10.0))
    assert 0 < dual <= primal
    assert model.result_.dual == pytest.approx(dual, rel=1e-4)


def test_violators_that_a_chunk_leaves_out_are_counted_and_join_later(monkeypatch, tmp_path):
    everybody = larank_on("cpu", max_iter=1).fit(X[:300], Y[:300])
    assert everybody.result_.operations["left_out"] == 0
    monkeypatch.setattr("larank.kernel.blockwise._NEWCOMERS", 60)
    once, often = (larank_on("cpu", max_iter=passes).fit(X[:300], Y[:300]) for passes in (1, 5))
    assert once.result_.operations["left_out"] > 0
    assert once.result_.support_patterns < often.result_.support_patterns
    assert often.result_.dual == pytest.approx(everybody.result_.dual, rel=0.05)
    larank.save(once, tmp_path / "model.larank")
    assert larank.load(tmp_path / "model.larank").result_.operations == once.result_.operations


@on_devices
@pytest.mark.parametrize("kind", [LaRankClassifier, MulticlassSVC])
def test_a_seed_makes_the_model(kind, device):
    model = kind(C=10, gamma=1.0, solver=BlockSteps(device), random_state=3)
    one, same = (clone(model).fit(X[:200], Y[:200]).dual_coef_ for _ in range(2))
    assert (one != same).nnz == 0


@on_devices
def test_a_model_predicts_on_either_side(device):
    model = larank_on(device).fit(X[:200], Y[:200])
    there = model.decision_function(X)
    here = model.set_params(solver="larank").decision_function(X)
    np.testing.assert_allclose(there, here, atol=1e-4)
    assert model.partial_fit(X[:10], Y[:10]).score(X[:200], Y[:200]) > 0.9  # the compiled machine goes on from it


def test_bytes_are_taken_as_they_are():
    data = LETTER.X_train[:400].astype(np.uint8)
    model = LaRankClassifier(C=10, gamma=0.02, solver=BlockSteps("cpu"), random_state=0).fit(data, LETTER.y_train[:400])
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
        model = kind(C=10, gamma=gamma, solver=BlockSteps(device), random_state=0).fit(there, y)
        same = kind(C=10, gamma=gamma, solver=BlockSteps(device), random_state=0).fit(X, labels)
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
    attached = kind(gamma=1.0, solver=BlockSteps(device), random_state=0).fit(there.clone().requires_grad_(True), y)
    assert attached.score(there, y) > 0.8
    with pytest.raises(ValueError, match=r"two dimensions.*got shape"):
        model.fit(there[0], y)
    if kind is LaRankClassifier:
        assert model.partial_fit(there[:50], y[:50]).score(there, y) > 0.9
    words = kind(gamma=1.0, solver=BlockSteps(device), random_state=0).fit(there, Y)
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
    names = "where sort sum max min abs minimum maximum cumsum argsort stack exp tanh concatenate take_along_axis"
    for name in names.split():
        setattr(cupy, name, getattr(np, name))
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
    monkeypatch.setattr(devices.CupyDevice, "patterns_at_once", 128)
    monkeypatch.setattr(devices.CupyDevice, "examples_at_once", 2048)
    return cupy


def test_cupy_is_called_as_it_wants_to_be(a_stand_in_for_cupy):
    settings = {"C": 10, "gamma": 1.0, "random_state": 0}
    some, labels = X[:200], Y[:200]  # more patterns than the stand-in takes at once
    there, here = (
        LaRankClassifier(solver=BlockSteps(device), **settings).fit(some, labels) for device in ("cuda", "cpu")
    )
    assert there.result_.dual == pytest.approx(here.result_.dual, rel=1e-4)
    for formulation in FORMULATIONS:
        exact = MulticlassSVC(solver=BlockSteps("cuda"), formulation=formulation, tol=0.01, **settings).fit(
            X[:80], Y[:80]
        )
        assert exact.result_.status == "converged"
    data = a_stand_in_for_cupy.asarray(some)
    in_place = LaRankClassifier(solver=BlockSteps("cuda"), **settings).fit(data, labels)
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


class Broken(HostDevice):
    """A device that stops answering after some copies."""

    left = 40

    def put(self, values, dtype):
        Broken.left -= 1
        if Broken.left < 0:
            raise RuntimeError("the device does not answer")
        return super().put(values, dtype)


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        (Small, DeviceMemoryError, r"device='cpu' is used up: .* patterns of 16 features, .*memory_limit"),
        (Broken, RuntimeError, "does not answer"),
    ],
)
def test_a_device_that_fails_leaves_the_model_as_it_was(kind, error, message, monkeypatch):
    model = larank_on("cpu").partial_fit(X[:50], Y[:50])
    before = model.decision_function(X)
    monkeypatch.setattr(devices, "HostDevice", kind)
    monkeypatch.delattr(model, "_machine")
    with pytest.raises(error, match=message):
        model.partial_fit(X, Y)
    monkeypatch.undo()
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert model.partial_fit(X[50:100], Y[50:100]).score(X[:100], Y[:100]) > 0.9


# Ends


def test_training_ends_when_rounding_hides_what_the_dual_gains():
    random, labels = np.random.RandomState(7), np.arange(9) % 3
    some = 300 + 2 * random.randn(3, 2)[labels] + random.randn(9, 2)
    machine = MulticlassSVC(
        "poly", degree=2, gamma=1, C=100, max_iter=2, time_limit=20, solver=BlockSteps("cpu"), random_state=0
    )
    with pytest.warns(TrainingWarning):
        result = machine.fit(some.astype(np.float32), labels).result_
    assert result.status in ("max_iter", "precision")
    assert 0 <= result.dual <= result.primal


def test_limits_end_training_with_a_valid_model():
    with pytest.warns(TrainingWarning, match="time_limit=1e-09"):
        model = larank_on("cpu", time_limit=1e-9).fit(X, Y)
    assert model.result_.status == "time_limit"
    assert model.predict(X[:5]).shape == (5,)
    with pytest.warns(TrainingWarning, match="max_iter=1"):
        MulticlassSVC(C=100, gamma=1.0, tol=1e-9, max_iter=1, solver=BlockSteps("cpu"), random_state=0).fit(
            X[:300], Y[:300]
        )


def test_ctrl_c_ends_training_with_a_valid_model():
    with interrupt_when_training(), pytest.warns(TrainingWarning, match="by an interrupt"):
        model = larank_on("cpu").fit(X, Y)
    assert model.result_.status == "interrupted"
    assert len(model.support_)


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
    model = MulticlassSVC(
        "sigmoid", gamma=0.3, coef0=0.5, C=0.1, solver=BlockSteps(device), max_iter=30, random_state=0
    )
    with pytest.warns(CertificateWarning):
        model.fit(X[:100].astype(np.float64), Y[:100])
    assert model.scale_ == 1
    assert model.result_.primal > 0
