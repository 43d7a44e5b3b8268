"""What shows that kernel values are not those of a positive semi-definite kernel, in words; nothing where none does.

Certificates need such a kernel. "rbf" and others are known to be one; "sigmoid", and matrices and functions of the
caller's, may be anything, so their values on some examples are looked at. Objectives may tell as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank.blocks.kernels import PrecomputedKernel
from larank.blocks.precomputed import indefinite_pair
from larank.blocks.provider import Provider, tolerance

_EXAMPLES = 256  # whose kernel values with each other are looked at


def indefinite_values(provider: Provider, X: Any, rows: NDArray[Any]) -> str:
    """What the kernel values of some of these examples show, and of a precomputed matrix those of all pairs."""
    if provider.kernel.is_definite:
        return ""
    if isinstance(provider.kernel, PrecomputedKernel) and (found := indefinite_pair(X, rows, provider.kernel.plus)):
        return found
    some = np.sort(rows)[np.unique(np.linspace(0, len(rows) - 1, min(_EXAMPLES, len(rows))).astype(np.intp))]
    values = provider.among(X, some)
    eigenvalues = np.linalg.eigvalsh((values + values.T) / 2)
    if eigenvalues[0] >= -tolerance(provider.dtype) * max(eigenvalues[-1], 0.0):
        return ""
    return f"their matrix has the eigenvalue {eigenvalues[0]:.3g} beside {eigenvalues[-1]:.3g}, on {len(some)} of them"


def indefinite_objectives(provider: Provider, half_squared_norm: float, dual: float, at_zero: float) -> str:
    """With a kernel that is one, no norm is negative and no dual objective exceeds the primal one of w = 0.

    `at_zero` is that: there every wrong class is violated by all of its margin.
    """
    share = tolerance(provider.dtype)
    by_rounding = ", by rounding, for the kernel itself is; float64 data or features of one scale may do"
    cause = by_rounding if provider.kernel.is_definite else ""
    if half_squared_norm < -share * at_zero:
        return f"|w|^2 is {2 * half_squared_norm:.3g}{cause}"
    if dual > at_zero * (1 + share):
        return f"the dual objective {dual:.3g} exceeds that of w = 0, {at_zero:.3g}{cause}"
    return ""
