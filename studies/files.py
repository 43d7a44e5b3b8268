"""`python -m studies files`: an svmlight file of five times `memory_limit`, trained on within the limit."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import sparse

from studies.datasets import LINEAR, load
from studies.measure import ask
from studies.study import Findings, Say, Scope, Study, is_so
from studies.tables import MEGABYTE, column, derived, of_rows, yes
from studies.trial import PeakMemory

TIMES = 5  # the limit, the file has
ALLOWED = 100.0  # megabytes over the limit
GAP = 1e-2
NOTE = (
    "Peak: of the resident set while `fit` runs, over its level after the imports and a small fit. In memory: the same "
    "file read as a whole and trained on by the same estimator; its seconds include reading, too. One thread, wall."
)
WHOLE, QUICK = 100.0, 2.0


@dataclass(frozen=True)
class Row:
    """One training; sizes in megabytes, the limit 0 where the file was read as a whole."""

    dataset: str = column("data")
    examples: int = column("examples")
    file: float = column("file MB", ".0f")
    limit: float = column("limit MB", lambda limit: f"{limit:.0f}" if limit else "in memory")
    peak: float = column("peak MB", ".0f")
    seconds: float = column("seconds", ".1f")
    passes: float = column("passes", ".1f")
    blocks_read: int = column("blocks read")
    relative_gap: float = column("gap", ".1e")
    primal: float

    @derived("holds", yes)
    def holds(self) -> bool:
        return self.relative_gap <= GAP and (not self.limit or self.peak <= self.limit + ALLOWED)


def train(request: dict[str, Any]) -> dict[str, Any]:
    """In a process of its own: train once on the file, and tell the peak."""
    import larank
    from larank.data import read

    path, limit = Path(request["folder"]) / "examples.svm", request["megabytes"] * MEGABYTE
    larank.LinearMulticlassSVC().fit(np.eye(4), [0, 1, 0, 1])  # what comes with the first call
    model = larank.LinearMulticlassSVC(tol=GAP, random_state=0)
    memory, began = PeakMemory(), time.perf_counter()
    model = model.set_params(memory_limit=limit).fit(path) if limit else model.fit(*read(path))
    seconds, result = time.perf_counter() - began, model.result_
    known = {"passes": result.iterations, "blocks_read": result.operations.get("blocks_read", 0)}
    known |= {"relative_gap": result.relative_gap, "primal": result.primal}
    return {"seconds": seconds, "peak": memory.peak() / MEGABYTE, **known}


def _write(path: Path, X: Any, y: Any, size: float) -> int:
    """Rows drawn from the data, their values with some noise, until the file is so large; how many there are."""
    random = np.random.default_rng(0)
    X, rows = sparse.csr_matrix(X), 0
    with path.open("w") as file:
        while file.tell() < size:
            for i in random.integers(0, X.shape[0], 2000):
                stored = slice(X.indptr[i], X.indptr[i + 1])
                values = X.data[stored] * (1 + 0.1 * random.standard_normal(stored.stop - stored.start))
                pairs = zip((X.indices[stored] + 1).tolist(), values.tolist(), strict=True)
                file.write(f"{y[i]} {' '.join(f'{index}:{value:.5g}' for index, value in pairs)}\n")
            rows += 2000
    return rows


def run(scope: Scope, say: Say) -> Findings:
    found = Findings(lines=[NOTE])
    most = scope.options.limit or (QUICK if scope.quick else WHOLE)
    for name in scope.present(("covtype", "news20"), ("letter",), say, lambda name: LINEAR[name].source):
        data = load(name, LINEAR)
        with TemporaryDirectory(prefix="larank-files-") as folder:
            path = Path(folder) / "examples.svm"
            rows = _write(path, data.X_train, data.y_train, TIMES * most * MEGABYTE)
            size = path.stat().st_size / MEGABYTE
            say(f"{name}: {rows} rows, {size:.0f} MB of text")
            for limit in (most, 0.0):
                told = ask("studies.files", "train", Path(folder), 1, 3600.0, megabytes=limit)
                row = Row(name, rows, size, limit, **told)
                found.add(rows=[row])
                found.claims.append(is_so(f"{name}, {limit or 'no'} limit", row.holds, "gap and peak as promised"))
                say(f"{name}, {limit or 'no'} limit: {told['seconds']:.1f} s, peak {told['peak']:.0f} MB")
    found.tables = [of_rows("Files larger than the limit of memory", found.rows["rows"])]
    return found


STUDY = Study(
    "files",
    "files of five times memory_limit, trained on within it",
    run,
    ("covtype", "news20", "letter"),
    options={"--limit": {"type": float, "metavar": "MB", "help": "1e6 bytes each; 100"}},
)
