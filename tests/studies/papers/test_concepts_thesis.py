"""Tables C.2 and C.3 of the thesis are put together rightly."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from stand_ins import printed

import larank
from larank.ambiguous.house import make_triples
from studies import __main__ as command
from studies.papers.conceptrows import TokenRows, sentence_errors
from studies.papers.concepts import PARTS, QUICK_CURVE, QUICK_SIZES, STUDY, Scope, purity
from studies.papers.concepttables import (
    BOTH,
    EXPECTED,
    LR_BOTH,
    METHODS,
    NEIGHBOURS,
    OF_BOTH,
    OF_CONTAIN,
    OF_LOC,
    OF_X,
    SVM_X,
    ConceptFigures,
    RowErrors,
    Weak,
)

ROWS = {OF_BOTH: 0.1, OF_LOC: 5.0, LR_BOTH: 5.4, OF_CONTAIN: 19.0, OF_X: 41.0}


@pytest.fixture(scope="module")
def quick() -> ConceptFigures:
    outcome = STUDY.run(Scope(quick=True), lambda line: None)
    assert isinstance(outcome, ConceptFigures)
    return outcome


def with_errors(**changes: float) -> ConceptFigures:
    """Two seeds around these test errors."""
    errors = {**ROWS, **{globals()[name]: error for name, error in changes.items()}}
    found = [RowErrors(row, seed, 0.0, error + seed, 1.0) for row, error in errors.items() for seed in (0, 1)]
    return ConceptFigures((50_000, 20_000), errors=tuple(found))


# ---- The quick form ----


def test_every_row_of_the_table_has_errors_between_0_and_100(quick: ConceptFigures):
    assert [one.row for one in quick.errors] == list(METHODS)
    for one in quick.errors:
        assert 0 <= one.train <= 100
        assert 0 < one.test < 100


def test_what_is_known_of_the_world_helps_even_in_the_quick_form(quick: ConceptFigures):
    error = quick.means()
    assert error[OF_BOTH] < error[OF_LOC] < error[OF_CONTAIN] < error[OF_X]
    assert error[OF_BOTH] < error[LR_BOTH]


def test_counts_of_the_house_are_those_of_the_thesis(quick: ConceptFigures):
    counted = {cell.what: cell for cell in quick.cells}
    sizes = {"training triples": QUICK_SIZES[0], "test triples": QUICK_SIZES[1]}
    for name, cell in counted.items():
        if name in sizes:
            assert cell.found == sizes[name]
        elif cell.form == "d":
            assert cell.found == int(cell.paper)
    assert counted["ambiguous sentences, %"].found == pytest.approx(55, abs=4)
    assert 0 < counted["ambiguous words, %"].found < counted["ambiguous sentences, %"].found


def test_every_concept_asked_about_has_two_neighbours(quick: ConceptFigures):
    closeness, blind = quick.closeness
    assert (closeness.row, blind.row) == ("x+u", "x")
    assert len(closeness.nearest) == 58
    for query in NEIGHBOURS:
        assert query not in closeness.nearest[query]
        assert len(set(closeness.nearest[query])) == 2
    size, nearest, _, chance = closeness.purity["all"]
    assert size == 56
    assert nearest > chance


def test_more_triples_leave_less_error(quick: ConceptFigures):
    assert [point.size for point in quick.points] == list(QUICK_CURVE)
    assert quick.points[-1].error < quick.points[0].error
    assert quick.points[-1].error == quick.means()[OF_BOTH]


def test_parts_of_the_time_add_up(quick: ConceptFigures):
    assert quick.speed is not None
    (reference,) = quick.of(OF_BOTH)
    assert sum(quick.speed.training.values()) >= 0.99 * reference.seconds
    assert all(seconds >= 0 for seconds in (*quick.speed.training.values(), *quick.speed.prediction.values()))
    assert quick.speed.words > quick.speed.sentences == QUICK_SIZES[1]


def test_the_quick_form_is_printed_without_verdicts_stored_and_drawn(quick: ConceptFigures):
    text = printed(quick)
    assert any(line.startswith(f"{OF_BOTH} 0.00 0.11") for line in text)
    assert any(line.startswith("gina francoise, maggie") for line in text)
    numbers = json.loads(json.dumps(quick.to_dict(), allow_nan=False))
    assert numbers["as_expected"] == {}
    assert [one["row"] for one in numbers["errors"]] == list(METHODS)
    assert numbers["means"][OF_X] == pytest.approx(quick.means()[OF_X])
    figure = Figure()
    STUDY.draw(quick, figure)  # type: ignore[misc]
    curve, bars = figure.axes
    assert len(curve.lines) == 2
    assert len(bars.patches) == 2 * len(METHODS)


# ---- Parts ----


def test_only_the_parts_asked_for_are_run():
    outcome = STUDY.run(Scope(quick=True, parts=("simulation",)), lambda line: None)
    assert [table.title for table in outcome.to_tables() if table.rows] == ["The simulated house (thesis, C.6)"]
    STUDY.draw(outcome, Figure())  # type: ignore[misc]


def test_a_part_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        command.main(["concepts", "--parts", "attic"])
    said = capsys.readouterr().err
    assert all(part in said for part in PARTS)


def test_bags_tell_nothing_of_the_order_of_words(monkeypatch: pytest.MonkeyPatch):
    taught: list[Any] = []

    def fit(labeler: Any, words: Any, bags: Any, universes: Any) -> None:
        taught.extend(bags)
        raise KeyError("seen enough")

    monkeypatch.setattr(larank.ConceptLabeler, "fit", fit)
    with pytest.raises(KeyError, match="seen enough"):
        STUDY.run(Scope(quick=True, parts=("weak",)), lambda line: None)
    assert len(taught) == QUICK_SIZES[0]
    assert all(list(bag) == sorted(bag) for bag in taught)


# ---- Means and verdicts ----


def test_means_deviations_and_what_is_expected_are_shown():
    lines = printed(with_errors())
    assert f"{OF_LOC} 5.07 5.22 0.00 ± 0.00 5.50 ± 0.71 1.0 ≤ 8 yes" in lines
    assert f"{OF_BOTH} 0.00 0.11 0.00 ± 0.00 0.60 ± 0.71 1.0 ≤ 0.5 no" in lines


@pytest.mark.parametrize(
    ("change", "missed"),
    [
        ({"OF_BOTH": 0.0, "OF_X": 41.0}, ()),
        ({"OF_BOTH": 0.0, "OF_X": 42.0}, (OF_X,)),
        ({"OF_BOTH": 0.0, "OF_LOC": 8.0}, (OF_LOC,)),
        ({"OF_BOTH": 0.0, "OF_CONTAIN": 4.0}, (OF_CONTAIN,)),
        ({"OF_BOTH": 6.0}, (LR_BOTH, OF_BOTH)),
    ],
)
def test_a_bar_that_is_missed_is_told(change: dict[str, float], missed: tuple[str, ...]):
    held = with_errors(**change).to_dict()["as_expected"]
    assert held.keys() == EXPECTED.keys()
    assert {row for row, met in held.items() if not met} == set(missed)


def test_orders_of_neighbours_in_the_thesis_are_judged_by_means():
    lines = printed(with_errors(OF_CONTAIN=5.0))
    assert f"{OF_BOTH} {OF_LOC} 0.11 < 5.22 0.60, 5.50 2 of 2 yes" in lines
    assert f"{LR_BOTH} {OF_CONTAIN} 5.75 < 17.04 5.90, 5.50 0 of 2 no" in lines


def test_ties_of_the_thesis_are_called_so():
    found = [RowErrors(row, 0, 40.0, error, 1.0) for row, error in (("NN_LR, x", 41.0), (OF_X, 40.0))]
    lines = printed(ConceptFigures((1, 1), errors=tuple(found)))
    assert f"NN_LR, x {OF_X} 35.80 < 35.87 41.00, 40.00 0 of 1 tie; no" in lines


def test_errors_from_bags_stand_below_those_of_the_thesis():
    lines = printed(ConceptFigures((1, 1), weak=(Weak(0, 0.5, 1.6, 0.1, 60.0),)))
    at = lines.index("thesis 0.64 0.72 0.00")
    assert lines[at + 1] == f"{OF_BOTH} 0.50 1.60 0.10 60.0 test ≤ 1.5 no"


def test_purity_counts_neighbours_of_the_same_class():
    nearest = {"a": ("b", "c"), "b": ("c", "a"), "c": ("d", "a"), "d": ("c", "b")}
    found = purity(nearest, {"first": ("a", "b"), "second": ("c", "d")})
    assert found["first"] == pytest.approx((2, 0.5, 0.5, 1 / 3))
    assert found["second"] == pytest.approx((2, 1.0, 0.5, 1 / 3))
    assert found["all"] == pytest.approx((4, 0.75, 0.5, 1 / 3))


# ---- Rows of features ----


def test_rows_have_the_words_of_the_window_and_the_facts_of_the_universe():
    triples = make_triples(40, random_state=3)
    X, lengths = TokenRows(triples.words, 5, BOTH).of(triples)
    named: dict[int, tuple[Any, ...]] = {}
    row = 0
    for number, words in enumerate(triples.words):
        for place in range(len(words)):
            window = [(k, words[place + k] if 0 <= place + k < len(words) else None) for k in range(-2, 3)]
            facts = [
                (relation, concept, value)
                for relation in BOTH
                for concept, value in enumerate(getattr(triples, relation)[number])
                if value >= 0
            ]
            found = X[row].indices
            assert len(found) == len(window) + len(facts)
            for feature, name in zip(found, [*window, *facts], strict=True):
                assert named.setdefault(feature, name) == name
            row += 1
    assert row == X.shape[0] == lengths.sum()
    assert len(set(named.values())) == len(named)
    assert (X.data == 1).all()


def test_rows_without_relations_have_words_only_and_take_unknown_words():
    known, new = SimpleNamespace(words=[("a", "b")]), SimpleNamespace(words=[("a", "z")])
    rows = TokenRows(known.words, 3, ())
    assert rows.of(known)[0].shape == rows.of(new)[0].shape == (2, 9)
    assert rows.of(new)[0].sum() == 6


def test_a_sentence_is_wrong_if_one_of_its_labels_is():
    wrong = sentence_errors(np.array([1, 2, 3, 4]), np.array([1, 2, 0, 4]), np.array([2, 1, 1]))
    assert wrong.tolist() == [False, True, False]


def test_the_published_table_is_complete():
    published = [method.paper for method in METHODS.values() if method.paper]
    assert len(published) == 9
    assert METHODS[SVM_X].paper == (42.26, 42.61)
    assert set(EXPECTED) <= set(METHODS)
