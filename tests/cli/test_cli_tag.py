"""`larank tag`: what it writes, and how it says that it failed."""

import lzma
import shutil
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
from commandline import failure, larank

from larank import Greedy, LaRank
from larank.cli import tag as tag_commands
from larank.data import models
from larank.data.columns import ConllFile, read_conll
from larank.sequence.entities import entity_report
from larank.sequence.tagger import SequenceTagger

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


def write(path, tokens, separator=" "):
    text = "\n".join("".join(separator.join(token) + "\n" for token in sentence) for sentence in tokens)
    Path(path).write_text(text)


def without_labels(tokens):
    return [[token[:2] for token in sentence] for sentence in tokens]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    with chdir(folder):
        write("train.txt", sentences(80, 0))
        write("test.txt", sentences(30, 1))
        larank("tag train train.txt model -q")
    return folder


@pytest.fixture(autouse=True)
def here(files, tmp_path, monkeypatch):
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def test_train_writes_the_model_the_library_would():
    result = larank("tag train train.txt m.larank --test test.txt --seed 3")
    for piece in ("test accuracy", "duality gap", "model written to m.larank"):
        assert piece in result.stdout
    loaded, test = models.load("m.larank"), ConllFile("test.txt")
    ours = SequenceTagger(columns=("word", "pos"), random_state=3).fit(ConllFile("train.txt"))
    assert loaded.predict(test).tolist() == ours.predict(test).tolist()
    assert loaded.columns == ("word", "pos")


LARANK = {"order": 3, "C": 0.5, "solver": LaRank(n_reprocess=2), "constraints": "BIO", "inference": Greedy("predicted")}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--inference greedy --order 3 -C 0.5 --n-reprocess 2 --constraints BIO --history predicted", LARANK),
        ("--memory-limit 1e8 --max-iter 2", {"memory_limit": 1e8, "max_iter": 2}),
        *(
            (f"--solver {name} --average --max-iter 3", {"solver": name, "average": True, "max_iter": 3})
            for name in ("perceptron", "passive-aggressive")
        ),
    ],
)
def test_options_reach_the_estimator(options, expected):
    larank(f"tag train train.txt m {options} -q")
    found = models.load("m")
    assert {name: getattr(found, name) for name in expected} == expected
    assert found.score(ConllFile("test.txt")) > 0.9


def test_no_certificate_is_computed_if_none_is_wanted():
    for option, is_exact in (("--certify", True), ("--no-certify", False)):
        larank(f"tag train train.txt m {option} -q")
        assert models.load("m").result_.exact == is_exact


def test_labels_may_stand_in_any_column_between_tabs_and_templates_are_a_set_or_a_file():
    tokens = [[(f"{word} {word}", tag, part) for word, part, tag in sentence] for sentence in sentences(40, 0)]
    write("tabs.tsv", tokens, "\t")
    Path("t.txt").write_text("# of the word\ntoken[0]\n\ntoken[-1]|part[0]\n")
    train, options = "tag train tabs.tsv m", "--label 2 --separator tab"
    larank(f"{train} {options} --columns token,part --templates WORD", code=1)
    larank(f"{train} {options} --columns token,part --templates t.txt -q")
    tagger = models.load("m")
    assert sorted(tagger.classes_) == ["B-NP", "B-VP", "I-NP"]
    assert list(tagger.templates) == ["token[0]", "token[-1]|part[0]"]
    lines = larank(f"tag apply m tabs.tsv {options}").stdout.splitlines()
    assert lines[0].split("\t") == [*tokens[0][0], tokens[0][0][1]]
    larank(f"{train} {options} --templates words -q")
    assert models.load("m").templates == "words"


def test_apply_adds_a_last_column_and_leaves_the_rest_as_it_is(monkeypatch):
    before = "\n\n" + Path("test.txt").read_text().replace(" ", "   ", 1) + "\n\n"
    Path("test.txt").write_text(before)
    after = larank("tag apply model test.txt").stdout
    predicted = models.load("model").predict(ConllFile("test.txt")).tolist()
    labels = iter([label for sentence in predicted for label in sentence])
    assert after == "".join(
        line if line.isspace() else f"{line.rstrip()} {next(labels)}\n" for line in before.splitlines(keepends=True)
    )
    assert larank("tag apply model test.txt --output out.txt").stdout == ""
    assert read_conll("out.txt")[1] == predicted
    Path("new.txt").write_bytes(b"# a sentence\r\nthe DT\r\ndog NN\r\n")
    lines = larank("tag apply model new.txt --comment", "# ").stdout.splitlines()
    assert lines == ["# a sentence", "the DT B-NP", "dog NN I-NP"]
    monkeypatch.setattr(tag_commands, "_BLOCK_TOKENS", 7)
    assert larank("tag apply model test.txt").stdout == after


def test_apply_takes_files_without_labels_and_compressed_ones():
    write("bare.txt", without_labels(sentences(30, 1)))
    Path("bare.txt.xz").write_bytes(lzma.compress(Path("bare.txt").read_bytes()))
    bare, packed, full = (larank(f"tag apply model {name}").stdout for name in ("bare.txt", "bare.txt.xz", "test.txt"))
    assert bare == packed
    assert [line.split()[-1:] for line in bare.splitlines()] == [line.split()[-1:] for line in full.splitlines()]


def test_a_failing_apply_leaves_the_old_output():
    Path("out.txt").write_text("old")
    Path("bad.txt").write_text("the DT B-NP\ndog NN\n")
    assert "line 2" in failure("tag apply model bad.txt --output out.txt")
    assert Path("out.txt").read_text() == "old"


def test_eval_shows_the_figures_of_the_library():
    shown = larank("tag eval model test.txt").stdout
    report = entity_report(read_conll("test.txt")[1], models.load("model").predict(ConllFile("test.txt")))
    assert f"{report.accuracy:.2%}" in shown
    assert f"{report.overall.f1:.2%}" in shown
    rows = [line.split()[0] for line in shown.splitlines() if line.strip()[:3] in ("NP ", "VP ", "all")]
    assert rows == ["NP", "VP", "all"]
    models.save(SequenceTagger(random_state=0).fit(ConllFile("train.txt")), "m")  # with other names of columns
    assert "accuracy" in larank("tag eval m test.txt").stdout


def test_eval_of_parts_of_speech_has_confusions_and_no_entities():
    write("pos.txt", without_labels(sentences(40, 0)))
    write("wrong.txt", [[("dog", "DT"), ("dog", "NN")], [("the", "NEW")]])
    larank("tag train pos.txt m -q")
    result = larank("tag eval m wrong.txt")
    assert [word in result.stdout for word in ("Entities", "F1", "Most confused")] == [False, False, True]
    assert "1 token has a label unknown to the model (NEW), counted as an error" in result.stderr


def test_wrong_labels_are_listed_and_can_be_mended():
    write("wrong.txt", [[("the", "I-NP"), ("dog", "I-NP"), ("barks", "O")]] * 12)
    train = "tag train wrong.txt m --constraints BIO -q"
    said = larank(train, code=1).stderr
    assert said.count("'I-NP' at the beginning at") == 12
    assert "error: 12 labels are not allowed by --constraints, see above; --repair reads them" in said
    larank(f"{train} --repair --calibrate wrong.txt")
    lines = larank("tag apply m wrong.txt --confidence").stdout.splitlines()
    assert [line.split()[2] for line in lines[:3]] == ["B-NP", "I-NP", "O"]
    assert all(0 < float(line.split()[3]) < 1 for line in lines[:3])
    assert "100.00" in larank("tag eval m wrong.txt").stdout


def test_without_calibration_the_confidence_is_the_margin():
    lines = larank("tag apply model train.txt --confidence").stdout.splitlines()
    found = models.load("model").predict_confidence(read_conll("train.txt")[0])
    margins = [token.margin for tokens in found for token in tokens]
    assert [float(line.split()[-1]) for line in lines if line] == pytest.approx(margins, abs=1e-4)
