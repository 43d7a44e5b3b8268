"""Kill -9 in the middle of saves and commands: a file is the old one or the new one, and nothing is left behind.

A kill is placed by counting the calls of Python and C functions of an undisturbed run: after a share of as many, the
process kills itself. So the same seed kills at the same places. Some kills follow on one another, before the same work
is done in peace; then only the files that belong there must be there.
"""

from collections.abc import Iterator
from inspect import signature
from random import Random

import larank.cli.predict
import larank.cli.train  # here, so that children find it imported
from tests.hostile.campaign import Attack, Case

_IMPORTS = """
import os, signal, sys, warnings
import numpy as np
import larank
import larank.cli.train, larank.cli.predict
from larank.cli import app

warnings.simplefilter("ignore")
"""

_KILLING = (
    _IMPORTS
    + """
random = np.random.RandomState(0)
X, y = random.randn({examples}, 6), np.arange({examples}) % 3
np.savez("data.npz", X=X, y=y)
old_model, new_model = {old_model}.fit(X, (y + 1) % 3), {new_model}.fit(X, y)


def run(work, last_call=None):
    # Do it in a child, which dies at its last call if there is one; its exit status, and how many calls it made.
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        calls = 0

        def count(frame, event, argument):
            nonlocal calls
            calls += event in ("call", "c_call")
            if calls == last_call:
                os.kill(os.getpid(), signal.SIGKILL)

        status = 1
        try:
            sys.setprofile(count)
            work()
            status = 0
        finally:
            sys.setprofile(None)
            os.write(writing, str(calls).encode())
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        calls = int(pipe.read() or 0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), calls


def command(*words):
    app([*words], standalone_mode=False)


def content():
    # What the target holds: nothing, or its meaning, which must be complete.
    if not os.path.exists("target"):
        return None
    with open("target", "rb") as file:
        return file.read() if {is_text} else meaning(larank.load("target"))


def meaning(model):
    return model.predict(X).tolist()


def before():
    # The target as it was.
    if os.path.exists("target"):
        os.remove("target")
    if {has_old}:
        {old}


def work():
    {work}


before()
old = content()
status, calls = run(work)
assert status == 0, "the work failed in peace"
new = content()
files = {{name for name in os.listdir() if not name.endswith(".tmp")}}
assert set(os.listdir()) == files, os.listdir()
before()
for share in {shares}:
    status, _ = run(work, max(1, int(share * calls)))
    assert status in (-signal.SIGKILL, 0), status
    assert content() in (old, new), "the target is neither the old nor the new one"
status, _ = run(work)
assert status == 0, "the work failed after a kill"
assert content() == new
assert set(os.listdir()) == files, f"left behind: {{set(os.listdir()) - files}}"
"""
)

_MODELS = (
    "larank.LinearMulticlassSVC(C={C}, random_state=0)",
    "larank.LaRankClassifier(C={C}, random_state=0)",
    "larank.MulticlassSVC(C={C}, random_state=0)",
    "larank.LaSVMClassifier(C={C}, random_state=0)",
    "larank.SGDQNClassifier(random_state=0, alpha={C} / 1000)",
)
_ALGORITHMS = ("sdm", "larank", "mcsvm", "lasvm")


_WORKS = {
    "larank.save(new_model, 'target')": False,
    "command('train', 'data.npz', 'target', '--algorithm', '{algorithm}', '-q')": False,
    "larank.save(new_model, 'model'); command('predict', 'model', 'data.npz', 'target')": True,
}  # and whether the target is text
if "checkpoint_file" in signature(larank.cli.train.train).parameters:
    _RESUMED = "'--checkpoint', 'point', '--every', '0', '--resume'"
    _WORKS[f"command('train', 'data.npz', 'target', '--algorithm', '{{algorithm}}', '-q', {_RESUMED})"] = False


def cases(random: Random) -> Iterator[Case]:
    """Saves, trainings, predictions and trainings that are resumed in turn, each killed once or more."""
    while True:
        for work, is_text in _WORKS.items():
            script = _KILLING.format(
                examples=random.choice((30, 300)),
                old_model=random.choice(_MODELS).format(C=0.01),
                new_model=random.choice(_MODELS).format(C=10.0),
                is_text=is_text,
                has_old=random.random() < 0.7,
                old="open('target', 'w').write('old')" if is_text else "larank.save(old_model, 'target')",
                work=work.format(algorithm=random.choice(_ALGORITHMS)),
                shares=[round(_share(random), 4) for _ in range(random.randint(1, 3))],
            )
            yield Case(script)


def _share(random: Random) -> float:
    """How much of the work is done before the kill; near its end, where files are written, is more often."""
    return random.choice((random.random(), 1 - 0.1 * random.random() ** 2))


ATTACK = Attack(cases, warm_up=_IMPORTS, megabytes=512)
