"""Tables C.2 and C.3 of the thesis are put together rightly."""

from argparse import Namespace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import larank
from larank.ambiguous.house import make_triples
from studies.papers.concepts import QUICK_SIZES, STUDY, TokenRows, purity, sentence_errors
from studies.papers.concepttables import BOTH, LR_BOTH, OF_BOTH, OF_CONTAIN, OF_LOC, OF_X, ConceptFigures, RowErrors
from studies.study import Scope


def test_counts_of_the_house_are_those_of_the_thesis():
    outcome = STUDY.run(Scope(quick=True, options=Namespace(parts=("simulation",))), print)
    counted = {cell.what: cell for cell in outcome.cells}
    for name, cell in counted.items():
        if cell.form == "d" and "triples" not in name:
            assert cell.found == int(cell.paper)
    assert counted["ambiguous sentences, %"].found == pytest.approx(55, abs=4)
    assert 0 < counted["ambiguous words, %"].found < counted["ambiguous sentences, %"].found
    assert [table.title for table in outcome.to_tables() if table.rows] == ["The simulated house (thesis, C.6)"]
    STUDY.draw(outcome, Figure())  # without a curve and bars


def test_bags_tell_nothing_of_the_order_of_words(monkeypatch: pytest.MonkeyPatch):
    taught: list[Any] = []

    def fit(labeler: Any, words: Any, bags: Any, universes: Any) -> None:
        taught.extend(bags)
        raise KeyError("seen enough")

    monkeypatch.setattr(larank.ConceptLabeler, "fit", fit)
    with pytest.raises(KeyError, match="seen enough"):
        STUDY.run(Scope(quick=True, options=Namespace(parts=("weak",))), print)
    assert len(taught) == QUICK_SIZES[0]
    assert all(list(bag) == sorted(bag) for bag in taught)


def test_orders_of_the_thesis_are_judged_by_means_and_its_ties_are_called_so():
    means = {OF_BOTH: 0.1, OF_LOC: 5.0, LR_BOTH: 5.4, OF_CONTAIN: 5.0, "NN_LR, x": 41.5, OF_X: 40.0}
    found = [RowErrors(row, seed, 0.0, error + seed, 1.0) for row, error in means.items() for seed in (0, 1)]
    table = ConceptFigures((50_000, 20_000), errors=tuple(found)).to_tables()[2]
    rows = {cells[:2]: cells[2:] for cells, _ in table.rows}
    assert rows[OF_BOTH, OF_LOC] == ("0.11 < 5.22", "0.60, 5.50", "2 of 2", "yes")
    assert rows[LR_BOTH, OF_CONTAIN] == ("5.75 < 17.04", "5.90, 5.50", "0 of 2", "no")
    assert rows["NN_LR, x", OF_X] == ("35.80 < 35.87", "42.00, 40.50", "0 of 2", "tie; no")


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
    places = [(number, words, k) for number, words in enumerate(triples.words) for k in range(len(words))]
    for row, (number, words, place) in zip(X, places, strict=True):
        window = [(k, words[place + k] if 0 <= place + k < len(words) else None) for k in range(-2, 3)]
        universe = {relation: enumerate(getattr(triples, relation)[number]) for relation in BOTH}
        facts = [(relation, *fact) for relation, of in universe.items() for fact in of if fact[1] >= 0]
        for feature, name in zip(row.indices, [*window, *facts], strict=True):
            assert named.setdefault(feature, name) == name
    assert len(places) == lengths.sum()
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
