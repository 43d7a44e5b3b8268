"""A process whose allocations fail on demand: what every estimator does at points where there is no memory.

    LD_PRELOAD=failing.so python starved.py POINTS SEED ESTIMATOR...

Each call of an estimator is made once to count its allocations, and then again and again with some of them failing: in
the compiled core those of the heap, and in Python the functions of NumPy, which raise instead of being called. The
call must work or raise `MemoryError`, and in either case leave a model that works as before, or, asked again, as it
would have. Saving is also made to run out of space.
"""

import contextlib
import copy
import ctypes
import faulthandler
import os
import random
import resource
import sys
import tempfile
import threading
import warnings
from pathlib import Path

import numpy as np

import larank
from checks import CASES, public, scores

_heap = ctypes.CDLL(None)


class Core:
    """A block in which allocations of the core from one number to another fail; it counts them."""

    def __init__(self, first=0, last=0):
        self._range, self.count = (first, last), 0

    def __enter__(self):
        _heap.arm(*map(ctypes.c_long, self._range))
        return self

    def __exit__(self, *error):
        self.count = _heap.disarm()


class Python:
    """The same for calls of NumPy."""

    def __init__(self, first=0, last=0):
        self._range, self.count = range(first, last + 1), 0

    def __enter__(self):
        threading.setprofile(self._look)
        sys.setprofile(self._look)
        return self

    def __exit__(self, *error):
        sys.setprofile(None)
        threading.setprofile(None)

    def _look(self, frame, event, called):
        if event != "c_call" or "larank" not in frame.f_globals.get("__name__", ""):
            return
        if isinstance(getattr(called, "__self__", None), np.ndarray) or "numpy" in (called.__module__ or ""):
            self.count += 1
            if self.count in self._range:
                raise MemoryError(f"planted at {called.__name__}")


def tell(line):
    """Say where it is, for whoever looks for the cause of a crash."""
    sys.stderr.write(f"{line}\n")


def same(one, other):
    """Whether both are the same numbers, or the same lists of outputs."""
    if isinstance(one, list):
        return one == other
    return np.array_equal(np.asarray(one), np.asarray(other))


def calls(case, fitted, path):
    """What is tried: a name, how a model is made for it, the call, what is then looked at, and what that must be."""
    X, y = case.data

    def scored(model):
        return scores(model, X)

    def copied():
        return copy.deepcopy(fitted)

    def fit(model):
        return model.fit(X, y)

    def go_on(model):
        return model.partial_fit(X, y) if hasattr(model, "partial_fit") else model  # some cannot after a failure

    wanted, content = scored(fitted), path.read_bytes()
    yield "fit", case.make, fit, scored, wanted
    yield "fit again", copied, fit, scored, wanted
    if case.takes("n_jobs"):
        yield "fit in two threads", lambda: case.make(n_jobs=2), fit, scored, None
    if case.streams:
        after = scored(case.make().partial_fit(X, y).partial_fit(X, y))
        yield "partial_fit", lambda: case.make().partial_fit(X, y), go_on, scored, after
    yield "predict", copied, scored, lambda found: found, wanted
    yield "save", copied, lambda model: larank.save(model, path), lambda found: path.read_bytes(), content
    yield "load", copied, lambda model: larank.load(path), scored, wanted


def attempt(X, model, call, look, wanted, failing):
    """One call, some of whose allocations fail."""
    before = public(model)
    answer = scores(model, X) if before else None
    try:
        with failing:
            found = call(model)
    except (MemoryError, larank.MemoryLimitError):
        after = public(model)
        assert after.keys() == before.keys(), "attributes came or went"
        assert all(after[name] is before[name] for name in before), "the model has changed"
        assert not before or same(scores(model, X), answer), "the model does not work as before"
        found = call(model)
        if call.__name__ == "go_on":  # from the model alone
            wanted = None
    result = look(found)
    assert wanted is None or same(result, wanted), "it came to something else"


def starve(case, points, chosen):
    """All calls of one estimator, each with so many points at which allocations fail."""
    tried = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.larank"
        fitted = case.make().fit(*case.data)
        larank.save(fitted, path)
        for name, make, call, look, wanted in calls(case, fitted, path):
            call(make())  # imports and threads that come with the first call
            for where in (Core, Python):
                with where() as counting:
                    call(make())
                spread = sorted({1 + chosen.randrange(max(1, counting.count)) for _ in range(points)})
                for n, first in enumerate(spread):
                    last = (first, 10**9)[n % 2]  # that one alone, or all from there on
                    what = f"{where.__name__}: {first} to {last} of {counting.count} fail"
                    tell(f"{case}, {name}, {what}")
                    attempt(case.data[0], make(), call, look, wanted, where(first, last))
                tried += len(spread)
        tried += fill_disk(fitted, path, points)
        assert os.listdir(folder) == [path.name], "something is left behind"
    return tried


def fill_disk(fitted, path, points):
    """Save where there is no space for the whole file."""
    before = path.read_bytes()
    sizes = {n * (len(before) - 1) // points for n in range(points)}
    for size in sizes:
        tell(f"{fitted}: space for {size} of {len(before)} bytes")
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            with contextlib.suppress(OSError):
                larank.save(fitted, path)
                raise AssertionError("it was not told that there is no space")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        assert path.read_bytes() == before, "the file has changed"
        assert os.listdir(path.parent) == [path.name], "something is left behind"
    return len(sizes)


def main():
    points, seed, names = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    faulthandler.enable()
    warnings.simplefilter("ignore")
    for case in CASES:
        if str(case) in names:
            tell(f"{case}: {starve(case, points, random.Random(seed))} points")


if __name__ == "__main__":
    main()
