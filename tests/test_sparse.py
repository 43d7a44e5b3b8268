"""Sparse matrices from outside are checked before anything follows their indices."""

import numpy as np
import pytest
from scipy import sparse

from checks import refuses
from larank.sparse import check_sparse, csr_of, sound_csr

KINDS = ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"]


def matrix(kind="csr"):
    return sparse.csr_matrix(np.arange(12.0).reshape(4, 3) % 5).asformat(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_sound_matrices_pass(kind):
    np.testing.assert_array_equal(sound_csr(matrix(kind)).toarray(), matrix().toarray())


def test_a_csr_matrix_is_not_copied():
    X = matrix()
    assert sound_csr(X) is X


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
@pytest.mark.parametrize("indptr", [[2_000_000_000, 0], [2**31 - 1, -(2**31)], [-1, 0], [10**6, 10**6]])
def test_an_indptr_that_leads_elsewhere_is_refused(kind, indptr):
    X = matrix(kind)
    X.indptr[1:3] = indptr
    refuses("X must have an indptr that never decreases", sound_csr, X)


@pytest.mark.parametrize(
    "damage",
    [
        {"indptr": [-2_000_000_000, 2, 4, 6, 8]},
        {"indptr": [0, 2**31 - 1, -(2**31), -1, -1]},  # each difference of two neighbours is positive in 32 bits
        {"indptr": [0, 2, 4, 6, 8, *[8] * 1000]},
        {"data": [1.0, 2.0, 3.0]},
    ],
)
def test_parts_that_do_not_belong_together_are_refused(damage):
    X = matrix()
    for name, values in damage.items():
        setattr(X, name, np.array(values, getattr(X, name).dtype))
    refuses(r"indptr|data", sound_csr, X)


@pytest.mark.parametrize(("kind", "what"), [("csr", "column"), ("csc", "row")])
@pytest.mark.parametrize("index", [-1, 4, 2**31 - 1])
def test_indices_out_of_range_are_refused(kind, what, index):
    X = matrix(kind)
    X.indices[2] = index
    refuses(f"X must have {what} indices from 0 to ., .*got {index}", check_sparse, X)


@pytest.mark.parametrize("part", ["row", "col"])
def test_triples_out_of_range_are_refused(part):
    X = matrix("coo")
    getattr(X, part)[3] = 10**9
    refuses("got 1000000000", sound_csr, X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": np.ones(2, complex)}, "data must be a list of numbers, got complex128"),
        ({"data": np.ones((2, 1))}, r"got float64 of shape \(2, 1\)"),
        ({"data": np.ones(3)}, "data and indices must be equally long, got 3 and 2"),
        ({"indices": np.array([0.0, 1.0])}, "indices must be a list of numbers, got float64"),
        ({"indices": np.array([0, 2**63], np.uint64)}, "got 9223372036854775808"),
        ({"indptr": np.array([0, 2**63, 2], np.uint64)}, "indptr that never decreases"),
        ({"indptr": np.array([0, 2])}, "in 3 entries"),
        ({"indptr": np.array([], int)}, "in 3 entries"),
        ({"shape": np.array([2, -3])}, "shape must be two numbers"),
        ({"shape": np.array([2, 3, 1])}, "shape must be two numbers"),
        ({"shape": np.array([2.0, 3.0])}, "shape must be two numbers"),
        ({"shape": [2, 2**63]}, "shape must be two numbers"),
        ({"shape": [10**9, 3]}, "in 1000000001 entries"),
    ],
)
def test_parts_that_make_no_csr_matrix_are_refused(change, message):
    parts = {"data": np.ones(2), "indices": np.array([0, 2]), "indptr": np.array([0, 1, 2]), "shape": [2, 3]}
    assert csr_of(**parts).shape == (2, 3)
    refuses(message, csr_of, **parts | change)
