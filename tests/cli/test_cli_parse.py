"""`larank parse`: what it writes, and how it says that it failed."""

import re
from functools import partial

import pytest
from commandline import failure, larank

from larank import SemanticParser
from larank.ambiguous.childworld import make_child_world
from larank.ambiguous.meanings import ParseExample, read_examples, write_examples
from larank.data import models

larank_parse, refusal = partial(larank, "parse"), partial(failure, "parse")

TRAIN, TEST = make_child_world(300, 20, level=1, random_state=0)


@pytest.fixture
def train_file(tmp_path):
    write_examples(tmp_path / "train.txt", TRAIN)
    return tmp_path / "train.txt"


@pytest.fixture
def test_file(tmp_path):
    write_examples(tmp_path / "test.txt", [ParseExample(each.words, (each.meaning,)) for each in TEST])
    return tmp_path / "test.txt"


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "child.larank"
    models.save(SemanticParser(random_state=0).fit(TRAIN), path)
    return path


def figures_of(text):
    return dict(line.rsplit(maxsplit=1) for line in text.splitlines() if line.startswith("test "))


def test_a_parser_is_trained_measured_and_written(train_file, test_file, tmp_path):
    path = tmp_path / "child.larank"
    result = larank_parse("train", train_file, path, "--test", test_file, "--window", 3, "-C", 0.2, "--seed", 4)
    parser = models.load(path)
    assert (parser.window, parser.C, parser.random_state) == (3, 0.2, 4)
    scores = parser.evaluate([each.words for each in TEST], [each.meaning for each in TEST])
    figures = figures_of(result.stdout)
    assert figures["test F1"] == f"{scores.f1:.2%}"
    assert figures["test sentences"] == "20"
    assert larank_parse("train", train_file, path, "--quiet").output == ""


def test_sentences_are_written_with_their_meanings_as_they_can_be_read(model_file, test_file, tmp_path):
    parser = models.load(model_file)
    larank_parse("apply", model_file, test_file, "--output", tmp_path / "parsed.txt")
    found = read_examples(tmp_path / "parsed.txt", needs_candidates=False)
    assert [each.words for each in found] == [each.words for each in TEST]
    meanings = parser.predict([each.words for each in TEST])
    assert [each.candidates for each in found] == [() if each is None else (each,) for each in meanings]
    shown = larank_parse("apply", model_file, test_file)
    assert shown.stdout == (tmp_path / "parsed.txt").read_text()


def test_explanations_are_comments(model_file, tmp_path):
    (tmp_path / "new.txt").write_text("the dog broke the box\n\nxyzzy\n")
    shown = larank_parse("apply", model_file, tmp_path / "new.txt", "--explain").stdout
    (tmp_path / "explained.txt").write_text(shown)
    first, second = read_examples(tmp_path / "explained.txt", needs_candidates=False)
    assert first.words == ("the", "dog", "broke", "the", "box")
    assert len(first.candidates) == 1
    assert second.candidates == ()
    assert "# meaning: none" in shown


def test_what_was_not_found_is_shown(model_file, test_file, tmp_path):
    parser = models.load(model_file)
    result = larank_parse("eval", model_file, test_file, "--top", 1)
    wrong = sum(a != each.meaning for a, each in zip(parser.predict([e.words for e in TEST]), TEST, strict=True))
    assert figures_of(result.stdout)["test recall"] == f"{1 - wrong / 20:.2%}"
    (tmp_path / "odd.txt").write_text("the dog slept\nunheard_of(dog)\n")
    assert "unheard_of(dog)" in larank_parse("eval", model_file, tmp_path / "odd.txt").stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b\nfoo(bar, baz\n", "line 2, column 13: expected"),
        ("a b\nfoo(bar)\n\nc d\n-\n", "line 5"),
        ("a b\nc d e\n", "line 2, column 3: .*; if this line is a sentence, put an empty line before it"),
        ("a b\n", "has no meaning"),
        ("", "holds no sentences"),
        ("# nothing\n", "holds no sentences"),
    ],
)
def test_files_that_are_wrong_are_refused_with_the_place(text, message, tmp_path):
    (tmp_path / "wrong.txt").write_text(text)
    line = refusal("train", tmp_path / "wrong.txt", tmp_path / "model.larank")
    assert re.search(message, line)
    assert "wrong.txt" in line
    assert not (tmp_path / "model.larank").exists()
