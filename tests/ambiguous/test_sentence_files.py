"""Files of sentences: meanings are trees that can be written and read, stories say what was known at each sentence."""

import gzip
from contextlib import suppress
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larank.ambiguous.house import AMBIGUITY, House
from larank.ambiguous.meanings import (
    Meaning,
    MeaningFormatError,
    ParseExample,
    parse_meaning,
    read_examples,
    write_examples,
)
from larank.ambiguous.stories import StorySentence, read_story, write_story
from larank.ambiguous.universe import Relation, Universe, UniverseError
from larank.ambiguous.universetable import read_table, write_table
from larank.data import DataFormatError

BELIEVE = Meaning("believe", (Meaning("mother"), Meaning("break", (Meaning("dog"), Meaning("box")))))

symbols = st.text(min_size=1, max_size=6).filter(lambda text: text.isprintable() and text != "-")
meanings = st.recursive(
    symbols.map(Meaning),
    lambda inner: st.builds(Meaning, symbols, st.lists(inner, max_size=3).map(tuple)),
    max_leaves=8,
)


@given(meanings)
def test_what_is_written_is_read_back(meaning):
    assert parse_meaning(str(meaning)) == meaning


def test_relations_symbols_and_pairs_are_written_and_read_in_their_order():
    assert str(BELIEVE) == "believe(mother, break(dog, box))"
    assert parse_meaning(" believe (mother,break( dog ,box)) ") == BELIEVE
    assert [str(relation) for relation in BELIEVE.relations()] == [str(BELIEVE), "break(dog, box)"]
    assert BELIEVE.symbols() == ("believe", "mother", "break", "dog", "box")
    assert BELIEVE.pairs() == (("mother", "A0"), ("break", "A1"))
    assert Meaning("dog").relations() == Meaning("dog").pairs() == ()
    assert parse_meaning("rain()") == parse_meaning("rain") == Meaning("rain")
    assert parse_meaning("say(mother, rain())").relations() == (parse_meaning("say(mother, rain)"),)
    assert parse_meaning("see(dog, see(dog, cat))").symbols() == ("see", "dog", "see", "dog", "cat")


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("", 1, "expected a symbol, but the text ends"),
        ("break(", 7, "expected a symbol, but the text ends"),
        ("break(dog", 10, r"expected ',' or '\)' after an argument of break, but the text ends"),
        ("break(dog box)", 11, r"expected ',' or '\)' after an argument of break, but 'b' came"),
        ("break(dog, )", 12, r"expected a symbol, but '\)' came"),
        ("break(dog))", 11, r"expected the end after a whole meaning, but '\)' came"),
        ("break(-)", 7, "symbol is '-'; a symbol must be"),
        ("break('')", 7, "symbol is ''; a symbol must be"),
        ("'break", 1, "a quote is not closed"),
        ("a(" * 5000, 203, "relations are nested deeper than 100"),
    ],
)
def test_an_error_says_where_it_is_and_what_was_expected(text, column, words):
    with pytest.raises(MeaningFormatError, match=words) as caught:
        parse_meaning(text, line=7)
    assert (caught.value.line, caught.value.column) == (7, column)
    assert f"line 7, column {column}" in str(caught.value)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        *((lambda symbol=symbol: Meaning(symbol), ValueError, "symbol is") for symbol in ("", "-", "a\nb")),
        (lambda: Meaning("break", ("dog",)), TypeError, "arguments has 'dog'"),
        (lambda: parse_meaning(3), TypeError, "text is of type int"),
        (lambda: Meaning(3), TypeError, r"a Meaning takes a str and a tuple of meanings, got 3 and \(\)"),
    ],
)
def test_what_is_no_meaning_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---- Files ----

FILE = """# two sentences
mommy believes that the dog broke the box
believe(mother, break(dog, box))
# one more
give(mother, box, dog)


the dog sleeps
sleep(dog)
"""


def test_a_file_has_blocks_of_a_sentence_and_its_candidates(tmp_path):
    (tmp_path / "examples.txt").write_text(FILE)
    examples = read_examples(tmp_path / "examples.txt")
    assert examples == read_examples(FILE.splitlines())
    assert [len(example.words) for example in examples] == [8, 3]
    assert examples[0].candidates == (BELIEVE, parse_meaning("give(mother, box, dog)"))


words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5).filter(lambda w: len(w.split()) == 1)
sentences = st.lists(words.map(str.strip), min_size=1, max_size=4).filter(lambda s: s[0][0] not in "#\ufeff").map(tuple)
examples = st.builds(ParseExample, sentences, st.lists(meanings, min_size=1, max_size=3).map(tuple))


@given(st.lists(examples, max_size=4))
def test_a_file_that_was_written_is_read_back(tmp_path_factory, examples):
    for name in ("examples.txt", "examples.txt.gz"):
        path = tmp_path_factory.mktemp("written") / name
        write_examples(path, examples)
        assert read_examples(path) == examples
    # A known meaning is written where there are no candidates.
    write_examples(path, [ParseExample(("dogs", "sleep"), (), Meaning("sleep", (Meaning("dog"),)))])
    assert gzip.decompress(path.read_bytes()) == b"dogs sleep\nsleep(dog)\n"


def test_a_bad_or_missing_meaning_names_file_and_line_unless_it_is_to_be_applied(tmp_path):
    path = tmp_path / "bad.txt"
    path.write_text(FILE.replace("sleep(dog)", "sleep(dog"))
    with pytest.raises(MeaningFormatError, match=r"bad\.txt, line 9, column 10: expected ',' or '\)'"):
        read_examples(path)
    with pytest.raises(MeaningFormatError, match=r"^line 2, column 4"):
        read_examples(["the dog", "dog)"])
    path.write_text("# to apply\nthe dog sleeps\n\nthe cat sleeps\n")
    with pytest.raises(DataFormatError, match=r"bad\.txt, line 2: the sentence 'the dog sleeps' has no meaning"):
        read_examples(path)
    assert [example.words[1] for example in read_examples(path, needs_candidates=False)] == ["dog", "cat"]


@pytest.mark.parametrize("words", [(), ("",), ("two words",), ("#1", "dog")])
def test_words_that_could_not_be_read_back_are_refused_and_the_old_file_stays(tmp_path, words):
    path = tmp_path / "kept.txt"
    path.write_text("kept")
    with pytest.raises(ValueError, match=r"examples\[1\]\.words is"):
        write_examples(path, [ParseExample(("fine",)), ParseExample(words)])
    assert path.read_text() == "kept"


# ---- Stories ----

CONCEPTS = {"john": "actor", "go": "verb", "kitchen": "room", "hall": "room", "box": "thing", "bag": "thing"}
RELATIONS = [
    Relation("location", of=frozenset({"actor", "thing"}), to=frozenset({"room"}), acyclic=True),
    Relation("containedby", of=frozenset({"thing"}), to=frozenset({"thing"}), acyclic=True),
    Relation("state", of=frozenset({"actor"}), values=frozenset({"awake", "asleep"})),
]


@pytest.fixture
def universe():
    made = Universe(CONCEPTS, RELATIONS)
    made.update([("location", "john", "kitchen"), ("containedby", "box", "bag")])
    return made


@pytest.fixture
def story_of(tmp_path, universe):
    def read(text, **options):
        (tmp_path / "story.txt").write_text(text)
        before = universe.copy()
        try:
            return read_story(tmp_path / "story.txt", universe, **options)
        finally:
            assert universe == before

    return read


def test_facts_hold_from_where_they_are_told(story_of):
    text = """# a comment
he goes to the hall
john go - - hall

location(john)=hall
# a comment
state(john) =  asleep
he sleeps

he snores

state(john) =

location(john) =
he is nowhere
"""
    first, second, third, last = story_of(text)
    assert first.words == ("he", "goes", "to", "the", "hall")
    assert first.concepts == ("john", "go", "-", "-", "hall")
    assert second.concepts is None
    assert [each.universe.get("location", "john") for each in (first, second, last)] == ["kitchen", "hall", None]
    assert [each.universe.get("state", "john") for each in (first, second, last)] == [None, "asleep", None]
    assert third.universe is second.universe


@pytest.mark.parametrize(
    ("told", "relation", "facts"),
    [
        ("containedby(bag) = box\ncontainedby(box) =\n", "containedby", {"bag": "box"}),  # facts hold together
        ("location(john) = hall\nlocation(john) = hall\n", "location", {"john": "hall"}),
        ("location(john) = hall\n\nlocation(john) = kitchen\n", "location", {"john": "kitchen"}),
    ],
)
def test_facts_before_a_sentence_are_one_update_and_later_ones_replace_them(story_of, told, relation, facts):
    (sentence,) = story_of(f"{told}it is in there\n")
    assert dict(sentence.universe.table(relation)) == facts


def test_concepts_may_be_a_bag_and_a_story_may_be_empty(story_of):
    (sentence,) = story_of("john goes to the hall\nhall john go\n", are_bags=True)
    assert sentence.concepts == ("hall", "john", "go")
    assert story_of("") == story_of("# nothing\n\nlocation(john) = hall\n") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\nlocation(mary) = hall\n", "line 2: concept is 'mary', which is not known"),
        ("location(john) = moon\n", r"line 1: location\(john\) cannot be 'moon', which is not known; it may be any"),
        ("location(john) = box\n", r"line 1: location\(john\) cannot be 'box', which is of kind thing"),
        ("location(hall) = kitchen\n", "line 1: location is not of 'hall', of kind room"),
        ("owner(box) = john\n", "line 1: relation is 'owner'; this universe has"),
        ("owner(box) =\n", "line 1: relation is 'owner'; this universe has"),
        ("state(john) = hungry\n", "line 1: .* it may be 'asleep', 'awake'"),
        ("he is\n\nstate(john) = awake\n# so\ncontainedby(bag) = box\n\n", r"line 5: containedby\(bag\) = box leads"),
        ("containedby(bag) = bag\n", "line 1: .* back to itself"),
        ("location(john) = hall\nlocation(john) = kitchen\n", "line 2: .* contradicts 'location.* = hall' in line 1"),
        ("location(john) =\nlocation(john) = hall\n", "line 2: .* contradicts"),
        ("location(john) = the hall\n", r"line 1: 'location\(john\) = the hall' is no fact; one is written"),
        ("location (john) = hall\n", "line 1: .* is no fact"),
        *((f"location(john){end}\n\nhe goes\n", "line 1: .* is no fact; one is") for end in ("", " hall", ": hall")),
        ("location(john, box) = hall\n", "line 1: .* is no fact"),
        ("(john) = hall\n", "line 1: .* is no fact"),
        ("a b\n- -\n- -\n", "line 3: a sentence has one line of concepts; .*put an empty line before it"),
        ("a b\nlocation(john) = hall\n", "line 2: there is a fact after the sentence; put an empty line before it"),
        ("a b\n- -\nlocation(john) = hall\n", "line 3: there is a fact after the sentence"),
        ("a b\n- c\n", "line 2: 'c' is no concept of the universe; if this line is a sentence, put an empty line"),
        ("a b\n-\n", "line 2: the line has 1 concepts, the sentence 2 words; there must be one for each"),
        ("a b\n- - -\n", "line 2: the line has 3 concepts, the sentence 2 words"),
        ("he goes\njohn go\n\nhe went\n", "line 4: the sentence 'he went' has no concepts"),
        ("he goes\njohn go hall\n", "line 2: the line has 3 concepts, the sentence 2 words; .* at most"),
    ],
)
def test_what_is_no_story_is_refused_with_the_line(story_of, text, message):
    options = {"needs_concepts": "has no concepts" in message, "are_bags": "at most" in message}
    with pytest.raises(DataFormatError, match=rf"story\.txt, {message}"):
        story_of(text, **options)


@given(st.lists(st.text(alphabet="joh(n) =#-\n", max_size=12), max_size=6))
def test_what_was_read_from_any_file_is_read_again_once_written(tmp_path_factory, lines):
    universe, path = Universe(CONCEPTS, RELATIONS), tmp_path_factory.getbasetemp() / "any.txt"
    path.write_text("\n".join(lines))
    with suppress(DataFormatError):
        story = read_story(path, universe)
        write_story(path, story, universe)
        assert read_story(path, universe) == story


@pytest.mark.parametrize("name", ["story.txt", "story.txt.gz"])
def test_episodes_of_the_house_are_read_as_they_were_written(name, tmp_path):
    house = House(random_state=0, ambiguity=AMBIGUITY)
    write_table(tmp_path / "house.csv", house.universe, relations=["location", "containedby"])
    universe = read_table(tmp_path / "house.csv").universe
    episodes = list(islice(house, 200))[100:]
    write_story(tmp_path / name, episodes, universe)
    story = read_story(tmp_path / name, universe)
    for sentence, episode in zip(story, episodes, strict=True):
        assert (sentence.words, sentence.concepts) == (episode.words, episode.concepts)
        for relation in ("location", "containedby"):
            assert sentence.universe.table(relation) == episode.universe.table(relation)
    assert len({id(sentence.universe) for sentence in story}) < len(story)


def test_only_changes_are_written(universe, tmp_path):
    later = universe.copy()
    later.update([("location", "john", "hall"), ("containedby", "box", None)])
    told = [
        StorySentence(("he", "goes"), ("john", "go"), universe),
        StorySentence(("he", "went"), None, later),
        StorySentence(("it", "is", "empty"), (), later),
    ]
    write_story(tmp_path / "story.txt", told, universe)
    text = "he goes\njohn go\n\nlocation(john) = hall\ncontainedby(box) =\nhe went\n\nit is empty\n-\n\n"
    assert (tmp_path / "story.txt").read_text() == text


@pytest.mark.parametrize(
    ("words", "concepts", "message"),
    [
        ((), None, "there must be words"),
        (("the box",), None, "without blanks"),
        (("",), None, "without blanks"),
        (("#", "box"), None, "must not look like a comment or a fact"),
        (("location(john)", "=", "hall"), None, "must not look like a comment or a fact"),
        (("f", "(x)=", "3"), None, "must not look like a comment or a fact"),
        (("mary",), ("mary",), "has 'mary', which is no concept"),
        (("john",), ("john", "-"), "2 concepts for 1 words"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(words, concepts, message, universe, tmp_path):
    (tmp_path / "story.txt").write_text("as before")
    told = [StorySentence(("a",), None, universe), StorySentence(words, concepts, universe)]
    with pytest.raises(ValueError, match=rf"sentences\[1\].*{message}"):
        write_story(tmp_path / "story.txt", told, universe)
    assert (tmp_path / "story.txt").read_text() == "as before"


def test_facts_that_the_first_universe_cannot_have_are_not_written(universe, tmp_path):
    other = Universe({**CONCEPTS, "moon": "room"}, RELATIONS)
    other.set("location", "john", "moon")
    for told, first, error, message in (
        ([StorySentence(("a",), None, other)], universe, UniverseError, r"sentences\[0\] has another .* 'moon', which"),
        ([], Universe({"a b": "thing"}, []), ValueError, "universe has 'a b'"),
    ):
        with pytest.raises(error, match=message):
            write_story(tmp_path / "story.txt", told, first)
    assert list(tmp_path.iterdir()) == []
