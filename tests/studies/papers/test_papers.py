"""Studies of the papers: published tables are complete, and what is made of runs is right."""

import lzma
import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel

from larank import LinearSGDClassifier
from larank.ambiguous.meanings import parse_meaning
from studies.datasets import BINARY, GEOQUERY, SEQUENCES, SMALL, Dataset, is_available, load, load_questions
from studies.papers import active, concepttables, larank, lasvm, mcsvm, ospas, primal, sdm, selection, sequence, sgdqn
from studies.papers.active import AUTOACTIVE, RANDOM, RETRAIN, RETRAIN_ALL, Curve, Point
from studies.papers.experiment import Published
from studies.papers.selection import MSVM, ONE_VS_REST, Choice, Defaults, Grid, split
from studies.papers.vectors import Sizes, costs
from studies.study import Scope

# ---- Published tables ----


@pytest.mark.parametrize(
    ("published", "figures"),
    [
        (larank.PUBLISHED, {"error", "dual", "seconds", "kernels"}),
        (lasvm.PUBLISHED, {"error"}),
        (sequence.PUBLISHED, {"accuracy", "seconds"}),
    ],
)
def test_published_rows_have_figures_and_expectations_belong_to_rows(published: Published, figures: set[str]) -> None:
    rows = {(name, row): set(found) for name, of in published.rows.items() for row, found in of.items()}
    assert all(figures <= found <= set(published.columns) for found in rows.values())
    assert set(published.expected) <= set(rows)
    assert all(low < high for bands in published.expected.values() for low, high in bands.values())


def test_published_tables_are_complete() -> None:
    assert all(set(row) == set(larank.PAPER) == {"letter", "usps", "mnist"} for row in larank.PAPER_ARGMAX.values())
    assert set(lasvm.PAPER) - set(lasvm.PAPER_FINISHING) == {"mnist"}
    for name, rows in lasvm.PAPER.items():
        assert set(rows) == {lasvm.LIBSVM, lasvm.ONE, *([lasvm.TWO] if name == "mnist" else [])}
    assert all({"vectors", "kernels"} <= set(lasvm.PAPER[name][lasvm.ONE]) for name in lasvm.PAPER_FINISHING)
    assert all(algorithm in lasvm._algorithms(dataset) for dataset, algorithm in lasvm.EXPECTED)
    for name, rows in sequence.PAPER.items():
        crfs = () if name == sequence.OCR else (sequence.CRF, sequence.CRF_ONLINE)
        assert set(rows) == {*sequence.ALGORITHMS, *crfs}
    assert set(sequence.PAPER) == set(sequence.PARAMETERS) == set(SEQUENCES)
    assert all("f1" in row for row in sequence.PAPER[sequence.CHUNKING].values())
    assert sum("dual" in row for row in sequence.PAPER[sequence.CHUNKING].values()) == 6
    assert {*lasvm.PAPER_FINISHING, *active.PROTOCOLS} <= set(BINARY)
    assert all(list(protocol.labels) == sorted(set(protocol.labels)) for protocol in active.PROTOCOLS.values())
    assert all(len(row) == len(ospas.LEVELS) == len(ospas.EXPECTED) for row in ospas.PAPER.values())
    assert set(primal.PAPER) == set(SMALL)


def test_what_is_expected_of_errors_on_the_house_is_true_of_the_thesis_and_not_of_others() -> None:
    methods = concepttables.METHODS
    published = {row: method.paper[1] for row, method in methods.items() if method.paper}
    assert (len(published), published[concepttables.SVM_X]) == (9, 42.61)
    held = [method.holds for method in methods.values() if method.holds]
    assert len(held) == 5
    for errors, holds in ((published, True), ({row: 100 - error for row, error in published.items()}, False)):
        assert [is_held(errors) for is_held in held] == [holds] * 5


# ---- LaRank and MCSVM ----


def test_thinned_curves_keep_their_ends() -> None:
    points = tuple(larank.Point(k / 100, float(k), 50 / k, k) for k in range(1, 300))
    thinned = larank.Curve("letter", larank.GAP, 0, points).thinned(10)
    assert len(thinned) == 10
    assert (thinned[0], thinned[-1]) == (points[0], points[-1])
    steps = np.diff(np.log([point.kernels for point in thinned]))
    assert steps.max() < 2 * math.log(299) / 9


@pytest.fixture
def figure7(monkeypatch, tmp_path):
    """Run figure 7 on fewer examples than the quick form, from the data set that comes with the library."""
    monkeypatch.setenv("LARANK_DATA", str(tmp_path))

    def run(sizes, time_limit):
        monkeypatch.setattr(mcsvm, "QUICK", mcsvm.Protocol(figure5=0, figure6=0, figure7=sizes, time_limit=time_limit))
        return mcsvm._figure7(Scope(quick=True), lambda line: None)

    return run


def test_the_versions_of_figure_7_reach_the_same_accuracy(figure7):
    found = figure7((40, 80), 60.0).others
    assert not found["skipped"]
    assert [run.version for run in found["runs"]] == [*mcsvm.VERSIONS] * 2
    assert all(run.violation < 0.1 for run in found["runs"])
    third, fourth, fifth = found["runs"][-3:]
    assert third.kernel_rows > fourth.kernel_rows
    assert fourth.rounds == fifth.rounds == third.rounds


def test_a_version_that_would_take_too_long_is_left_out_with_a_reason(figure7):
    found = figure7((20, 40, 80), 1e-9)
    assert {run.examples for run in found.others["runs"]} == {20}
    assert len(found.others["skipped"]) == 2 * len(mcsvm.VERSIONS)
    (table,) = found.tables
    assert any(note.startswith("Left out: version 1, base line, with 40 examples of letter") for note in table.notes)
    assert table.rows[1][0][1].startswith("> ")


# ---- SDM and SGD-QN ----


def test_partition_is_a_stratified_60_20_20_split():
    y = np.repeat([0, 1, 2], [1000, 50, 1])
    parts = sdm.partition(y, seed=3)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(y)))
    counts = [np.bincount(y[part], minlength=3).tolist() for part in parts]
    assert counts == [[600, 30, 1], [200, 10, 0], [200, 10, 0]]


def test_ten_wins_out_of_ten_give_the_p_value_of_the_paper():
    ours = tuple(70 + 0.1 * i for i in range(10))
    better = tuple(value + 1 + 0.01 * i for i, value in enumerate(ours))
    accuracy = {"one-vs-rest": ours, "crammer-singer": better, "weston-watkins": ours}
    row = sdm.Row("mnist", accuracy, accuracy, dict.fromkeys(accuracy, 0.0))
    assert row.p_value("crammer-singer") == pytest.approx(2.0e-3, abs=1e-4)
    assert row.p_value("weston-watkins") == 1.0
    shown, paper = (" ".join(cells) for cells, _ in sdm.table_of([row], 10).rows)
    assert shown.startswith("mnist 70.45 ± 0.30 71.5")
    assert "0.002" in paper


def test_the_thesis_s_primal_cost_is_half_of_the_library_s_with_twice_its_lambda():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 5))
    y = np.where(X[:, 0] + random.normal(size=200) > 0, 1, -1)
    alpha = 2 * sgdqn.LAMBDA["alpha"]
    model = LinearSGDClassifier("squared_hinge", alpha=alpha, fit_intercept=False, random_state=0).fit(X, y)
    assert sgdqn.primal("alpha", Dataset(X, y, X, y), model.coef_) == pytest.approx(model.result_.primal / 2)


def test_passes_are_counted_to_the_first_that_is_low_enough():
    points = [sgdqn.Point(passes, 0.0, primal, 0.0) for passes, primal in ((1, 3.0), (2, 1.0), (3, 2.0), (4, 1.0))]
    assert sgdqn.passes_until(2.0, points) == 2
    assert sgdqn.passes_until(1.0, points) == 2
    assert sgdqn.passes_until(0.5, points) is None


@pytest.mark.parametrize(
    ("dataset", "svmsgd2", "sgdqn_passes", "holds"),
    [
        ("alpha", (10, 9), (5, 5), True),
        ("alpha", (9, 9), (9, 9), False),
        ("alpha", (10, 10), (5, None), False),
        ("rcv1", (9, 9), (9, 9), True),
        ("rcv1", (9, 9), (9, 10), False),
    ],
)
def test_dense_data_need_fewer_passes_and_sparse_ones_not_more(dataset, svmsgd2, sgdqn_passes, holds):
    races = [sgdqn.Race(dataset, seed, 0.5, *both) for seed, both in enumerate(zip(svmsgd2, sgdqn_passes, strict=True))]
    assert sgdqn.race_claim(dataset, races).holds == holds


def test_costs_are_those_of_all_operations_of_the_table():
    found = costs(Sizes(2_000, 100, 100))
    assert [cost.order for cost in found] == ["O(1)", "O(s)", "O(d)", "O(s)", "O(d + s')", "O(s + s')"]
    assert all(cost.nanoseconds > 0 for cost in found)


# ---- LaSVM ----


def test_curves_are_averaged_where_all_seeds_have_a_point():
    first, second = (Point(25, 0.5, 10, 2.0), Point(50, 0.5, 20, 1.0)), (Point(50, 0.5, 30, 2.0),)
    found = active.means(Curve("usps", RETRAIN, seed, points) for seed, points in enumerate((first, second)))
    assert found == {RETRAIN: [Point(50, 0.5, 25.0, 1.5)]}


def test_the_smallest_model_that_is_good_enough_is_found():
    points = [Point(1, 0.0, *found) for found in ((10, 9.0), (20, 5.0), (15, 4.0), (30, 3.0))]
    assert active.fewest_vectors(points, 5.0) == points[2]
    assert active.fewest_vectors(points, 2.0) is None


@pytest.mark.parametrize(
    ("vectors", "error", "verdict"),
    [
        (300, 14.9, "reaches it with 300, 0.30 of them"),
        (400, 14.9, "reaches it with 400, and has 20.00 % with 100"),
        (300, 15.1, "does not reach it, and has 15.10 % with 300"),
    ],
)
def test_the_claim_on_adult_is_checked(vectors: float, error: float, verdict: str):
    random = [Point(2000, 0.5, 500, 16.0), Point(32561, 0.5, 1000, 15.0)]
    chosen = [Point(250, 0.5, 100, 20.0), Point(2000, 0.5, vectors, error)]
    claim = active.adult_claim({RANDOM: random, AUTOACTIVE: chosen})
    assert claim.what.endswith(verdict)
    assert claim.holds == ("0.30" in verdict)


def test_redrawn_sets_hold_every_example_once():
    X, y = np.arange(30.0)[:, None], np.where(np.arange(30) % 2, 1, -1)
    for part in (X, sparse.csr_matrix(X)):
        drawn = active._drawn(Dataset(part[:20], y[:20], part[20:], y[20:]), seed=1)
        both = [np.asarray(rows.todense()) if sparse.issparse(rows) else rows for rows in (drawn.X_train, drawn.X_test)]
        assert [len(rows) for rows in both] == [20, 10]
        values = np.concatenate(both)[:, 0]
        assert sorted(values) == list(range(30))
        assert np.array_equal(np.concatenate([drawn.y_train, drawn.y_test]), np.where(values % 2, 1, -1))


def test_training_anew_starts_where_both_classes_are_known():
    random = np.random.default_rng(3)
    y = np.where(np.arange(200) < 10, 1, -1)
    X = (y[:, None] + random.normal(size=(200, 2))).astype(np.float32)
    data = Dataset(X, y, X, y)
    for retrained in (RETRAIN, RETRAIN_ALL):
        points = active._retrained_points("usps", retrained, data, (1, 60, 80), seed=0)
        assert [point.labels for point in points] == [60, 80]
        assert points[0].seconds < points[1].seconds
        assert all(point.error < 10 for point in points)


QUESTION = """<example id='{}'><nl lang='en'>
Give me the cities in Virginia .
</nl><nl lang='de'>x</nl><mrl lang='geo-funql'>
answer(city(loc_2(stateid('virginia'))))
</mrl><mrl lang='geo-prolog'>y</mrl></example>"""


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("LARANK_DATA", str(tmp_path))
    (tmp_path / GEOQUERY).mkdir()
    text = "<examples>" + "".join(QUESTION.format(i) for i in range(620)) + "</examples>"
    (tmp_path / GEOQUERY / "geoquery_multilingual.xml.xz").write_bytes(lzma.compress(text.encode()))


@pytest.mark.usefixtures("questions")
def test_questions_have_words_in_lower_case_and_their_meaning():
    assert is_available(GEOQUERY)
    found = load_questions()
    assert len(found) == 620
    assert found[0].words == ("give", "me", "the", "cities", "in", "virginia", ".")
    assert found[0].meaning == parse_meaning("answer(city(loc_2(stateid(virginia))))")


@pytest.mark.usefixtures("questions")
def test_questions_are_split_trained_on_and_scored():
    outcome = ospas.STUDY.run(Scope(datasets=(GEOQUERY,), seeds=1), lambda line: None)
    scores = outcome.others["scores"]
    assert [found.variant for found in scores] == list(ospas.VARIANTS)
    assert np.isfinite([found.f1 for found in scores]).all()
    assert [cells[0] for cells, _ in outcome.tables[-1].rows] == list(ospas.VARIANTS)


# ---- The primal multiclass SVM ----


def points(n: int = 90) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    y = np.arange(n) % 3
    return random.normal(size=(n, 4)) + 3 * np.eye(3, 4)[y], y


def test_defaults_are_the_median_distance_and_one_over_the_variance_in_feature_space():
    X, _ = points(20)
    defaults = Defaults.of(X, (0.5, 2.0))
    distances = [np.linalg.norm(a - b) for i, a in enumerate(X) for b in X[:i]]
    assert defaults.sigma == pytest.approx(np.median(distances))
    K = rbf_kernel(X, gamma=1 / (2 * (0.5 * defaults.sigma) ** 2))
    assert defaults.costs[0.5] == pytest.approx(1 / (np.diag(K).mean() - K.mean()))
    assert defaults.costs[2.0] > defaults.costs[0.5]


def test_a_split_is_standardised_by_its_training_part_and_tests_all_others():
    X, y = points()
    data = split(np.column_stack([X, np.ones(len(X))]), y, 30, 0, standardised=True)
    assert len(data.y_train) == 30
    assert len(data.y_test) == 60
    assert np.allclose(data.X_train.mean(axis=0), 0)
    assert np.allclose(data.X_train.std(axis=0), [1, 1, 1, 1, 0])
    assert not np.allclose(data.X_test.mean(axis=0)[:4], 0, atol=1e-3)
    assert set(map(tuple, split(X, y, 30, 0, False).X_train)) < set(map(tuple, X))
    assert not np.array_equal(split(X, y, 30, 0, False).X_train, split(X, y, 30, 1, False).X_train)


def test_one_versus_rest_are_binary_problems_with_the_whole_c(monkeypatch):
    monkeypatch.setattr(selection, "TOLERANCE", 1e-8)
    X, y = points()
    (model,) = selection.trained(ONE_VS_REST, X, y, [0.7])
    for label, binary in enumerate(model.models):
        expected = LogisticRegression(C=0.7, tol=1e-9, max_iter=1000).fit(X, y == label)
        assert np.allclose(binary.coef_, expected.coef_, atol=1e-3)
    assert np.mean(model.predict(X) == y) > 0.9


def test_among_equals_the_smoothest_function_is_selected():
    grid = Grid(widths=(1.0, 2.0, 4.0), costs=(1.0, 10.0))
    defaults = Defaults(1.0, {1.0: 3.0, 2.0: 5.0, 4.0: 7.0})
    errors = np.array([[5, 4], [4, 4], [4, 3]])
    assert selection._least(errors, grid, defaults) == Choice(4.0, 10.0, 1 / 32, 70.0)
    errors = np.array([[5, 4], [4, 4], [4, 4]])
    assert selection._least(errors, grid, defaults) == Choice(4.0, 1.0, 1 / 32, 7.0)
    errors = np.array([[5, 4], [4, 4], [5, 4]])
    assert selection._least(errors, grid, defaults) == Choice(2.0, 1.0, 1 / 8, 5.0)


def test_selection_finds_a_model_that_generalises():
    X, y = points(240)
    data = split(X, y, 120, 0, standardised=True)
    found = selection.select(data, Grid((1.0, 4.0), (1.0, 100.0)), (MSVM, ONE_VS_REST), 0)
    assert set(found) == {MSVM, ONE_VS_REST}
    assert all(of.error < 15 and of.unfinished == 0 for of in found.values())


# ---- What differs ----


@pytest.mark.parametrize(("seeds", "holds"), [(3, [True, False]), (1, [None, None])])
def test_maps_are_told_apart_by_more_than_chance(seeds, holds):
    few = dict(zip(primal.MAPS, (10.5, 10.0, 12.0), strict=True))
    points = [
        primal.Point("seg", name, seed, share, 5, 1.0, (10.0 if share == 1 else few[name]) + 0.01 * seed * share, 0.0)
        for share in (1, 1 / 8)
        for name in primal.MAPS
        for seed in range(seeds)
    ]
    assert [claim.holds for claim in primal.map_claims(points)] == holds


def test_more_looks_need_a_larger_difference():
    first, second = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, 2.5])
    mean, chance = primal._difference(first, second, 1)
    assert mean == pytest.approx(2 / 3)
    assert chance == pytest.approx(4.303 * np.std([0.5, 1.0, 0.5], ddof=1) / np.sqrt(3), rel=1e-3)
    assert primal._difference(first, second, 6)[1] > chance


def test_three_letters_are_numbered_from_zero():
    data = load("abe", SMALL)
    assert set(data.y_train) == {0, 1, 2}
    assert len(data.y_train) + len(data.y_test) == 2323
