"""`python -m studies invariant`: a stream of deformed digits, and plain ones to a gap, by block steps on a device."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank import LaRankClassifier, MulticlassSVC
from larank.blocks.device import Device, device_for
from studies.datasets import KERNEL, Dataset, load
from studies.study import Outcome, Say, Study
from studies.tables import Table

SIDE = 28
C, GAMMA = 1000.0, 0.005  # [larank] section 4.1, of pixels in [-1, 1]
PARTS = ("stream", "exact")
# Of the deformations: the grid of the elastic ones has a point every so many pixels, moved by about as many.
GRID, ELASTIC, DEGREES, SCALE, SHIFT = 4.0, 1.0, 7.5, 0.075, 1.0


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
        bends = put(random.standard_normal((2, n, self.points, self.points), np.float32), np.float32)
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


@dataclass(frozen=True)
class Scope:
    """How many digits, from how many, in calls of how many, where; and what else is measured."""

    device: Any
    rows: int
    digits: int
    batch: int
    parts: tuple[str, ...]
    memory_limit: float
    tol: float
    seed: int


@dataclass(frozen=True)
class Point:
    """Where the stream stood."""

    rows: int
    seconds: float  # of training and of making digits
    made_in: float
    test_error: float
    dual: float
    patterns: int


@dataclass(frozen=True)
class Fit:
    """A solver on plain digits."""

    solver: str
    seconds: float
    status: str
    relative_gap: float
    dual: float
    test_error: float
    patterns: int
    predict_seconds: float


@dataclass(frozen=True)
class Found(Outcome):
    """What there is of each part."""

    device: str
    stream: tuple[Point, ...]
    fits: tuple[Fit, ...]

    def to_dict(self) -> dict[str, Any]:
        """The rows."""
        return {
            "device": self.device,
            "stream": [asdict(point) for point in self.stream],
            "fits": [asdict(fit) for fit in self.fits],
        }

    def to_tables(self) -> Sequence[Table]:
        """One for the stream, one for plain digits."""
        tables = []
        if self.stream:
            columns = ["digits", "seconds", "of these making digits", "test error %", "dual", "patterns"]
            tables.append(Table(f"Deformed digits on {self.device}", columns))
            for p in self.stream:
                row = (str(p.rows), f"{p.seconds:.1f}", f"{p.made_in:.1f}", f"{p.test_error:.2f}", f"{p.dual:.0f}")
                tables[-1].add(*row, str(p.patterns))
        if self.fits:
            columns = ["solver", "seconds", "status", "relative gap", "dual", "test error %", "patterns", "predict s"]
            tables.append(Table("Plain digits", columns))
            for f in self.fits:
                row = (f.solver, f"{f.seconds:.2f}", f.status, f"{f.relative_gap:.1e}", f"{f.dual:.1f}")
                tables[-1].add(*row, f"{f.test_error:.2f}", str(f.patterns), f"{f.predict_seconds:.3f}")
        return tables


def digits(count: int) -> Dataset:
    """MNIST with pixels of 0 to 255, so many of its training digits."""
    data = load("mnist", KERNEL)
    as_bytes = [np.rint((X + 1) * 127.5).astype(np.uint8) for X in (data.X_train[:count], data.X_test)]
    return Dataset(as_bytes[0], data.y_train[:count], as_bytes[1], data.y_test)


def run(scope: Scope, say: Say) -> Found:
    """The parts that are wanted."""
    data = digits(scope.digits)
    device = device_for(scope.device)
    stream = tuple(_streamed(scope, device, data, say)) if "stream" in scope.parts else ()
    fits = tuple(_fitted(scope, data, say)) if "exact" in scope.parts else ()
    return Found(device.name, stream, fits)


def _streamed(scope: Scope, device: Device, data: Dataset, say: Say) -> Iterator[Point]:
    random, deform = np.random.default_rng(scope.seed), Deformer(device, data.X_train)
    gamma = GAMMA / 127.5**2
    settings = {"C": C, "gamma": gamma, "memory_limit": scope.memory_limit, "random_state": scope.seed}
    model = LaRankClassifier(device=scope.device, **settings)
    seconds = made = 0.0
    at_once = max(1, min(scope.batch, device.examples_at_once))
    for first in range(0, scope.rows, scope.batch):
        count = min(scope.batch, scope.rows - first)
        began = time.perf_counter()
        rows = random.integers(0, len(data.X_train), count)
        cuts = range(0, count, at_once)
        X = device.xp.concatenate([deform(rows[cut : cut + at_once], random) for cut in cuts])
        made += time.perf_counter() - began
        model.partial_fit(X, data.y_train[rows])
        seconds += time.perf_counter() - began
        error = 100 * (1 - model.score(data.X_test, data.y_test))
        point = Point(first + count, seconds, made, error, model.result_.dual, model.result_.support_patterns)
        say(f"{point.rows} digits: {seconds:.1f} s, error {error:.2f} %, {point.patterns} patterns")
        yield point


def _fitted(scope: Scope, data: Dataset, say: Say) -> Iterator[Fit]:
    X, test = ((each.astype(np.float32) / 127.5 - 1) for each in (data.X_train, data.X_test))
    settings = {
        "C": C,
        "gamma": GAMMA,
        "tol": scope.tol,
        "memory_limit": scope.memory_limit,
        "random_state": scope.seed,
    }
    for device in (scope.device, None):
        model = MulticlassSVC(device=device, **settings)
        began = time.perf_counter()
        model.fit(X, data.y_train)
        seconds = time.perf_counter() - began
        began = time.perf_counter()
        error = 100 * (1 - model.score(test, data.y_test))
        took, at = time.perf_counter() - began, model.result_
        name = "compiled" if device is None else f"block steps, {device_for(device).name}"
        say(f"{name}: {seconds:.2f} s, gap {at.relative_gap:.1e}")
        yield Fit(name, seconds, at.status, at.relative_gap, at.dual, error, at.support_patterns, took)


class _Invariant(Study):
    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """How much of it, and where."""
        parser.add_argument("--device", default="cpu", help="cpu (the default), cuda or cuda:N")
        parser.add_argument("--rows", type=int, default=20_000, help="digits of the stream (20 000)")
        parser.add_argument("--batch", type=int, default=None, help="of a call of partial_fit (a tenth of the rows)")
        parser.add_argument("--digits", type=int, default=60_000, help="training digits to deform, or to fit (60 000)")
        parser.add_argument("--parts", nargs="+", choices=PARTS, default=["stream"], help="stream, exact")
        parser.add_argument("--memory-limit", type=float, default=4e9, help="bytes on the device (4e9)")
        parser.add_argument("--tol", type=float, default=1e-3, help="relative gap of plain digits (0.001)")
        parser.add_argument("--seed", type=int, default=0)

    def scope(self, arguments: argparse.Namespace) -> Scope:
        """What was chosen; quickly, a few hundred digits."""
        at = arguments
        if min(at.rows, at.digits) < 1 or (at.batch is not None and at.batch < 1):
            raise ValueError(f"--rows, --digits and --batch must be 1 or more, got {at.rows}, {at.digits}, {at.batch}")
        if at.quick:
            return Scope(at.device, 600, 400, 300, PARTS, at.memory_limit, 0.01, at.seed)
        batch = at.batch or math.ceil(at.rows / 10)
        return Scope(at.device, at.rows, at.digits, batch, tuple(at.parts), at.memory_limit, at.tol, at.seed)


STUDY = _Invariant("invariant", "A stream of deformed digits by block steps, on a device or the host", ("mnist",), run)
