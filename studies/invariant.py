"""`python -m studies invariant`: a stream of deformed digits, and other large tasks, by block steps on a device."""

from __future__ import annotations

import importlib
import math
import os
import resource
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from larank import BlockSteps, LaRankClassifier, MulticlassSVC
from larank.blocks.device import CupyDevice, Device, HostDevice, TorchDevice, device_for, device_scores
from larank.blocks.kernels import kernel_for
from studies.datasets import COVTYPE_TRAIN, KERNEL, LOGISTIC, Dataset, load
from studies.rivals import libraries
from studies.rivals.libraries.solver import TrainingSet
from studies.study import Findings, Say, Scope, Study, count
from studies.tables import column, of_rows

SIDE = 28
C, GAMMA = 1000.0, 0.005  # [larank] section 4.1, of pixels in [-1, 1]
PARTS = ("stream", "exact", "covtype", "predict")
FORESTS = COVTYPE_TRAIN, 100_000  # rows for the device, and for the compiled machine
QUICK = {"rows": 600, "digits": 400, "batch": 300, "parts": PARTS, "tol": 0.01, "forests": (600, 300), "patterns": 500}
FOREST_C, FOREST_GAMMA = 3.0, 0.3  # of standardised columns; the best of six pairs on 20 000 rows
MADE_AT_ONCE = 1 << 14  # digits, each of which takes some 100 kB on the way
# Of the deformations: the grid of the elastic ones has a point every so many pixels, and they move a pixel by so much
# in each direction (standard deviation), which was chosen among 0.3, 0.6 and 1 on the last 10 000 training digits.
GRID, ELASTIC, DEGREES, SCALE, SHIFT = 4.0, 0.6, 7.5, 0.075, 1.0


class Deformer:
    """Digits, each moved, turned, scaled and bent at random, made on a device."""

    def __init__(self, device: Device, images: NDArray[np.uint8]) -> None:
        self.device, self.xp = device, device.xp
        self.images = device.put(images, np.uint8)
        pixels = np.arange(SIDE, dtype=np.float64)
        points = np.arange(GRID / 2, SIDE, GRID)
        spread = np.exp(-0.5 * ((pixels[:, None] - points) / GRID) ** 2)
        spread /= np.sqrt((spread**2).sum(axis=1, keepdims=True))  # a field of unit variance
        self.points = len(points)
        self.spread = device.put(spread, np.float32)
        grid = (pixels - (SIDE - 1) / 2).astype(np.float32)
        self.down = device.put(np.broadcast_to(grid[:, None], (SIDE, SIDE)).copy(), np.float32)
        self.right = device.put(np.broadcast_to(grid[None, :], (SIDE, SIDE)).copy(), np.float32)

    def __call__(self, rows: NDArray[np.intp], random: np.random.Generator) -> Any:
        """The digits in these rows, deformed: bytes, on the device."""
        n, put = len(rows), self.device.put
        bends = _normal(self.device, random, (2, n, self.points, self.points))
        by = ELASTIC * (self.spread @ bends[0] @ self.spread.T), ELASTIC * (self.spread @ bends[1] @ self.spread.T)
        turn = np.deg2rad(DEGREES) * random.uniform(-1, 1, n)
        scale = 1 + SCALE * random.uniform(-1, 1, n)
        shift = SHIFT * random.uniform(-1, 1, (2, n))
        cos, sin, *shifts = (
            put(each[:, None, None], np.float32) for each in (np.cos(turn) / scale, np.sin(turn) / scale, *shift)
        )
        middle = (SIDE - 1) / 2
        top = cos * self.down - sin * self.right + shifts[0] + by[0] + middle
        left = sin * self.down + cos * self.right + shifts[1] + by[1] + middle
        return self._sampled(self.images[self.device.index(rows)], top, left)

    def _sampled(self, images: Any, top: Any, left: Any) -> Any:
        """Bilinear, with what lies outside as the background."""
        xp, cast = self.xp, self.device.cast
        flat = cast(images, np.float32)
        total = 0.0
        first = xp.floor(top), xp.floor(left)
        for down in (0, 1):
            for right in (0, 1):
                row, column = first[0] + down, first[1] + right
                weight = (1 - xp.abs(top - row)) * (1 - xp.abs(left - column))
                inside = (row >= 0) & (row < SIDE) & (column >= 0) & (column < SIDE)
                place = cast(xp.where(inside, row * SIDE + column, 0 * row), np.int64).reshape(len(images), -1)
                found = xp.take_along_axis(flat, place, axis=1).reshape(len(images), SIDE, SIDE)
                total = total + xp.where(inside, weight * found, 0 * weight)
        return cast(xp.floor(total + 0.5), np.uint8).reshape(len(images), -1)


def _normal(device: Device, random: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Drawn where they are used: a hundred numbers for a digit take longer than all else if they come from the host."""
    if isinstance(device, TorchDevice):
        torch = importlib.import_module("torch")
        seeded = torch.Generator(device.name).manual_seed(int(random.integers(2**62)))
        return torch.randn(shape, generator=seeded, device=device.name)
    if isinstance(device, CupyDevice):
        drawn = device.xp.random.default_rng(int(random.integers(2**62)))
        return drawn.standard_normal(shape, dtype=np.float32)
    return random.standard_normal(shape, np.float32)


@dataclass(frozen=True)
class Point:
    rows: int = column("digits")
    seconds: float = column("seconds", ".1f")  # of training and of making digits
    made_in: float = column("of these making digits", ".1f")
    per_second: float = column("digits/s", ".0f")  # of the last call
    test_error: float = column("test error %", ".2f")
    dual: float = column("dual", ".0f")
    patterns: int = column("patterns")
    gradients: int = column("gradients")  # of all block steps so far
    megabytes: float = column("MB", ".0f")  # of the device at most, or of the process


@dataclass(frozen=True)
class Fit:
    problem: str = column("problem")
    solver: str = column("solver")
    rows: int = column("rows")
    seconds: float = column("seconds", ".2f")
    status: str = column("status")
    relative_gap: float = column("relative gap", ".1e")
    dual: float = column("dual", ".1f")
    test_error: float = column("test error %", ".2f")
    patterns: int = column("patterns")
    gradients: int | None = column("gradients")
    predict_seconds: float = column("predict s", ".3f")


@dataclass(frozen=True)
class Prediction:
    """Scores of all test digits by a large model, the best of three."""

    patterns: int = column("patterns")
    rows: int = column("digits")
    seconds: float = column("seconds", ".3f")


@contextmanager
def _blocks_of_a_gpu(is_wanted: bool) -> Iterator[None]:
    """On the host, where smaller ones are quicker; what a GPU does is done there but for rounding."""
    names = ("patterns_at_once", "examples_at_once")
    before = {name: getattr(HostDevice, name) for name in names}
    try:
        for name in names if is_wanted else ():
            setattr(HostDevice, name, getattr(Device, name))
        yield
    finally:
        for name, number in before.items():
            setattr(HostDevice, name, number)


def digits(count: int) -> Dataset:
    """MNIST with pixels of 0 to 255, so many of its training digits."""
    data = load("mnist", KERNEL)
    some = replace(data, X_train=data.X_train[:count], y_train=data.y_train[:count])
    return some.with_examples(lambda X: np.rint((X + 1) * 127.5).astype(np.uint8))


def run(scope: Scope, say: Say) -> Findings:
    at = Namespace(**{"forests": FORESTS, **vars(scope.options), **(QUICK if scope.quick else {})})
    with _blocks_of_a_gpu(at.large_blocks and not scope.quick):
        device, data = device_for(at.device), digits(at.digits)
        stream = list(_streamed(at, device, data, say)) if "stream" in at.parts else []
        fits = list(_digit_fits(at, data, say)) if "exact" in at.parts else []
        fits += list(_forest_fits(at, say)) if "covtype" in at.parts else []
        predictions = [_predicted(at, device, data, say)] if "predict" in at.parts else []
    return Findings(
        rows={"stream": stream, "fits": fits, "predictions": predictions},
        others={"device": device.name},
        tables=[
            of_rows(f"Deformed digits on {device.name}", stream),
            of_rows("Fits", fits),
            of_rows(f"Predictions on {device.name}", predictions),
        ],
    )


def _streamed(at: Namespace, device: Device, data: Dataset, say: Say) -> Iterator[Point]:
    random, deform = np.random.default_rng(at.seed), Deformer(device, data.X_train)
    gamma = GAMMA / 127.5**2
    settings = {"C": C, "gamma": gamma, "memory_limit": at.memory_limit, "random_state": at.seed}
    model = LaRankClassifier(solver=BlockSteps(at.device), **settings)
    seconds = made = 0.0
    batch = at.batch or math.ceil(at.rows / 10)
    for first in range(0, at.rows, batch):
        count = min(batch, at.rows - first)
        began = time.perf_counter()
        rows = random.integers(0, len(data.X_train), count)
        cuts = range(0, count, MADE_AT_ONCE)
        X = device.xp.concatenate([deform(rows[cut : cut + MADE_AT_ONCE], random) for cut in cuts])
        device.get(X[:1])  # the device has made them
        made += time.perf_counter() - began
        model.partial_fit(X, data.y_train[rows])
        took = time.perf_counter() - began
        seconds += took
        error, result = 100 * (1 - model.score(data.X_test, data.y_test)), model.result_
        per_second, megabytes = count / took, _peak_megabytes(device)
        point = Point(
            *(first + count, seconds, made, per_second, error, result.dual, result.support_patterns),
            *(result.operations["optimize"], megabytes),
        )
        say(f"{point.rows} digits: {seconds:.1f} s, error {error:.2f} %, {point.patterns} patterns")
        yield point


def _peak_megabytes(device: Device) -> float:
    if device.name.startswith("cuda") and isinstance(device, TorchDevice):
        return float(importlib.import_module("torch").cuda.max_memory_allocated(device.name)) / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def _digit_fits(at: Namespace, data: Dataset, say: Say) -> Iterator[Fit]:
    """Plain digits to a gap, and by oneDAL's solver where it is installed."""
    data = data.with_examples(lambda X: X.astype(np.float32) / 127.5 - 1)
    settings = {"C": C, "gamma": GAMMA, "tol": at.tol}
    settings |= {"memory_limit": at.memory_limit, "random_state": at.seed}
    for solver in (BlockSteps(at.device), "active-set"):
        yield _fit("digits", MulticlassSVC(solver=solver, **settings), data, say)
    rival = libraries.KERNEL["intelex"]
    if libraries.installed(rival):
        began = time.perf_counter()
        fit = rival.fit(TrainingSet(data.X_train, data.y_train, C, GAMMA), threads=os.cpu_count() or 1)
        seconds, began = time.perf_counter() - began, time.perf_counter()
        error = 100 * np.mean(fit.predict(data.X_test) != data.y_test)
        took = time.perf_counter() - began
        row = ("digits", "intelex", len(data.y_train), seconds, "its own", np.nan, np.nan, float(error))
        yield Fit(*row, fit.support_patterns, None, took)


def _forest_fits(at: Namespace, say: Say) -> Iterator[Fit]:
    """One pass over all rows on the device, and by the compiled machine over some."""
    data = load("covtype", LOGISTIC)
    for solver, rows in zip((BlockSteps(at.device), "larank"), at.forests, strict=True):
        some = replace(data, X_train=data.X_train[:rows], y_train=data.y_train[:rows]).standardised()
        settings = {"C": FOREST_C, "gamma": FOREST_GAMMA, "max_iter": 1, "memory_limit": at.memory_limit}
        yield _fit("covtype", LaRankClassifier(solver=solver, random_state=at.seed, **settings), some, say)


def _fit(problem: str, model: Any, data: Dataset, say: Say) -> Fit:
    began = time.perf_counter()
    model.fit(data.X_train, data.y_train)
    seconds, began = time.perf_counter() - began, time.perf_counter()
    error = 100 * (1 - model.score(data.X_test, data.y_test))
    took, at = time.perf_counter() - began, model.result_
    steps = model.solver if isinstance(model.solver, BlockSteps) else None
    name = "compiled" if steps is None else f"block steps, {device_for(steps.device).name}"
    say(f"{problem}, {name}: {seconds:.2f} s, error {error:.2f} %")
    gap = np.nan if at.relative_gap is None else at.relative_gap
    row = (problem, name, len(data.y_train), seconds, at.status, gap, at.dual, error)
    gradients = None if steps is None else at.operations["optimize"]
    return Fit(*row, at.support_patterns, gradients, took)


def _predicted(at: Namespace, device: Device, data: Dataset, say: Say) -> Prediction:
    """By deformed digits with coefficients for two classes each."""
    random, count = np.random.default_rng(at.seed), at.patterns
    deform = Deformer(device, data.X_train)
    cuts = [random.integers(0, len(data.X_train), min(MADE_AT_ONCE, count - n)) for n in range(0, count, MADE_AT_ONCE)]
    support = np.concatenate([device.get(deform(cut, random)) for cut in cuts])
    two = np.stack([random.permutation(10)[:2] for _ in range(count)]).ravel()
    values = np.tile([1.0, -1.0], count)
    coefficients = csr_matrix((values, two, 2 * np.arange(count + 1)), shape=(count, 10))
    kernel = kernel_for("rbf", gamma=GAMMA / 127.5**2)
    seconds = math.inf
    for _ in range(3):
        began = time.perf_counter()
        device_scores(at.device, kernel, data.X_test, support, coefficients)
        seconds = min(seconds, time.perf_counter() - began)
    say(f"{len(data.X_test)} digits with {count} patterns: {seconds:.3f} s")
    return Prediction(count, len(data.X_test), seconds)


STUDY = Study(
    "invariant",
    "A stream of deformed digits by block steps, on a device or the host",
    run,
    ("mnist", "covtype"),
    options={
        "--device": {"default": "cpu", "help": "cpu (the default), cuda or cuda:N"},
        "--rows": {"type": count, "default": 20_000, "help": "digits of the stream (20 000)"},
        "--batch": {"type": count, "help": "of a call of partial_fit (a tenth of the rows)"},
        "--digits": {"type": count, "default": 60_000, "help": "training digits to deform, or to fit (60 000)"},
        "--parts": {"nargs": "+", "choices": PARTS, "default": ["stream"], "help": ", ".join(PARTS)},
        "--memory-limit": {"type": float, "default": 4e9, "help": "bytes on the device (4e9)"},
        "--tol": {"type": float, "default": 1e-3, "help": "relative gap of plain digits (0.001)"},
        "--patterns": {"type": count, "default": 75_000, "help": "of a model that predicts (75 000)"},
        "--large-blocks": {"action": "store_true", "help": "on the host, blocks and chunks as on a GPU"},
        "--seed": {"type": int, "default": 0},
    },
)
