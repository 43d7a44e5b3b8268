"""What all kernel solvers of a comparison are given, beside the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

THREADS = 2
CACHE_MEGABYTES = 1000
"""Of kernel values, for the rivals; their default is 100 or 200."""


@dataclass(frozen=True)
class Parameters:
    """Of the kernel exp(-gamma |x - x'|^2) and the cost of a margin violation."""

    C: float
    gamma: float


def svc_settings(parameters: Parameters) -> dict[str, Any]:
    """Of anything with the face of `SVC`: same kernel and C; everything but the cache is left at its default."""
    return {"kernel": "rbf", "C": parameters.C, "gamma": parameters.gamma, "cache_size": CACHE_MEGABYTES}


def libsvm_options(parameters: Parameters) -> str:
    """The same for LIBSVM."""
    return f"-s 0 -t 2 -c {parameters.C!r} -g {parameters.gamma!r} -m {CACHE_MEGABYTES} -q"
