"""The yardsticks of the comparisons of taggers are right."""

import gc
from dataclasses import replace

import numpy as np
import pytest
from at_hand import solvers

from larank.sequence.features import CHUNKING, TemplateEncoder, encoder_for
from studies.datasets import Dataset
from studies.measure import Measurement
from studies.rivals import sequence, tagging, text
from studies.rivals.contest import Entrant, entrants
from studies.rivals.libraries import TAGGERS
from studies.rivals.libraries.crfsuite import features
from studies.rivals.libraries.larank import CHUNKING as TEMPLATES
from studies.rivals.libraries.larank import COLUMNS
from studies.rivals.sequence import TaggerRun
from studies.study import Findings, Scope

RIVALS = [name for name in TAGGERS if name.startswith("crfsuite")]
PARTS = {"the": "DT", "a": "DT", "dog": "NN", "cat": "NN", "house": "NN", "sees": "VB", "likes": "VB"}
CHUNKS = {"DT": "B-NP", "NN": "I-NP", "VB": "B-VP"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Sentences whose chunks follow from the parts of speech."""
    path = tmp_path_factory.mktemp("sentences")
    random = np.random.default_rng(0)
    articles, nouns, verbs = ([word for word, part in PARTS.items() if part == wanted] for wanted in ("DT", "NN", "VB"))
    for name, count in ((text.TRAIN, 200), (text.TEST, 60)):
        sentences = []
        for _ in range(count):
            phrase = [articles, nouns, *([verbs, articles, nouns] * random.integers(1, 4))]
            words = [str(random.choice(choices)) for choices in phrase]
            sentences.append("".join(f"{word} {PARTS[word]} {CHUNKS[PARTS[word]]}\n" for word in words))
        (path / name).write_text("\n".join(sentences))
    text.lengthen(path)
    return path


def test_text_is_read_sentence_by_sentence(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\nthe DT B-NP\ndog NN I-NP\n\n\nsees VB B-VP")
    sentences, labels = text.read(path)
    assert sentences == [[("the", "DT"), ("dog", "NN")], [("sees", "VB")]]
    assert labels == [["B-NP", "I-NP"], ["B-VP"]]


def test_the_long_file_is_the_training_file_several_times(folder):
    once, often = (text.read(folder / file) for file in (text.TRAIN, text.LONG))
    assert often == tuple(text.REPETITIONS * part for part in once)


# ---- Rivals ----


def test_a_token_has_one_feature_of_each_of_the_19_templates():
    (first, second) = features([("the", "DT"), ("dog", "NN")])
    names = [feature.partition("=")[0] for feature in first]
    assert len(set(names)) == len(names) == 19
    assert [feature.partition("=")[0] for feature in second] == names
    assert "word[-1]|word[0]=the|dog" in second
    assert "pos[-2]|pos[-1]|pos[0]=<s-1>|DT|NN" in second
    assert "pos[0]|pos[1]|pos[2]=DT|NN|</s+1>" in first


def test_rivals_and_larank_have_the_same_features():
    sentence = [("the", "DT"), ("dog", "NN"), ("sees", "VB")]
    encoder = TemplateEncoder(CHUNKING, COLUMNS)
    sequences = encoder.learn([sentence])
    names = np.array(encoder.names(sequences.indices))
    ours = np.split(names, sequences.indptr[1:-1])
    assert [set(token) for token in ours] == [set(token) for token in features(sentence)]
    assert TEMPLATES == CHUNKING


@pytest.mark.parametrize("name", solvers(TAGGERS, RIVALS))
def test_a_rival_learns_and_its_model_outlives_its_file(name, folder):
    fitted = TAGGERS[name].fit(folder / text.TRAIN)
    gc.collect()
    filler = [bytes(size) for size in (10_000, 100_000, 1_000_000) for _ in range(5)]  # where freed memory was
    _, true = text.read(folder / text.TEST)
    assert fitted.tag_file(folder / text.TEST) == true
    assert fitted.tag_prepared(fitted.prepare(folder / text.TEST)) == true
    assert set(fitted.extra["breakdown"]) == {"read", "extract", "hand over", "train"}
    assert sum(fitted.extra["breakdown"].values()) <= 1.001 * fitted.seconds.wall
    assert len(filler) == 15


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("name", solvers(TAGGERS))
def test_a_tagger_learns_and_is_measured(name, folder):
    run = sequence.measure_fit(folder, Entrant(name), 120.0)
    assert min(run.f1, run.accuracy) > 0.99
    assert run.tokens == sum(len(sentence) for sentence in text.read(folder / text.TEST)[0])
    assert min(run.wall, run.tag) > 0
    assert (run.tag_prepared is None) == (name not in RIVALS)


@pytest.mark.parametrize("name", solvers(TAGGERS, ["crfsuite-pa"]))
def test_the_peak_of_a_training_is_measured_on_the_file_asked_for(name, folder):
    once, often = (sequence.measure_peak(folder, Entrant(name), file, {}, 120.0) for file in (text.TRAIN, text.LONG))
    assert often.peak > 2 * once.peak  # it keeps the whole file


# ---- Rows and bars ----

PARTS_OF_RUN = {"breakdown": {"train": 2.0}}
RUN = TaggerRun(2.0, 2.0, 0, 10**8, PARTS_OF_RUN, tag=0.5, tag_prepared=None, tokens=1000, accuracy=0.96, f1=0.935)


def rows_of(runs_of):
    """Return the rows by solver."""
    rows = sequence.rows_of("conll2000", {Entrant(solver): found for solver, found in runs_of.items()})
    return {row.solver: row for row in rows}


def test_the_shortest_training_and_the_shortest_tagging_count():
    slow = replace(RUN, wall=8.0, tag=0.4, tag_prepared=0.2)
    rows = rows_of({"crfsuite-pa": [slow], "larank-exact": [RUN, replace(RUN, wall=1.0, tag=0.8)]})
    row = rows["larank-exact"]
    assert (row.runs, row.train, row.train_over, row.tokens_per_second) == (2, 1.0, 0.125, 2000.0)
    assert row.tag_over == pytest.approx(0.8)
    assert rows["crfsuite-pa"].prepared_per_second == 5000.0


@pytest.mark.parametrize(
    ("ours", "verdicts"),
    [
        (replace(RUN, wall=2.0, tag=0.1), ["met", "met", "met"]),
        (replace(RUN, wall=3.0, cpu=3.0, tag=0.1, extra={"breakdown": {"certificate": 1.0}}), ["met", "met", "met"]),
        (replace(RUN, wall=3.0, cpu=3.0, tag=0.3), ["missed", "met", "missed"]),
        (replace(RUN, wall=2.0, tag=0.1, f1=0.9345), ["met", "missed", "met"]),
        (replace(RUN, wall=2.0, cpu=3.0, tag=0.1), ["undecided", "met", "met"]),  # somebody else was at work
    ],
)
def test_bars_are_judged_against_the_reference(ours, verdicts):
    reference = replace(RUN, wall=8.0, cpu=8.0, tag=0.4)
    rows = rows_of({"crfsuite-pa": [reference], "larank-exact": [ours]})
    lines = [str(claim) for claim in sequence.judged(list(rows.values()))]
    assert all(f", {verdict}" in line.partition("bar ")[2] for line, verdict in zip(lines, verdicts, strict=True))


def test_memory_is_compared_for_larank_with_one_thread(monkeypatch, tmp_path):
    asked = []

    def measure(folder, entrant, file, settings, limit):
        assert settings == {"memory_limit": sequence.LONG_LIMIT}
        asked.append((entrant.solver, file))
        return Measurement(1.0, 1.0, 0, 10**6, {})

    monkeypatch.setattr(sequence, "measure_peak", measure)
    settings = Scope(datasets=("conll2000",), solvers=tuple(TAGGERS), repeats=1)
    takers = entrants(settings, TAGGERS, lambda line: None)
    found = Findings()
    rows = list(sequence.long_rows_of(found, "conll2000", tmp_path, takers, settings, lambda line: None))
    assert found.rows["unfinished"] == []
    assert asked == [(name, file) for name in ("larank-exact", "larank-greedy") for file in (text.TRAIN, text.LONG)]
    assert [row.repetitions for row in rows] == [1, text.REPETITIONS] * 2


# ---- Taggers as they come ----

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
