"""What the study of concept labelling found, as tables beside those of [thesis] appendix C, and as a drawing."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from studies.drawing import PALETTE
from studies.study import Claim, Findings, is_so
from studies.tables import Table, band, mean_and_deviation

# ---- Table C.2 ----

Errors = Mapping[str, float]
"""Mean test errors by row of table C.2; NaN for a row that was not run."""


class Method(NamedTuple):
    """A row of table C.2: the strategy of a `ConceptLabeler` or another learner, what it knows, the thesis's train and
    test error in percent, and what the mean test errors are held to, in words and as a condition."""

    learner: str
    relations: tuple[str, ...]
    paper: tuple[float, float] | None
    bar: str = ""
    holds: Callable[[Errors], bool] | None = None


TAGGER, MEMORY = "tagger", "memory"
LOCATION, CONTAINED_BY = "location", "containedby"
BOTH = (LOCATION, CONTAINED_BY)
OF_X, OF_CONTAIN, OF_LOC, OF_BOTH = "NN_OF, x", "NN_OF, x+u (contain)", "NN_OF, x+u (loc)", "NN_OF, x+u (loc, contain)"
LR_BOTH, SVM_X, SVM_BOTH = "NN_LR, x+u (loc, contain)", "SVMstruct, x", "SVMstruct, x+u (loc, contain)"
_FREE = "order-free"
METHODS = {  # [thesis] table C.2
    SVM_X: Method(TAGGER, (), (42.26, 42.61)),
    SVM_BOTH: Method(TAGGER, BOTH, (18.68, 23.57)),
    "NN, x": Method("independent", (), (35.80, 36.97)),
    "NN_LR, x": Method("left-right", (), (32.80, 35.80)),
    LR_BOTH: Method("left-right", BOTH, (5.42, 5.75), "> order-free", lambda error: error[LR_BOTH] > error[OF_BOTH]),
    OF_X: Method(_FREE, (), (32.50, 35.87), "30–42", lambda error: 30 <= error[OF_X] <= 42),
    OF_CONTAIN: Method(
        _FREE, (CONTAINED_BY,), (15.15, 17.04), "loc to x", lambda e: e[OF_LOC] <= e[OF_CONTAIN] <= e[OF_X]
    ),
    OF_LOC: Method(_FREE, (LOCATION,), (5.07, 5.22), "≤ 8", lambda error: error[OF_LOC] <= 8),
    OF_BOTH: Method(_FREE, BOTH, (0.0, 0.11), "≤ 0.5", lambda error: error[OF_BOTH] <= 0.5),
    "memory, x": Method(MEMORY, (), None),
}
TIE = 0.2
"""Points by which two errors of the thesis differ at least, if their order says something."""

# ---- The rest of the appendix ----

NEIGHBOURS = {  # [thesis] table C.3
    "gina": ("francoise", "maggie"),
    "mark": ("harry", "john"),
    "cat": ("hamster", "dog"),
    "football": ("toy", "videogame"),
    "chocolate": ("salad", "milk"),
    "desk": ("bed", "table"),
    "livingroom": ("kitchen", "garden"),
    "get": ("sit", "give"),
}
KNOWING, BLIND = "x+u", "x"
WEAK, WEAK_BAR = (0.64, 0.72), 1.5  # [thesis] C.7, train and test
WEAK_BAGS = 0.0  # wrong bags in training
POINT = (5000, 3.1)  # [thesis] C.6, training triples and test error
SECONDS_BAR, WORDS_BAR = 600.0, 20_000.0


@dataclass(frozen=True)
class Cell:
    """A count of the simulation, of the thesis and of ours."""

    what: str
    paper: str
    found: float
    form: str


@dataclass(frozen=True)
class RowErrors:
    """Sentences with a wrong label in percent, of one row and one seed."""

    row: str
    seed: int
    train: float
    test: float
    seconds: float


@dataclass(frozen=True)
class Closeness:
    """Of one row and seed: two nearest concepts by concept; by class, its size, how many of the nearest and of the two
    nearest concepts are of the same class, and how many would be by chance, as shares."""

    row: str
    seed: int
    nearest: Mapping[str, tuple[str, str]]
    purity: Mapping[str, tuple[int, float, float, float]]


@dataclass(frozen=True)
class Weak:
    """Errors in percent of a labeller that learned from bags: sentences, and bags of training sentences."""

    seed: int
    train: float
    test: float
    bags: float
    seconds: float


@dataclass(frozen=True)
class Point:
    """Test error in percent after so many training triples."""

    seed: int
    size: int
    error: float
    seconds: float


@dataclass(frozen=True)
class Speed:
    """Seconds of training and of one prediction, whole and in parts, and what was counted on the way."""

    triples: int
    epochs: int
    training: Mapping[str, float]
    sentences: int
    words: int
    prediction: Mapping[str, float]
    words_scored: float
    updates: float


_HELD = {True: "yes", False: "no", None: ""}


@dataclass
class ConceptFigures(Findings):
    """All parts; those that were not asked for are empty."""

    sizes: tuple[int, int]
    cells: tuple[Cell, ...] = ()
    errors: tuple[RowErrors, ...] = ()
    closeness: tuple[Closeness, ...] = ()
    weak: tuple[Weak, ...] = ()
    points: tuple[Point, ...] = ()
    speed: Speed | None = None
    quick: bool = False
    seeds_note: str = ""
    tagger_note: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "means": dict(self.means())}

    def to_claims(self) -> list[Claim]:
        if self.quick:
            return []
        means = self.means()
        claims = [
            is_so(f"{row}: {means[row]:.2f} % of the test sentences are wrong", method.holds(means), method.bar)
            for row, method in METHODS.items()
            if method.holds and row in means
        ]
        claims += [self._weak_claim()] if self.weak else []
        return claims + (self._speed_claims() if self.speed else [])

    def _weak_claim(self) -> Claim:
        test = float(np.mean([one.test for one in self.weak]))
        return Claim(f"from bags: {test:.2f} % of the test sentences are wrong", test, most=WEAK_BAR)

    def _speed_claims(self) -> list[Claim]:
        assert self.speed
        training, words = sum(self.speed.training.values()), self.speed.words / sum(self.speed.prediction.values())
        return [
            Claim(f"training takes {training:.0f} s", training, most=SECONDS_BAR),
            Claim(f"prediction labels {words:.0f} words/s", words, least=WORDS_BAR),
        ]

    def _held(self, holds: bool | None) -> str:
        return "" if self.quick else _HELD[holds]

    def to_tables(self) -> list[Table]:
        """Those of parts that were not run have no rows."""
        tables = [self._simulation(), self._errors(), self._orders(), self._neighbours(), self._purity()]
        return [*tables, self._weak(), self._curve(), self._speed(), self._shares()]

    def of(self, row: str) -> list[RowErrors]:
        return [one for one in self.errors if one.row == row]

    def close(self, row: str) -> list[Closeness]:
        return [one for one in self.closeness if one.row == row]

    def means(self) -> Errors:
        found = {row: float(np.mean([one.test for one in self.of(row)])) for row in METHODS if self.of(row)}
        return defaultdict(lambda: math.nan, found)

    # ---- The house, and table C.2 ----

    def _simulation(self) -> Table:
        notes = [
            f"Counted in the first data set of {self.sizes[0]} training triples; words without pronouns in sentences "
            "of make_ambiguous_house. A word is ambiguous if it stands for several concepts there."
        ]
        table = Table("The simulated house (thesis, C.6)", ("", "thesis", "here"), notes)
        for cell in self.cells:
            table.add(cell.what, cell.paper, format(cell.found, cell.form))
        return table

    def _errors(self) -> Table:
        seeds = len({one.seed for one in self.errors})
        notes = [
            "Share of sentences with at least one wrong label, in percent: mean and standard deviation over "
            f"{seeds} seeds of data and weights; {self.sizes[0]} training and {self.sizes[1]} test triples. "
            f"{self.seeds_note}",
            self.tagger_note,
            "memory: what the same sentence meant most often in training; in a sentence that never came, what each "
            "word meant most often. It shows how far words alone lead in this house.",
        ]
        headings = ("", "train, thesis", "test, thesis", "train", "test", "seconds", "expected", "as expected")
        table = Table("Errors (thesis, table C.2)", headings, notes)
        means = self.means()
        for row, method in METHODS.items():
            if found := self.of(row):
                paper = [f"{value:.2f}" for value in method.paper] if method.paper else ["-", "-"]
                held = self._held(method.holds(means) if method.holds else None)
                table.add(row, *paper, *_figures(found, "train", "test"), method.bar, held)
        return table

    def _orders(self) -> Table:
        notes = [
            "Neighbours in the order of the thesis's test errors. Seeds: in how many of ours the first has a smaller "
            f"error than the second. Tie: the thesis's two errors differ by less than {TIE:g} points."
        ]
        headings = ("less error", "more error", "thesis", "ours", "seeds", "same order")
        table = Table("Order of the test errors (thesis, table C.2)", headings, notes)
        means = self.means()
        published = {row: method.paper[1] for row, method in METHODS.items() if method.paper}
        for less, more in pairwise(sorted(published, key=published.__getitem__)):
            pairs = list(zip(self.of(less), self.of(more), strict=False))
            if pairs:
                smaller = sum(one.test < other.test for one, other in pairs)
                paper, ours = f"{published[less]:.2f} < {published[more]:.2f}", f"{means[less]:.2f}, {means[more]:.2f}"
                tie = "tie; " if published[more] - published[less] < TIE else ""
                order = tie + _HELD[means[less] < means[more]]
                table.add(less, more, paper, ours, f"{smaller} of {len(pairs)}", order)
        return table

    # ---- Table C.3 ----

    def _neighbours(self) -> Table:
        notes = ["By Euclidean distance of concept_vectors_, NN_OF with both relations and with none, first seed."]
        table = Table("Nearest concepts (thesis, table C.3)", ("concept", "thesis", KNOWING, BLIND), notes)
        for query, published in NEIGHBOURS.items() if self.closeness else ():
            found = (", ".join(self.close(row)[0].nearest[query]) for row in (KNOWING, BLIND))
            table.add(query, ", ".join(published), *found)
        return table

    def _purity(self) -> Table:
        notes = [
            f"Share of concepts in percent whose nearest neighbour is of the same class, over {len(self.close(BLIND))} "
            "seeds; two: share of the same class among the two nearest. By chance: among all other concepts. Concepts "
            "of no class (coat, book) may be neighbours, but are not asked about."
        ]
        shown = [(row, two) for row in (KNOWING, BLIND) for two in ("", ", two")]
        headings = ("class", "concepts", *(row + two for row, two in shown), "chance")
        table = Table("Neighbours of the same class", headings, notes)
        for name, (size, _, _, chance) in self.closeness[0].purity.items() if self.closeness else ():
            found = ([100 * one.purity[name][2 if two else 1] for one in self.close(row)] for row, two in shown)
            table.add(name, str(size), *(mean_and_deviation(each, ".0f") for each in found), f"{100 * chance:.0f}")
        return table

    # ---- Bags, the learning curve, speed ----

    def _weak(self) -> Table:
        notes = [
            'supervision="bags": each training sentence comes with its concepts in alphabetical order, "-" for each '
            f"word that has none. Errors as above, over {len(self.weak)} seeds; bags: training sentences whose "
            "predicted bag is wrong."
        ]
        headings = ("", "train", "test", "bags, train", "seconds", "expected", "as expected")
        table = Table("Learning from bags (thesis, C.7)", headings, notes)
        if self.weak:
            table.add("thesis", *(f"{value:.2f}" for value in (*WEAK, WEAK_BAGS)), style="dim")
            cells = _figures(self.weak, "train", "test", "bags")
            table.add(OF_BOTH, *cells, f"test ≤ {WEAK_BAR:g}", self._held(self._weak_claim().holds))
        return table

    def by_size(self) -> dict[int, list[Point]]:
        return {size: [at for at in self.points if at.size == size] for size in sorted({at.size for at in self.points})}

    def _curve(self) -> Table:
        seeds = len({point.seed for point in self.points})
        notes = [f"NN_OF with both relations and the same parameters throughout; the first triples of {seeds} seeds."]
        headings = ("training triples", "test error, thesis", "test error", "seconds")
        table = Table("Test error by training triples (thesis, C.6)", headings, notes)
        for size, found in self.by_size().items():
            published = {POINT[0]: POINT[1], 50_000: METHODS[OF_BOTH].paper[1]}.get(size)  # type: ignore[index]
            table.add(str(size), "-" if published is None else f"{published:g}", *_figures(found, "error"))
        return table

    def _speed(self) -> Table:
        at, notes = self.speed, []
        if at:
            notes.append(
                f"Wall-clock time, one thread; the best of three predictions of {at.sentences} sentences. In "
                f"training, {at.words_scored:.1f} words were scored and {at.updates:.2f} steps taken per "
                "sentence and pass."
            )
        table = Table("Speed of NN_OF with both relations", ("", "here", "expected", "as expected"), notes)
        if at:
            names = f"training, {at.triples} triples, {at.epochs} epochs, s", "prediction, words/s"
            for name, form, claim in zip(names, (".1f", ".0f"), self._speed_claims(), strict=True):
                table.add(name, f"{claim.value:{form}}", band(claim.least, claim.most), self._held(claim.holds))
            table.add("prediction, sentences/s", f"{at.sentences / sum(at.prediction.values()):.0f}")
        return table

    def _shares(self) -> Table:
        notes = [
            "Labelling in training is estimated: as many passes as training has, each as long as the compiled core "
            "takes to label the training sentences with the final weights; steps are the rest. In truth a sentence "
            "that is learned from is not labelled to its end, so the share of labelling is an upper bound.",
        ]
        table = Table("Where the time goes", ("", "seconds", "share in %"), notes)
        for title in ("training", "prediction") if self.speed else ():
            parts = getattr(self.speed, title)
            table.add(title, style="bold")
            for name, seconds in parts.items():
                table.add(f"  {name}", f"{seconds:.2f}", f"{100 * seconds / sum(parts.values()):.0f}")
            table.end_group()
        return table


def _figures(found: Sequence[Any], *names: str) -> list[str]:
    """Return mean and deviation of these figures over the seeds, and the mean of the seconds."""
    cells = [mean_and_deviation([getattr(one, name) for one in found]) for name in names]
    return [*cells, f"{np.mean([one.seconds for one in found]):.1f}"]


# ---- The drawing ----


def draw(outcome: ConceptFigures, figure: Any) -> None:
    figure.set_size_inches(11, 4)
    curve, bars = figure.subplots(1, 2)
    curve.set(title="Order-free, both relations", xlabel="training triples", ylabel="test error (%)")
    bars.set(title="Table C.2", xlabel="test error (%)")
    if outcome.points:
        _draw_curve(outcome.by_size(), curve)
    if outcome.errors:
        _draw_bars(outcome.means(), bars)


def _draw_curve(points: Mapping[int, Sequence[Point]], axes: Any) -> None:
    sizes, errors = list(points), [[at.error for at in found] for found in points.values()]
    axes.plot(sizes, [np.mean(found) for found in errors], "o-", markersize=3, color=PALETTE[0], label="here")
    axes.fill_between(sizes, [min(found) for found in errors], [max(found) for found in errors], alpha=0.2)
    axes.plot(*POINT, "s", color=PALETTE[1], label="thesis")
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=0.1)  # an error may be 0
    axes.set_ylim(bottom=0)
    axes.set_xticks(sizes, [f"{size:,}".replace(",", " ") for size in sizes], rotation=30)
    axes.set_xticks([], minor=True)
    axes.legend(frameon=False)


def _draw_bars(means: Errors, axes: Any) -> None:
    places = np.arange(len(means))[::-1]
    published = [method.paper[1] if (method := METHODS[row]).paper else 0.0 for row in means]
    axes.barh(places + 0.2, published, 0.4, color=PALETTE[1], label="thesis")
    axes.barh(places - 0.2, list(means.values()), 0.4, color=PALETTE[0], label="here")
    axes.set_yticks(places, list(means))
    axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 0.12))  # beside the shortest bars
