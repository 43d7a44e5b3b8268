"""Kill -9 in the middle of saves and commands: a file is the old one or the new one, and nothing is left behind.

A kill is placed by counting the calls of Python and C functions of an undisturbed run: after a share of as many, the
process kills itself. So the same seed kills at the same places. Some kills follow on one another, before the same work
is done in peace; then only the files that belong there must be there.

A training that is resumed ends with the same model where docs/promises.md says so; elsewhere, with a kernel of inner
products or the exact solver, with the same certificate.
"""

from collections.abc import Iterator
from random import Random

from tools.hostile.campaign import Attack, Case

_IMPORTS = """
import os, signal, sys, warnings
import numpy as np
import larank
import larank.cli.tag, larank.cli.train, larank.cli.predict
from larank.cli import app
from larank.data.columns import write_conll
from larank.training import checkpointfile

warnings.simplefilter("ignore")
"""

_KILLING = (
    _IMPORTS
    + """
random = np.random.RandomState(0)
X, y = random.randn({examples}, 6), np.arange({examples}) % 3
np.savez("data.npz", X=X, y=y)
tags = [["ABC"[tag] for tag in random.randint(3, size=6)] for _ in X]
words = [[f"w{{random.randint(9)}}{{tag[:random.randint(2)]}}" for tag in some] for some in tags]
write_conll("words.txt", words, tags)
checkpointfile._MOST_OF_TIME = np.inf  # a state after every step, however long it takes to write
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
    if not {is_exact}:
        return model.result_.status, model.result_.dual
    if isinstance(model, larank.SequenceTagger):
        return model.coef_.toarray().tolist(), model.transitions_.tolist()
    return model.predict(X).tolist()


def is_same(one, other):
    if {is_exact} or one is None or other is None:
        return one == other
    return one[0] == other[0] and bool(np.isclose(one[1], other[1], rtol=0.01, equal_nan=True))


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
    assert is_same(content(), old) or is_same(content(), new), "the target is neither the old nor the new one"
status, _ = run(work)
assert status == 0, "the work failed after a kill"
assert is_same(content(), new), "the work after a kill came to something else"
assert set(os.listdir()) == files, f"left behind: {{set(os.listdir()) - files}}"
"""
)

_MODELS = (
    "larank.LinearMulticlassSVC(C={C}, random_state=0)",
    "larank.LaRankClassifier(C={C}, random_state=0)",
    "larank.MulticlassSVC(C={C}, random_state=0)",
    "larank.LaSVMClassifier(C={C}, random_state=0)",
    "larank.LinearSGDClassifier(random_state=0, alpha={C} / 1000)",
)
_ALGORITHMS = ("sdm", "larank", "mcsvm", "lasvm")
_RESUMED = "'-q', '--checkpoint', 'point', '--every', '0', '--resume'"
_TAGGERS = (
    "'--max-iter', '3'",
    "'--max-iter', '3', '--inference', 'greedy'",
    "'--tol', '0.01'",
    "'--max-iter', '3', '--solver', 'perceptron', '--average'",
)


def _works(random: Random) -> Iterator[tuple[str, bool, bool]]:
    """What is killed, whether its target is text, and whether it is the same to the last bit when it was resumed."""
    algorithm = random.choice(_ALGORITHMS)
    yield "larank.save(new_model, 'target')", False, True
    yield f"command('train', 'data.npz', 'target', '--algorithm', '{algorithm}', '-q')", False, True
    yield "larank.save(new_model, 'model'); command('predict', 'model', 'data.npz', 'target')", True, True
    algorithm, kernel = random.choice(_ALGORITHMS), random.choice(("rbf", "laplacian"))
    options = f"'--algorithm', '{algorithm}'" + (f", '--kernel', '{kernel}'" if algorithm != "sdm" else "")
    is_exact = algorithm == "sdm" or (algorithm != "mcsvm" and kernel == "laplacian")
    yield f"command('train', 'data.npz', 'target', {options}, {_RESUMED})", False, is_exact
    yield f"command('tag', 'train', 'words.txt', 'target', {random.choice(_TAGGERS)}, {_RESUMED})", False, True


def cases(random: Random) -> Iterator[Case]:
    """Saves, trainings, predictions, and trainings that are resumed, in turn, each killed once or more."""
    while True:
        for work, is_text, is_exact in _works(random):
            script = _KILLING.format(
                examples=random.choice((30, 300)),
                old_model=random.choice(_MODELS).format(C=0.01),
                new_model=random.choice(_MODELS).format(C=10.0),
                is_text=is_text,
                is_exact=is_exact,
                has_old=random.random() < 0.7,
                old="open('target', 'w').write('old')" if is_text else "larank.save(old_model, 'target')",
                work=work,
                shares=[round(_share(random), 4) for _ in range(random.randint(1, 3))],
            )
            yield Case(script)


def _share(random: Random) -> float:
    """How much of the work is done before the kill; near its end, where files are written, is more often."""
    return random.choice((random.random(), 1 - 0.1 * random.random() ** 2))


ATTACK = Attack(cases, warm_up=_IMPORTS, megabytes=512)
