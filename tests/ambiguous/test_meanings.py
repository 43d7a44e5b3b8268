"""Meanings are trees that can be written and read, alone and in files."""

import gzip
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larank.ambiguous.meanings import (
    Meaning,
    MeaningFormatError,
    ParseExample,
    parse_meaning,
    read_examples,
    write_examples,
)
from larank.data.files import DataFormatError

BELIEVE = Meaning("believe", (Meaning("mother"), Meaning("break", (Meaning("dog"), Meaning("box")))))

symbols = st.text(min_size=1, max_size=6).filter(lambda text: text.isprintable() and text != "-")
meanings = st.recursive(
    symbols.map(Meaning),
    lambda inner: st.builds(Meaning, symbols, st.lists(inner, max_size=3).map(tuple)),
    max_leaves=8,
)


def test_a_meaning_is_written_as_relations_with_arguments():
    assert str(BELIEVE) == "believe(mother, break(dog, box))"
    assert parse_meaning(" believe (mother,break( dog ,box)) ") == BELIEVE


@given(meanings)
def test_what_is_written_is_read_back(meaning):
    assert parse_meaning(str(meaning)) == meaning


@given(st.text(alphabet="ab-,()' #", max_size=12))
def test_any_text_is_a_meaning_or_a_format_error(text):
    with suppress(MeaningFormatError):
        meaning = parse_meaning(text)
        assert parse_meaning(str(meaning)) == meaning


def test_a_relation_without_arguments_is_its_symbol():
    assert parse_meaning("rain()") == parse_meaning("rain") == Meaning("rain")
    assert parse_meaning("say(mother, rain())").relations() == (parse_meaning("say(mother, rain)"),)


def test_relations_symbols_and_pairs_are_in_reading_order():
    assert [str(relation) for relation in BELIEVE.relations()] == [str(BELIEVE), "break(dog, box)"]
    assert BELIEVE.symbols() == ("believe", "mother", "break", "dog", "box")
    assert BELIEVE.pairs() == (("mother", "A0"), ("break", "A1"))
    assert Meaning("dog").relations() == Meaning("dog").pairs() == ()


def test_symbols_keep_their_multiplicity():
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


@pytest.mark.parametrize("symbol", ["", "-", "a\nb"])
def test_a_symbol_that_cannot_be_written_is_refused(symbol):
    with pytest.raises(ValueError, match="symbol is"):
        Meaning(symbol)


def test_arguments_and_texts_of_another_type_are_refused():
    with pytest.raises(TypeError, match="arguments has 'dog'"):
        Meaning("break", ("dog",))
    with pytest.raises(TypeError, match=r"a Meaning takes a str and a tuple of meanings, got 3 and \(\)"):
        Meaning(3)
    assert repr(Meaning("dog")) == "<Meaning dog>"
    with pytest.raises(TypeError, match="text is of type int"):
        parse_meaning(3)


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
    path = tmp_path / "examples.txt"
    path.write_text(FILE)
    examples = read_examples(path)
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


def test_a_known_meaning_is_written_where_there_are_no_candidates(tmp_path):
    path = tmp_path / "test.txt.gz"
    write_examples(path, [ParseExample(("dogs", "sleep"), (), Meaning("sleep", (Meaning("dog"),)))])
    assert gzip.decompress(path.read_bytes()) == b"dogs sleep\nsleep(dog)\n"


def test_a_bad_meaning_names_file_line_and_column(tmp_path):
    path = tmp_path / "bad.txt"
    path.write_text(FILE.replace("sleep(dog)", "sleep(dog"))
    with pytest.raises(MeaningFormatError, match=r"bad\.txt, line 9, column 10: expected ',' or '\)'"):
        read_examples(path)
    with pytest.raises(MeaningFormatError, match=r"^line 2, column 4"):
        read_examples(["the dog", "dog)"])


def test_a_sentence_without_a_meaning_is_an_error_unless_it_is_to_be_applied(tmp_path):
    path = tmp_path / "apply.txt"
    path.write_text("# to apply\nthe dog sleeps\n\nthe cat sleeps\n")
    with pytest.raises(DataFormatError, match=r"apply\.txt, line 2: the sentence 'the dog sleeps' has no meaning"):
        read_examples(path)
    assert [example.words[1] for example in read_examples(path, needs_candidates=False)] == ["dog", "cat"]


@pytest.mark.parametrize("words", [(), ("",), ("two words",), ("#1", "dog")])
def test_words_that_could_not_be_read_back_are_refused_and_the_old_file_stays(tmp_path, words):
    path = tmp_path / "kept.txt"
    path.write_text("kept")
    with pytest.raises(ValueError, match=r"examples\[1\]\.words is"):
        write_examples(path, [ParseExample(("fine",)), ParseExample(words)])
    assert path.read_text() == "kept"
