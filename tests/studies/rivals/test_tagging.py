"""The comparison of taggers gives both sides what it says."""

import pytest

from larank.sequence.features import encoder_for
from studies.datasets import Dataset
from studies.rivals import tagging

X = [[("The", "DT"), ("dog", "NN")], [("It", "PRP"), ("barks", "VBZ"), ("3", "CD")]]
Y = [["B-NP", "I-NP"], ["B-NP", "B-VP", "O"]]
DATA = Dataset(X * 10, Y * 10, X, Y)


def test_the_same_features_are_those_of_the_default_templates():
    train, test = tagging._same(DATA)
    encoder = encoder_for(X)
    learnt = encoder.learn(X)
    assert [[len(token) for token in tokens] for tokens in test] == [
        [int(learnt.indptr[t + 1] - learnt.indptr[t]) for t in range(a, b)] for a, b in ((0, 2), (2, 5))
    ]
    assert test == train[:2]


def test_the_usual_features_look_at_the_word_and_its_neighbours():
    first, second = tagging._usual(X[0])
    assert {"first", "0lower=the", "0title=True", "1lower=dog", "1tag=NN", "end2=he"} <= set(first)
    assert {"last", "0lower=dog", "-1tag2=DT", "digit=False"} <= set(second)
    assert "first" not in second


def test_a_row_has_the_quality_and_its_spread():
    row = tagging._ours("conll2000", "larank", {}, DATA, range(2))
    assert (row.quality, row.deviation) == (100.0, 0.0)
    assert tagging._ours("ud_ewt", "larank", {}, DATA, range(1)).deviation is None


def test_crfsuite_learns_from_both_kinds_of_features():
    pytest.importorskip("pycrfsuite")
    for made in (tagging._same, tagging._usual_of):
        assert tagging._crfsuite("conll2000", "CRFsuite", made, DATA).quality == 100.0
