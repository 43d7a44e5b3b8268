"""The tables and figures of the LaRank paper are put together rightly, and their quick forms learn."""

from __future__ import annotations

import json
import math
from typing import Any, ClassVar

import numpy as np
import pytest
from matplotlib.figure import Figure
from stand_ins import printed, put_in_place

from studies.papers import larank as larank_paper
from studies.papers.experiment import Entry, Scope
from studies.papers.larank import (
    AVERAGED,
    AVERAGED_10,
    EXACT,
    EXPECTED,
    GAP,
    MIRA,
    ONE_PASS,
    PAPER,
    PAPER_ARGMAX,
    PUBLISHED,
    Curve,
    Point,
    Run,
    Table2,
)

STUDIES = {study.name: study for study in larank_paper.STUDIES}


class StandIn:
    """Predicts the nearest class mean, and reports figures that are easy to follow."""

    made: ClassVar[list[StandIn]] = []

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.made.append(self)

    def fit(self, X: Any, y: Any, validation: Any = None) -> StandIn:
        self.examples, self.validation = len(y), validation
        self.classes_ = np.unique(y)
        self.means = np.array([X[y == label].mean(axis=0) for label in self.classes_])
        seed = self.settings["random_state"]
        history = [Moment(0.5, 4 * 10**6, 0.25), Moment(1.0, 9 * 10**6, None)]
        self.result_ = Certificate(dual=5200.0 + seed, history=history)
        return self

    def predict(self, X: Any) -> Any:
        distances = ((X[:, None, :] - self.means) ** 2).sum(axis=2)
        return self.classes_[np.argmin(distances, axis=1)]


class Moment:
    support_patterns = 7

    def __init__(self, iterations: float, kernel_values: int, error: float | None) -> None:
        self.iterations, self.kernel_values, self.error = iterations, kernel_values, error


class Certificate:
    """What the experiments read of it."""

    status, iterations, kernel_values, support_patterns, argmax_calls = "completed", 1.0, 50 * 10**6, 1234, 190_000

    def __init__(self, dual: float, history: list[Moment]) -> None:
        self.dual, self.history = dual, history


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> type[StandIn]:
    names = ("LaRankClassifier", "MulticlassSVC", "KernelPassiveAggressive", "KernelPerceptron")
    return put_in_place(monkeypatch, StandIn, *names)


def entry(dataset: str, algorithm: str, errors: list[float], duals: list[float]) -> Entry[Run]:
    runs = [
        Run(seed, error, dual, kernels=50.0, seconds=2.5, patterns=4000, argmax=190.0, status="completed")
        for seed, (error, dual) in enumerate(zip(errors, duals, strict=True))
    ]
    return Entry(dataset, algorithm, tuple(runs))


def test_table_2_gives_mean_extremes_and_whether_they_are_as_expected():
    lines = printed(Table2((entry("letter", ONE_PASS, [2.8, 3.0, 3.5], [5200, 5210, 5220]),)))
    assert lines.count("LaRank x1, paper 2.80 5226 55 940 -") == 1
    at = lines.index("LaRank x1, 3 seeds 3.10 5210 50.0 2.50 4000")
    assert lines[at + 1 : at + 5] == [
        "min 2.80 5200 50.0 2.50 4000",
        "max 3.50 5220 50.0 2.50 4000",
        "expected ≤ 3 5150–5300",
        "as expected no yes",
    ]
    assert {"MCSVM, paper 2.42 5548 241 1200 -", "SVMstruct, paper 2.40 5495 2083 23000 -"} <= set(lines)


def test_table_2_compares_news20_with_nothing():
    lines = printed(Table2((entry("news20", ONE_PASS, [15.0], [100.0]),)))
    assert not any("x1, paper" in line for line in lines)
    assert any("stands in for INEX" in line for line in lines)


def test_what_is_expected_is_open_to_one_side_or_both():
    assert PUBLISHED.as_expected(entry("usps", ONE_PASS, [4.8], [515]), "dual")
    assert not PUBLISHED.as_expected(entry("usps", ONE_PASS, [4.8], [514]), "dual")
    assert not PUBLISHED.as_expected(entry("letter", ONE_PASS, [2.8], [5301]), "dual")
    assert PUBLISHED.as_expected(entry("usps", GAP, [4.7], [500]), "dual") is None
    assert all(low < high for bands in EXPECTED.values() for low, high in bands.values())


def test_published_figures_are_complete():
    assert all(
        set(row) == {"error", "dual", "seconds", "kernels"} for table in PAPER.values() for row in table.values()
    )
    assert all(set(row) == set(PAPER) for row in PAPER_ARGMAX.values())


def test_thinned_curves_keep_their_ends():
    points = tuple(Point(k / 100, float(k), 50 / k, k) for k in range(1, 300))
    thinned = Curve("letter", GAP, 0, points).thinned(10)
    assert len(thinned) == 10
    assert (thinned[0], thinned[-1]) == (points[0], points[-1])
    steps = np.diff(np.log([point.kernels for point in thinned]))
    assert steps.max() < 2 * math.log(299) / 9


@pytest.mark.parametrize("name", STUDIES)
def test_quick_forms_train_on_a_part_of_the_embedded_data(
    name: str, stand_in: type[StandIn], monkeypatch: pytest.MonkeyPatch, tmp_path
):
    monkeypatch.setenv("LARANK_DATA", str(tmp_path))
    lines: list[str] = []
    reproduction = STUDIES[name].run(Scope(quick=True), lines.append)
    assert {model.examples for model in stand_in.made} == {larank_paper.QUICK_TRAIN}
    assert {model.settings["random_state"] for model in stand_in.made} == {0}
    assert len(lines) == len(stand_in.made)
    assert all(model.settings["gamma"] == 0.025 for model in stand_in.made)
    assert all(("decision" in model.settings) != ("C" in model.settings) for model in stand_in.made)
    assert all(model.settings.get("C", 10) == 10 for model in stand_in.made)
    assert json.loads(json.dumps(reproduction.to_dict()))["quick"] is True
    text = printed(reproduction)
    assert any(line.startswith("Quick form") for line in text)
    assert not any("expected" in line for line in text)


def test_table_2_trains_with_both_stopping_rules_and_exactly_over_five_seeds(stand_in: type[StandIn]):
    table = STUDIES["larank-table2"].run(Scope(datasets=("letter",)), lambda line: None)
    assert [len(row["runs"]) for row in table.to_dict()["entries"]] == [5, 5, 5]
    names = ("stop", "epochs", "tol")
    stops = [tuple(model.settings.get(name) for name in names) for model in stand_in.made]
    assert stops == [("gap", None, None)] * 5 + [(None, 1, None)] * 5 + [(None, None, 1e-3)] * 5
    assert all(model.examples == 16000 for model in stand_in.made)
    assert any(line.startswith("as expected") for line in printed(table))


def test_entries_that_take_minutes_have_one_seed_unless_told_otherwise(
    stand_in: type[StandIn], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(larank_paper, "SLOW", {("letter", GAP)})
    for seeds, expected in ((None, [1, 5, 5]), (2, [2, 2, 2])):
        table = STUDIES["larank-table2"].run(Scope(seeds=seeds, datasets=("letter",)), lambda line: None)
        assert [len(row["runs"]) for row in table.to_dict()["entries"]] == expected


def test_table_3_shows_the_other_algorithms_as_published(stand_in: type[StandIn]):
    lines = printed(STUDIES["larank-table3"].run(Scope(quick=True), lambda line: None))
    assert {"AvgPerceptron x1, paper 16", "SVMstruct, paper 141", "LaRank x1, mean 190"} <= set(lines)
    assert {"AvgPerceptron x1, mean 190", "AvgPerceptron x10, mean 190"} <= set(lines)
    assert [model.settings.get("epochs") for model in stand_in.made] == [1, 10, 1, None]


def test_figure_1_follows_the_test_error(stand_in: type[StandIn]):
    experiment = STUDIES["larank-figure1"]
    outcome = experiment.run(Scope(quick=True), lambda line: None)
    assert all(len(model.validation[1]) == larank_paper.QUICK_TEST for model in stand_in.made)
    for curve in outcome.curves:
        assert [(point.kernels, point.patterns) for point in curve.points] == [(4.0, 7), (50.0, 1234)]
        assert curve.points[0].error == 25.0
    assert experiment.draw is not None
    figure = Figure()
    experiment.draw(outcome, figure)
    assert [axes.get_title() for axes in figure.axes] == ["letter"]
    legend = {text.get_text() for text in figure.axes[0].get_legend().get_texts()}
    assert legend == {GAP, ONE_PASS, AVERAGED, AVERAGED_10, MIRA, "LaRankGap, paper", "LaRank x1, paper"}


def test_figure_2_restricts_the_operations(stand_in: type[StandIn]):
    experiment = STUDIES["larank-figure2"]
    outcome = experiment.run(Scope(quick=True, seeds=2), lambda line: None)
    used = [model.settings.get("operations") for model in stand_in.made]
    assert used[::2] == [("new",), ("new", "old"), ("new", "optimize"), ("new", "old", "optimize"), None, None]
    assert [entry.algorithm for entry in outcome.entries][-2:] == [MIRA, AVERAGED]
    assert experiment.draw is not None
    figure = Figure()
    experiment.draw(outcome, figure)
    assert len(figure.axes) == 2


def test_an_interrupted_training_ends_the_experiment(stand_in: type[StandIn], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Certificate, "status", "interrupted")
    with pytest.raises(KeyboardInterrupt):
        STUDIES["larank-table2"].run(Scope(quick=True), lambda line: None)


def test_one_pass_over_a_part_of_letter_learns_it():
    table = STUDIES["larank-table2"].run(Scope(quick=True), lambda line: None)
    gap, one_pass, exact = table.entries
    assert (gap.algorithm, one_pass.algorithm, exact.algorithm) == (GAP, ONE_PASS, EXACT)
    assert exact.mean("dual") == pytest.approx(gap.mean("dual"), rel=2e-3)
    assert gap.mean("error") < 17
    assert one_pass.mean("error") < 20
    assert 0 < one_pass.mean("dual") < gap.mean("dual")
    assert 0 < one_pass.mean("kernels") < gap.mean("kernels")
    assert one_pass.mean("argmax") >= larank_paper.QUICK_TRAIN / 1e3


def test_figure_1_on_a_part_of_letter_goes_down():
    outcome = STUDIES["larank-figure1"].run(Scope(quick=True), lambda line: None)
    for curve in outcome.curves:
        assert curve.points[-1].error < 0.5 * curve.points[0].error
        assert all(0 <= point.error <= 100 for point in curve.points)
        assert all(np.diff([point.kernels for point in curve.points]) >= 0)


def test_all_operations_together_are_best_and_the_first_alone_is_like_mira():
    outcome = STUDIES["larank-figure2"].run(Scope(quick=True), lambda line: None)
    only_new, *_, everything, mira, averaged = outcome.entries
    assert everything.mean("error") < only_new.mean("error")
    assert everything.mean("dual") > only_new.mean("dual")
    # [larank] section 4.4
    assert mira.mean("error") == pytest.approx(only_new.mean("error"), abs=4)
    assert mira.mean("patterns") == pytest.approx(only_new.mean("patterns"), rel=0.1)
    assert averaged.mean("patterns") < 0.7 * mira.mean("patterns")
    assert averaged.mean("kernels") < mira.mean("kernels")
    assert all(row["runs"][0]["dual"] is None for row in outcome.to_dict()["entries"][-2:])
    assert any(line.startswith("MIRA, seed 0") and " - " in line for line in printed(outcome))


def test_the_averaged_perceptron_makes_one_arg_max_per_example_and_gets_better_with_passes():
    table = STUDIES["larank-table3"].run(Scope(quick=True), lambda line: None)
    once, ten_times, one_pass, _ = table.entries
    assert (once.algorithm, ten_times.algorithm) == (AVERAGED, AVERAGED_10)
    assert once.mean("argmax") == larank_paper.QUICK_TRAIN / 1e3
    assert ten_times.mean("argmax") == 10 * larank_paper.QUICK_TRAIN / 1e3
    assert ten_times.mean("error") < once.mean("error")
    assert one_pass.mean("error") < once.mean("error")


def test_no_data_set_at_all_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setenv("LARANK_DATA", str(tmp_path))
    lines: list[str] = []
    with pytest.raises(FileNotFoundError, match="none of usps is in the data directory"):
        STUDIES["larank-figure2"].run(Scope(), lines.append)
    assert lines == ["usps: absent from the data directory, left out"]
