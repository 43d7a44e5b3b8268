"""A problem as plain `.npy` files, prepared once by the parent, so that no measured process pays for it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_CSR = "data", "indices", "indptr", "shape"


@contextmanager
def stored(name: str, arrays: Mapping[str, Any], about: Mapping[str, Any] | None = None) -> Iterator[Path]:
    """A temporary folder with the arrays and the dense or CSR matrices, and `about`, what JSON can hold."""
    with tempfile.TemporaryDirectory(prefix=f"larank-{name}-") as path:
        folder = Path(path)
        for key, X in arrays.items():
            parts = {"": X}
            if sparse.issparse(X):
                parts = {f"_{part}": np.asarray(getattr(X, part)) for part in _CSR}
            for part, values in parts.items():
                np.save(folder / f"{key}{part}.npy", values)
        (folder / "about.json").write_text(json.dumps(about or {}))
        yield folder


def array(folder: Path, key: str) -> NDArray[Any]:
    """One array straight into memory, with no temporary beside it."""
    found: NDArray[Any] = np.load(folder / f"{key}.npy")
    return found


def matrix(folder: Path, key: str) -> Any:
    if (folder / f"{key}.npy").exists():
        return array(folder, key)
    data, indices, indptr, shape = (array(folder, f"{key}_{part}") for part in _CSR)
    return sparse.csr_matrix((data, indices, indptr), shape=tuple(shape), copy=False)


def about(folder: Path) -> dict[str, Any]:
    """What was stored beside the arrays."""
    found: dict[str, Any] = json.loads((folder / "about.json").read_text())
    return found
