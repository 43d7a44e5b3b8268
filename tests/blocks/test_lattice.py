"""Products of rows on a lattice: exact, the same on every instruction set, and the float path's to rounding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from larank import LaRankClassifier, _core
from larank.blocks import provider_for
from larank.blocks.dense import DenseProvider
from larank.blocks.kernels import kernel_for
from larank.blocks.lattice import Lattice, LatticeProvider

LEVELS = _core.simd_levels()
pytestmark = pytest.mark.skipif(
    not _core.has_integer_products(), reason="this machine has no integer products that pay (AVX-512 VNNI)"
)


@pytest.fixture(autouse=True)
def _same_level_after():
    level = _core.simd_level()
    yield
    _core.set_simd_level(level)


def provider(kernel, X, **parameters):
    found = provider_for(kernel_for(kernel, gamma=0.01, coef0=1.0, X=X, **parameters), X, n_jobs=1)
    assert isinstance(found, LatticeProvider)
    return found


def images(n=70, d=37, dtype=np.float32, seed=0, low=-1.0, step=1 / 127.5, numbers=256):
    random = np.random.RandomState(seed)
    return (low + step * random.randint(0, numbers, (n, d))).astype(dtype)


def test_exact_scores_do_not_need_the_lattice():
    X, coefficients = images(), np.random.RandomState(1).normal(size=(70, 2))
    double = X.astype(np.float64)
    expected = DenseProvider(kernel_for("rbf", gamma=0.01), double, 1).exact_scores(double, double, coefficients)
    found = provider("rbf", X).exact_scores(X, X, coefficients)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


# ---- Products ----


@pytest.mark.parametrize("level", LEVELS)
@given(
    shape=st.tuples(st.integers(1, 66), st.integers(1, 35), st.integers(1, 130)),
    numbers=st.sampled_from([2, 3, 256, 257, 2000, 5000]),
    extreme=st.booleans(),
    blank=st.floats(0, 1),
    seed=st.integers(0, 2**31),
)
def test_products_equal_those_of_64_bit_integers(level, shape, numbers, extreme, blank, seed):
    _core.set_simd_level(level)
    rows, columns, features = shape
    number, lowest = ("byte", 0) if numbers <= 256 else ("half-word", -(numbers // 2))
    if features * (numbers - 1) ** 2 > 2**31 - 1:
        features = (2**31 - 1) // (numbers - 1) ** 2
    random = np.random.RandomState(seed)
    places = random.randint(0, numbers, (rows + columns, features))
    if extreme:
        places = (numbers - 1) * random.randint(0, 2, places.shape)
    first = random.randint(features + 1)
    places[rows:, first : first + int(blank * features)] = -lowest  # words of zeros in all columns
    table = np.arange(numbers, dtype=np.float64)
    per_word = 4 if number == "byte" else 2
    q = np.full((rows + columns, -(-features // per_word) + 2), 0xDEADBEEF, np.uint32)
    assert _core.lattice_numbers(table[places], number, table, lowest, 0.0, 1.0, q)
    sums, squares = np.empty(len(q), np.int64), np.empty(len(q), np.int64)
    _core.lattice_sums(q, number, sums, squares)
    exact = (places + lowest).astype(np.int64)
    np.testing.assert_array_equal(sums, exact.sum(axis=1))
    np.testing.assert_array_equal(squares, (exact**2).sum(axis=1))
    q[:, -2] = (-squares).astype(np.uint32)
    q[:, -1] = (-squares + (256 * sums if number == "byte" else 0)).astype(np.uint32)
    out = np.empty((rows, columns))
    _core.lattice_products(q[:rows], q[rows:], number, 2, 1.0, out)
    distances = ((exact[:rows, None] - exact[None, rows:]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(out, -distances)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "sigmoid"])
@pytest.mark.parametrize(
    "lattice",
    [
        {"low": -1.0, "step": 1 / 127.5},
        {"low": 0.0, "step": 1.0, "numbers": 16},
        {"low": -3.0, "step": 0.5, "numbers": 2},
        {"low": -1.0, "step": 0.001, "numbers": 2001},
    ],
)
def test_kernel_values_are_those_of_the_float_path_to_rounding(dtype, kernel, lattice):
    X = images(dtype=dtype, **lattice)
    mine, theirs = provider(kernel, X), DenseProvider(kernel_for(kernel, gamma=0.01, coef0=1.0), X, 1)
    exact = DenseProvider(kernel_for(kernel, gamma=0.01, coef0=1.0), X.astype(np.float64), 1)
    a, b, c = (each.batch(X.astype(each.dtype), 0) for each in (mine, theirs, exact))
    got, wanted, values = mine.within(a), theirs.within(b), exact.within(c)
    scale = np.abs(values).max()
    few = 40 * np.finfo(dtype).eps * scale * max(1.0, np.abs(X).max() ** 2)
    assert np.abs(got - values).max() <= max(2 * np.abs(wanted - values).max(), few)
    np.testing.assert_allclose(a.diagonal, c.diagonal, rtol=40 * np.finfo(dtype).eps, atol=few)


# ---- What counts as a lattice ----


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(low=st.floats(-100, 100), step=st.floats(1e-2, 10), numbers=st.integers(2, 300), seed=st.integers(0, 1000))
def test_every_value_of_a_lattice_is_found_and_comes_back_to_the_last_bit(dtype, low, step, numbers, seed):
    X = images(60, 11, dtype, seed, low, step, numbers)
    lattice = Lattice.of(X)
    assert lattice is not None
    assert np.isin(X, lattice.values).all()
    held = provider("rbf", X)
    held.store(np.arange(60), held.batch(X, 0), np.arange(60))
    np.testing.assert_array_equal(held.patterns(np.arange(60)), X)


def test_rare_values_are_found_wherever_they_are():
    X = np.zeros((5000, 3), np.float32)
    X[::2] = 4
    for place, value in ((4999, -7), (2501, 1), (17, 255)):
        X[place, 2] = value
        lattice = Lattice.of(X)
        assert lattice is not None
        assert np.isin(X, lattice.values).all()
    assert lattice.step == 1
    assert lattice.low == -7


def with_one_moved(by):
    X = np.tile(np.arange(37.0), (70, 1))
    X[3, 4] += by
    return X


OFF = [with_one_moved(by) for by in (1e-12, 1e-6, np.pi / 10)]  # by more than rounding
WIDE = np.vstack([np.zeros(40_000), np.full(40_000, 255), np.eye(1, 40_000)[0]]).astype(np.float32)


@pytest.mark.parametrize(
    "X",
    [
        *OFF,
        np.random.RandomState(0).randn(500, 7),
        np.random.RandomState(0).randn(500, 7).astype(np.float32),
        np.full((10, 3), 2.5),
        np.array([[0.0, 1e300], [1.0, -1e300]]),
        np.array([[0.0, 5e-324], [1.0, 2.0]]),
        np.arange(300000.0).reshape(-1, 3),
    ],
)
def test_other_data_are_no_lattice(X):
    assert Lattice.of(X) is None


@pytest.mark.parametrize(
    ("kernel", "X", "kind"),
    [
        *(("rbf", X, DenseProvider) for X in OFF),
        ("rbf", WIDE, DenseProvider),  # sums could overflow
        ("rbf", WIDE[:, :30_000].copy(), LatticeProvider),
        ("poly", images(low=0.3, step=1.0), DenseProvider),  # the origin is neither on the lattice nor half way
        ("rbf", images(low=0.3, step=1.0), LatticeProvider),
    ],
)
def test_integers_are_multiplied_where_that_is_exact(kernel, X, kind):
    assert type(provider_for(kernel_for(kernel, gamma=1.0), X)) is kind


def test_two_values_for_one_number_are_no_lattice():
    X = images().astype(np.float64)
    X[0, 0] = 0.5
    X[1, 0] = np.nextafter(0.5, 1)
    assert Lattice.of(np.where(X > 0, 0.5, 0.0)) is not None
    assert Lattice.of(np.where(X[1, 0] == X, X, np.where(X > 0, 0.5, 0.0))) is None


# ---- Rows that are not on the lattice ----


def test_rows_off_the_lattice_are_multiplied_as_they_are():
    X, Z = images(), np.random.RandomState(1).randn(20, 37).astype(np.float32)
    mine, theirs = provider("rbf", X), DenseProvider(kernel_for("rbf", gamma=0.01), X, 1)
    got, wanted = (each.cross(each.batch(Z, 0), each.batch(X, 20)) for each in (mine, theirs))
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_values_on_the_lattice_that_were_not_met_extend_it():
    X = images(numbers=256)
    some = np.where(X[0, 0] == X, X.min(), X)
    held = provider("rbf", some)
    held.store([0, 1], held.batch(X[:2], 0), [0, 1])
    np.testing.assert_array_equal(held.patterns([0, 1]), X[:2])
    assert held.nbytes < X.nbytes


def test_a_pattern_off_the_lattice_turns_all_patterns_into_what_they_were():
    X, Z = images(), np.random.RandomState(1).randn(20, 37).astype(np.float32)
    held = provider("rbf", X)
    before = held.batch(X[5:9], 100)
    held.store([0, 1, 3], held.batch(X, 0), [4, 2, 0])
    held.store([2], held.batch(Z, 50), [7])
    held.store([4], before, [1])
    np.testing.assert_array_equal(held.patterns(np.arange(5)), [X[4], X[2], Z[7], X[0], X[6]])
    theirs = DenseProvider(kernel_for("rbf", gamma=0.01), X, 1)
    theirs.store(np.arange(5), theirs.batch(held.patterns(np.arange(5)), 0), np.arange(5))
    got = held.against_support(held.batch(X, 200))
    np.testing.assert_allclose(got, theirs.against_support(theirs.batch(X, 200)), rtol=1e-5)
    np.testing.assert_allclose(held.against_support(before), got[5:9], rtol=1e-5)


def test_a_stream_may_leave_the_lattice():
    random = np.random.RandomState(0)
    X = images(n=200, d=10)
    y = (X.sum(axis=1) > 0).astype(int)
    noisy = (X + 0.01 * random.randn(*X.shape)).astype(np.float32)
    model = LaRankClassifier(C=10, random_state=0).partial_fit(X, y, classes=[0, 1]).partial_fit(noisy, y)
    reference = LaRankClassifier(C=10, random_state=0, gamma=model.gamma_).fit(noisy, y)
    assert np.isin(model.support_vectors_, np.concatenate([X, noisy])).all()
    assert model.score(X, y) > reference.score(X, y) - 0.05
