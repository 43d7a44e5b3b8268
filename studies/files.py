"""`python -m studies files`: an svmlight file of five times `memory_limit`, trained on within the limit."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import sparse

from studies.datasets import LINEAR, is_available, load
from studies.measure import ask
from studies.study import Outcome, Say, Study
from studies.tables import MEGABYTE, Table
from studies.trial import PeakMemory

TIMES = 5  # the limit, the file has
ALLOWED = 100.0  # megabytes over the limit
GAP = 1e-2
NOTE = (
    "Peak: of the resident set while `fit` runs, over its level after the imports and a small fit. In memory: the same "
    "file read as a whole and trained on by the same estimator; its seconds include reading, too. One thread, wall."
)


@dataclass(frozen=True)
class Scope:
    """The data sets, and the limit in megabytes."""

    datasets: tuple[str, ...]
    limit: float


WHOLE, QUICK = 100.0, 2.0


@dataclass(frozen=True)
class Row:
    """One training; sizes in megabytes, the limit 0 where the file was read as a whole."""

    dataset: str
    examples: int
    file: float
    limit: float
    peak: float
    seconds: float
    passes: float
    blocks_read: int
    relative_gap: float
    primal: float

    @property
    def holds(self) -> bool:
        """Whether gap and peak are as promised."""
        return self.relative_gap <= GAP and (not self.limit or self.peak <= self.limit + ALLOWED)


@dataclass(frozen=True)
class Found(Outcome):
    """All rows."""

    rows: tuple[Row, ...]

    def to_dict(self) -> dict[str, Any]:
        """The rows."""
        return {"rows": [asdict(row) | {"holds": row.holds} for row in self.rows]}

    def to_tables(self) -> Sequence[Table]:
        """One."""
        columns = ["data", "examples", "file MB", "limit MB", "peak MB", "seconds", "passes", "blocks read", "gap"]
        table = Table("Files larger than the limit of memory", [*columns, "holds"])
        for row in self.rows:
            limit = f"{row.limit:.0f}" if row.limit else "in memory"
            sizes = [f"{row.file:.0f}", limit, f"{row.peak:.0f}", f"{row.seconds:.1f}", f"{row.passes:.1f}"]
            told = [str(row.blocks_read), f"{row.relative_gap:.1e}", "yes" if row.holds else "NO"]
            table.add(row.dataset, str(row.examples), *sizes, *told)
        return [table]

    def to_lines(self) -> Sequence[str]:
        """What the figures are."""
        return [NOTE]


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
    return {
        "seconds": seconds,
        "peak": memory.peak() / MEGABYTE,
        "passes": result.iterations,
        "blocks_read": result.operations.get("blocks_read", 0),
        "relative_gap": result.relative_gap,
        "primal": result.primal,
    }


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


def run(scope: Scope, say: Say) -> Found:
    """Each data set within the limit and in memory, in turns."""
    found: list[Row] = []
    for name in scope.datasets:
        data = load(name, LINEAR)
        with TemporaryDirectory(prefix="larank-files-") as folder:
            path = Path(folder) / "examples.svm"
            rows = _write(path, data.X_train, data.y_train, TIMES * scope.limit * MEGABYTE)
            size = path.stat().st_size / MEGABYTE
            say(f"{name}: {rows} rows, {size:.0f} MB of text")
            for limit in (scope.limit, 0.0):
                told = ask("studies.files", "train", Path(folder), 1, 3600.0, megabytes=limit)
                found.append(Row(name, rows, size, limit, **told))
                say(f"{name}, {limit or 'no'} limit: {told['seconds']:.1f} s, peak {told['peak']:.0f} MB")
    return Found(tuple(found))


class _Files(Study):
    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """The limit."""
        parser.add_argument("--limit", type=float, metavar="MB", help="1e6 bytes each; 100")

    def scope(self, arguments: argparse.Namespace) -> Scope:
        """All sets that are here, or a little of the embedded one with `--quick`."""
        here = tuple(name for name in ("covtype", "news20") if is_available(LINEAR[name].source))
        names = self.chosen_datasets(arguments) or (("letter",) if arguments.quick else here)
        return Scope(names, arguments.limit or (QUICK if arguments.quick else WHOLE))


STUDY = _Files("files", "files of five times memory_limit, trained on within it", ("covtype", "news20", "letter"), run)
