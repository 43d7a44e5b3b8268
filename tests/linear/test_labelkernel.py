"""Label kernels from trees and distances: what they are, that they are kernels, and what a person may get wrong."""

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import larank.linear.labelkernel
from larank.linear.labelkernel import distance_label_kernel, tree_label_kernel
from properties import draws

LIVING = {"animal": {"mammal": ["cat", "dog"], "bird": ["owl"]}, "plant": ["oak"]}


def assert_is_kernel(K, tolerance=1e-10):
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K)[0] >= -tolerance * len(K)


def test_classes_are_as_alike_as_their_paths_are_the_same():
    K = tree_label_kernel(LIVING)  # cat, dog, oak, owl: paths of 3, 3, 2 and 3 nodes
    expected = np.array([[3, 2, 0, 1], [2, 3, 0, 1], [0, 0, 2, 0], [1, 1, 0, 3]]) / 3
    np.testing.assert_allclose(K, expected, rtol=1e-15)
    assert_is_kernel(K)


def test_the_rows_are_in_the_order_of_the_classes():
    order = ["owl", "oak", "dog", "cat"]
    expected = tree_label_kernel(LIVING)[np.ix_([3, 2, 1, 0], [3, 2, 1, 0])]  # not as cat, dog, oak, owl
    np.testing.assert_array_equal(tree_label_kernel(LIVING, order), expected)
    np.testing.assert_array_equal(tree_label_kernel(LIVING, np.array(order)), expected)


def test_numbers_are_sorted_as_numbers():
    K = tree_label_kernel([[10, 9], [2]])
    np.testing.assert_array_equal(K, [[1, 0, 0], [0, 1, 0.5], [0, 0.5, 1]])  # 2, 9, 10
    np.testing.assert_array_equal(K, tree_label_kernel({"large": np.array([10, 9]), "small": (2,)}))


@pytest.mark.parametrize("tree", [["a", "b"], {"left": {"red": ["a"]}, "right": {"red": ["b"]}}])
def test_classes_without_a_common_group_are_not_alike(tree):
    np.testing.assert_array_equal(tree_label_kernel(tree), np.eye(2))  # nor by groups of the same name elsewhere


leaves = st.integers(0, 10**6)
trees = st.recursive(
    st.lists(leaves, min_size=1, max_size=3),
    lambda subtree: st.one_of(
        st.lists(subtree, min_size=1, max_size=3), st.dictionaries(st.text("ab"), subtree, min_size=1, max_size=3)
    ),
    max_leaves=12,
)


def labels_of(tree):
    if isinstance(tree, int):
        return [tree]
    members = tree.values() if isinstance(tree, dict) else tree
    return [label for member in members for label in labels_of(member)]


@draws(100)
@given(trees)
def test_every_tree_makes_a_kernel(tree):
    labels = labels_of(tree)
    if len(set(labels)) < len(labels):
        with pytest.raises(ValueError, match="tree must have every class once"):
            tree_label_kernel(tree)
        return
    K = tree_label_kernel(tree)
    assert K.shape == (len(labels), len(labels))
    assert_is_kernel(K)
    assert K.max() == 1
    assert (np.diag(K)[:, None] > K - 2 * np.eye(len(K))).all()  # each class differs from all others
    assert np.linalg.eigvalsh(K)[0] > 0


NO_CLASS = "tree must hold at least one class, got none"
MIXED = "tree must hold classes that are all words or all numbers; got"
NO_LIST = "classes must be a list of classes, each of them once; got"
TREES = [
    ((["cat", "cat"],), "tree must have every class once, got 'cat' twice"),
    (({"a": ["cat"], "b": ["cat"]},), "tree must have every class once, got 'cat' twice"),
    ((["cat", "dog"], ["cat", "dog", "owl"]), "tree must hold all classes; 'owl' is missing"),
    ((["cat", "dog"], ["cat"]), "classes must hold all classes of the tree; 'dog' is missing"),
    (({},), NO_CLASS),
    (([[], []],), NO_CLASS),
    ((["cat", None],), f"{MIXED} NoneType, str"),
    ((["cat", 1],), f"{MIXED} int, str"),
    ((["cat", "dog"], [["cat", "dog"]]), NO_LIST),
    ((["cat", "dog"], ["cat", "cat", "dog"]), NO_LIST),
]


def test_distances_make_the_kernel_that_falls_with_them():
    D = np.abs(np.subtract.outer([0.0, 1.0, 4.0], [0.0, 1.0, 4.0]))
    np.testing.assert_allclose(distance_label_kernel(D, scale=2.0), np.exp(-D / 2), rtol=1e-15)
    np.testing.assert_allclose(distance_label_kernel(D), np.exp(-D / (8 / 3)), rtol=1e-15)  # of 1, 3 and 4, the mean
    assert_is_kernel(distance_label_kernel(D))
    np.testing.assert_array_equal(distance_label_kernel(np.zeros((2, 2))), np.ones((2, 2)))  # no distance: the same


@draws(50)
@given(st.integers(1, 8), st.integers(1, 3), st.integers(0, 10**6), st.sampled_from([None, 1e-3, 1.0, 1e6]))
def test_euclidean_distances_always_make_a_kernel(classes, dimensions, seed, scale):
    points = np.random.default_rng(seed).normal(size=(classes, dimensions)).round(1)
    K = distance_label_kernel(np.linalg.norm(points[:, None] - points, axis=2), scale)
    assert_is_kernel(K)
    np.testing.assert_array_equal(np.diag(K), np.ones(classes))


ON_DIAGONAL = "distances must be >= 0 with zeros on the diagonal, got"
NO_NUMBERS = "distances must be an array of numbers, got"
NO_SCALE = "scale must be a finite number > 0; got"
DISTANCES = [
    (([[0, 1], [2, 0]],), r"distances must be symmetric, got 1.0 in \[0, 1\] and 2.0 in \[1, 0\]"),
    (([[0, -1], [-1, 0]],), rf"{ON_DIAGONAL} -1.0 in \[0, 1\]"),
    (([[0, 1], [1, 3]],), rf"{ON_DIAGONAL} 3.0 in \[1, 1\]"),
    (([[0, np.nan], [np.nan, 0]],), "distances must hold finite numbers, got nan"),
    (([[0, np.inf], [np.inf, 0]],), "distances must hold finite numbers, got inf"),
    ((np.zeros((2, 3)),), r"distances must .*square array; got shape \(2, 3\)"),
    ((np.zeros((0, 0)),), r"distances must .*square array; got shape \(0, 0\)"),
    (([[0, 1], [1]],), NO_NUMBERS),
    (("far",), f"{NO_NUMBERS} 'far'"),
    (([[0, 1j], [-1j, 0]],), NO_NUMBERS),
    # No distances: the first and the third are both at the second.
    (([[0, 0, 10], [0, 0, 0], [10, 0, 0]],), "must be positive semi-definite, got the eigenvalue -0.39; .*would do"),
    *(([[[0, 1], [1, 0]], scale], NO_SCALE) for scale in (0, -1.0, np.nan, np.inf, "far", [1.0])),
]


REFUSED = [(tree_label_kernel, *row) for row in TREES] + [(distance_label_kernel, *row) for row in DISTANCES]


@pytest.mark.parametrize(("function", "arguments", "message"), REFUSED)
@pytest.mark.filterwarnings("error")
def test_trees_that_do_not_fit_their_classes_and_what_is_no_distance_are_refused(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


def test_the_examples_of_the_documentation_are_true():
    results = doctest.testmod(larank.linear.labelkernel)
    assert results.attempted >= 4
    assert results.failed == 0
