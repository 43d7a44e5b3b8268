"""Estimators that run out of memory and of space, at points that are drawn from all their allocations."""

from pathlib import Path

from tools.hostile.campaign import Attack, Case

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
_PATHS = [str(_ROOT / "tests"), str(_ROOT)]  # where the estimators to try are listed, and what these import
POINTS = 50  # of each call
FILES = {name: (_HERE / "starving" / name).read_bytes() for name in ("failing.c", "starved.py")}

# A process of its own: the library that makes allocations fail must be loaded first.
SCRIPT = f"""
import os, subprocess, sys
subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", "failing.so", "failing.c", "-ldl"], check=True)
environment = {{**os.environ, "LD_PRELOAD": os.path.abspath("failing.so"), "OPENBLAS_NUM_THREADS": "1"}}
environment["PYTHONPATH"] = os.pathsep.join([*{_PATHS!r}, *filter(None, [os.environ.get("PYTHONPATH")])])
command = [sys.executable, "starved.py", *POINTS]
found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)
assert found.returncode == 0, (found.returncode, found.stderr[-3000:])
"""


def script(points, seed, estimators):
    """Return the source that tries these estimators."""
    words = [str(points), str(seed), *map(str, estimators)]
    return SCRIPT.replace("*POINTS", ", ".join(map(repr, words)))


def cases(random):
    """One estimator after the other, each time at other points."""
    from checks import CASES

    while True:
        for estimator in random.sample(CASES, len(CASES)):
            yield Case(script(POINTS, random.randrange(10**9), [estimator]), FILES)


ATTACK = Attack(cases, warm_up="", megabytes=4000, seconds=600)
