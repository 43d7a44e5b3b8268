"""`larank parse` and `larank label-concepts`: what they write, and how they say that they failed."""

import os
import re
import shutil
from contextlib import chdir
from itertools import islice
from pathlib import Path

import pytest
from commandline import failure, larank

from larank import ConceptLabeler, SemanticParser
from larank.ambiguous.childworld import make_child_world
from larank.ambiguous.house import AMBIGUITY, House
from larank.ambiguous.meanings import ParseExample, read_examples, write_examples
from larank.ambiguous.stories import read_story, write_story
from larank.ambiguous.universetable import read_table, write_table
from larank.data import models

TRAIN, TEST = make_child_world(300, 20, level=1, random_state=0)
WORDS, MEANINGS = [each.words for each in TEST], [each.meaning for each in TEST]
SMALL = "--hidden-size 20 --embedding-size 5 --window 9 --max-iter 2"
TRAIN_HOUSE = "label-concepts train house.csv house.txt"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Sentences of a child's world, a table of the house, a story told there, how both go on, and models of them.

    The files own.csv, own.txt and own_test.txt are a user's own, with a concept that the story does not speak of.
    """
    folder = tmp_path_factory.mktemp("files")
    with chdir(folder):
        write_examples("train.txt", TRAIN)
        write_examples("test.txt", [ParseExample(each.words, (each.meaning,)) for each in TEST])
        models.save(SemanticParser(random_state=0).fit(TRAIN), "child")
        story = House(random_state=0, ambiguity=AMBIGUITY)
        write_table("house.csv", story.universe, {"dad": ["john"]}, relations=["location", "containedby"])
        universe = read_table("house.csv").universe
        write_story("house.txt", islice(story, 300), universe)
        write_story("house_test.txt", islice(story, 20), universe)
        larank(f"{TRAIN_HOUSE} house {SMALL} --quiet")
        Path("own.csv").write_text(
            "concept,kind,words,location:room\n"
            "john,actor,john,kitchen\nmary,actor,mary,hall\nzoe,actor,zoe,attic\n"
            "kitchen,room,kitchen,\nhall,room,hall,\nattic,room,attic,\nsing,verb,sings,\n"
        )
        lines = []
        for n in range(40):  # they change places
            places = ("kitchen", "hall") if n % 2 else ("hall", "kitchen")
            lines += [f"location(john) = {places[0]}", f"location(mary) = {places[1]}"]
            room = places[n // 2 % 2]
            lines += [f"somebody sings in the {room}", f"{('john', 'mary')[n // 2 % 2]} sing - - {room}", ""]
        Path("own.txt").write_text("\n".join(lines))
        Path("own_test.txt").write_text("somebody sings in the hall\nmary sing - - hall\n\nzoe sings\nzoe sing\n")
    return folder


@pytest.fixture(autouse=True)
def here(files, tmp_path, monkeypatch):
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def figures_of(result):
    rows = [line.rsplit(maxsplit=1) for line in result.stdout.splitlines() if len(line.split()) > 1]
    return {name.strip(): value for name, value in rows}


def test_a_parser_is_trained_measured_and_written():
    result = larank("parse train train.txt m --test test.txt --window 3 -C 0.2 --seed 4")
    parser = models.load("m")
    assert (parser.window, parser.C, parser.random_state) == (3, 0.2, 4)
    figures = figures_of(result)
    assert figures["test F1"] == f"{parser.evaluate(WORDS, MEANINGS).f1:.2%}"
    assert figures["test sentences"] == "20"
    assert larank("parse train train.txt m --quiet").output == ""


def test_sentences_are_written_with_their_meanings_as_they_can_be_read():
    larank("parse apply child test.txt --output parsed.txt")
    found = read_examples("parsed.txt", needs_candidates=False)
    assert [each.words for each in found] == WORDS
    meanings = models.load("child").predict(WORDS)
    assert [each.candidates for each in found] == [() if each is None else (each,) for each in meanings]
    assert larank("parse apply child test.txt").stdout == Path("parsed.txt").read_text()


def test_explanations_are_comments():
    Path("new.txt").write_text("the dog broke the box\n\nxyzzy\n")
    shown = larank("parse apply child new.txt --explain").stdout
    Path("explained.txt").write_text(shown)
    first, second = read_examples("explained.txt", needs_candidates=False)
    assert first.words == ("the", "dog", "broke", "the", "box")
    assert len(first.candidates) == 1
    assert second.candidates == ()
    assert "# meaning: none" in shown


def test_what_was_not_found_is_shown():
    wrong = sum(a != b for a, b in zip(models.load("child").predict(WORDS), MEANINGS, strict=True))
    assert figures_of(larank("parse eval child test.txt --top 1"))["test recall"] == f"{1 - wrong / 20:.2%}"
    Path("odd.txt").write_text("the dog slept\nunheard_of(dog)\n")
    assert "unheard_of(dog)" in larank("parse eval child odd.txt").stdout


def test_a_labeler_is_trained_measured_and_written():
    options = f"--test house_test.txt --relations location --strategy left-right --seed 4 {SMALL}"
    shown = larank(f"{TRAIN_HOUSE} m.larank {options}")
    labeler = models.load("m.larank")
    assert (labeler.strategy, labeler.hidden_size, labeler.random_state) == ("left-right", 20, 4)
    assert labeler.relations_ == ("location",)
    story = read_story("house_test.txt", read_table("house.csv").universe)
    error = 1 - labeler.score([s.words for s in story], [s.concepts for s in story], [s.universe for s in story])
    figures = figures_of(shown)
    assert figures["test sentences"] == "20"
    assert figures["test sentence error"] == f"{error:.2%}"
    assert (figures["words"], figures["concepts"]) == (str(len(labeler.words_)), "58")
    assert (figures["relations"], figures["passes"]) == ("1", "2")
    assert "dad" in labeler.words_
    assert "model written to m.larank" in shown.stdout
    measured = figures_of(larank("label-concepts eval m.larank house.csv house_test.txt --top 2"))
    assert measured["test sentence error"] == f"{error:.2%}"
    assert "test word error" in measured


def test_relations_are_a_list_which_may_be_empty():
    def relations(*given):
        larank(f"{TRAIN_HOUSE} m --quiet {SMALL} --max-iter 1", *given)
        return models.load("m").relations_

    assert relations() == relations("--relations", "location, containedby") == ("location", "containedby")
    assert relations("--relations", "") == ()
    assert re.search(r"--relations NAME,\.\.\. +Names of the relations", larank("label-concepts train --help").stdout)


def test_with_a_table_of_ones_own_a_word_means_who_is_there():
    result = larank("label-concepts train own.csv own.txt m --test own_test.txt --hidden-size 40 --max-iter 60")
    assert figures_of(result)["test sentence error"] == "0.00%"
    Path("new.txt").write_text("location(john) = hall\nlocation(mary) = kitchen\nsomebody sings in the hall\n")
    assert "john sing - - hall" in larank("label-concepts apply m own.csv new.txt").stdout


def test_what_is_written_is_the_same_story_with_labels_that_are_right_by_their_own_measure():
    universe, apply = read_table("house.csv").universe, "label-concepts apply house house.csv house_test.txt"
    story = read_story("house_test.txt", universe)
    words, universes = [each.words for each in story], [each.universe for each in story]
    larank(f"{apply} --output labelled.txt")
    found = read_story("labelled.txt", universe, needs_concepts=True)
    assert [each.words for each in found] == words
    assert [each.universe for each in found] == universes
    labels = models.load("house").predict(words, universes)
    assert [each.concepts for each in found] == [tuple(names) for names in labels]
    assert figures_of(larank(f"{TRAIN_HOUSE} m --test labelled.txt {SMALL}"))["test sentence error"] == "0.00%"
    plain = larank(apply).stdout
    assert plain == Path("labelled.txt").read_text()
    shown = larank(f"{apply} --explain").stdout
    assert [line for line in shown.splitlines() if not line.startswith("#")] == plain.splitlines()
    assert re.search(r"^# +1\. \w+ +\S+, before \S+ by", shown, re.MULTILINE)


def test_bags_are_handed_over_as_they_are(monkeypatch):
    seen = []
    monkeypatch.setattr(ConceptLabeler, "fit", lambda self, *given: seen.extend([self.supervision, *given]))
    monkeypatch.setattr(models, "save", lambda *_: None)
    for look_at_result in ("say_if_stopped_early", "exit_if_interrupted"):
        monkeypatch.setattr(f"larank.cli.labelconcepts.{look_at_result}", lambda *_: None)
    Path("bags.txt").write_text("somebody sings in the hall\nhall mary sing\n\nla la la\n-\n")
    larank("label-concepts train own.csv bags.txt m --supervision bags --quiet")
    supervision, _, concepts, universes = seen
    assert supervision == "bags"
    assert concepts[:3] == [("hall", "mary", "sing"), ("-",), ("john",)]
    assert len(universes) == len(concepts) == 2 + 7


PARSE, LABEL = "parse train train.txt m", "label-concepts train own.csv own.txt m --test own_test.txt"
# A command, the file in it that is wrong, the content of the file, what is said.
WRONG = [
    (PARSE, "train.txt", "a b\nfoo(bar, baz\n", "line 2, column 13: expected"),
    (PARSE, "train.txt", "a b\nfoo(bar)\n\nc d\n-\n", "line 5"),
    (PARSE, "train.txt", "a b\nc d e\n", "line 2, column 3: .*; if this line is a sentence, put an empty line before"),
    (PARSE, "train.txt", "a b\n", "has no meaning"),
    (PARSE, "train.txt", "", "holds no sentences"),
    (PARSE, "train.txt", "# nothing\n", "holds no sentences"),
    (LABEL, "own.csv", "concept,containedby\nbox,box\n", r", line 2, column 'containedby': .* back to itself"),
    (LABEL, "own.txt", "location(john) = moon\nhe sings\njohn sing\n", ", line 1: .* 'moon', which is not known"),
    (LABEL, "own.txt", "he sings\n", ", line 1: the sentence 'he sings' has no concepts"),
    (LABEL, "own.txt", "# nothing\n", "holds no sentences"),
    (LABEL, "own_test.txt", "he sings\n", ", line 1: the sentence 'he sings' has no concepts"),
]


@pytest.mark.parametrize(("command", "name", "text", "message"), WRONG)
def test_files_that_are_wrong_are_refused_with_the_place(command, name, text, message):
    Path(name).write_text(text)
    assert re.search(f"{name}.*{message}", failure(command))
    assert not os.path.exists("m")
