"""Figures 6.3 and 6.4 and tables 6.1 and 6.2 of the thesis are put together rightly."""

from __future__ import annotations

import json
import lzma
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from stand_ins import printed

from larank.ambiguous.meanings import parse_meaning
from studies.datasets import GEOQUERY, is_available, load_questions
from studies.papers.experiment import Scope
from studies.papers.ospas import (
    CHILD,
    DATASETS,
    EXPECTED,
    HOUSE,
    LEVELS,
    OURS,
    PAPER,
    STUDY,
    VARIANTS,
    Curve,
    OspasFigures,
    Scores,
)


def test_the_published_table_is_complete():
    assert all(len(row) == len(LEVELS) == len(EXPECTED) for row in PAPER.values())
    assert STUDY.datasets == DATASETS


def test_the_quick_form_runs_and_draws():
    lines: list[str] = []
    outcome = STUDY.run(Scope(quick=True), lines.append)
    text = printed(outcome)
    assert {(curve.strategy, curve.level, curve.update) for curve in outcome.curves} >= {
        ("order-free", 0, "margin"),
        ("random", 3, "margin"),
        ("left-right", 3, "mistake"),
    }
    assert len(lines) == 9 + len(LEVELS) * len(VARIANTS)
    assert any(line.startswith("ospas yes 0.737") for line in text)
    assert any(line.startswith("level 3") for line in text)
    assert any(line.startswith("Quick form") for line in text)
    numbers = json.loads(json.dumps(outcome.to_dict(), allow_nan=False))
    assert numbers["as_expected"] == {}
    for curve in outcome.of("order-free", 0):
        assert curve.errors[-1] < curve.errors[0]
    figure = Figure()
    STUDY.draw(outcome, figure)  # type: ignore[misc]
    assert [len(axes.lines) for axes in figure.axes] == [4, 3]


def test_means_deviations_and_what_is_expected_are_shown():
    found = [Scores(CHILD, OURS, 2, seed, f1, f1, f1, 0.1) for seed, f1 in enumerate((0.9, 0.94))]
    outcome = OspasFigures((), tuple(found))
    (line,) = [line for line in printed(outcome) if line.startswith("2 ")]
    assert line == "2 0.895 0.912 0.920 ± 0.028 - - ≥ 0.88 yes"
    assert outcome.to_dict()["as_expected"] == {"2": True}


def test_curves_are_means_over_seeds():
    curves = [Curve("margin", "order-free", 1, seed, (50, 100), (0.5, end), 0.2) for seed, end in enumerate((0.0, 0.1))]
    lines = printed(OspasFigures(tuple(curves), ()))
    assert "level 1 50.0 5.0 0.20" in lines


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
    outcome = STUDY.run(Scope(datasets=(GEOQUERY,), seeds=1), lambda line: None)
    assert [found.variant for found in outcome.scores] == list(VARIANTS)
    assert np.isfinite([found.f1 for found in outcome.scores]).all()
    assert any(line.startswith("window 3") for line in printed(outcome))


def test_questions_that_are_absent_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Any):
    monkeypatch.setenv("LARANK_DATA", str(tmp_path))
    lines: list[str] = []
    with pytest.raises(FileNotFoundError, match=GEOQUERY):
        STUDY.run(Scope(datasets=(GEOQUERY,)), lines.append)
    assert lines == [f"{GEOQUERY}: absent from the data directory, left out"]
    assert HOUSE not in lines[0]
