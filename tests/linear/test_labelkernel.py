"""Label kernels from trees and distances: what they are, that they are kernels, and what a person may get wrong."""

import doctest

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import larank.linear.labelkernel
from larank.linear.labelkernel import distance_label_kernel, tree_label_kernel

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
    K = tree_label_kernel(LIVING)
    places = [["cat", "dog", "oak", "owl"].index(name) for name in order]
    np.testing.assert_array_equal(tree_label_kernel(LIVING, order), K[np.ix_(places, places)])
    np.testing.assert_array_equal(tree_label_kernel(LIVING, np.array(order)), K[np.ix_(places, places)])


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


@settings(max_examples=100)
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


@pytest.mark.parametrize(("arguments", "message"), TREES)
def test_a_tree_that_does_not_fit_its_classes_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        tree_label_kernel(*arguments)


def test_distances_make_the_kernel_that_falls_with_them():
    D = np.abs(np.subtract.outer([0.0, 1.0, 4.0], [0.0, 1.0, 4.0]))
    np.testing.assert_allclose(distance_label_kernel(D, scale=2.0), np.exp(-D / 2), rtol=1e-15)
    np.testing.assert_allclose(distance_label_kernel(D), np.exp(-D / (8 / 3)), rtol=1e-15)  # of 1, 3 and 4, the mean
    assert_is_kernel(distance_label_kernel(D))


def test_classes_at_no_distance_are_the_same():
    np.testing.assert_array_equal(distance_label_kernel(np.zeros((2, 2))), np.ones((2, 2)))


@settings(max_examples=50)
@given(st.integers(1, 8), st.integers(1, 3), st.integers(0, 10**6), st.sampled_from([None, 1e-3, 1.0, 1e6]))
def test_euclidean_distances_always_make_a_kernel(classes, dimensions, seed, scale):
    points = np.random.default_rng(seed).normal(size=(classes, dimensions)).round(1)
    D = np.linalg.norm(points[:, None] - points, axis=2)
    K = distance_label_kernel(D, scale)
    assert_is_kernel(K)
    np.testing.assert_array_equal(np.diag(K), np.ones(classes))


ON_DIAGONAL = "distances must be >= 0 with zeros on the diagonal, got"
NO_NUMBERS = "distances must be an array of numbers, got"
NO_SCALE = "scale must be a finite number > 0, got"
DISTANCES = [
    ([[0, 1], [2, 0]], None, r"distances must be symmetric, got 1.0 in \[0, 1\] and 2.0 in \[1, 0\]"),
    ([[0, -1], [-1, 0]], None, rf"{ON_DIAGONAL} -1.0 in \[0, 1\]"),
    ([[0, 1], [1, 3]], None, rf"{ON_DIAGONAL} 3.0 in \[1, 1\]"),
    ([[0, np.nan], [np.nan, 0]], None, "distances must hold finite numbers, got nan"),
    ([[0, np.inf], [np.inf, 0]], None, "distances must hold finite numbers, got inf"),
    (np.zeros((2, 3)), None, r"distances must .*square array; got shape \(2, 3\)"),
    (np.zeros((0, 0)), None, r"distances must .*square array; got shape \(0, 0\)"),
    ([[0, 1], [1]], None, NO_NUMBERS),
    ("far", None, f"{NO_NUMBERS} 'far'"),
    ([[0, 1j], [-1j, 0]], None, NO_NUMBERS),
    # No distances: the first and the third are both at the second.
    ([[0, 0, 10], [0, 0, 0], [10, 0, 0]], None, "must be positive semi-definite, got the eigenvalue -0.39; .*would do"),
    *(([[0, 1], [1, 0]], scale, NO_SCALE) for scale in (0, -1.0, np.nan, np.inf, "far", [1.0])),
]


@pytest.mark.parametrize(("distances", "scale", "message"), DISTANCES)
@pytest.mark.filterwarnings("error")
def test_distances_and_scales_that_are_none_are_refused(distances, scale, message):
    with pytest.raises(ValueError, match=message):
        distance_label_kernel(distances, scale)


@pytest.mark.parametrize("function", [tree_label_kernel, distance_label_kernel])
def test_the_example_of_the_documentation_is_true(function):
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    scope = {"larank": larank, **vars(larank.linear.labelkernel)}
    (example,) = finder.find(function, function.__name__, globs=scope)
    example.examples = [line for line in example.examples if not line.source.startswith("from larank import")]
    assert example.examples
    assert runner.run(example).failed == 0
