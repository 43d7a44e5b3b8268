"""`larank tag`: what it writes, and how it says that it failed."""

from __future__ import annotations

import lzma
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from commandline import failure, larank
from typer.testing import CliRunner

from larank import cli
from larank.cli import tag as tag_commands
from larank.data import models
from larank.data.columns import ConllFile, read_conll
from larank.sequence.entities import entity_report
from larank.sequence.tagger import SequenceTagger

larank_tag, refusal = partial(larank, "tag"), partial(failure, "tag")

PARTS = {"the": "DT", "a": "DT", "dog": "NN", "cat": "NN", "sees": "VB", "likes": "VB"}
CHUNKS = {"DT": "B-NP", "NN": "I-NP", "VB": "B-VP"}


def sentences(count: int, seed: int) -> list[list[tuple[str, str, str]]]:
    random = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        pattern = ["DT", "NN", *(["VB", "DT", "NN"] * random.integers(0, 3))]
        words = [str(random.choice([word for word, part in PARTS.items() if part == wanted])) for wanted in pattern]
        found.append([(word, PARTS[word], CHUNKS[PARTS[word]]) for word in words])
    return found


def written(path: Path, tokens: list[list[tuple[str, ...]]], separator: str = " ") -> Path:
    text = "\n".join("".join(separator.join(token) + "\n" for token in sentence) for sentence in tokens)
    path.write_text(text)
    return path


@pytest.fixture
def train_file(tmp_path: Path) -> Path:
    return written(tmp_path / "train.txt", sentences(80, 0))


@pytest.fixture
def test_file(tmp_path: Path) -> Path:
    return written(tmp_path / "test.txt", sentences(30, 1))


@pytest.fixture
def model(tmp_path: Path, train_file: Path) -> Path:
    path = tmp_path / "model.larank"
    larank_tag("train", train_file, path, "-q")
    return path


# ---- train ----


def test_train_writes_the_model_the_library_would(train_file: Path, test_file: Path, tmp_path: Path):
    result = larank_tag("train", train_file, tmp_path / "m.larank", "--test", test_file, "--seed", 3)
    assert "test accuracy" in result.stdout
    assert "duality gap" in result.stdout
    assert f"model written to {tmp_path / 'm.larank'}" in result.stdout.replace("\n", "")
    loaded = models.load(tmp_path / "m.larank")
    ours = SequenceTagger(columns=("word", "pos"), random_state=3).fit(ConllFile(train_file))
    assert loaded.predict(ConllFile(test_file)).tolist() == ours.predict(ConllFile(test_file)).tolist()
    assert loaded.columns == ("word", "pos")


def test_options_reach_the_estimator(train_file: Path, tmp_path: Path):
    chosen = "--inference greedy --order 3 -C 0.5 --n-reprocess 2 --epochs 2 --constraints BIO --history predicted"
    larank_tag("train", train_file, tmp_path / "m.larank", *chosen.split(), "--memory-limit", "1e8", "-q")
    found = models.load(tmp_path / "m.larank").get_params()
    wanted = {
        "inference": "greedy",
        "order": 3,
        "C": 0.5,
        "n_reprocess": 2,
        "epochs": 2,
        "constraints": "BIO",
        "history": "predicted",
        "memory_limit": 1e8,
    }
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize("solver", ["perceptron", "passive-aggressive"])
def test_other_solvers_train_and_average(solver: str, train_file: Path, test_file: Path, tmp_path: Path):
    path = tmp_path / "m.larank"
    larank_tag("train", train_file, path, "--solver", solver, "--average", "--epochs", 3, "-q")
    assert models.load(path).average is True
    assert models.load(path).score(ConllFile(test_file)) > 0.9


def test_templates_are_a_set_or_the_lines_of_a_file(train_file: Path, tmp_path: Path):
    file = tmp_path / "templates.txt"
    file.write_text("# of the word\nword[0]\n\nword[-1]|pos[0]\n")
    larank_tag("train", train_file, tmp_path / "a.larank", "--templates", file, "-q")
    larank_tag("train", train_file, tmp_path / "b.larank", "--templates", "words", "-q")
    assert list(models.load(tmp_path / "a.larank").templates) == ["word[0]", "word[-1]|pos[0]"]
    assert models.load(tmp_path / "b.larank").templates == "words"


def test_labels_may_stand_in_any_column_between_tabs(tmp_path: Path):
    tokens = [[(f"{word} {word}", tag, part) for word, part, tag in sentence] for sentence in sentences(40, 0)]
    path = written(tmp_path / "tabs.tsv", tokens, "\t")
    options = ("--label", 2, "--separator", "tab")
    larank_tag("train", path, tmp_path / "m.larank", *options, "--columns", "token,part", "--templates", "WORD", code=1)
    template = tmp_path / "templates.txt"
    template.write_text("token[0]\npart[0]\n")
    larank_tag("train", path, tmp_path / "m.larank", *options, "--columns", "token,part", "--templates", template, "-q")
    model = models.load(tmp_path / "m.larank")
    assert sorted(model.classes_) == ["B-NP", "B-VP", "I-NP"]
    lines = larank_tag("apply", tmp_path / "m.larank", path, *options).stdout.splitlines()
    assert lines[0].split("\t") == [*tokens[0][0], tokens[0][0][1]]


# ---- apply ----


def test_apply_adds_a_last_column_and_leaves_the_rest_as_it_is(model: Path, test_file: Path):
    before = "\n\n" + test_file.read_text().replace(" ", "   ", 1) + "\n\n"
    test_file.write_text(before)
    after = larank_tag("apply", model, test_file).stdout
    predicted = [label for labels in models.load(model).predict(ConllFile(test_file)) for label in labels]
    lines = iter(predicted)
    assert after == "".join(
        line if line.isspace() else f"{line.rstrip()} {next(lines)}\n" for line in before.splitlines(keepends=True)
    )


def test_apply_takes_files_without_labels_and_compressed_ones(model: Path, test_file: Path, tmp_path: Path):
    bare = written(tmp_path / "bare.txt", [[token[:2] for token in sentence] for sentence in sentences(30, 1)])
    packed = tmp_path / "bare.txt.xz"
    packed.write_bytes(lzma.compress(bare.read_bytes()))
    outputs = [larank_tag("apply", model, path).stdout for path in (bare, packed, test_file)]
    assert outputs[0] == outputs[1]
    assert [line.split()[-1:] for line in outputs[0].splitlines()] == [
        line.split()[-1:] for line in outputs[2].splitlines()
    ]


def test_apply_writes_a_file_that_can_be_read_back(model: Path, test_file: Path, tmp_path: Path):
    output = tmp_path / "out.txt"
    assert larank_tag("apply", model, test_file, "--output", output).stdout == ""
    _, labels = read_conll(output)
    assert labels == models.load(model).predict(ConllFile(test_file)).tolist()


def test_pieces_do_not_show_in_the_output(model: Path, test_file: Path, monkeypatch: pytest.MonkeyPatch):
    whole = larank_tag("apply", model, test_file).stdout
    monkeypatch.setattr(tag_commands, "_BLOCK_TOKENS", 7)
    assert larank_tag("apply", model, test_file).stdout == whole


def test_comments_and_windows_line_ends_are_kept_apart_from_tokens(model: Path, tmp_path: Path):
    path = tmp_path / "new.txt"
    path.write_bytes(b"# a sentence\r\nthe DT\r\ndog NN\r\n")
    lines = larank_tag("apply", model, path, "--comment", "# ").stdout.splitlines()
    assert lines == ["# a sentence", "the DT B-NP", "dog NN I-NP"]


def test_a_failing_apply_leaves_the_old_output(model: Path, tmp_path: Path):
    output = tmp_path / "out.txt"
    output.write_text("old")
    bad = tmp_path / "bad.txt"
    bad.write_text("the DT B-NP\ndog NN\n")
    assert "line 2" in refusal("apply", model, bad, "--output", output)
    assert output.read_text() == "old"


# ---- eval ----


def test_eval_shows_the_figures_of_the_library(model: Path, test_file: Path):
    shown = larank_tag("eval", model, test_file).stdout
    _, true = read_conll(test_file)
    assert true is not None
    report = entity_report(true, models.load(model).predict(ConllFile(test_file)))
    assert f"{report.accuracy:.2%}" in shown
    assert f"{report.overall.f1:.2%}" in shown
    assert [line.split()[0] for line in shown.splitlines() if line.strip()[:3] in ("NP ", "VP ", "all")] == [
        "NP",
        "VP",
        "all",
    ]


def test_eval_of_parts_of_speech_has_confusions_and_no_entities(tmp_path: Path):
    tokens = [[token[:2] for token in sentence] for sentence in sentences(40, 0)]
    path = written(tmp_path / "pos.txt", tokens)
    larank_tag("train", path, tmp_path / "m.larank", "-q")
    wrong = written(tmp_path / "wrong.txt", [[("dog", "DT"), ("dog", "NN")], [("the", "NEW")]])
    result = larank_tag("eval", tmp_path / "m.larank", wrong)
    assert "Entities" not in result.stdout
    assert "F1" not in result.stdout
    assert "Most confused" in result.stdout
    assert "1 token has a label unknown to the model (NEW), counted as an error" in result.stderr


# ---- What is refused ----


def test_wrong_files_are_refused_in_one_line(model: Path, train_file: Path, tmp_path: Path):
    narrow = written(tmp_path / "narrow.txt", [[("the",)]])
    bare = written(tmp_path / "bare.txt", [[("the", "DT")]])
    other = written(tmp_path / "other.txt", [[("the", "DT", "X")]])
    wide = written(tmp_path / "wide.txt", [[("a",) * 5000]])
    cases = {
        ("train", wide, tmp_path / "m.larank"): "wide.txt, line 1: more than 1000 columns in ",
        ("eval", model, wide): "wide.txt, line 1: more than 1000 columns in ",
        ("apply", model, wide): "wide.txt, line 1: more than 1000 columns in ",
        ("apply", model, narrow): "has 1 columns; the model takes 2 (word, pos)",
        ("eval", model, bare): "has no labels, only the columns of the model (word, pos)",
        ("eval", model, other): "none of its labels (X) is a class of the model (B-NP, B-VP, I-NP)",
        ("apply", model, bare, "--label", 1): "--label 1",
        ("apply", train_file, train_file): "",
        ("train", tmp_path / "absent.txt", tmp_path / "m.larank"): "absent.txt",
        ("train", train_file, train_file.parent / "no" / "m.larank"): "there is no folder",
        ("train", train_file, tmp_path / "m.larank", "--test", bare): "has no labels",
        (
            "train",
            train_file,
            tmp_path / "m.larank",
            "--templates",
            "nothing",
        ): "come along: general, words, chunking",
    }
    for arguments, words in cases.items():
        assert words in refusal(*arguments)
    assert not (tmp_path / "m.larank").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tol", 0.1], "--tol acts with --stop gap only; got --tol 0.1 with --stop epochs"),
        (["--average", "--stop", "gap"], "--average acts with --stop epochs only"),
        (["--history", "predicted"], "--history predicted acts with --inference greedy and --stop epochs only"),
        (["--max-iter", 5], "--max-iter acts with --stop gap only"),
        (["--order", 256], "--order must be an integer from 0 to 255, got 256"),
        (["-C", 0], "-C must be a finite number > 0, got 0.0"),
        (["--inference", "beam"], "--inference"),
    ],
)
def test_options_that_cannot_act_are_wrong_usage(options: list[object], said: str, train_file: Path, tmp_path: Path):
    stderr = larank_tag("train", train_file, tmp_path / "m.larank", *options, code=2).stderr
    assert said in " ".join(stderr.split())
    assert not (tmp_path / "m.larank").exists()


def test_a_file_that_is_no_model_is_not_replaced(train_file: Path, test_file: Path):
    before = test_file.read_text()
    assert "is not a larank model" in refusal("train", train_file, test_file)
    assert test_file.read_text() == before


def test_models_of_another_kind_are_named(model: Path, train_file: Path, tmp_path: Path):
    from larank import LinearMulticlassSVC

    X, y = np.eye(3).repeat(4, axis=0), np.arange(3).repeat(4)
    models.save(LinearMulticlassSVC().fit(X, y), tmp_path / "linear.larank")
    assert "holds a LinearMulticlassSVC" in refusal("apply", tmp_path / "linear.larank", train_file)
    result = CliRunner().invoke(cli.app, ["predict", str(model), str(train_file)])
    assert result.exit_code == 1
    assert "holds a SequenceTagger, which is no classifier of examples; `larank tag`" in result.stderr


def test_files_named_twice_are_wrong_usage(train_file: Path, model: Path):
    larank_tag("train", train_file, train_file, code=2)
    larank_tag("apply", model, train_file, "--output", train_file, code=2)


def test_taggers_of_the_library_are_applied_too(train_file: Path, test_file: Path, tmp_path: Path):
    tagger = SequenceTagger(random_state=0).fit(ConllFile(train_file))
    models.save(tagger, tmp_path / "m.larank")
    assert "accuracy" in larank_tag("eval", tmp_path / "m.larank", test_file).stdout
    numbers = SequenceTagger().fit([[{"a": 1}, {"b": 2}]], [["A", "B"]])
    models.save(numbers, tmp_path / "numbers.larank")
    assert "tokens that are not text" in refusal("eval", tmp_path / "numbers.larank", test_file)


def test_a_label_column_that_is_not_there_is_named_as_it_was_given(train_file: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.larank"
    assert "--label 9: " in refusal("train", train_file, model, "--label", 9, "-q")
    larank_tag("train", train_file, model, "-q")
    assert "--label 9: " in refusal("apply", model, train_file, "--label", 9)


def test_a_pipe_is_refused_since_its_beginning_would_be_lost(train_file: Path, tmp_path: Path) -> None:
    model, pipe = tmp_path / "model.larank", tmp_path / "pipe"
    larank_tag("train", train_file, model, "-q")
    os.mkfifo(pipe)
    assert "is a pipe or a device" in refusal("apply", model, pipe)
    assert "is a pipe or a device" in refusal("train", pipe, model, "-q")


def test_wrong_labels_are_listed_and_can_be_mended(tmp_path: Path):
    wrong = written(tmp_path / "wrong.txt", [[("the", "I-NP"), ("dog", "I-NP"), ("barks", "O")]] * 12)
    said = larank_tag("train", wrong, tmp_path / "m.larank", "--constraints", "BIO", "-q", code=1).stderr
    assert said.count("'I-NP' at the beginning at") == 12
    assert "error: 12 labels are not allowed by --constraints, see above; --repair reads them" in said
    larank_tag("train", wrong, tmp_path / "m.larank", "--constraints", "BIO", "--repair", "--calibrate", wrong, "-q")
    lines = larank_tag("apply", tmp_path / "m.larank", wrong, "--confidence").stdout.splitlines()
    assert [line.split()[2] for line in lines[:3]] == ["B-NP", "I-NP", "O"]
    assert all(0 < float(line.split()[3]) < 1 for line in lines[:3])
    assert "100.00" in larank_tag("eval", tmp_path / "m.larank", wrong).stdout


def test_without_calibration_the_confidence_is_the_margin(train_file: Path, model: Path):
    tagger = models.load(model)
    lines = larank_tag("apply", model, train_file, "--confidence").stdout.splitlines()
    sentences, _ = read_conll(train_file)
    margins = [token.margin for tokens in tagger.predict_confidence(sentences) for token in tokens]
    assert [float(line.split()[-1]) for line in lines if line] == pytest.approx(margins, abs=1e-4)
