"""Figures 6.3 and 6.4 and tables 6.1 and 6.2 of the thesis are put together rightly."""

from __future__ import annotations

import lzma
from typing import Any

import numpy as np
import pytest

from larank.ambiguous.meanings import parse_meaning
from studies.datasets import GEOQUERY, is_available, load_questions
from studies.papers.ospas import STUDY, VARIANTS
from studies.study import Scope

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
    scores = outcome.others["scores"]
    assert [found.variant for found in scores] == list(VARIANTS)
    assert np.isfinite([found.f1 for found in scores]).all()
    assert [cells[0] for cells, _ in outcome.tables[-1].rows] == list(VARIANTS)
