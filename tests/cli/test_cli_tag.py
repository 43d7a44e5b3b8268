"""`larank tag`: what it writes, and how it says that it failed."""

import lzma
from functools import partial

import numpy as np
import pytest
from commandline import failure, larank

from larank.cli import tag as tag_commands
from larank.data import models
from larank.data.columns import ConllFile, read_conll
from larank.sequence.entities import entity_report
from larank.sequence.tagger import SequenceTagger

larank_tag, refusal = partial(larank, "tag"), partial(failure, "tag")

PARTS = {"the": "DT", "a": "DT", "dog": "NN", "cat": "NN", "sees": "VB", "likes": "VB"}
CHUNKS = {"DT": "B-NP", "NN": "I-NP", "VB": "B-VP"}


def sentences(count, seed):
    random = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        pattern = ["DT", "NN", *(["VB", "DT", "NN"] * random.integers(0, 3))]
        words = [str(random.choice([word for word, part in PARTS.items() if part == wanted])) for wanted in pattern]
        found.append([(word, PARTS[word], CHUNKS[PARTS[word]]) for word in words])
    return found


def written(path, tokens, separator=" "):
    text = "\n".join("".join(separator.join(token) + "\n" for token in sentence) for sentence in tokens)
    path.write_text(text)
    return path


@pytest.fixture
def train_file(tmp_path):
    return written(tmp_path / "train.txt", sentences(80, 0))


@pytest.fixture
def test_file(tmp_path):
    return written(tmp_path / "test.txt", sentences(30, 1))


@pytest.fixture
def model(tmp_path, train_file):
    path = tmp_path / "model.larank"
    larank_tag("train", train_file, path, "-q")
    return path


def test_train_writes_the_model_the_library_would(train_file, test_file, tmp_path):
    result = larank_tag("train", train_file, tmp_path / "m.larank", "--test", test_file, "--seed", 3)
    assert "test accuracy" in result.stdout
    assert "duality gap" in result.stdout
    assert f"model written to {tmp_path / 'm.larank'}" in result.stdout.replace("\n", "")
    loaded = models.load(tmp_path / "m.larank")
    ours = SequenceTagger(columns=("word", "pos"), random_state=3).fit(ConllFile(train_file))
    assert loaded.predict(ConllFile(test_file)).tolist() == ours.predict(ConllFile(test_file)).tolist()
    assert loaded.columns == ("word", "pos")


GREEDY = {"inference": "greedy", "order": 3, "C": 0.5, "n_reprocess": 2, "constraints": "BIO", "history": "predicted"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--inference greedy --order 3 -C 0.5 --n-reprocess 2 --constraints BIO --history predicted", GREEDY),
        ("--memory-limit 1e8 --epochs 2", {"memory_limit": 1e8, "epochs": 2}),
        *(
            (f"--solver {name} --average --epochs 3", {"solver": name, "average": True, "epochs": 3})
            for name in ("perceptron", "passive-aggressive")
        ),
    ],
)
def test_options_reach_the_estimator(options, expected, train_file, test_file, tmp_path):
    larank_tag("train", train_file, tmp_path / "m.larank", *options.split(), "-q")
    found = models.load(tmp_path / "m.larank")
    assert {name: getattr(found, name) for name in expected} == expected
    assert found.score(ConllFile(test_file)) > 0.9


def test_labels_may_stand_in_any_column_between_tabs_and_templates_are_a_set_or_a_file(tmp_path):
    tokens = [[(f"{word} {word}", tag, part) for word, part, tag in sentence] for sentence in sentences(40, 0)]
    path, model, templates = written(tmp_path / "tabs.tsv", tokens, "\t"), tmp_path / "m.larank", tmp_path / "t.txt"
    templates.write_text("# of the word\ntoken[0]\n\ntoken[-1]|part[0]\n")
    options = ("--label", 2, "--separator", "tab")
    columns = (*options, "--columns", "token,part", "--templates")
    larank_tag("train", path, model, *columns, "WORD", code=1)
    larank_tag("train", path, model, *columns, templates, "-q")
    tagger = models.load(model)
    assert sorted(tagger.classes_) == ["B-NP", "B-VP", "I-NP"]
    assert list(tagger.templates) == ["token[0]", "token[-1]|part[0]"]
    lines = larank_tag("apply", model, path, *options).stdout.splitlines()
    assert lines[0].split("\t") == [*tokens[0][0], tokens[0][0][1]]
    larank_tag("train", path, model, *options, "--templates", "words", "-q")
    assert models.load(model).templates == "words"


def test_apply_adds_a_last_column_and_leaves_the_rest_as_it_is(model, test_file):
    before = "\n\n" + test_file.read_text().replace(" ", "   ", 1) + "\n\n"
    test_file.write_text(before)
    after = larank_tag("apply", model, test_file).stdout
    predicted = models.load(model).predict(ConllFile(test_file)).tolist()
    labels = iter([label for sentence in predicted for label in sentence])
    assert after == "".join(
        line if line.isspace() else f"{line.rstrip()} {next(labels)}\n" for line in before.splitlines(keepends=True)
    )
    output = test_file.with_name("out.txt")
    assert larank_tag("apply", model, test_file, "--output", output).stdout == ""
    assert read_conll(output)[1] == predicted
    test_file.write_bytes(b"# a sentence\r\nthe DT\r\ndog NN\r\n")
    lines = larank_tag("apply", model, test_file, "--comment", "# ").stdout.splitlines()
    assert lines == ["# a sentence", "the DT B-NP", "dog NN I-NP"]


def test_apply_takes_files_without_labels_and_compressed_ones(model, test_file, tmp_path):
    bare = written(tmp_path / "bare.txt", [[token[:2] for token in sentence] for sentence in sentences(30, 1)])
    packed = tmp_path / "bare.txt.xz"
    packed.write_bytes(lzma.compress(bare.read_bytes()))
    outputs = [larank_tag("apply", model, path).stdout for path in (bare, packed, test_file)]
    assert outputs[0] == outputs[1]
    labels = [[line.split()[-1:] for line in output.splitlines()] for output in outputs]
    assert labels[0] == labels[2]


def test_pieces_do_not_show_in_the_output(model, test_file, monkeypatch):
    whole = larank_tag("apply", model, test_file).stdout
    monkeypatch.setattr(tag_commands, "_BLOCK_TOKENS", 7)
    assert larank_tag("apply", model, test_file).stdout == whole


def test_a_failing_apply_leaves_the_old_output(model, tmp_path):
    output = tmp_path / "out.txt"
    output.write_text("old")
    bad = tmp_path / "bad.txt"
    bad.write_text("the DT B-NP\ndog NN\n")
    assert "line 2" in refusal("apply", model, bad, "--output", output)
    assert output.read_text() == "old"


def test_eval_shows_the_figures_of_the_library(model, test_file):
    shown = larank_tag("eval", model, test_file).stdout
    _, true = read_conll(test_file)
    assert true is not None
    report = entity_report(true, models.load(model).predict(ConllFile(test_file)))
    assert f"{report.accuracy:.2%}" in shown
    assert f"{report.overall.f1:.2%}" in shown
    rows = [line.split()[0] for line in shown.splitlines() if line.strip()[:3] in ("NP ", "VP ", "all")]
    assert rows == ["NP", "VP", "all"]


def test_eval_of_parts_of_speech_has_confusions_and_no_entities(tmp_path):
    tokens = [[token[:2] for token in sentence] for sentence in sentences(40, 0)]
    path = written(tmp_path / "pos.txt", tokens)
    larank_tag("train", path, tmp_path / "m.larank", "-q")
    wrong = written(tmp_path / "wrong.txt", [[("dog", "DT"), ("dog", "NN")], [("the", "NEW")]])
    result = larank_tag("eval", tmp_path / "m.larank", wrong)
    assert "Entities" not in result.stdout
    assert "F1" not in result.stdout
    assert "Most confused" in result.stdout
    assert "1 token has a label unknown to the model (NEW), counted as an error" in result.stderr


def test_taggers_of_the_library_are_applied_too(train_file, test_file, tmp_path):
    tagger = SequenceTagger(random_state=0).fit(ConllFile(train_file))
    models.save(tagger, tmp_path / "m.larank")
    assert "accuracy" in larank_tag("eval", tmp_path / "m.larank", test_file).stdout


def test_wrong_labels_are_listed_and_can_be_mended(tmp_path):
    wrong = written(tmp_path / "wrong.txt", [[("the", "I-NP"), ("dog", "I-NP"), ("barks", "O")]] * 12)
    said = larank_tag("train", wrong, tmp_path / "m.larank", "--constraints", "BIO", "-q", code=1).stderr
    assert said.count("'I-NP' at the beginning at") == 12
    assert "error: 12 labels are not allowed by --constraints, see above; --repair reads them" in said
    larank_tag("train", wrong, tmp_path / "m.larank", "--constraints", "BIO", "--repair", "--calibrate", wrong, "-q")
    lines = larank_tag("apply", tmp_path / "m.larank", wrong, "--confidence").stdout.splitlines()
    assert [line.split()[2] for line in lines[:3]] == ["B-NP", "I-NP", "O"]
    assert all(0 < float(line.split()[3]) < 1 for line in lines[:3])


def test_without_calibration_the_confidence_is_the_margin(train_file, model):
    tagger = models.load(model)
    lines = larank_tag("apply", model, train_file, "--confidence").stdout.splitlines()
    sentences, _ = read_conll(train_file)
    margins = [token.margin for tokens in tagger.predict_confidence(sentences) for token in tokens]
    assert [float(line.split()[-1]) for line in lines if line] == pytest.approx(margins, abs=1e-4)
