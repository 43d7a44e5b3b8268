"""Label kernels: matrices that say how alike classes are, from a tree of them or from distances between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from larank.parameters import positive

_ROUNDING = 1e-10  # of the largest eigenvalue or entry


def tree_label_kernel(tree: Mapping[Any, Any] | Iterable[Any], classes: ArrayLike | None = None) -> NDArray[np.float64]:
    """The label kernel of a hierarchy: two classes are as alike as their paths from the root are the same.

    The kernel is the number of nodes that two classes have above or at them in common, divided by that of the longest
    path. Every class has its own node, so each is a little different from all others.

    Parameters
    ----------
    tree : nested mappings and sequences
        A mapping has a subtree per named group; the members of a sequence are groups or, where they are neither mapping
        nor sequence, classes: ``{"animal": {"mammal": ["cat", "dog"], "bird": ["owl"]}, "plant": ["oak"]}``.
    classes : array, optional
        The classes in the order of the rows; sorted if not given, as in `classes_` of a model.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        Positive semi-definite, with ones on the diagonal of the classes that lie deepest.

    Examples
    --------
    >>> from larank import tree_label_kernel
    >>> tree_label_kernel({"animal": ["cat", "dog"], "plant": ["oak"]}).tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    paths: dict[Any, tuple[Any, ...]] = {}
    for label, path in _paths(tree, ()):
        if label in paths:
            raise ValueError(f"tree must have every class once, got {label!r} twice")
        paths[label] = (*path, ("class", label))
    if not paths:
        raise ValueError("tree must hold at least one class, got none")
    labels = _ordered(paths, classes)
    missing = [label for label in labels if label not in paths]
    if missing:
        raise ValueError(f"tree must hold all classes; {missing[0]!r} is missing")
    strange = paths.keys() - set(labels)
    if strange:
        raise ValueError(f"classes must hold all classes of the tree; {next(iter(strange))!r} is missing")
    depth = max(map(len, paths.values()))
    return np.array([[_common(paths[a], paths[b]) / depth for b in labels] for a in labels])


def _ordered(paths: Mapping[Any, Any], classes: ArrayLike | None) -> list[Any]:
    """The classes in the order of the rows."""
    if classes is not None:
        order = np.asarray(classes)
        if order.ndim != 1 or len(np.unique(order)) != len(order):
            raise ValueError(f"classes must be a list of classes, each of them once; got {classes!r}")
        labels: list[Any] = order.tolist()
        return labels
    kinds = {type(label).__name__ for label in paths}
    if kinds - {"str"} and kinds - {"int", "float", "bool"}:
        raise ValueError(f"tree must hold classes that are all words or all numbers; got {', '.join(sorted(kinds))}")
    return sorted(paths)


def distance_label_kernel(distances: ArrayLike, scale: float | None = None) -> NDArray[np.float64]:
    """The label kernel exp(-D / scale) of distances D between classes.

    Parameters
    ----------
    distances : array of shape (n_classes, n_classes)
        Symmetric, not negative, with zeros on the diagonal, in the order of `classes_`. Distances in a Euclidean space
        or along a tree always make a kernel; others may not.
    scale : float, optional
        The distance at which the kernel is 1/e; the mean distance between two classes if not given.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        Positive semi-definite, with ones on the diagonal.

    Examples
    --------
    >>> from larank import distance_label_kernel
    >>> distance_label_kernel([[0, 1, 2], [1, 0, 1], [2, 1, 0]], scale=1.0).round(2).tolist()
    [[1.0, 0.37, 0.14], [0.37, 1.0, 0.37], [0.14, 0.37, 1.0]]
    """
    D = _square("distances", distances)
    wrong = (D < 0) | (np.eye(len(D), dtype=bool) & (D != 0))
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise ValueError(f"distances must be >= 0 with zeros on the diagonal, got {D[i, j]} in [{i}, {j}]")
    if scale is None:
        scale = float(D.sum()) / max(1, D.size - len(D)) or 1.0
    scale = positive("scale", scale)
    K: NDArray[np.float64] = np.exp(-D / scale)
    _check_semi_definite("the kernel exp(-distances / scale)", K, "distances along a tree, or Euclidean ones, would do")
    return K


def checked_label_kernel(label_kernel: ArrayLike | None, n_classes: int) -> NDArray[np.float64] | None:
    """The label kernel as a symmetric positive semi-definite array; None is the identity."""
    if label_kernel is None:
        return None
    K = _square("label_kernel", label_kernel, n_classes)
    _check_semi_definite("label_kernel", K, "label_kernel @ label_kernel.T would do")
    if not K.any():
        raise ValueError("label_kernel must not be zero, for then all scores are")
    return (K + K.T) / 2


def _paths(tree: Any, above: tuple[Any, ...]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Every class, with the groups it lies in from the root on."""
    if isinstance(tree, Mapping):
        for name, subtree in tree.items():
            yield from _paths(subtree, (*above, ("group", name)))
    elif isinstance(tree, Iterable) and not isinstance(tree, str | bytes):
        for number, member in enumerate(tree):
            is_group = isinstance(member, Iterable) and not isinstance(member, str | bytes)
            within = (*above, ("member", number)) if is_group and not isinstance(member, Mapping) else above
            yield from _paths(member, within)
    else:
        yield (tree.item() if isinstance(tree, np.generic) else tree), above


def _common(one: tuple[Any, ...], other: tuple[Any, ...]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def _square(name: str, values: ArrayLike, size: int | None = None) -> NDArray[np.float64]:
    try:
        if np.iscomplexobj(values):
            raise TypeError
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers, got {values!r}") from None
    if (
        array.ndim != 2
        or not array.size
        or array.shape[0] != array.shape[1]
        or (size is not None and len(array) != size)
    ):
        wanted = "a square array" if size is None else f"one row and column per class, shape {(size, size)}"
        raise ValueError(f"{name} must have {wanted}; got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must hold finite numbers, got {array[~np.isfinite(array)][0]}")
    apart = np.abs(array - array.T) > _ROUNDING * np.abs(array).max(initial=0.0)
    if apart.any():
        i, j = np.argwhere(apart)[0]
        raise ValueError(f"{name} must be symmetric, got {array[i, j]} in [{i}, {j}] and {array[j, i]} in [{j}, {i}]")
    return array


def _check_semi_definite(what: str, K: NDArray[np.float64], hint: str) -> None:
    eigenvalues = np.linalg.eigvalsh(K)
    if eigenvalues[0] < -_ROUNDING * max(1e-300, float(np.abs(eigenvalues).max())) * len(K):
        raise ValueError(f"{what} must be positive semi-definite, got the eigenvalue {eigenvalues[0]:.3g}; {hint}")
