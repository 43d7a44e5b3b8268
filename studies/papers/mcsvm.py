"""Figures 5, 6 and 7 of [mcsvm]: what the accuracy, the cooling and each improvement of section 7 are worth."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from larank.blocks import provider_for
from larank.blocks.kernels import kernel_for
from larank.kernel.problem import Problem
from larank.kernel.published import Published, PublishedTraining
from larank.parameters import COOLING
from larank.training import Limits, Objectives, train
from larank.training.progress import Progress
from studies.datasets import Dataset
from studies.drawing import PALETTE
from studies.papers.experiment import by_dataset
from studies.papers.larank import PROBLEMS, Table2, exact_rows
from studies.papers.larank import QUICK as QUICK_DATASETS
from studies.study import Claim, Findings, Say, Scope, Study
from studies.tables import Table

EPSILONS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # the ticks of figure 5
COOLING_EPSILON = 0.01
MEMORY_LIMIT = 2e9

# What each version of figure 7 adds to the one before.
VERSIONS: dict[str, Published] = {
    "1, base line": Published(selection="cycle", active_set=False, cooling="none", cache=False),
    "2, KKT selection": Published(active_set=False, cooling="none", cache=False),
    "3, active set, cooling": Published(cache=False),
    "4, cache": Published(),
    "5, sparse inputs": Published(),
}
BASE_LINE, SPARSE = next(iter(VERSIONS)), list(VERSIONS)[-1]

DATASETS = ("mnist", "letter")  # the paper has MNIST; LETTER, which comes with the library, is for the quick form


@dataclass(frozen=True)
class Protocol:
    """How much is run: training examples of each figure, and the seconds a version of figure 7 may take."""

    figure5: int
    figure6: int
    figure7: tuple[int, ...]
    time_limit: float


FULL = Protocol(figure5=10_000, figure6=2000, figure7=(100, 300, 1000, 3000, 10_000), time_limit=60.0)
QUICK = Protocol(figure5=400, figure6=300, figure7=(50, 100, 200), time_limit=5.0)


# ---- One training ----


@dataclass(frozen=True)
class Task:
    """Some training examples and all test examples, classes numbered from 0, with their kernel and C."""

    name: str
    data: Dataset
    gamma: float
    C: float

    def sparse(self) -> Task:
        """The same with CSR inputs."""
        X_train, X_test = (sparse.csr_matrix(X) for X in (self.data.X_train, self.data.X_test))
        return replace(self, data=replace(self.data, X_train=X_train, X_test=X_test))


def _task(dataset: str, examples: int, seed: int) -> Task:
    """Some examples, drawn with the seed. MNIST is moved from [-1, 1] to [0, 1], where most of it is zero.

    The distances are halved by that, so the gamma of [larank] is taken four times and no kernel value changes.
    """
    problem = PROBLEMS[dataset]
    data, gamma = problem.read(), problem.gamma
    if dataset == "mnist":
        data, gamma = replace(data, X_train=(data.X_train + 1) / 2, X_test=(data.X_test + 1) / 2), 4 * gamma
    drawn = np.random.default_rng(seed).permutation(len(data.y_train))[:examples]
    labels = data.y_train[drawn].astype(np.int32)
    return Task(dataset, replace(data, X_train=data.X_train[drawn], y_train=labels), gamma, problem.C)


@dataclass(frozen=True)
class Run:
    """One training: what was chosen, what it took and where it ended.

    `seconds` are those of the processor, in one thread, so that a busy machine does not count; `elapsed` are those of
    the clock. The error is in percent, of the test examples.
    """

    dataset: str
    version: str
    examples: int
    seed: int
    epsilon: float
    cooling: str
    seconds: float
    elapsed: float
    rounds: int
    kernel_rows: int
    patterns: int
    dual: float
    violation: float
    error: float
    status: str
    path: tuple[tuple[int, float], ...]  # rounds and dual on the way


class _Cycled(PublishedTraining):
    """The base line runs for a number of rounds. Here it ends as the others do, so that times can be compared."""

    _violation = math.inf

    def advance(self) -> bool:
        return self._violation < self.settings.epsilon or super().advance()

    def estimate(self) -> Objectives | None:
        seen = super().estimate()
        if seen is not None:
            self._violation = seen.violation
        return seen


def _train(task: Task, published: Published, seed: int, version: str = "", time_limit: float | None = None) -> Run:
    X, y, X_test, y_test = task.data.X_train, task.data.y_train, task.data.X_test, task.data.y_test
    n, k = len(y), int(max(y.max(), y_test.max())) + 1
    problem = Problem(X, y, np.full(n, task.C), k, 1.0 - np.eye(k), "crammer-singer")
    blocks = provider_for(kernel_for("rbf", gamma=task.gamma, X=X), X, n_jobs=1)
    kind = _Cycled if published.selection == "cycle" else PublishedTraining
    with blocks.threads():
        began, at_first = time.perf_counter(), time.process_time()
        session = kind(published, problem, blocks, MEMORY_LIMIT)
        limits = Limits(gap=None, max_iter=math.inf, time_limit=time_limit, certify=False)
        outcome = train(session, limits, Progress())
        elapsed, seconds = time.perf_counter() - began, time.process_time() - at_first
        if outcome.status == "interrupted":
            raise KeyboardInterrupt
        error = 100.0 * float(np.mean(session.scores(X_test).argmax(axis=1) != y_test))
    at, operations = outcome.history[-1], session.operations
    return Run(
        dataset=task.name,
        version=version,
        examples=n,
        seed=seed,
        epsilon=published.epsilon,
        cooling=published.cooling,
        seconds=seconds,
        elapsed=elapsed,
        rounds=operations["rounds"],
        kernel_rows=operations["kernel_rows"],
        patterns=at.support_patterns,
        dual=at.dual,
        violation=at.violation,
        error=error,
        status=outcome.status,
        path=tuple((round(point.iterations * n), point.dual) for point in outcome.history),
    )


# ---- What the figures share ----


def _protocol(scope: Scope) -> Protocol:
    return QUICK if scope.quick else FULL


def _datasets(scope: Scope, say: Say) -> tuple[str, ...]:
    return scope.present(("mnist",), QUICK_DATASETS, say)


def _mean(runs: Iterable[Run], figure: str) -> float:
    return float(np.mean([getattr(run, figure) for run in runs]))


def _kernel_note(datasets: Iterable[str]) -> list[str]:
    """Section 7 names no kernel, and the text of the paper that was at hand ends there."""
    of = {
        "mnist": "MNIST in [0, 1], rbf kernel with gamma 0.02, C = 1000",
        "letter": "LETTER raw, rbf kernel with gamma 0.025, C = 10",
    }
    return [
        "Section 7 of the paper names no kernel, so that figures cannot be compared one by one. Here:",
        f"{'; '.join(of[name] for name in datasets)}, as the LaRank paper has it for the authors' MCSVM.",
    ]


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


# ---- Figure 5 ----


@dataclass
class Figure5(Findings):
    """Run time and test error for each required accuracy."""

    runs: tuple[Run, ...]
    quick: bool = False

    def to_tables(self) -> list[Table]:
        """A row per accuracy, the time also as a multiple of that for 0.1."""
        notes = [
            "The paper draws this without numbers; its axes have 8000 to 13000 seconds and errors of 1.4 to 1.9 %.",
            "It says that 0.1 is accurate enough, and that smaller values take 20 to 30 % more time. Seconds are those "
            "of the processor, in one thread.",
            *_kernel_note(by_dataset(self.runs)),
        ]
        headings = ("epsilon", "seconds", "of 0.1's", "rounds", "error %", "dual", "patterns")
        table = Table("Run time and test error by accuracy (MCSVM paper, figure 5)", headings, notes)
        for dataset, mine in by_dataset(self.runs).items():
            table.add(f"{dataset}, {mine[0].examples} examples", style="bold")
            usual = _mean((run for run in mine if run.epsilon == 0.1), "seconds")
            for epsilon in EPSILONS:
                runs = [run for run in mine if run.epsilon == epsilon]
                seconds, rounds, error, dual, patterns = (
                    _mean(runs, figure) for figure in ("seconds", "rounds", "error", "dual", "patterns")
                )
                cells = (_short(seconds), f"{seconds / usual:.2f}", f"{rounds:.0f}", f"{error:.2f}")
                table.add(f"{epsilon:g}", *cells, f"{dual:.5g}", f"{patterns:.0f}")
            table.end_group()
        return [table]


def _accurate(epsilon: float) -> Published:
    """Everything switched on; cooling from 0.999 to 1 has nowhere to go."""
    return Published(epsilon=epsilon) if epsilon < 0.999 else Published(epsilon=epsilon, cooling="none")


def _figure5(scope: Scope, say: Say) -> Figure5:
    runs = []
    for dataset in _datasets(scope, say):
        for seed in scope.seed_range(1):
            task = _task(dataset, _protocol(scope).figure5, seed)
            for epsilon in EPSILONS:
                runs.append(_train(task, _accurate(epsilon), seed))
                say(
                    f"{dataset}, epsilon {epsilon:g}, seed {seed}: error {runs[-1].error:.2f} %, "
                    f"{_short(runs[-1].seconds)} s"
                )
    return Figure5(tuple(runs), scope.quick)


def _draw_figure5(outcome: Figure5, figure: Any) -> None:
    groups = by_dataset(outcome.runs)
    for row, (dataset, mine) in zip(figure.subplots(len(groups), 2, squeeze=False), groups.items(), strict=True):
        for axes, figures, label in zip(row, ("seconds", "error"), ("run time (s)", "test error (%)"), strict=True):
            means = [_mean((run for run in mine if run.epsilon == epsilon), figures) for epsilon in EPSILONS]
            axes.plot(EPSILONS, means, "o-", color="#1d4ed8")
            axes.set(title=dataset, xscale="log", xlabel="epsilon", ylabel=label)


# ---- Figure 6 ----


@dataclass
class Figure6(Findings):
    """The objective over the rounds, with each cooling schedule and without."""

    runs: tuple[Run, ...]
    quick: bool = False

    def to_tables(self) -> list[Table]:
        """The objective at some rounds; below, the rounds until the end and how many times fewer they are."""
        notes = [
            "Q is the paper's objective, to be minimised as in section 5: the dual times -1 / C^2. Empty: has ended.",
            f"The paper states neither its accuracy nor its examples; here epsilon is {COOLING_EPSILON:g}. It has ten "
            "times fewer iterations with logarithmic cooling.",
            *_kernel_note(by_dataset(self.runs)),
        ]
        title = "Objective Q by iteration and cooling (MCSVM paper, figure 6)"
        table = Table(title, ("iteration", *COOLING), notes)
        for dataset, mine in by_dataset(self.runs).items():
            table.add(f"{dataset}, {mine[0].examples} examples", style="bold")
            for rounds in _spread(max(run.rounds for run in mine)):
                cells = (_objective(self._of(mine, name)[0], rounds) for name in COOLING)
                table.add(str(rounds), *cells)
            rounds_of = {name: _mean(self._of(mine, name), "rounds") for name in COOLING}
            table.add("  at the end", *(_objective(self._of(mine, name)[0]) for name in COOLING))
            table.add("  iterations", *(f"{rounds_of[name]:.0f}" for name in COOLING))
            table.add("  times fewer", *(f"{rounds_of['none'] / rounds_of[name]:.1f}" for name in COOLING))
            table.add("  seconds", *(_short(_mean(self._of(mine, name), "seconds")) for name in COOLING))
            table.end_group()
        return [table]

    @staticmethod
    def _of(runs: list[Run], cooling: str) -> list[Run]:
        return [run for run in runs if run.cooling == cooling]


def _q(run: Run, dual: float) -> float:
    return -dual / PROBLEMS[run.dataset].C ** 2


def _objective(run: Run, rounds: int | None = None) -> str:
    """Q after so many rounds, or at the end; empty where it had ended before."""
    if rounds is not None and rounds > run.rounds:
        return ""
    return f"{_q(run, [dual for at, dual in run.path if rounds is None or at <= rounds][-1]):.5g}"


def _spread(rounds: int) -> list[int]:
    """10, 30, 100, 300 and so on."""
    steps = [10 ** (half // 2) * (3 if half % 2 else 1) for half in range(2, 2 * math.ceil(math.log10(rounds + 1)) + 1)]
    return [step for step in steps if step < rounds]


def _figure6(scope: Scope, say: Say) -> Figure6:
    runs = []
    for dataset in _datasets(scope, say):
        for seed in scope.seed_range(1):
            task = _task(dataset, _protocol(scope).figure6, seed)
            for cooling in COOLING:
                published = Published(cooling=cooling, epsilon=COOLING_EPSILON)
                runs.append(_train(task, published, seed))
                say(f"{dataset}, cooling {cooling}, seed {seed}: {runs[-1].rounds} iterations")
    return Figure6(tuple(runs), scope.quick)


def _draw_figure6(outcome: Figure6, figure: Any) -> None:
    groups = by_dataset(outcome.runs)
    colors = dict(zip(COOLING, PALETTE, strict=False))
    for axes, (dataset, runs) in zip(figure.subplots(1, len(groups), squeeze=False)[0], groups.items(), strict=True):
        for run in (run for run in runs if run.seed == 0):
            rounds, Q = zip(*((at, _q(run, dual)) for at, dual in run.path if at > 0), strict=True)
            label = "without cooling" if run.cooling == "none" else run.cooling
            axes.plot(rounds, Q, color=colors[run.cooling], linewidth=1.2, label=label)
        axes.set(title=dataset, xscale="log", xlabel="iteration", ylabel="objective Q")
        axes.legend(frameon=False, fontsize=8)


# ---- Figure 7 ----


@dataclass
class Figure7(Findings):
    """Run time of the versions over the size of the training set, and why some were left out."""

    runs: tuple[Run, ...]
    skipped: tuple[str, ...] = ()
    quick: bool = False

    def to_tables(self) -> list[Table]:
        """A row per version, a column per size."""
        notes = [
            "Processor seconds, in one thread, until no violation is 0.1 or more. Each version has the improvements "
            "before it.",
            "The base line looks at violations 20 times per pass, to end as the others do; the paper lets it run for "
            "a number of rounds it does not state.",
            "In the paper the last version is a hundred times as fast as the first. Here products of sparse rows are "
            "made for many rows at once, and a round needs one.",
            *_kernel_note(by_dataset(self.runs)),
            *self.skipped,
        ]
        sizes = sorted({run.examples for run in self.runs})
        headings = ("version", *(f"{size} examples" for size in sizes))
        table = Table("Run time by version and training-set size (MCSVM paper, figure 7)", headings, notes)
        for dataset in by_dataset(self.runs):
            table.add(dataset, style="bold")
            for version in VERSIONS:
                cells = [self._cell(dataset, version, size) for size in sizes]
                table.add(version, *cells)
            table.end_group()
        return [table]

    def _cell(self, dataset: str, version: str, size: int) -> str:
        runs = [run for run in self.runs if (run.dataset, run.version, run.examples) == (dataset, version, size)]
        if not runs:
            return "-"
        bound = "> " if any(run.status != "converged" for run in runs) else ""
        return bound + _short(_mean(runs, "seconds"))


def _expected(before: Run | None, examples: int) -> float:
    """Seconds for so many examples: rounds and the length of a kernel row both grow with them."""
    return 0.0 if before is None else before.seconds * (examples / before.examples) ** 2


def _figure7(scope: Scope, say: Say) -> Figure7:
    runs, skipped, protocol = [], [], _protocol(scope)
    for dataset in _datasets(scope, say):
        for seed in scope.seed_range(1):
            last: dict[str, Run] = {}
            for examples in protocol.figure7:
                task = _task(dataset, examples, seed)
                for version, published in VERSIONS.items():
                    seconds = _expected(last.get(version), examples)
                    if seconds > protocol.time_limit:
                        skipped.append(
                            f"Left out: version {version}, with {examples} examples of {dataset}, seed {seed}; "
                            f"from {last[version].examples} about {_short(seconds)} seconds are to be expected."
                        )
                        say(skipped[-1])
                        continue
                    run = _train(
                        task.sparse() if version == SPARSE else task, published, seed, version, protocol.time_limit
                    )
                    last[version] = run
                    runs.append(run)
                    say(f"{dataset}, version {version}, {examples} examples, seed {seed}: {_short(run.seconds)} s")
    return Figure7(tuple(runs), tuple(skipped), scope.quick)


def _draw_figure7(outcome: Figure7, figure: Any) -> None:
    groups = by_dataset(outcome.runs)
    for axes, (dataset, runs) in zip(figure.subplots(1, len(groups), squeeze=False)[0], groups.items(), strict=True):
        for version, color in zip(VERSIONS, PALETTE, strict=False):
            mine = [run for run in runs if run.version == version]
            sizes = sorted({run.examples for run in mine})
            means = [_mean((run for run in mine if run.examples == size), "seconds") for size in sizes]
            axes.plot(sizes, means, "o-", color=color, label=version)
        axes.set(title=dataset, xscale="log", yscale="log", xlabel="training examples", ylabel="run time (s)")
        axes.legend(frameon=False, fontsize=8)


# ---- All of them ----


@dataclass
class Everything(Findings):
    """The three figures and the table together."""

    figures: tuple[Figure5, Figure6, Figure7]
    table2: Table2

    def to_dict(self) -> dict[str, Any]:
        parts = (*self.figures, self.table2)
        return dict(zip(("figure5", "figure6", "figure7", "table2"), (part.to_dict() for part in parts), strict=True))

    def to_claims(self) -> Sequence[Claim]:
        return self.table2.to_claims()

    def to_tables(self) -> list[Table]:
        """Their tables, one below the other."""
        return [table for part in (*self.figures, self.table2) for table in part.to_tables()]


def _everything(scope: Scope, say: Say) -> Everything:
    figures = (_figure5(scope, say), _figure6(scope, say), _figure7(scope, say))
    return Everything(figures, exact_rows(scope, say))


def _draw_everything(outcome: Everything, figure: Any) -> None:
    figure.set_size_inches(8, 11)
    top, middle, bottom = figure.subfigures(3, 1)
    figure5, figure6, figure7 = outcome.figures
    _draw_figure5(figure5, top)
    _draw_figure6(figure6, middle)
    _draw_figure7(figure7, bottom)


STUDIES = (
    Study("mcsvm", "The four experiments below (MCSVM paper, section 7)", _everything, DATASETS, draw=_draw_everything),
    Study(
        "mcsvm-figure5",
        "Run time and test error of MCSVM by required accuracy (MCSVM paper, figure 5)",
        _figure5,
        DATASETS,
        draw=_draw_figure5,
    ),
    Study(
        "mcsvm-figure6",
        "The objective of MCSVM by iteration, with and without cooling (MCSVM paper, figure 6)",
        _figure6,
        DATASETS,
        draw=_draw_figure6,
    ),
    Study(
        "mcsvm-figure7",
        "Run time of five versions of MCSVM by size of the training set (MCSVM paper, figure 7)",
        _figure7,
        DATASETS,
        draw=_draw_figure7,
    ),
    Study(
        "mcsvm-table2",
        "Errors and duals of the exact solution (LaRank paper, the rows of MCSVM in table 2)",
        exact_rows,
        ("letter", "usps", "mnist"),
    ),
)
STUDIES = tuple(replace(study, has_seeds=True) for study in STUDIES)
