"""The yardstick of the sequence benchmark is itself right."""

import gc
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.contest import Settings
from benchmarks.rivals import installed
from benchmarks.sequence import command, compare, problems, runs
from benchmarks.sequence.libraries import OURS, SOLVERS
from benchmarks.sequence.libraries.crfsuite import features
from benchmarks.sequence.libraries.larank_tagger import COLUMNS
from benchmarks.sequence.runs import PeakRun, TaggerRun

from larank.sequence.features import CHUNKING, TemplateEncoder

RIVALS = [name for name in SOLVERS if name.startswith("crfsuite")]
PARTS = {"the": "DT", "a": "DT", "dog": "NN", "cat": "NN", "house": "NN", "sees": "VB", "likes": "VB"}
CHUNKS = {"DT": "B-NP", "NN": "I-NP", "VB": "B-VP"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Sentences whose chunks follow from the parts of speech."""
    path = tmp_path_factory.mktemp("sentences")
    random = np.random.default_rng(0)
    articles, nouns, verbs = ([word for word, part in PARTS.items() if part == wanted] for wanted in ("DT", "NN", "VB"))
    for name, count in ((problems.TRAIN, 200), (problems.TEST, 60)):
        sentences = []
        for _ in range(count):
            phrase = [articles, nouns, *([verbs, articles, nouns] * random.integers(1, 4))]
            words = [str(random.choice(choices)) for choices in phrase]
            sentences.append("".join(f"{word} {PARTS[word]} {CHUNKS[PARTS[word]]}\n" for word in words))
        (path / name).write_text("\n".join(sentences))
    problems.lengthen(path)
    return path


def skip_without(name):
    if not installed(SOLVERS[name]):
        pytest.skip(f"{SOLVERS[name].requires} is not installed")


# ---- Problems ----


def test_text_is_read_sentence_by_sentence(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\nthe DT B-NP\ndog NN I-NP\n\n\nsees VB B-VP")
    sentences, labels = problems.read(path)
    assert sentences == [[("the", "DT"), ("dog", "NN")], [("sees", "VB")]]
    assert labels == [["B-NP", "I-NP"], ["B-VP"]]


def test_the_long_file_is_the_training_file_several_times(folder):
    once, often = (problems.read(folder / file) for file in (problems.TRAIN, problems.LONG))
    assert often[0] == problems.REPETITIONS * once[0]
    assert often[1] == problems.REPETITIONS * once[1]


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


@pytest.mark.parametrize("name", RIVALS)
def test_a_rival_learns_and_its_model_outlives_its_file(name, folder):
    skip_without(name)
    fitted = SOLVERS[name].fit(folder / problems.TRAIN)
    gc.collect()
    filler = [bytes(size) for size in (10_000, 100_000, 1_000_000) for _ in range(5)]  # where freed memory was
    _, true = problems.read(folder / problems.TEST)
    assert fitted.tag_file(folder / problems.TEST) == true
    assert fitted.tag_prepared(fitted.prepare(folder / problems.TEST)) == true
    assert sum(fitted.breakdown.values()) == pytest.approx(fitted.seconds.wall, rel=0.2, abs=0.05)
    assert len(filler) == 15


@pytest.mark.parametrize("name", SOLVERS)
def test_a_tagger_is_measured_in_a_process_of_its_own(name, folder):
    skip_without(name)
    run = runs.measure_fit(folder, name, 120.0)
    assert run.f1 > 0.99
    assert run.accuracy > 0.99
    assert run.tokens == sum(len(sentence) for sentence in problems.read(folder / problems.TEST)[0])
    assert min(run.wall, run.tag, run.peak) > 0
    assert (run.tag_prepared is None) == (name not in RIVALS)


def test_the_peak_of_a_training_is_measured_on_the_file_asked_for(folder):
    name = "crfsuite-pa"
    skip_without(name)
    once, often = (runs.measure_peak(folder, name, file, {}, 120.0) for file in (problems.TRAIN, problems.LONG))
    assert often.peak > 2 * once.peak  # it keeps the whole file


# ---- Rows and bars ----

RUN = TaggerRun(
    wall=2.0,
    cpu=2.0,
    peak=10**8,
    breakdown={"train": 2.0},
    tag=0.5,
    tag_prepared=None,
    tokens=1000,
    accuracy=0.96,
    f1=0.935,
    extra={},
)


def row_of(solver, runs_of):
    return next(row for row in compare.rows_of("conll2000", runs_of) if row.solver == solver)


def test_the_shortest_training_and_the_shortest_tagging_count():
    slow = replace(RUN, wall=8.0, tag=0.4, tag_prepared=0.2)
    found = {"crfsuite-pa": [slow], "larank-exact": [RUN, replace(RUN, wall=1.0, tag=0.8)]}
    row = row_of("larank-exact", found)
    assert (row.runs, row.train, row.train_over, row.tokens_per_second) == (2, 1.0, 0.125, 2000.0)
    assert row.tag_over == pytest.approx(0.8)
    assert row_of("crfsuite-pa", found).prepared_per_second == 5000.0


def test_without_the_reference_there_are_no_ratios():
    row = row_of("larank-exact", {"larank-exact": [RUN]})
    assert row.train_over is row.tag_over is None
    assert command.judged([row]) == []


@pytest.mark.parametrize(
    ("ours", "verdicts"),
    [
        (replace(RUN, wall=2.0, tag=0.1), ["met", "met", "met"]),
        (replace(RUN, wall=3.0, cpu=3.0, tag=0.1, breakdown={"certificate": 1.0}), ["met", "met", "met"]),
        (replace(RUN, wall=3.0, cpu=3.0, tag=0.3), ["missed", "met", "missed"]),
        (replace(RUN, wall=2.0, tag=0.1, f1=0.9345), ["met", "missed", "met"]),
        (replace(RUN, wall=2.0, cpu=3.0, tag=0.1), ["undecided", "met", "met"]),  # somebody else was at work
    ],
)
def test_bars_are_judged_against_the_reference(ours, verdicts):
    reference = replace(RUN, wall=8.0, cpu=8.0, tag=0.4)
    rows = compare.rows_of("conll2000", {"crfsuite-pa": [reference], "larank-exact": [ours]})
    lines = command.judged(rows)
    assert len(lines) == 3
    assert all(f", {verdict}" in line.partition("bar ")[2] for line, verdict in zip(lines, verdicts, strict=True))


def test_memory_is_compared_for_larank_with_one_thread(monkeypatch, tmp_path):
    asked = []

    def measure(folder, solver, file, settings, limit):
        assert settings == {"memory_limit": compare.LONG_LIMIT}
        asked.append((solver, file))
        return PeakRun(1.0, 10**6)

    monkeypatch.setattr(compare, "measure_peak", measure)
    settings = Settings(("conll2000",), tuple(SOLVERS), 1, 60.0, 60.0, lambda line: None)
    rows = compare._long_rows("conll2000", tmp_path, settings, [])
    wanted = [solver.name for solver in OURS if solver.threads == 1]
    assert asked == [(name, file) for name in wanted for file in (problems.TRAIN, problems.LONG)]
    assert [row.repetitions for row in rows] == [1, problems.REPETITIONS] * len(wanted)
