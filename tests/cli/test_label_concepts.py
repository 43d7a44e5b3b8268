"""`larank label-concepts`: what it writes, and how it says that it failed."""

import re
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pytest
from commandline import failure, larank

from larank import ConceptLabeler
from larank.ambiguous.house import AMBIGUITY, House
from larank.ambiguous.stories import read_story, write_story
from larank.ambiguous.universetable import read_table, write_table
from larank.data import models

label_concepts, refusal = partial(larank, "label-concepts"), partial(failure, "label-concepts")

SMALL = ("--hidden-size", 20, "--embedding-size", 5, "--window", 9, "--epochs", 2)


class Files(NamedTuple):
    table: Path
    train: Path
    test: Path
    model: Path


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A table of the house, a story told there, how it goes on, and a model of it."""
    folder = tmp_path_factory.mktemp("house")
    files = Files(*(folder / name for name in ("house.csv", "train.txt", "test.txt", "house.larank")))
    story = House(random_state=0, ambiguity=AMBIGUITY)
    write_table(files.table, story.universe, {"dad": ["john"]}, relations=["location", "containedby"])
    universe = read_table(files.table).universe
    write_story(files.train, islice(story, 300), universe)
    write_story(files.test, islice(story, 20), universe)
    label_concepts("train", files.table, files.train, files.model, *SMALL, "--quiet")
    return files


@pytest.fixture
def own(tmp_path):
    """Files of a user, with a concept that the story does not speak of."""
    files = Files(*(tmp_path / name for name in ("own.csv", "train.txt", "test.txt", "own.larank")))
    files.table.write_text(
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
    files.train.write_text("\n".join(lines))
    files.test.write_text("somebody sings in the hall\nmary sing - - hall\n\nzoe sings\nzoe sing\n")
    return files


def figures_of(text):
    rows = [line.rsplit(maxsplit=1) for line in text.splitlines() if not line.startswith("model")]
    return {name.strip(): value for name, value in rows}


def test_a_labeler_is_trained_measured_and_written(house, tmp_path):
    path = tmp_path / "house.larank"
    options = ("--relations", "location", "--strategy", "left-right", "--seed", 4)
    shown = label_concepts("train", house.table, house.train, path, "--test", house.test, *options, *SMALL).stdout
    labeler = models.load(path)
    assert (labeler.strategy, labeler.hidden_size, labeler.random_state) == ("left-right", 20, 4)
    assert labeler.relations_ == ("location",)
    story = read_story(house.test, read_table(house.table).universe)
    error = 1 - labeler.score([s.words for s in story], [s.concepts for s in story], [s.universe for s in story])
    figures = figures_of(shown)
    assert figures["test sentences"] == "20"
    assert figures["test sentence error"] == f"{error:.2%}"
    assert (figures["words"], figures["concepts"]) == (str(len(labeler.words_)), "58")
    assert (figures["relations"], figures["passes"]) == ("1", "2")
    assert "dad" in labeler.words_
    assert f"model written to {path}" in shown.replace("\n", "")
    measured = label_concepts("eval", path, house.table, house.test, "--top", 2).stdout
    assert re.search(rf"test sentence error +{error:.2%}", measured)
    assert "test word error" in measured


def test_relations_are_a_list_which_may_be_empty(house, tmp_path):
    def relations(*given):
        path = tmp_path / "house.larank"
        label_concepts("train", house.table, house.train, path, "--quiet", *SMALL, "--epochs", 1, *given)
        return models.load(path).relations_

    assert relations() == relations("--relations", "location, containedby") == ("location", "containedby")
    assert relations("--relations", "") == ()
    assert re.search(r"--relations NAME,\.\.\. +The relations", label_concepts("train", "--help").stdout)


def test_with_a_table_of_ones_own_a_word_means_who_is_there(own):
    options = ("--hidden-size", 40, "--epochs", 60)
    shown = label_concepts("train", own.table, own.train, own.model, "--test", own.test, *options).stdout
    assert figures_of(shown)["test sentence error"] == "0.00%"
    new = own.test.with_name("new.txt")
    new.write_text("location(john) = hall\nlocation(mary) = kitchen\nsomebody sings in the hall\n")
    assert "john sing - - hall" in label_concepts("apply", own.model, own.table, new).stdout


def test_what_is_written_is_the_same_story_with_labels_that_are_right_by_their_own_measure(house, tmp_path):
    labeler, universe, labelled = models.load(house.model), read_table(house.table).universe, tmp_path / "labelled.txt"
    story = read_story(house.test, universe)
    words, universes = [each.words for each in story], [each.universe for each in story]
    label_concepts("apply", house.model, house.table, house.test, "--output", labelled)
    found = read_story(labelled, universe, needs_concepts=True)
    assert [each.words for each in found] == words
    assert [each.universe for each in found] == universes
    assert [each.concepts for each in found] == [tuple(names) for names in labeler.predict(words, universes)]
    again = label_concepts("train", house.table, house.train, tmp_path / "n.larank", "--test", labelled, *SMALL).stdout
    assert figures_of(again)["test sentence error"] == "0.00%"
    plain = label_concepts("apply", house.model, house.table, house.test).stdout
    assert plain == labelled.read_text()
    shown = label_concepts("apply", house.model, house.table, house.test, "--explain").stdout
    assert [line for line in shown.splitlines() if not line.startswith("#")] == plain.splitlines()
    assert re.search(r"^# +1\. \w+ +\S+, before \S+ by", shown, re.MULTILINE)


def test_bags_are_handed_over_as_they_are(own, monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(ConceptLabeler, "fit", lambda self, *given: seen.extend([self.supervision, *given]))
    monkeypatch.setattr(models, "save", lambda *_: None)
    for look_at_result in ("say_if_stopped_early", "exit_if_interrupted"):
        monkeypatch.setattr(f"larank.cli.labelconcepts.{look_at_result}", lambda *_: None)
    story = tmp_path / "bags.txt"
    story.write_text("somebody sings in the hall\nhall mary sing\n\nla la la\n-\n")
    label_concepts("train", own.table, story, own.model, "--supervision", "bags", "--quiet")
    supervision, _, concepts, universes = seen
    assert supervision == "bags"
    assert concepts[:3] == [("hall", "mary", "sing"), ("-",), ("john",)]
    assert len(universes) == len(concepts) == 2 + 7


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("table", "concept,containedby\nbox,box\n", r"own.csv, line 2, column 'containedby': .* back to itself"),
        ("train", "location(john) = moon\nhe sings\njohn sing\n", "train.txt, line 1: .* 'moon', which is not known"),
        ("train", "he sings\n", "train.txt, line 1: the sentence 'he sings' has no concepts"),
        ("train", "# nothing\n", "train.txt holds no sentences"),
        ("test", "he sings\n", "test.txt, line 1: the sentence 'he sings' has no concepts"),
    ],
)
def test_files_that_are_wrong_are_refused_with_the_place(name, text, message, own):
    getattr(own, name).write_text(text)
    assert re.search(message, refusal("train", own.table, own.train, own.model, "--test", own.test))
    assert not own.model.exists()
