"""Tables 5.4 to 5.7 and figure 5.3 of the thesis are put together rightly."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from matplotlib.figure import Figure
from stand_ins import printed, put_in_place

from studies.datasets import FOLDS, SEQUENCES, load_sequences
from studies.papers import sequence as sequence_tables
from studies.papers.experiment import Entry, Scope
from studies.papers.sequence import (
    ALGORITHMS,
    CHUNKING,
    CRF,
    CRF_ONLINE,
    EXACT,
    EXPECTED,
    LARANK_EXACT,
    LARANK_GREEDY,
    OCR,
    PA_GREEDY,
    PAPER,
    PARAMETERS,
    PERCEPTRON_EXACT,
    SPEECH,
    STUDY,
    SVMSTRUCT,
    Run,
    SequenceTables,
    Timing,
    slope,
)


class StandIn:
    """A tagger that gives every token the most frequent label."""

    made: ClassVar[list[StandIn]] = []

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.made.append(self)

    def fit(self, X: Any, y: Any) -> StandIn:
        flat = y if isinstance(y, np.ndarray) else [label for labels in y for label in labels]
        self.sequences = len(X[1]) if isinstance(y, np.ndarray) else len(X)
        self.label = Counter(list(flat)).most_common(1)[0][0]
        self.result_ = SimpleNamespace(status="completed", dual=12.5)
        return self

    def predict(self, X: Any) -> Any:
        if isinstance(X, tuple):
            return np.full(len(X[0]), self.label)
        return [[self.label] * len(tokens) for tokens in X]


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> type[StandIn]:
    return put_in_place(monkeypatch, StandIn, "SequenceTagger")


@pytest.fixture
def small_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Words of two letters whose images are nearly equal, and sentences of one phrase."""
    random = np.random.default_rng(0)
    monkeypatch.setenv("LARANK_DATA", str(tmp_path))
    for name in SEQUENCES:
        (tmp_path / name).mkdir()
    words = 100
    lengths = random.integers(2, 6, words)
    labels = np.concatenate([np.arange(length) % 2 for length in lengths]).astype(np.uint8)
    flipped = random.random((len(labels), 128)) < 0.1
    pixels = ((np.arange(128) % 2 == labels[:, None]) ^ flipped).astype(np.uint8)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    folds = (np.arange(words) % FOLDS).astype(np.uint8)
    np.savez(tmp_path / OCR / f"{OCR}.npz", X=pixels, y=labels, word_ptr=starts, fold=folds)
    for part, count in (("train", 64), ("test", 20)):
        sentences = "the DT B-NP\ndog NN I-NP\nbarks VB B-VP\n\n" * count
        (tmp_path / CHUNKING / f"{part}.txt.xz").write_bytes(lzma.compress(sentences.encode()))
        tagged = "the\tDET\tDT\ndog\tNOUN\tNN\n. . .\tPUNCT\t.\n\n" * count
        (tmp_path / SPEECH / f"{part}.txt.xz").write_bytes(lzma.compress(tagged.encode()))


# ---- Data ----


@pytest.mark.usefixtures("small_data")
def test_words_are_trained_on_one_fold_and_tested_on_the_others():
    data = load_sequences(OCR, fold=3)
    (train, train_lengths), (test, test_lengths) = data.X_train, data.X_test
    assert (len(train_lengths), len(test_lengths)) == (10, 90)
    assert len(train) == train_lengths.sum() == len(data.y_train)
    assert len(test) == test_lengths.sum() == len(data.y_test)
    assert set(np.unique(train)) == {0.0, 1.0}
    other = load_sequences(OCR, fold=4)
    assert not np.array_equal(train[:2], other.X_train[0][:2])


@pytest.mark.usefixtures("small_data")
def test_text_has_the_columns_its_templates_speak_of():
    chunks, speech = load_sequences(CHUNKING), load_sequences(SPEECH)
    assert chunks.X_train[0] == [("the", "DT"), ("dog", "NN"), ("barks", "VB")]
    assert chunks.y_train[0] == ["B-NP", "I-NP", "B-VP"]
    assert speech.X_train[0] == ["the", "dog", ". . ."]
    assert speech.y_train[0] == ["DET", "NOUN", "PUNCT"]
    assert len(chunks.first(5).X_train) == len(chunks.first(5).y_train) == 5
    assert len(chunks.first(5).X_test) == 20


# ---- Tables ----


def test_published_tables_are_complete():
    assert set(PAPER) == set(PARAMETERS) == set(SEQUENCES)
    for dataset, rows in PAPER.items():
        assert set(rows) == {*ALGORITHMS, *(() if dataset == OCR else (CRF, CRF_ONLINE))}
        assert all({"accuracy", "seconds"} <= set(row) for row in rows.values())
    assert all("f1" in row for row in PAPER[CHUNKING].values())
    assert sum("dual" in row for row in PAPER[CHUNKING].values()) == 6
    assert all(algorithm in ALGORITHMS for _, algorithm in EXPECTED)


@pytest.mark.parametrize("dataset", SEQUENCES)
def test_parameters_are_those_of_table_5_4(dataset: str):
    exact, greedy = (sequence_tables._settings(dataset, name) for name in (LARANK_EXACT, LARANK_GREEDY))
    assert exact["C"] == greedy["C"] == 0.1
    assert (exact["inference"], greedy["inference"]) == ("exact", "greedy")
    wanted = (10, 1, 5, 10) if dataset == OCR else (5, 1, 1, 2)
    assert (exact["n_reprocess"], exact["order"], greedy["n_reprocess"], greedy["order"]) == wanted
    assert sequence_tables._settings(dataset, PA_GREEDY) == {**greedy, "n_reprocess": 0}
    assert sequence_tables._settings(dataset, SVMSTRUCT).items() >= {**exact, "stop": "gap"}.items()
    assert "n_reprocess" not in sequence_tables._settings(dataset, PERCEPTRON_EXACT)


def test_tables_show_paper_mean_extremes_and_what_is_expected():
    runs = (Run(0, 76.0, np.nan, 30.0, 1.0), Run(1, 73.0, np.nan, 34.0, 2.0))
    chunks = Run(0, 95.9, 93.51, 1201.0, 1.5)
    outcome = SequenceTables((Entry(OCR, LARANK_EXACT, runs), Entry(CHUNKING, LARANK_EXACT, (chunks,))))
    lines = printed(outcome)
    at = lines.index("LaRankExact, 2 folds 74.50 - 32.0 1.50")
    assert lines[at - 1] == "LaRankExact, paper 75.77 - - 4"
    assert lines[at + 1 : at + 5] == [
        "min 73.00 - 30.0 1.00",
        "max 76.00 - 34.0 2.00",
        "expected ≥ 75",
        "as expected no",
    ]
    assert lines.count("OCR: C 0.1; exact n_R 10, k 1; greedy n_R 5, k 10.") == 1
    assert {"LaRankExact, paper 95.82 93.34 1195 130", "LaRankExact 95.90 93.51 1201 1.50"} <= set(lines)
    first = json.loads(json.dumps(outcome.to_dict(), allow_nan=False))["entries"][0]
    assert first["mean"]["f1"] is None
    assert first["as_expected"]["accuracy"] is False


def test_slope_is_one_where_time_is_in_proportion():
    timings = [Timing(LARANK_EXACT, size, 0.003 * size) for size in (100, 200, 400)]
    assert slope(timings) == pytest.approx(1.0)
    assert slope([Timing("", size, 1e-5 * size**2) for size in (100, 200, 400)]) == pytest.approx(2.0)


def test_scaling_is_relative_to_the_smallest_size():
    timings = [
        Timing(name, size, seconds)
        for name, factor in ((LARANK_GREEDY, 1.0), (LARANK_EXACT, 10.0))
        for size, seconds in ((100, 0.5 * factor), (400, 2.0 * factor))
    ]
    outcome = SequenceTables((Entry(CHUNKING, LARANK_EXACT, (Run(0, 95.0, 93.0, 1.0, 1.0),)),), tuple(timings))
    lines = printed(outcome)
    assert "100 1.00 0.500 1.00 5.00 1.00" in lines
    assert "400 4.00 2.00 4.00 20.0 4.00" in lines
    assert "LaRankExact: time grows as size to the power of 1.00." in lines
    figure = Figure()
    STUDY.draw(outcome, figure)  # type: ignore[misc]
    (axes,) = figure.axes
    assert [list(line.get_xdata()) for line in axes.lines] == [[1.0, 4.0]] * 2
    assert [list(line.get_ydata()) for line in axes.lines] == [[1.0, 4.0]] * 2


# ---- Running it ----


@pytest.mark.usefixtures("small_data")
def test_quick_tables_train_on_one_fold(stand_in: type[StandIn]):
    lines: list[str] = []
    tables = STUDY.run(Scope(quick=True), lines.append)
    assert [(one.dataset, one.algorithm, len(one.runs)) for one in tables.entries] == [
        (OCR, algorithm, 1) for algorithm in ALGORITHMS
    ]
    assert {model.sequences for model in stand_in.made} == {10}
    inferences = [model.settings["inference"] for model in stand_in.made]
    assert inferences == ["exact" if algorithm in EXACT else "greedy" for algorithm in ALGORITHMS]
    assert len(lines) == len(ALGORITHMS)
    assert tables.to_dict()["quick"] is True
    text = printed(tables)
    assert any(line.startswith("Quick form") for line in text)
    assert not any(line.startswith("as expected") for line in text)


@pytest.mark.usefixtures("small_data")
def test_all_folds_are_trained_on(stand_in: type[StandIn]):
    tables = STUDY.run(Scope(datasets=(OCR,)), lambda line: None)
    assert {len(one.runs) for one in tables.entries} == {FOLDS}
    assert [run.seed for run in tables.entries[0].runs] == list(range(FOLDS))
    assert len(stand_in.made) == FOLDS * len(ALGORITHMS)


@pytest.mark.usefixtures("small_data")
def test_text_has_f1_for_chunks_alone_and_sizes_for_the_figure(stand_in: type[StandIn]):
    tables = STUDY.run(Scope(datasets=(CHUNKING, SPEECH)), lambda line: None)
    by_name = {(one.dataset, one.algorithm): one for one in tables.entries}
    assert np.isfinite(by_name[CHUNKING, LARANK_EXACT].mean("f1"))
    assert np.isnan(by_name[SPEECH, LARANK_EXACT].mean("f1"))
    assert by_name[CHUNKING, LARANK_EXACT].mean("accuracy") == pytest.approx(100 / 3)
    assert np.isnan(by_name[CHUNKING, PERCEPTRON_EXACT].mean("dual"))
    assert by_name[CHUNKING, LARANK_EXACT].mean("dual") == 12.5
    sizes = [4, 8, 16, 32, 64]
    assert [timing.sentences for timing in tables.timings] == sizes * 2
    assert {model.settings.get("certify") for model in stand_in.made} == {None, False}


@pytest.mark.usefixtures("small_data")
def test_an_interrupted_tagger_ends_the_experiment(stand_in: type[StandIn], monkeypatch: pytest.MonkeyPatch):
    def interrupted(self: StandIn, X: Any, y: Any) -> StandIn:
        self.result_ = SimpleNamespace(status="interrupted")
        return self

    monkeypatch.setattr(stand_in, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        STUDY.run(Scope(quick=True), lambda line: None)
