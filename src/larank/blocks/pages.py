"""Large arrays in memory of their own, which the system has back as soon as nobody uses them.

What the heap gets back it keeps, in pieces of every size: where arrays grow, come and go, it would soon hold several
times what is in use, and no limit on memory could be kept.
"""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LEAST = 1 << 20  # bytes from where it pays
_HUGE = 1 << 21  # bytes of a huge page


def zeros(shape: int | tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """As `np.zeros`; what is never written to takes no memory."""
    dtype = np.dtype(dtype)
    count = math.prod(shape) if isinstance(shape, tuple) else shape
    if count * dtype.itemsize < _LEAST or dtype.hasobject or not hasattr(mmap, "MAP_ANONYMOUS"):
        return np.zeros(shape, dtype)
    whole = -(-count * dtype.itemsize // _HUGE) * _HUGE  # or the system hands out small pages, one by one
    try:
        memory = mmap.mmap(-1, whole, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"{count * dtype.itemsize} bytes for kernel values or examples: {error}") from error
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype, count).reshape(shape)
