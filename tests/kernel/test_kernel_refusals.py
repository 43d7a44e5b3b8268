"""Calls of kernel estimators and of their sessions that are refused, and what the messages say."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from larank import BlockSteps, LaRankClassifier, LaSVMClassifier, MulticlassSVC, _core
from larank.active import Active
from larank.kernel.published import Published
from sessions import Rows, larank_session, lasvm_session, linear_session, perceptron_session, table_of, tracking_session

X, Y = np.random.default_rng(0).normal(size=(24, 3)), np.arange(24) % 3
EYE, LABELS, ONES, IDS = np.eye(4), np.array([0, 1, 2, 0], np.int32), np.ones(4), np.arange(4)
ROWS = Rows(EYE, IDS)
ONE_COLUMN, TWO_COLUMNS = (table_of([9], [0], [1.0], [1.0], np.ones((1, columns))) for columns in (1, 2))


def precomputed():
    return MulticlassSVC("precomputed").fit(X @ X.T, Y)


class Beyond(Active):
    """A strategy that chooses an example that it was not shown."""

    def choose(self, margins, reach):
        return 99


def answering(rows, columns):
    return SimpleNamespace(rows=lambda slots: np.ones((rows, columns)))


def lasvm(classes=0, is_fed=False):
    session = lasvm_session()
    for _ in range(classes):
        session.add_class()
    if is_fed:
        session.feed(EYE, EYE, IDS, 0 * LABELS, ONES, ONES)
        session.run(4, None)
    return session


def set_average(shape, examples):
    session = linear_session(averages=True)
    session.add_class()
    session.add_class()
    session.set_average(np.zeros(shape), examples)


def shared(K=EYE, labels=LABELS):
    return _core.SharedSet64(K, labels, 1 - np.eye(3), 0)


def mcsvm(**wrong):
    """Make a session of the published algorithm and process an example, whose row is one value too short."""
    usual = {"labels": LABELS, "costs": ONES, "diagonal": ONES, "delta": 1 - np.eye(3), "epsilon": 0.1}
    switches = {"selection": "kkt", "row_solver": "exact", "cooling": "none", "active_set": True, "cache": True}
    _core.Mcsvm64(**{**usual, **wrong}, **switches, cache_bytes=0).run(1, answering(1, 3))


def fit(kind=LaRankClassifier, data=X, device="cpu", checkpoint=None, **parameters):
    kind(solver=BlockSteps(device), **parameters).fit(data, Y, checkpoint=checkpoint)


def path(solver):
    MulticlassSVC(solver=solver).path(X, Y, [1.0])


def select(selection, **parameters):
    LaSVMClassifier(selection=selection, **parameters).fit(X, Y)


def costs(of_pairs):
    MulticlassSVC(label_costs=of_pairs).fit(X, Y)


def average_from_now_on():
    LaRankClassifier("linear", average=False).partial_fit(X, Y).set_params(average=True).partial_fit(X, Y)


REFUSED = [
    # Settings, blocks, models and rows of sessions
    ("schedule must be one of 'adaptive', 'fixed', got 'other'", lambda: larank_session(schedule="other")),
    ("operations must be one of 'new', 'old', 'optimize', got 'x'", lambda: larank_session(operations=["new", "x"])),
    (r"algorithm must be one of .*, got 'other'", lambda: tracking_session(algorithm="other")),
    ("n_steps must be at least one", lambda: tracking_session(n_steps=0)),
    ("costs must be above zero", lambda: tracking_session().feed(EYE, EYE, IDS, LABELS, 0 * ONES, ONES)),
    ("weights must have a row per class", lambda: set_average((3, 7), 10)),
    ("and a column per feature", lambda: set_average((2, 6), 10)),
    ("an average is of examples", lambda: set_average((2, 7), 0)),
    ("a column for every slot", lambda: lasvm(is_fed=True).decide(np.ones((2, 3)))),
    ("only an empty session", lambda: lasvm(is_fed=True).restore(ONE_COLUMN, ROWS)),
    ("labels must be those of the session, got 0", lambda: lasvm().restore(ONE_COLUMN, ROWS)),
    (r"such as the session can have, got 1.* in column 1", lambda: lasvm(classes=1).restore(TWO_COLUMNS, ROWS)),
    (r"such as the session can have, got 1.* in column 1", lambda: perceptron_session().restore(TWO_COLUMNS, None)),
    ("1 rows and 1 columns, got 1 and 0", lambda: lasvm(classes=1).restore(ONE_COLUMN, answering(1, 0))),
    ("one number per coefficient", lambda: setattr(perceptron_session(), "early", np.ones(1))),
    # The active set on a matrix
    ("row and a column per label", lambda: shared(np.zeros((4, 3)))),
    ("labels must count", lambda: shared(labels=LABELS + 1)),
    ("costs must have an entry for every example", lambda: shared().set_costs(np.ones(3))),
    ("ids must be numbers of examples", lambda: shared().process(np.array([4]))),
    ("first and last must be numbers of examples", lambda: shared().look(0, 5, np.zeros((4, 3)))),
    ("scores must have a row per example", lambda: shared().extend(np.zeros((4, 2)))),
    ("values must have a row per id", lambda: shared().set_coefficients(np.array([0]), np.zeros((1, 2)))),
    # The published algorithm
    ("equally long", lambda: mcsvm(costs=np.ones(3))),
    ("square", lambda: mcsvm(delta=np.ones((4, 3)))),
    ("labels must count", lambda: mcsvm(labels=LABELS + 1)),
    ("diagonal must be finite", lambda: mcsvm(diagonal=np.full(4, np.nan))),
    ("at least one example", lambda: mcsvm(labels=LABELS[:0], costs=ONES[:0], diagonal=ONES[:0])),
    ("must answer with 1 rows and 4 columns, got 1 and 3", mcsvm),
    (r"path needs solver='active-set' or BlockSteps.*, got 'published'", lambda: path("published")),
    (r"path needs solver='active-set' or BlockSteps.*, got Published\(", lambda: path(Published())),
    # Devices, averages and selections of estimators
    ("device='cpu' takes dense arrays, got a sparse matrix", lambda: fit(data=csr_matrix(X))),
    ("device='cpu' takes kernels of inner products and distances only", lambda: fit(kernel="laplacian")),
    (r"inner products and distances only.*got 'a callable", lambda: fit(kernel=np.inner)),
    ("memory_limit must be at least .* bytes for .* patterns", lambda: fit(memory_limit=1e3)),
    (
        r"device='cuda:3' is not there: torch is not installed, cupy is not installed.*larank\[gpu\].*device='cpu'",
        lambda: fit(device="cuda:3"),
    ),
    (r"checkpoint cannot be combined.*; got solver=BlockSteps\(device='cpu'\)", lambda: fit(checkpoint="state")),
    (r"checkpoint needs solver='active-set', got BlockSteps", lambda: fit(MulticlassSVC, checkpoint="state")),
    ("n_jobs must be None with solver=BlockSteps.*; got 2", lambda: fit(MulticlassSVC, n_jobs=2)),
    ("solver cannot be BlockSteps .*; got average=True", lambda: fit(kernel="linear", average=True)),
    ("average must stay as it was", average_from_now_on),
    (r"label_costs must map pairs of labels to margins; got the key \(0, 3\) with", lambda: costs({(0, 3): 1.0})),
    ("label_costs must map pairs of labels to margins; got the key 0 with labels", lambda: costs({0: 1.0})),
    ("label_costs must hold finite numbers >= 0", lambda: costs({(0, 1): "high"})),
    ("selection must be one of .* or a strategy such as", lambda: select(Active)),
    (r"selection must choose a place from 0 to \d+, got 99 from Beyond\(", lambda: select(Beyond())),
    ("selection has a budget of labels.*; got .*tol=0.1", lambda: select(Active(budget=9), tol=0.1)),
    (
        "scores can be computed of, but those of example 0 overflow",
        lambda: precomputed().decision_function(np.full((1, len(X)), 1e308)),
    ),
    ("classes must be a list or an array of labels, got 3", lambda: LaRankClassifier().partial_fit(X, Y, classes=3)),
    (r"C times the weights must have a finite sum, got 1e\+308", lambda: MulticlassSVC().path(X, Y, [1e308])),
    (
        r"memory_limit must be a finite number > 0 and <= .*; got 1e\+300",
        lambda: LaRankClassifier(memory_limit=1e300).fit(X, Y),
    ),
]


@pytest.mark.parametrize(("message", "call"), REFUSED)
def test_what_does_not_fit_is_refused_with_a_reason(message, call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for library in ("torch", "cupy"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ValueError, match=message):
        call()
