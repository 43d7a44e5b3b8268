"""Tables 5.4 to 5.7 and figure 5.3 of the thesis are put together rightly."""

import lzma
from typing import Any

import numpy as np
import pytest

from larank import LaRank
from studies.datasets import FOLDS, SEQUENCES, load_sequences
from studies.papers import sequence
from studies.papers.sequence import CHUNKING, LARANK_EXACT, LARANK_GREEDY, OCR, SPEECH, Timing, slope


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


@pytest.mark.parametrize("dataset", SEQUENCES)
def test_parameters_are_those_of_table_5_4(dataset: str):
    exact, greedy = (sequence._settings(dataset, name) for name in (LARANK_EXACT, LARANK_GREEDY))
    assert exact["C"] == greedy["C"] == 0.1
    assert (exact["inference"], greedy["inference"]) == ("exact", "greedy")
    wanted = (10, 1, 5, 10) if dataset == OCR else (5, 1, 1, 2)
    rounds = [settings["solver"].n_reprocess for settings in (exact, greedy)]
    assert (rounds[0], exact["order"], rounds[1], greedy["order"]) == wanted
    assert sequence._settings(dataset, sequence.PA_GREEDY) == {**greedy, "solver": LaRank(n_reprocess=0)}
    assert sequence._settings(dataset, sequence.SVMSTRUCT) == {**exact, "tol": sequence.BATCH_GAP}
    assert sequence._settings(dataset, sequence.PERCEPTRON_EXACT)["solver"] == "perceptron"


def test_slope_is_one_where_time_is_in_proportion():
    timings = [Timing(LARANK_EXACT, size, 0.003 * size) for size in (100, 200, 400)]
    assert slope(timings) == pytest.approx(1.0)
    assert slope([Timing("", size, 1e-5 * size**2) for size in (100, 200, 400)]) == pytest.approx(2.0)
