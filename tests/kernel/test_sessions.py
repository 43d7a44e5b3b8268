"""Claims that every compiled session of kernel values keeps, whatever the blocks, the memory and the source of rows."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import pytest

import sessions
from checks import IS_NIGHTLY
from larank import _core
from sessions import Drive, Lasvm, Perceptron, arrays, assert_same, hooks, noisy, on_every_level, problem


@dataclass(frozen=True)
class Kind:
    """One kind of session: how it is made, fed and compared."""

    make: Callable  # (dtype=, memory_limit=) -> session
    model: Callable  # (drive) -> arrays that must be equal
    drive: type[Drive] = Drive
    problem: Callable = noisy
    examples: int = 150
    keeps_rows: bool = True  # a session that keeps no rows of kernel values never asks for them again

    def trained(self, n, k, block, dtype=np.float64, step=1, **options):
        """Return a drive after two epochs."""
        drive = self.made(n, k, block, dtype, **options)
        return drive.epoch(step=step).epoch(np.random.default_rng(0).permutation(n))

    def made(self, n, k, block, dtype=np.float64, memory_limit=sessions.PLENTY, **options):
        """Return a drive of a new session."""
        K, labels = self.problem(n, k, seed=3)
        session = self.make(dtype=dtype, memory_limit=memory_limit)
        labels = sessions.in_order_of_arrival(labels)
        return self.drive(session, K.astype(dtype), labels, np.full(n, 2.0), block=block, **options)


def with_table(name):
    """Return a model's arrays: the table, and an attribute of the session."""
    return lambda drive: [*arrays(drive.session.table()), getattr(drive.session, name)]


def of_tracking(drive):
    return [hooks.averaged(drive.session), hooks.scores(drive.session)]


few_directions = partial(problem, dimensions=6, points=200)
SESSIONS = {
    "larank-adaptive": Kind(sessions.larank_session, with_table("dual"), problem=few_directions),
    "larank-fixed": Kind(
        partial(sessions.larank_session, schedule="fixed"), with_table("dual"), problem=few_directions
    ),
    "lasvm": Kind(sessions.lasvm_session, Lasvm.state, Lasvm),
    "lasvm-finished": Kind(sessions.lasvm_session, lambda drive: drive.finish().state(), Lasvm, examples=300),
    "huller": Kind(sessions.huller_session, with_table("objective")),
    "tracking": Kind(sessions.tracking_session, of_tracking),
    "perceptron": Kind(sessions.perceptron_session, with_table("early"), Perceptron, keeps_rows=False),
    "budget": Kind(partial(sessions.perceptron_session, margin=0.2, budget=40), with_table("early"), Perceptron),
    "passive-aggressive": Kind(sessions.passive_aggressive_session, with_table("early"), Perceptron, keeps_rows=False),
}
every_kind = pytest.mark.parametrize("kind", SESSIONS.values(), ids=SESSIONS)
with_rows = {name: kind for name, kind in SESSIONS.items() if kind.keeps_rows}
every_kind_with_rows = pytest.mark.parametrize("kind", with_rows.values(), ids=with_rows)


# Blocks and memory


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 4])
@every_kind
def test_the_size_of_blocks_and_values_in_free_slots_do_not_change_the_model(kind, k, dtype):
    found = [
        kind.model(kind.trained(300, k, block, dtype, step, junk=junk))
        for block, step, junk in ((1, 1, 0), (4, 3, 1e6), (16, 3, -3e4), (64, 3, 0), (256, 3, 17))
    ]
    for other in found[1:]:
        assert_same(found[0], other)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 4])
@every_kind
def test_instruction_sets_do_not_change_the_model(kind, k, dtype):
    found = [kind.model(kind.trained(200, k, 32, dtype)) for _ in on_every_level()]
    assert len(found) > 1
    for other in found[1:]:
        assert_same(found[0], other)


@functools.cache
def smallest_limit(kind, k, block):
    """Return a limit little above the smallest with which training succeeds: errors give the minimum so far."""
    limit = 1000
    while True:
        try:
            kind.model(kind.trained(kind.examples, k, block, memory_limit=limit))
        except _core.MemoryLimitError as error:
            limit = int(1.05 * int(str(error).split("at least ")[1].split()[0]))
        else:
            return limit


@pytest.mark.parametrize(("block", "k"), [*product([1, 7, 64], [2, 4])] if IS_NIGHTLY else [(1, 2), (7, 4), (64, 2)])
@every_kind_with_rows
def test_rows_that_were_dropped_are_asked_for_again_within_the_limit_and_the_model_stays_the_same(kind, block, k):
    free = kind.trained(kind.examples, k, block)
    expected = kind.model(free)
    assert free.rounds == 0
    for factor in (1, 1.2):
        limit, held = int(factor * smallest_limit(kind, k, block)), set()
        look = lambda drive, held=held: held.add(drive.session.bytes)  # noqa: E731
        drive = kind.trained(kind.examples, k, block, memory_limit=limit, look=look)
        assert_same(expected, kind.model(drive))
        assert max(held) <= limit
        assert drive.rounds > 5
        assert drive.session.resident_rows < drive.session.support_patterns


@every_kind
def test_a_limit_below_one_row_is_an_error_that_names_a_sufficient_one(kind):
    with pytest.raises(_core.MemoryLimitError, match=r"memory_limit must be at least \d+ bytes .*, got 1000"):
        kind.trained(100, 3, 8, memory_limit=1000)
    assert issubclass(_core.MemoryLimitError, ValueError)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@every_kind
def test_a_session_reports_its_precision(kind, dtype):
    assert np.dtype(kind.make(dtype=dtype).dtype) == dtype


# Blocks that do not fit

BLOCK = {
    "kernel": np.ones((4, 4)),
    "within": np.ones((4, 4)),
    "ids": np.arange(4),
    "labels": np.zeros(4, np.int32),
    "costs": np.ones(4),
    "diagonal": np.ones(4),
}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ids", np.arange(3), "differ in length"),
        ("labels", np.array([0, 1, -1, 0], np.int32), "labels must (not be negative|be 0 or 1)"),
        ("within", np.ones((3, 4)), "within must have one row and column per row"),
        ("kernel", np.ones((4, 3)), "too few columns"),
    ],
)
@every_kind
def test_blocks_that_do_not_fit_are_refused_and_not_read(kind, name, value, message):
    fresh = kind.make()
    with pytest.raises(ValueError, match=message):
        fresh.feed(**{**BLOCK, name: value})
    with pytest.raises(ValueError, match="fewer examples"):
        fresh.run(1, None)
    fresh.feed(**BLOCK)
    with pytest.raises(ValueError, match="fewer examples"):
        fresh.run(5, None)
    with pytest.raises(TypeError):
        kind.make(dtype=np.float32).feed(**BLOCK)


# The source of rows


@every_kind_with_rows
def test_what_the_source_raises_passes_through_and_leaves_a_session_that_can_go_on(kind):
    """Training continues after the example at which the source failed, and the table holds the examples before it."""
    drive = kind.made(kind.examples, 4, 7, memory_limit=int(1.2 * smallest_limit(kind, 4, 7)))
    rows = drive.rows

    def refusing(slots):
        raise LookupError("no rows today")

    drive.rows = refusing
    with pytest.raises(LookupError, match="no rows today"):
        drive.epoch().epoch()
    drive.rows = rows
    drive.epoch().epoch()
    table = drive.session.table()
    np.testing.assert_array_equal(table.labels, drive.labels[table.ids])
    assert len(table.ids) <= drive.session.support_patterns
    assert np.isfinite(table.coefficients).all()
    if hasattr(drive.session, "half_squared_norm"):
        beta = sessions.dense(table, kind.examples, drive.session.columns)
        half = 0.5 * (beta * (drive.K @ beta)).sum()
        assert drive.session.half_squared_norm == pytest.approx(half, rel=1e-9)


ANSWERS = {
    "columns": (lambda rows, drive: rows[:, :-1].copy(), "must answer with .* rows and .* columns, got"),
    "rows": (lambda rows, drive: rows[1:], "must answer with .* rows and .* columns, got"),
    "precision": (lambda rows, drive: rows.astype(np.float32), "C-contiguous array of float64"),
    "list": (lambda rows, drive: rows.tolist(), "C-contiguous array of float64"),
    "at-work": (lambda rows, drive: drive.session.run(1, drive), "at work already"),
}


@pytest.mark.parametrize("what", ANSWERS)
@every_kind_with_rows
def test_an_answer_of_another_shape_or_type_and_a_call_while_the_session_works_are_errors(kind, what):
    drive = kind.made(kind.examples, 4, 7, memory_limit=int(1.2 * smallest_limit(kind, 4, 7)))
    rows, (answer, message) = drive.rows, ANSWERS[what]
    drive.rows = lambda slots: answer(rows(slots), drive)
    with pytest.raises(RuntimeError if what == "at-work" else ValueError, match=message):
        drive.epoch().epoch()
