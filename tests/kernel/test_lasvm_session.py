"""The compiled sessions of LaSVM, fed by hand: every operation is that of the thesis, whatever blocks and memory."""

import operator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sessions
from references.optima import binary_optimum
from sessions import Lasvm, Rows, assert_same, hooks, in_order_of_arrival, noisy, problem, table_of
from sessions import lasvm_session as session


def assert_feasible(drive, alpha):
    bounds = drive.signs() * drive.costs
    assert (alpha >= np.minimum(0, bounds)).all()
    assert (alpha <= np.maximum(0, bounds)).all()
    np.testing.assert_allclose(alpha.sum(axis=1), 0, atol=1e-12 * drive.costs.sum())


def extremes(drive, alpha, g, members):
    """The largest g of members that may grow, and the smallest of those that may shrink; by problem."""
    bounds = drive.signs() * drive.costs
    largest = np.where(members & (alpha < np.maximum(0, bounds)), g, -np.inf).max(axis=1)
    smallest = np.where(members & (alpha > np.minimum(0, bounds)), g, np.inf).min(axis=1)
    return largest, smallest


# The operations


@dataclass(frozen=True)
class Plain:
    """Algorithms 11 and 12 word for word on one problem, but for examples that change nothing.

    Two free members of a step have the same gradient afterwards, and rounding says which is the larger: every operation
    returns all outcomes that there may be.
    """

    K: np.ndarray
    y: np.ndarray
    costs: np.ndarray
    alpha: np.ndarray
    tau: float = 1e-3
    S: tuple = ()
    dual: float = 0.0

    A = property(lambda self: np.minimum(0, self.costs * self.y))
    B = property(lambda self: np.maximum(0, self.costs * self.y))

    def g(self, s):
        return self.y[s] - self.alpha @ self.K[:, s]

    def top(self):
        g = {s: self.g(s) for s in self.S if self.alpha[s] < self.B[s]}
        return [s for s in g if g[s] >= max(g.values()) - 1e-11]

    def bottom(self):
        g = {s: self.g(s) for s in self.S if self.alpha[s] > self.A[s]}
        return [s for s in g if g[s] <= min(g.values()) + 1e-11]

    def process(self, k):
        if k in self.S:
            return [self]
        partners = self.bottom() if self.y[k] > 0 else self.top()
        joined = replace(self, S=(*self.S, k))
        if not partners:
            return [joined if sum(self.y[s] == self.y[k] for s in self.S) < 5 else self]
        if self.y[k] * (self.g(k) - self.g(partners[0])) > self.tau:
            return [joined.searched(*((k, j) if self.y[k] > 0 else (j, k))) for j in partners]
        return [joined if self.is_beyond(k) else self]

    def is_beyond(self, k):
        """Whether it would be the better partner of examples to come: all members are at bounds, 4.2.3 case c."""
        own = self.top() if self.y[k] > 0 else self.bottom()
        return not own or self.y[k] * (self.g(k) - self.g(own[0])) > self.tau

    def reprocess(self):
        top, bottom = self.top(), self.bottom()
        if not top or not bottom or self.g(top[0]) - self.g(bottom[0]) <= self.tau:
            return [self]
        return [self.searched(i, j).without_blatant() for i in top for j in bottom]

    def without_blatant(self):
        top = max((self.g(s) for s in self.top()), default=-np.inf)
        bottom = min((self.g(s) for s in self.bottom()), default=np.inf)
        is_blatant = {s: self.g(s) >= top if self.y[s] < 0 else self.g(s) <= bottom for s in self.S}
        return replace(self, S=tuple(s for s in self.S if self.alpha[s] or not is_blatant[s]))

    def searched(self, i, j):
        slope = self.g(i) - self.g(j)
        curvature = self.K[i, i] + self.K[j, j] - 2 * self.K[i, j]
        up, down = self.B[i] - self.alpha[i], self.alpha[j] - self.A[j]
        step = min(slope / curvature, up, down)
        assert step > 0
        alpha = self.alpha.copy()
        alpha[i] = self.B[i] if step == up else self.alpha[i] + step
        alpha[j] = self.A[j] if step == down else self.alpha[j] - step
        return replace(self, alpha=alpha, dual=self.dual + step * slope - step * step * curvature / 2)

    def after(self, k, alpha):
        """What PROCESS(k) and REPROCESS make of it: that of the outcomes which has these coefficients."""
        outcomes = [last for one in self.process(k) for last in one.reprocess()]
        return min(outcomes, key=lambda one: np.abs(np.nan_to_num(alpha) - one.alpha).max())


def assert_is(drive, plain):
    alpha, g = drive.members()
    for p, by_hand in enumerate(plain):
        members = list(by_hand.S)
        np.testing.assert_array_equal(np.flatnonzero(~np.isnan(alpha[p])), np.sort(members))
        np.testing.assert_allclose(alpha[p][members], by_hand.alpha[members], atol=1e-12 * by_hand.B.max())
        np.testing.assert_allclose(g[p][members], [by_hand.g(s) for s in members], atol=1e-11 * by_hand.B.max())
    assert drive.session.dual == pytest.approx(sum(by_hand.dual for by_hand in plain), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("k", "C"), [(2, 0.05), (2, 1.0), (2, 100.0), (4, 0.1), (4, 10.0)])
@pytest.mark.parametrize("seed", range(2))
def test_every_example_is_processed_as_by_hand_in_each_problem(seed, k, C):
    """The problem of a class that arrives begins with a few patterns of each of the others."""
    K, labels = noisy(50, k, seed=seed)
    costs = C * np.random.default_rng(seed).uniform(0.5, 2, 50)  # equal ones meet at bounds, but for rounding
    drive = Lasvm(session(), K, labels, costs, block=1)
    plain = [Plain(K, np.where(labels == p, 1.0, -1.0), costs, np.zeros(50)) for p in range(k)]
    for i in [*range(50), *np.random.default_rng(seed).permutation(50)]:
        patterns = [j for j in hooks.slot_ids(drive.session) if j >= 0]
        for new in range(max(drive.session.classes, 2), labels[i] + 1):
            first = tuple(j for c in range(new) for j in [j for j in patterns if labels[j] == c][:5])
            plain[new] = replace(plain[new], S=first)
        drive.epoch(np.array([i]))
        alpha = drive.members()[0]
        if drive.session.classes <= 2:
            alpha = np.vstack([-alpha, alpha])  # one problem, and its mirror image
        plain[: len(alpha)] = [by_hand.after(i, mine) for by_hand, mine in zip(plain, alpha, strict=False)]
        assert_is(drive, plain[: len(alpha)] if drive.session.classes > 2 else plain[1:2])


@pytest.mark.parametrize("delta_max", [0.5, 0.05])
def test_with_delta_max_reprocess_is_repeated_until_delta_is_below(delta_max):
    K, labels = noisy(80, seed=5)
    once = Lasvm(session(), K, labels, np.full(80, 5.0), block=1)
    often = Lasvm(session(delta_max=delta_max), K, labels, np.full(80, 5.0), block=1)
    above = 0
    for k in range(80):
        once.epoch(np.array([k]))
        often.epoch(np.array([k]))
        above += once.model()[2][0] > delta_max
        assert often.model()[2][0] <= delta_max
        alpha, g = often.members()
        largest, smallest = extremes(often, alpha, g, ~np.isnan(alpha))
        np.testing.assert_allclose(often.model()[2], largest - smallest)
    assert above > 20
    assert often.session.counters.reprocess > once.session.counters.reprocess


sizes = st.tuples(st.integers(2, 60), st.integers(2, 5), st.integers(0, 10**6), st.sampled_from([1, 2, 5]))


@given(sizes, st.sampled_from([0.01, 0.3, 10.0]), st.integers(1, 70), st.sampled_from([0.0, 0.3]))
def test_constraints_gradients_and_the_dual_hold_after_every_example(size, C, block, delta_max):
    n, k, seed, dimensions = size
    K, labels = problem(n, k, seed, dimensions, points=max(2, 2 * n // 3))
    labels = in_order_of_arrival(labels)
    costs = C * np.random.default_rng(seed).uniform(0.5, 2, n)
    scale = 1 + C * n * np.abs(K).max()
    reached = []

    def look(drive):
        alpha, g = drive.members()
        is_member = ~np.isnan(alpha)
        alpha = np.nan_to_num(alpha)
        assert_feasible(drive, alpha)
        np.testing.assert_allclose(g[is_member], drive.gradients(alpha)[is_member], atol=1e-11 * scale)
        assert drive.session.dual == pytest.approx(drive.dual(alpha), abs=1e-10 * scale)
        norm = 0.5 * ((alpha @ K) * alpha).sum()
        assert drive.session.half_squared_norm == pytest.approx(norm, abs=1e-10 * scale)
        assert is_member.any(axis=0).sum() == drive.session.support_patterns, "a pattern is a member somewhere"
        if reached and reached[-1][0] == drive.problems:  # a third class makes two problems of one
            assert drive.session.dual >= reached[-1][1] - 1e-12 * scale
        reached.append((drive.problems, drive.session.dual))

    drive = Lasvm(session(delta_max=delta_max), K, labels, costs, block, look=look)
    for _ in range(3):
        drive.epoch(np.random.default_rng(seed).permutation(n) if reached else None)
        assert drive.session.loss >= 0
        drive.session.begin_another_epoch()


def test_counters_and_loss_add_up():
    K, labels = noisy(100, seed=1)
    drive = Lasvm(session(), K, labels, np.full(100, 3.0), block=7)
    lost, counted = 0.0, operator.attrgetter("process", "reprocess", "steps", "finishing_steps")
    for k in range(100):
        alpha, bias, _ = drive.model()
        lost += 3.0 * max(0.0, 1 - drive.signs()[0, k] * (alpha[0] @ K[:, k] + bias[0]))
        drive.epoch(np.array([k]))
        assert drive.session.loss == pytest.approx(lost)
    process, reprocess, steps, finishing = before = counted(drive.session.counters)
    assert (process, finishing) == (100, 0)
    assert 0 < reprocess <= 100
    assert reprocess < steps <= process + reprocess
    *others, finishing = counted(drive.finish().session.counters)
    assert tuple(others) == before[:3]
    assert finishing > 0
    drive.session.begin_another_epoch()
    assert drive.session.loss == 0


# Ties and odd problems


@pytest.mark.parametrize("operation", ["reprocess", "finish"])
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_of_equals_the_first_place_is_taken(dtype, first, operation):
    """Members 1, 16, 17 .. 34 of one class and the rest of the other are as far from the margin as each other."""
    labels = np.full(40, first, np.int32)
    labels[[1, *range(16, 35)]] = 1 - first
    alpha = np.where(labels, 0.5, -0.5)[:, None]
    table = table_of(np.arange(40), labels, np.ones(40), np.ones(40), alpha)
    for level in sessions.on_every_level():
        drive = Lasvm(session(dtype), np.eye(40, dtype=dtype), labels, np.ones(40))
        for _ in range(2):
            drive.session.add_class()
        drive.session.restore(table, Rows(drive.K, np.arange(40)))
        if operation == "finish":
            drive.session.finish_some(1, drive)
        else:
            drive.epoch(np.array([5]))  # a member already
        assert np.flatnonzero(np.abs(drive.model()[0][0]) != 0.5).tolist() == [0, 1], level


def test_one_class_alone_leaves_a_few_seeds_and_no_coefficients():
    K, _ = noisy(30)
    drive = Lasvm(session(), K, np.zeros(30, np.int32), np.ones(30)).epoch().finish()
    assert drive.session.support_patterns == 5
    alpha, bias, _ = drive.model()
    assert not alpha.any()
    np.testing.assert_array_equal(bias, -1)


def test_a_class_may_be_numbered_before_another_one_has_come():
    K, labels = noisy(90, 4, seed=8)
    order = np.random.default_rng(0).permutation(90)
    order = np.concatenate([order[labels[order] == 3][:3], order[labels[order] != 3], order[labels[order] == 3][3:]])
    drive = Lasvm(session(), K, labels, np.ones(90), look=lambda d: assert_feasible(d, np.nan_to_num(d.members()[0])))
    drive.epoch(order).finish()
    assert drive.session.classes == 4
    alpha, bias, _ = drive.model()
    assert ((alpha @ K + bias[:, None]).argmax(axis=0) == labels).mean() > 0.5


# Provider, memory and interruption


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("steps", [1, 50, None])
def test_a_model_taken_on_the_way_does_not_change_what_comes_after(k, steps):
    K, labels = noisy(200, k, seed=2)
    undisturbed = Lasvm(session(), K, labels, np.full(200, 2.0), 16).epoch().epoch()
    disturbed = Lasvm(session(), K, labels, np.full(200, 2.0), 16)

    def look(drive):
        if drive.session.slots:
            drive.look = lambda drive: None
            drive.finish() if steps is None else drive.session.finish_some(steps, drive)
            drive.look = look

    disturbed.look = look
    disturbed.epoch(step=5).epoch(step=5)
    assert disturbed.session.counters.finishing_steps > 0
    disturbed.session.go_on()
    assert_same(undisturbed.state(), disturbed.state())
    assert_same(undisturbed.finish().state(), disturbed.finish().state())


def test_a_third_class_after_a_model_was_taken_finds_three_problems():
    K, labels = noisy(120, 3, seed=2)
    order = np.argsort(labels == 2, kind="stable")
    first = int((labels != 2).sum())
    drive = Lasvm(session(), K, labels, np.ones(120), block=120)
    drive.look = lambda d: d.session.finish(d) if d.session.slots else None
    drive.epoch(order, step=first)
    plain = Lasvm(session(), K, labels, np.ones(120), block=120).epoch(order)
    assert_same(plain.finish().state(), drive.finish().state())


def test_rows_of_members_at_bounds_go_before_others_from_block_to_block():
    costs = np.full(600, 0.5)  # most go to it and stay there
    rounds = np.zeros(2, int)
    for seed in range(4):
        K, labels = noisy(600, seed=seed)
        free = Lasvm(session(), K, labels, costs, 16).epoch()
        limit = int(0.4 * free.session.bytes)
        drives = [Lasvm(session(memory_limit=limit), K, labels, costs, block).epoch() for block in (16, 600)]
        for drive in drives:
            assert_same(free.state(), drive.state())
        rounds += [drive.rounds for drive in drives]
    assert 0 < rounds[0] < 0.6 * rounds[1]


# Finishing


def assert_finished(drive, tau, atol=1e-10):
    """No violating pair among all members, by gradients from scratch."""
    alpha, bias, delta = drive.model()
    assert_feasible(drive, alpha)
    is_member = ~np.isnan(drive.members()[0])
    assert not alpha[~is_member].any()
    largest, smallest = extremes(drive, alpha, drive.gradients(alpha), is_member)
    assert (largest - smallest <= tau + atol).all()
    np.testing.assert_allclose(delta, largest - smallest, atol=2 * atol)
    np.testing.assert_allclose(bias, (largest + smallest) / 2, atol=2 * atol)
    assert drive.session.dual == pytest.approx(drive.dual(alpha), rel=1e-9)


@pytest.mark.parametrize("C", [0.1, 3.0, 1000.0])
@pytest.mark.parametrize("seed", range(3))
def test_finishing_reaches_the_optimum_of_the_members(seed, C):
    K, labels = noisy(60, seed=seed)
    costs = C * np.random.default_rng(seed).uniform(0.5, 2, 60)
    drive = Lasvm(session(tau=1e-7), K, labels, costs).epoch()
    before = drive.session.dual
    drive.finish()
    assert_finished(drive, 1e-7, atol=1e-9 * max(1, C))
    members = np.flatnonzero(~np.isnan(drive.members()[0][0]))
    optimum = binary_optimum(K[np.ix_(members, members)], drive.signs()[0, members], costs[members], bias=True)
    assert before <= drive.session.dual
    assert drive.session.dual == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize(("k", "share"), [(2, None), (3, 0.5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_finishing_with_a_shrunk_set_is_feasible_on_the_way_and_satisfies_all_members_in_the_end(dtype, share, k):
    """Thousands of steps on members most of which are at a bound: looks happen, and members leave the active set."""
    K, labels = noisy(700, k, seed=1, gamma=1.0, dimensions=2)

    exact, costs = K.astype(dtype).astype(np.float64), np.full(700, 50.0)

    def made(**limit):
        return Lasvm(session(dtype, tau=1e-6, **limit), K.astype(dtype), labels, costs, 64).epoch()

    drive = made(memory_limit=int(share * made().session.bytes)) if share else made()
    duals = [drive.session.dual]

    def look(drive):
        alpha, bias, _ = drive.model()
        assert_feasible(drive, alpha)
        assert np.isfinite(bias).all()
        duals.append(drive.session.dual)
        assert duals[-1] == pytest.approx((alpha * drive.signs()).sum() - ((alpha @ exact) * alpha).sum() / 2, rel=1e-9)

    drive.look = look
    drive.finish(steps=397)
    assert drive.session.counters.finishing_steps > 5000, "several looks"
    assert (np.diff(duals) >= 0).all()
    drive.K = exact
    assert_finished(drive, 1e-6, atol=1e-7)


def test_finishing_in_portions_is_finishing_at_once():
    K, labels = noisy(300, 3, seed=9)
    at_once, *portions = (
        Lasvm(session(tau=1e-5), K, labels, np.full(300, 20.0), 64).epoch().finish(steps).state()
        for steps in (None, 1, 7, 1000)
    )
    for other in portions:
        assert_same(at_once, other)


@pytest.mark.parametrize("k", [2, 4])
def test_what_finishing_has_come_to_can_be_taken_over(k):
    K, labels = noisy(200, k, seed=7)
    drive = Lasvm(session(tau=1e-5), K, labels, np.full(200, 2.0), 16).epoch().finish()
    model, dual = drive.model(), drive.session.dual
    drive.session.take_over_finish()
    for mine, theirs in zip(model, drive.model(), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-12)
    assert drive.session.dual == pytest.approx(dual, rel=1e-12)
    alpha, g = drive.members()
    is_member = ~np.isnan(alpha)
    np.testing.assert_allclose(g[is_member], drive.gradients(np.nan_to_num(alpha))[is_member], atol=1e-10)
    assert is_member.any(axis=0).sum() == drive.session.support_patterns
    drive.epoch().finish()
    assert drive.session.dual >= dual * (1 - 1e-12)
    assert_finished(drive, 1e-5)


@pytest.mark.parametrize("k", [2, 4])
def test_a_restored_session_is_where_the_other_stopped(k):
    K, labels = noisy(150, k, seed=6)
    whole = Lasvm(session(), K, labels, np.full(150, 2.0)).epoch(np.arange(100)).finish()
    table, bias = whole.session.table(), whole.session.bias
    again = Lasvm(session(), K, labels, np.full(150, 2.0))
    for _ in range(k):
        again.session.add_class()
    again.session.restore(table, Rows(K, table.ids))
    np.testing.assert_array_equal(whole.model()[0], again.model()[0])
    np.testing.assert_allclose(again.model()[1], bias, atol=1e-3)
    assert again.session.dual == pytest.approx(whole.session.dual, rel=1e-10)
    members, g = again.members()
    np.testing.assert_allclose(g[~np.isnan(g)], again.gradients(np.nan_to_num(members))[~np.isnan(g)], atol=1e-10)
    again.epoch(np.arange(100, 150)).finish()
    assert_feasible(again, again.model()[0])
