"""Provider of kernel values: kernels, and a provider for every kind of data."""

from __future__ import annotations

from typing import Any

from larank.blocks.callable import CallableProvider
from larank.blocks.csr import CsrProvider
from larank.blocks.dense import DenseProvider
from larank.blocks.kernels import Kernel
from larank.blocks.lattice import LatticeProvider
from larank.blocks.precomputed import PrecomputedProvider, check_gram
from larank.blocks.provider import Provider
from larank.blocks.store import Batch

__all__ = ["Batch", "Provider", "check_gram", "provider_for"]


def provider_for(kernel: Kernel, X: Any, *, n_jobs: int | None = None) -> Provider:
    """The provider for a kernel and the kind of data X is.

    Parameters
    ----------
    kernel : Kernel
        From `kernels.kernel_for`.
    X : array, CSR matrix or sequence
        Examples of the kind to come. Kind, precision, features and, for "rbf", location are looked at, and whether
        the values of an array are on a lattice.
    n_jobs : int or None
        Threads, as in joblib: None is one, -1 all processors.
    """
    on_lattice = LatticeProvider.found_for(kernel, X, n_jobs)
    if on_lattice is not None:
        return on_lattice
    for kind in (PrecomputedProvider, CallableProvider, CsrProvider, DenseProvider):
        if kind.serves(kernel, X):
            return kind(kernel, X, n_jobs)
    raise ValueError(f"X must be a 2d array or a CSR matrix with kernel={kernel.name!r}, got {type(X).__name__}")
