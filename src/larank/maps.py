"""Low-rank kernel maps: transformers whose features have inner products near to the values of a kernel."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.sparse import csr_matrix, issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from larank import _core, declare
from larank.base import FEATURES, Estimator, absent
from larank.blocks import Batch, Provider, check_gram, provider_for
from larank.blocks.kernels import Kernel, kernel_for, kernels_with, takes_sparse
from larank.blocks.lowrank import (
    CholeskyOptions,
    cholesky_features,
    eigen_factor,
    eigen_features,
    eigen_squares,
    pivoted_cholesky,
)
from larank.blocks.precomputed import indefinite_pair
from larank.blocks.provider import length, rows_of
from larank.blocks.workers import blas_threads
from larank.data.models import persistable
from larank.data.schema import (
    Schema,
    SchemaError,
    Scope,
    count,
    floats,
    given,
    integer,
    integers,
    matrix,
    number,
    several,
)
from larank.declare import LARGEST_COUNT, fitted, parameter
from larank.docstrings import with_paragraphs
from larank.parameters import Kernelized, not_zero, seed
from larank.publishing import next_model, of_one_model
from larank.validation import validated

_Array = NDArray[Any]
_Float = NDArray[np.float64]
_Index = NDArray[np.int64]


def _check_components(name: str, value: Any, scope: Scope) -> None:
    """Some examples; of a precomputed kernel, their numbers."""
    is_precomputed = scope.known["kernel"] == "precomputed"
    kind = integers("n_basis", below="n_features_in_") if is_precomputed else matrix("n_basis", "n_features_in_")
    kind(name, value, scope)


_FITTED: Schema = {
    **FEATURES,
    "gamma_": given(number(above=0), when=lambda scope: scope.known["kernel"] in kernels_with("gamma")),
    "components_": _check_components,
    "n_components_": count(),
    "trace_error_": number(least=0),
}


def _check_triangle(name: str, value: Any, scope: Scope) -> None:
    """A factor of the kernel values, which are all zero or can be divided by."""
    floats("n_components_", "n_components_")(name, value, scope)
    if value.any() and not value.diagonal().all():
        raise SchemaError(f"{name} must have a diagonal without zeros, got some")


def _check_widths(name: str, value: Any, scope: Scope) -> None:
    several(integer(1))(name, value, scope)
    if sum(value) != scope.sizes["n_components_"]:
        raise SchemaError(f"{name} must sum to {scope.sizes['n_components_']} components, got {sum(value)}")


class KernelMap(Kernelized, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator, position=4):  # type: ignore[misc]
    """Features made of the kernel values with some training examples, `components_`, which subclasses choose."""

    memory_limit: float = parameter(
        "Maximum memory in bytes of what `fit` makes, in addition to tiles of kernel values. If it is too small, a "
        "`MemoryLimitError` says how much is sufficient. `transform` has no limit.",
        default=2e9,
        above=0,
        most=LARGEST_COUNT,
    )
    n_jobs: int | None = parameter(
        "Number of threads for kernel values. By default as many as BLAS uses; -1 uses all processors. The result "
        "does not depend on it.",
        default=None,
        check=not_zero,
        form="int",
    )
    random_state: int | np.random.RandomState | None = parameter(
        "Seed for choosing the pivots or the basis. An integer makes the features reproducible.",
        default=None,
        check=seed,
        form="int or RandomState",
    )
    n_components_: int = fitted()
    components_: Any = fitted()
    trace_error_: float = fitted()
    partial_fit: ClassVar[Any] = absent(
        "because it chooses among all examples. Fit it on a sample of the examples; transform takes any number of "
        "them, also in parts"
    )
    _own: ClassVar[tuple[str, ...]]  # fitted attributes beside those of all maps

    def __sklearn_tags__(self) -> Any:
        """Sparse input is welcome, precision is kept, and precomputed kernels are pairwise."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = takes_sparse(self.kernel)
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @with_paragraphs
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the features.

        Parameters
        ----------
        [unlabelled]
        y : None
            Not used; pipelines pass it.

        Returns
        -------
        object
            Itself, fitted. An exception or an interrupt leaves the map as it was.
        """
        self._fitted(X, wants_features=False)
        return self

    @with_paragraphs
    def fit_transform(self, X: Any, y: Any = None) -> _Array:
        """Choose the features and return those of the training examples, as ``fit(X).transform(X)`` does, in less time.

        Parameters
        ----------
        [unlabelled]
        y : None
            Not used; pipelines pass it.

        Returns
        -------
        ndarray of shape (n_samples, n_components_)
            The features.
        """
        return self._fitted(X, wants_features=True)

    @of_one_model
    def transform(self, X: Any) -> _Array:
        """The features of any number of examples; beside them, no more than tiles of kernel values are in memory.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a sequence of objects
            The examples; with ``kernel="precomputed"`` their kernel values with the training examples.

        Returns
        -------
        ndarray of shape (n_samples, n_components_)
            The features, in the precision of the training examples.
        """
        check_is_fitted(self)
        return self._transformed(self._validated(X, reset=False))

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def _fitted(self, X: Any, wants_features: bool) -> _Array:
        with next_model(self) as model:
            return model._made(X, wants_features)

    def _made(self, X: Any, wants_features: bool) -> _Array:
        """Set the fitted attributes; the features of X, if they are wanted."""
        declare.check(self)
        for name in (*_FITTED, *self._own):
            if name in vars(self):
                delattr(self, name)
        X = self._validated(X, reset=True)
        if self.kernel == "precomputed":
            check_gram(X)
            if found := indefinite_pair(X, np.arange(len(X)), 0.0):
                raise ValueError(f"kernel='precomputed' must be positive semi-definite, got {found}")
        kernel = self._kernel(X)
        if hasattr(kernel, "gamma"):
            self.gamma_ = float(kernel.gamma)
        provider = provider_for(kernel, X, n_jobs=self._threads())
        features = self._learn(provider, X, check_random_state(self.random_state), wants_features)
        return self._transformed(X) if features is None and wants_features else features

    @abstractmethod
    def _learn(self, provider: Provider, X: Any, random: np.random.RandomState, wants_features: bool) -> Any:
        """Set the fitted attributes; the features of X where they are there, or else None."""

    def _transformed(self, X: Any) -> _Array:
        components = self.components_
        if issparse(components) and not issparse(X):
            X = csr_matrix(X)
        elif issparse(X) and not issparse(components):
            components = csr_matrix(components)
        ids = components if self.kernel == "precomputed" else np.arange(length(components))
        # Precision and, far from the origin, location are those of the components, whatever is transformed.
        like = X[:1] if self.kernel == "precomputed" else components
        provider = provider_for(self._kernel(X), like, n_jobs=self._threads())
        provider.adopt(components, ids)
        out = np.empty((length(X), self.n_components_), provider.dtype)
        self._fill(provider, X, provider.stored(), out)
        return out

    @abstractmethod
    def _fill(self, provider: Provider, X: Any, basis: Batch, out: _Array) -> None:
        """Write the features of X."""

    def _kept(self, X: Any, chosen: _Index) -> Any:
        """These examples, in the type they came in."""
        if self.kernel == "precomputed":
            return chosen
        some = rows_of(X, chosen)
        return some.copy() if isinstance(some, np.ndarray) else some

    def _validated(self, X: Any, *, reset: bool) -> Any:
        sparse, objects = self.kernel != "precomputed", callable(self.kernel)
        X = validated(self, X, reset=reset, sparse=sparse, objects=objects)
        if not length(X):
            raise ValueError("X must hold at least one example, got none")
        return X

    def _check_together(self) -> None:
        super()._check_together()
        kernel_for(self.kernel, gamma=1.0, degree=self.degree, coef0=self.coef0)

    def _kernel(self, X: Any) -> Kernel:
        gamma = getattr(self, "gamma_", self.gamma)
        return kernel_for(self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0, X=X)

    def _threads(self) -> int:
        return blas_threads() if self.n_jobs is None else self.n_jobs

    def _at_most(self, name: str, most: int, what: str) -> int | None:
        """A parameter that counts examples, or None."""
        value = getattr(self, name)
        if value is not None and value > most:
            raise ValueError(f"{name} must be at most {what}{most}; got {value!r}")
        return None if value is None else int(value)


@with_paragraphs
@persistable(
    **_FITTED,
    pivots_=integers("n_basis", unique=True),
    cholesky_=_check_triangle,
    trace_errors_=floats("n_blocks"),
    _widths=_check_widths,
)
class PivotedCholeskyMap(KernelMap):
    """Features by an incomplete Cholesky factor of the kernel matrix, with the share of its trace that is left.

    The factor has a column for each of some training examples, the pivots. Its rows are the features of the training
    examples: their inner products are the kernel values of any two examples of which one is a pivot, and near to them
    elsewhere. `trace_error_` says how near. There are as many pivots as `n_components` or `tol` ask for, but no
    more than the numerical rank of the kernel matrix; with neither the factor is exact.

    Attributes
    ----------
    pivots_ : ndarray of shape (n_components_,)
        The pivots, as numbers of training examples, in the order in which they were chosen.
    components_ : ndarray, csr_matrix or list
        The pivots themselves; with the kernel "precomputed" their numbers.
    cholesky_ : ndarray of shape (n_components_, n_components_)
        The Cholesky factor of the kernel values among the pivots, a lower triangle.
    trace_errors_ : ndarray
        `trace_error_` after each block.
    [map_model]

    References
    ----------
    Zien, De Bona, Ong. Training and Approximation of a Primal Multiclass Support Vector Machine. 2007, section 1.2.3.

    Chen, Epperly, Tropp, Webber. Randomly pivoted Cholesky: Practical approximation of a kernel matrix with few entry
    evaluations. 2022.

    Examples
    --------
    >>> from larank import LinearMulticlassSVC, PivotedCholeskyMap
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(PivotedCholeskyMap(n_components=300, random_state=0), LinearMulticlassSVC(random_state=0))
    >>> bool(model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.94)
    True
    >>> bool(model[0].trace_error_ < 0.1)
    True
    """

    n_components: int | None = parameter(
        "Maximum number of features. By default as many as `tol` needs, or as the numerical rank of the kernel matrix.",
        default=None,
        least=1,
    )
    tol: float | None = parameter(
        "Stop when `trace_error_`, which is between 0 and 1, is at most this value. By default only `n_components` "
        "and the numerical rank limit the number of features.",
        default=None,
        above=0,
        below=1,
    )
    pivots: Literal["random", "greedy"] = parameter(
        'How pivots are chosen. "random" draws candidates with probabilities in proportion to the residuals, k(x, x) '
        "minus the squared norm of the features of x, and keeps the two thirds that lower the trace error most. "
        '"greedy" takes the examples with the largest residuals, which gives the best worst-case error.',
        default="random",
    )

    _BLOCK_SIZE: ClassVar[int] = 256  # most pivots that are chosen together
    _own = ("pivots_", "cholesky_", "trace_errors_", "_widths")

    @property
    @of_one_model
    def factor_(self) -> _Float:
        """A = L_P^-T, an upper triangle: the features of x are A' k(., x) with the pivots ([primal] (1.3))."""
        check_is_fitted(self)
        if not self.cholesky_.any():
            return np.zeros_like(self.cholesky_)
        inverse: _Float = solve_triangular(self.cholesky_, np.eye(len(self.cholesky_)), lower=True).T
        return inverse

    def _learn(self, provider: Provider, X: Any, random: np.random.RandomState, wants_features: bool) -> Any:
        options = CholeskyOptions(
            rank=self._at_most("n_components", length(X), "the number of examples, n_samples="),
            tolerance=0.0 if self.tol is None else float(self.tol),
            greedy=self.pivots == "greedy",
            block_size=self._BLOCK_SIZE,
            memory_limit=float(self.memory_limit),
        )
        found = pivoted_cholesky(provider, X, options, random)
        self.pivots_ = found.pivots
        self.components_ = self._kept(X, found.pivots)
        self.cholesky_ = found.lower
        self.n_components_ = len(found.pivots)
        self.trace_errors_ = np.array(found.trace_errors)
        self.trace_error_ = found.trace_error
        self._widths = found.widths
        return found.table

    def _fill(self, provider: Provider, X: Any, basis: Batch, out: _Array) -> None:
        cholesky_features(provider, X, basis, self.cholesky_, self._widths, out)


@with_paragraphs
@persistable(
    **_FITTED,
    basis_=integers("n_basis", unique=True),
    factor_=floats("n_basis", "n_components_"),
    eigenvalues_=floats("n_components_"),
)
class KernelPCAMap(KernelMap):
    """Features by the leading eigenvectors of the kernel matrix, which is not centred.

    Unlike `sklearn.decomposition.KernelPCA`, the map does not centre: inner products of its features are kernel values,
    or near to them, and the features have a mean that is not zero.

    No other features, as many, leave less of the trace of the kernel matrix of the basis examples. The basis are all
    training examples, which takes memory for their kernel matrix and time for its eigenvectors, or `basis_size` random
    ones, as in Nystroem's method.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components_,)
        The eigenvalues of the kernel matrix of the basis, from the largest on.
    factor_ : ndarray of shape (basis_size, n_components_)
        A = V D^-1/2: the features of x are ``A' k(., x)``, with the sign that makes the largest entry of every column
        positive.
    basis_ : ndarray
        The basis, as numbers of training examples.
    components_ : ndarray, csr_matrix or list
        The basis examples themselves; with the kernel "precomputed" their numbers.
    [map_model]

    References
    ----------
    Zien, De Bona, Ong. Training and Approximation of a Primal Multiclass Support Vector Machine. 2007, section 1.2.3.

    Examples
    --------
    >>> from larank import KernelPCAMap
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> pca = KernelPCAMap(n_components=100).fit(X)
    >>> pca.transform(X).shape
    (1797, 100)
    >>> bool(pca.trace_error_ < 0.25)
    True
    """

    n_components: int | None = parameter(
        "Maximum number of features. By default one for each eigenvalue above rounding error.",
        default=None,
        least=1,
    )
    basis_size: int | None = parameter(
        "Number of random training examples whose kernel matrix is decomposed. By default all training examples, "
        "which is the most precise and takes the most time and memory.",
        default=None,
        least=1,
    )

    _own = ("basis_", "factor_", "eigenvalues_")

    def _learn(self, provider: Provider, X: Any, random: np.random.RandomState, wants_features: bool) -> Any:
        n = length(X)
        size = self._at_most("basis_size", n, "the number of examples, n_samples=") or n
        wanted = self._at_most("n_components", size, "the number of examples that make them, ")
        self._check_memory(size, wanted or size)
        self.basis_ = np.arange(n) if size == n else random.choice(n, size, replace=False)
        self.components_ = self._kept(X, self.basis_)
        found = eigen_factor(provider, X, self.basis_, wanted)
        self.eigenvalues_, self.factor_ = found.eigenvalues, found.factor
        self.n_components_ = len(found.eigenvalues)
        return self._certify(provider, X, wants_features)

    def _certify(self, provider: Provider, X: Any, wants_features: bool) -> Any:
        """Sum up |z|^2 over all training examples, for `trace_error_`."""
        with provider.threads():
            trace = float(provider.measure(X)[0].sum())
        basis, features = provider.part(X, self.basis_, None), None
        if len(self.basis_) == length(X):
            explained = float(self.eigenvalues_.sum())
            if wants_features:
                features = np.empty(self.factor_.shape, provider.dtype)
                np.multiply(self.factor_, self.eigenvalues_, out=features, casting="same_kind")
        elif wants_features:
            features = np.empty((length(X), self.n_components_), provider.dtype)
            eigen_features(provider, X, basis, self.factor_, features)
            explained = float(np.einsum("ij,ij->", features, features, dtype=np.float64))
        else:
            explained = eigen_squares(provider, X, basis, self.factor_)
        self.trace_error_ = max(0.0, 1 - explained / trace) if trace else 0.0
        return features

    def _check_memory(self, size: int, components: int) -> None:
        needed = 8 * size * (size + components)  # in double precision, whatever the kernel values are
        if needed > self.memory_limit:
            fit = max(1, int((self.memory_limit / 16) ** 0.5))
            fewer = f" with n_components={fit}" if (self.n_components or 0) > fit else ""
            raise _core.MemoryLimitError(
                f"memory_limit must be at least {needed} bytes for the kernel matrix of {size} examples and "
                f"{components} eigenvectors, got {int(self.memory_limit)}; "
                f"KernelPCAMap(basis_size={fit}){fewer} would do"
            )

    def _fill(self, provider: Provider, X: Any, basis: Batch, out: _Array) -> None:
        eigen_features(provider, X, basis, self.factor_, out)
