"""`python -m studies ambiguous`: learning from candidate labels, real and made, beside other ways to do it.

Two parts of the study, in `CASES`, compare accuracies; another measures one pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies import datasets
from studies.datasets import AMBIGUOUS, KERNEL, AmbiguousSet, load_ambiguous
from studies.papers.experiment import in_parallel
from studies.partiallabels import FOLDS, TRAIN, Split, select, with_distractors
from studies.partiallabels import with_random_candidates as with_random
from studies.rivals import candidates, libraries
from studies.rivals.libraries.solver import AmbiguousLearner, Predict
from studies.study import Claim, Findings, Say, Scope, Study, count
from studies.tables import Table
from studies.trial import Stopwatch

OURS = "larank"
LEARNERS: dict[str, AmbiguousLearner] = {
    **libraries.AMBIGUOUS,
    **{learner.name: learner for learner in candidates.LEARNERS},
}
LITERATURE = {"pl_lost": (70, 78), "pl_msrcv2": (46, 55), "pl_birdsong": (62, 72), "pl_fgnet": (5, 8)}
"""Accuracy in percent of what is published on these sets, lowest and highest."""
NEEDED = 3  # of the real sets ours has to be as accurate on as each rival

SPLITS = {"real": 10, "made": 3}
MOST = 3000  # training examples, and test examples, of a set whose candidates are made
SELECTED_ON = 1500  # training examples at most, drawn; more would take hours
QUICK_MOST = 240
QUICK_DATASETS = ("pl_lost",)
MADE = ("letter", "usps")

Make = Callable[[Any, NDArray[np.int64], int], AmbiguousSet]
FALSE: dict[str, Make] = {
    **{f"{false} false": partial(with_random, false=false) for false in (1, 2, 3)},
    "distractor": with_distractors,
}


# ---- One learner on one split ----


@dataclass(frozen=True)
class Run:
    """Test accuracy and share of held-out predictions that are candidates, in percent, and what was selected."""

    seed: int
    accuracy: float
    share: float
    settings: Mapping[str, Any]
    seconds: float


@dataclass(frozen=True)
class Job:
    """Select on the training part of a split, train on all of it, and test."""

    dataset: str
    condition: str
    learner: str
    seed: int
    quick: bool

    def run(self) -> Run:
        learner, most = LEARNERS[self.learner], QUICK_MOST if self.quick else MOST if self.condition else None
        split = Split.of(_read(self.dataset, self.condition), self.seed, most)

        def fit(X: Any, among: Any, settings: Mapping[str, Any]) -> Predict:
            assert learner.fit is not None
            return learner.fit(X, among, self.seed, **settings)

        began = time.perf_counter()
        some = split.X[:SELECTED_ON], split.candidates[:SELECTED_ON]
        choice, share = select(fit, learner.settings(self.quick), *some, self.seed, 2 if self.quick else FOLDS)
        predict = fit(split.X, split.candidates, choice)
        seconds = time.perf_counter() - began
        accuracy = float(np.mean(predict(split.X_test) == split.y_test))
        return Run(self.seed, 100 * accuracy, 100 * share, choice, seconds)


def _read(dataset: str, condition: str) -> AmbiguousSet:
    if not condition:
        return load_ambiguous(dataset)
    X, y = datasets.load(dataset, KERNEL).merged()
    return FALSE[condition](X.astype(np.float64), y, int(y.max()) + 1)


# ---- Cases ----


@dataclass(frozen=True)
class Case:
    """One set of examples, and by learner its runs on the same splits."""

    dataset: str
    condition: str
    runs: Mapping[str, tuple[Run, ...]]

    def accuracies(self, learner: str) -> NDArray[np.float64]:
        return np.array([run.accuracy for run in self.runs[learner]])

    def difference(self, learner: str) -> tuple[float, float]:
        """Of our accuracy to that of another, the mean over the splits and its standard error; NaN for one split."""
        difference = self.differences(learner)
        n = len(difference)
        return float(difference.mean()), float(difference.std(ddof=1) / n**0.5) if n > 1 else float("nan")

    def wins(self, learner: str) -> tuple[int, int]:
        """Splits on which ours is more, and less accurate."""
        difference = self.differences(learner)
        return int(np.sum(difference > 0)), int(np.sum(difference < 0))

    def differences(self, learner: str) -> NDArray[np.float64]:
        return self.accuracies(OURS) - self.accuracies(learner)


def _case(dataset: str, condition: str, learners: Sequence[str], seeds: Iterable[int], quick: bool, say: Say) -> Case:
    """Runs in parallel, a thread each: the matrices are small."""
    jobs = [Job(dataset, condition, learner, seed, quick) for seed in seeds for learner in learners]
    runs: dict[str, list[Run]] = {}
    for job, run in zip(jobs, in_parallel(Job.run, jobs, quick), strict=True):
        runs.setdefault(job.learner, []).append(run)
        name = f"{dataset} {condition}".rstrip()
        say(f"{name}, split {job.seed}: {job.learner} {run.accuracy:.2f} %, {run.settings}, {run.seconds:.1f} s")
    return Case(dataset, condition, {name: tuple(of) for name, of in runs.items()})


# ---- Time ----

SPEED_SHAPE, QUICK_SPEED_SHAPE = (100_000, 500, 20), (1000, 20, 5)  # examples, features, classes
SPEED_CANDIDATES = 3
SPEED_C = 1e-3  # |x|^2 is about the number of features
SPEED_BAR = 2.0  # times the seconds of LaRank on the true labels
SPEED_REPEATS = 3


@dataclass(frozen=True)
class Pass:
    """One pass of a linear learner: its best wall-clock seconds of several, and its error on new examples."""

    learner: str
    seconds: float
    error: float


def _linear_problem(shape: tuple[int, int, int]) -> tuple[Any, Any, Any, Any, Any]:
    """Noisy linear classes: examples, labels, candidates, and others to test on."""
    n, features, classes = shape
    random = np.random.default_rng(0)
    W = random.normal(size=(classes, features)).astype(np.float32)
    X, X_test = (random.standard_normal((size, features), np.float32) for size in (n, max(100, n // 5)))
    noise = 0.35 * features**0.5 * random.gumbel(size=(n, classes))
    y = (X @ W.T + noise).argmax(axis=1)
    candidates = with_random(X, y, classes, SPEED_CANDIDATES - 1).candidates
    return X, y, candidates, X_test, (X_test @ W.T).argmax(axis=1)


def _speed(scope: Scope, say: Say) -> list[Pass]:
    """One pass over many examples, in turns, beside LaRank on the true labels."""
    from larank import AmbiguousClassifier, LaRankClassifier

    X, y, candidates, X_test, y_test = _linear_problem(QUICK_SPEED_SHAPE if scope.quick else SPEED_SHAPE)
    alike: dict[str, Any] = {"kernel": "linear", "C": SPEED_C, "max_iter": 1, "random_state": 0}
    entrants: dict[str, tuple[Any, Any]] = {
        "LaRankClassifier, true labels": (LaRankClassifier(**alike), y),
        "AmbiguousClassifier": (AmbiguousClassifier(**alike), candidates),
        "AmbiguousClassifier, n_reprocess=0": (AmbiguousClassifier(**alike, n_reprocess=0), candidates),
    }
    best = dict.fromkeys(entrants, float("inf"))
    for turn in range(1 if scope.quick else SPEED_REPEATS):
        for name, (model, target) in entrants.items():
            with Stopwatch() as watch:
                model.fit(X, target, certify=False)
            best[name] = min(best[name], watch.wall)
            say(f"speed, turn {turn}: {name} {watch.wall:.2f} s")
    return [Pass(name, best[name], 1 - float(model.score(X_test, y_test))) for name, (model, _) in entrants.items()]


# ---- What was found ----


@dataclass
class AmbiguousTables(Findings):
    """Accuracies on real and on made candidates."""

    cases: tuple[Case, ...]
    passes: tuple[Pass, ...] = ()
    quick: bool = False

    def to_tables(self) -> list[Table]:
        real = [case for case in self.cases if not case.condition]
        made = [case for case in self.cases if case.condition]
        return [
            self._accuracies("Accuracy in percent on real candidates", real),
            self._accuracies("Accuracy in percent on candidates made for LETTER and USPS", made),
            self._speed(),
        ]

    def to_claims(self) -> list[Claim]:
        real = [case for case in self.cases if not case.condition and OURS in case.runs]
        if self.quick:
            return []
        rivals = [name for name in real[0].runs if not name.startswith(OURS)] if real else []
        claims = [_verdict(name, real) for name in rivals]
        if self.passes:
            ratio = self.passes[1].seconds / self.passes[0].seconds
            claims.append(Claim(f"speed: {self.passes[1].learner} takes {ratio:.2f} of LaRank", ratio, most=SPEED_BAR))
        return claims

    def _speed(self) -> Table:
        n, features, classes = QUICK_SPEED_SHAPE if self.quick else SPEED_SHAPE
        notes = [
            f"{n} x {features} dense float32, {classes} classes, {SPEED_CANDIDATES} candidates each; linear kernel, C "
            f"{SPEED_C:g}, no certificate; best wall-clock time of fit of {1 if self.quick else SPEED_REPEATS}, in "
            f"turns. At most {SPEED_BAR:g} times the seconds of LaRank are asked of the second row.",
            "LaRank goes back to old examples as often as its schedule finds it worth, ours to one after each new one. "
            "What bounds it: reading X, and writing the weights of all classes back for every step.",
        ]
        table = Table("One pass of linear learners", ("", "seconds", "of LaRank's", "error %"), notes)
        for one in self.passes:
            share = one.seconds / self.passes[0].seconds
            table.add(one.learner, f"{one.seconds:.2f}", f"{share:.2f}", f"{100 * one.error:.1f}")
        return table

    def _accuracies(self, title: str, cases: Sequence[Case]) -> Table:
        splits = len(next(iter(cases[0].runs.values()))) if cases else 0
        notes = [
            f"Mean and standard deviation over {splits} random splits, {100 * TRAIN:g} % to train on; features "
            f"standardised by the training part. All learners have the same splits and select their parameters by "
            f"{FOLDS} folds of the training part, at most {SELECTED_ON} examples of it: predictions that are "
            "candidates. No true label is seen.",
            f"Less others: accuracy of {OURS} less that of the learner, with the standard error of the mean over the "
            "splits; won, lost: splits on which it is more, or less, accurate.",
        ]
        headings = ("", "accuracy", "among candidates", f"{OURS} less it", "won", "lost", "s per split")
        table = Table(title, headings, notes)
        for case in cases:
            table.add(f"{case.dataset} {case.condition}".rstrip(), style="bold")
            for name, runs in case.runs.items():
                table.add(f"  {name}", *_cells(case, name, runs))
            if case.dataset in LITERATURE:
                low, high = LITERATURE[case.dataset]
                table.add("  literature", f"{low}–{high}", style="dim")
            table.end_group()
        return table


def _cells(case: Case, name: str, runs: Sequence[Run]) -> list[str]:
    accuracies = case.accuracies(name)
    spread = accuracies.std(ddof=1) if len(runs) > 1 else float("nan")
    share, seconds = (float(np.mean([getattr(run, key) for run in runs])) for key in ("share", "seconds"))
    beside = ["", "", ""]
    if OURS in case.runs and name != OURS:
        mean, error = case.difference(name)
        beside = [f"{mean:+.2f} ± {error:.2f}", *map(str, case.wins(name))]
    return [f"{accuracies.mean():.2f} ± {spread:.2f}", f"{share:.2f}", *beside, f"{seconds:.1f}"]


def _verdict(name: str, cases: Sequence[Case]) -> Claim:
    held = [case.dataset for case in cases if case.difference(name)[0] >= 0]
    needed = min(NEEDED, len(cases))
    sets = f" ({', '.join(held)})" if held else ""
    said = f"{OURS} is at least as accurate as {name} on {len(held)} of {len(cases)} sets{sets}"
    return Claim(said, len(held), least=needed)


# ---- The parts ----


CASES: dict[str, tuple[Sequence[str], Sequence[str], Sequence[str]]] = {
    "real": (tuple(AMBIGUOUS), QUICK_DATASETS, ("",)),
    "made": (MADE, (), tuple(FALSE)),
}
"""Of sets of candidates as they were collected, and of true labels with false ones beside them: all sets, those of the
quick form, and the conditions."""
PARTS = (*CASES, "speed")


def _cases(part: str, scope: Scope, learners: Sequence[str], say: Say) -> Iterator[Case]:
    known, quick, conditions = CASES[part]
    wanted = [name for name in scope.datasets if name in known] if scope.datasets else quick if scope.quick else known
    seeds = range(scope.options.splits or (1 if scope.quick else SPLITS[part]))
    for name in wanted:
        if not datasets.is_available(name):
            say(f"{name}: absent from the data directory, left out")
            continue
        for condition in conditions[:1] if scope.quick else conditions:
            yield _case(name, condition, learners, seeds, scope.quick, say)


def _run(scope: Scope, say: Say) -> AmbiguousTables:
    learners = libraries.usable(scope.options.solvers or tuple(LEARNERS), LEARNERS, say)
    parts = scope.options.parts or tuple(part for part in PARTS if part != "speed" or not scope.datasets)
    cases = [case for part in parts if part in CASES for case in _cases(part, scope, learners, say)]
    if not cases and set(parts) & set(CASES):
        raise FileNotFoundError("none of the data sets wanted is in the data directory; set LARANK_DATA")
    passes = _speed(scope, say) if "speed" in parts else []
    return AmbiguousTables(tuple(cases), tuple(passes), scope.quick)


STUDY = Study(
    name="ambiguous",
    title="Learning from candidate labels, against CLPL, PL-kNN, a random candidate and scikit-weak",
    run=_run,
    datasets=(*AMBIGUOUS, *MADE),
    libraries=("scikit-weak",),
    options={
        "--parts": {"nargs": "+", "choices": PARTS, "default": (), "help": "only these parts"},
        "--solvers": {"nargs": "+", "choices": tuple(LEARNERS), "default": (), "metavar": "NAME"},
        "--splits": {"type": count, "help": "how many random splits; 10, of made candidates 3, 1 if quick"},
    },
)
