import pickle
import re
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from larank.base import Estimator
from larank.data import data_directory
from larank.data.columns import ConllFile, read_conll
from larank.data.models import load, persistable, save
from larank.data.schema import anything
from larank.sequence.features import CHUNKING, WORDS, ArrayEncoder, NameEncoder, TemplateEncoder, encoder_for, general
from larank.sequence.sequences import Sequences

# templates in plain Python


def form_of(name, word):
    """What a form makes of a word; None if the word has no such form."""
    kinds = ["X" if c.isupper() else "x" if c.isalpha() else "0" if c.isdecimal() else c for c in word]
    lower = [c.lower()[0] for c in word]
    whole = {"": word, "lower": lower, "shape": kinds, "shortshape": [kind for kind, _ in groupby(kinds)]}
    if name in whole:
        return "".join(whole[name])
    length = int(name[-1])
    part = word[:length] if name.startswith("prefix") else word[-length:]
    return part if len(part) == length else None


def atom_value(atom, sentence, i, columns):
    form, column, offset = re.fullmatch(r"(?:(\w+)\()?(\w+)\[(-?\d+)\]\)?", atom).groups()
    place = i + int(offset)
    if place < 0:
        return ("before", -place)
    if place >= len(sentence):
        return ("after", place - len(sentence) + 1)
    value = form_of(form or "", sentence[place][columns.index(column)])
    return None if value is None else ("text", value)


def features_of(sentence, i, templates, columns):
    """The features of a token as tuples."""
    for template in templates:
        atoms = [] if template == "bias" else template.split("|")
        values = tuple(atom_value(atom, sentence, i, columns) for atom in atoms)
        if None not in values:
            yield (template, values)


def expanded(sentences, templates, columns, numbers, learn=True):
    """The numbers of the features of all tokens, in order; `numbers` grows where new ones may be learnt."""
    rows = [features_of(sentence, i, templates, columns) for sentence in sentences for i in range(len(sentence))]
    if learn:
        return [[numbers.setdefault(f, len(numbers)) for f in row] for row in rows]
    return [[numbers[f] for f in row if f in numbers] for row in rows]


def rows_of(sequences):
    return [sequences.indices[a:b].tolist() for a, b in zip(sequences.indptr[:-1], sequences.indptr[1:], strict=True)]


def shown(value):
    kind, what = value
    return what if kind == "text" else f"<s-{what}>" if kind == "before" else f"</s+{what}>"


ATOMS = st.builds(
    lambda form, column, offset: f"{form}({column}[{offset}])" if form else f"{column}[{offset}]",
    st.sampled_from(["", "", "lower", "prefix1", "prefix3", "suffix2", "suffix9", "shape", "shortshape"]),
    st.sampled_from(["word", "pos"]),
    st.integers(-3, 3),
)
TEMPLATES = st.lists(
    st.lists(ATOMS, min_size=1, max_size=4, unique=True).map("|".join) | st.just("bias"),
    min_size=1,
    max_size=6,
    unique_by=lambda template: frozenset(template.split("|")),
)
TEXT = st.text(st.sampled_from("aAbZz09-.'éÉßΣ中٣ǅ𝒜😀\u0301"), max_size=6)
SENTENCES = st.lists(st.lists(st.tuples(TEXT, st.sampled_from(["A", "b", ""])), min_size=1, max_size=5), max_size=5)


@given(TEMPLATES, SENTENCES, SENTENCES)
def test_templates_make_what_plain_python_makes(templates, sentences, others):
    encoder = TemplateEncoder(templates, ["word", "pos"])
    numbers = {}
    learnt = encoder.learn(sentences)
    assert rows_of(learnt) == expanded(sentences, templates, ["word", "pos"], numbers)
    assert learnt.lengths.tolist() == [len(sentence) for sentence in sentences]
    assert learnt.n_features == encoder.n_features == len(numbers)
    assert rows_of(encoder.encode(others)) == expanded(others, templates, ["word", "pos"], numbers, learn=False)
    assert rows_of(encoder.learn(others)) == expanded(others, templates, ["word", "pos"], numbers)
    names = [f"{template}={'|'.join(map(shown, values))}" if values else template for template, values in numbers]
    assert encoder.names(np.arange(len(numbers))) == names


@pytest.mark.parametrize(("templates", "columns"), [(CHUNKING, ["word", "pos"]), (WORDS, ["word"])])
def test_real_text_makes_what_plain_python_makes(templates, columns):
    try:
        sentences = read_conll(data_directory() / "conll2000" / "train.txt.xz")[0][:150]
    except FileNotFoundError:
        pytest.skip("needs conll2000 (LARANK_DATA)")
    sentences = [[token[: len(columns)] for token in sentence] for sentence in sentences]
    encoder, numbers = TemplateEncoder(templates, columns), {}
    assert rows_of(encoder.learn(sentences)) == expanded(sentences, templates, columns, numbers)
    assert encoder.n_features == len(numbers)


class CountedName(str):
    """A name of a column that counts how often it is compared."""

    comparisons = 0

    def __eq__(self, other):
        CountedName.comparisons += 1
        return str(self) == str(other)

    __hash__ = str.__hash__


def test_the_work_of_a_template_does_not_grow_with_the_columns():
    names = [CountedName(f"c{k}") for k in range(300)]
    encoder = TemplateEncoder([f"{name}[0]" for name in names], names)
    assert encoder.learn([[tuple(map(str, range(300)))]]).indices.tolist() == list(range(300))
    assert CountedName.comparisons <= 10 * len(names)


def test_the_ends_of_a_sentence_are_no_words_and_one_column_may_be_tuples():
    encoder = TemplateEncoder(["word[-1]"])
    learnt = encoder.learn([["a"], ["<s-1>", "b"]])
    assert encoder.names(learnt.indices) == ["word[-1]=<s-1>"] * 3
    assert learnt.indices.tolist() == [0, 0, 1]
    one, other = TemplateEncoder(WORD), TemplateEncoder(WORD)
    assert rows_of(one.learn([["a", "b"]])) == rows_of(other.learn([[("a",), ("b",)]]))
    assert one.names([0, 1]) == other.names([0, 1])


@pytest.mark.parametrize(
    ("form", "word", "value"),
    [
        ("shape", "McDonald's-3", "XxXxxxxx'x-0"),
        ("shortshape", "McDonald's-33..", "XxXx'x-0."),
        ("shape", "Éa中٣", "Xxx0"),
        ("lower", "ÀÇ-É𝐀", "àç-é𝐀"),
        ("prefix2", "çédille", "çé"),
        ("suffix2", "中文字", "文字"),
        ("suffix3", "中文字", "中文字"),
        ("prefix3", "éé", None),
        ("suffix3", "ab", None),
    ],
)
def test_forms_know_unicode_and_words_that_are_too_short(form, word, value):
    for template in (f"{form}(word[0])", f"{form}(word[0])|word[0]"):
        encoder = TemplateEncoder([template])
        learnt = encoder.learn([["long", word, "long"]])
        found = [] if value is None else [f"{template}={value}{f'|{word}' if '|' in template else ''}"]
        assert encoder.names(learnt.indices[slice(*learnt.indptr[1:3])]) == found


def test_repeated_tables_grow_without_losing_anything():
    words = [[f"w{k}" for k in range(first, first + 100)] for first in range(0, 50_000, 100)]
    encoder = TemplateEncoder(["word[0]", "word[0]|word[1]", "suffix1(word[0])|word[0]|word[-1]"])
    learnt = encoder.learn(words)
    assert encoder.n_features == 150_000
    assert np.array_equal(encoder.encode(words).indices, learnt.indices)
    assert encoder.names([3 * 12_345]) == ["word[0]=w12345"]


TEMPLATES_REFUSED = [
    ([], "templates must be 'general', 'words', 'chunking', or a sequence of one or more"),
    ("word[0]", r"templates must be 'general', .*; got 'word\[0\]'"),
    (["word"], r"'word' is not an atom such as word\[0\]"),
    (["word[0]|bias"], "'bias' stands alone"),
    (["word[0]", "word[+0]"], r"has 'word\[\+0\]' twice"),
    (["word[0]|word[1]", "word[1]|word[0]"], "twice, first as"),
    (["word[0]|word[0]"], "the same atom twice"),
    (["|".join(f"word[{k}]" for k in range(5))], "has 5 atoms; at most 4"),
    (["pos[0]"], "there is no column 'pos'; the columns are word"),
    (["stem(word[0])"], "'stem' is not one of lower, prefix"),
    (["prefix(word[0])"], "prefix needs a length from 1 to 9"),
    (["suffix10(word[0])"], "suffix needs a length from 1 to 9"),
    (["lower2(word[0])"], "lower takes no length"),
    (["lower(word[0]"], "is not an atom"),
    (["word[51]"], "offsets go from -50 to 50"),
    ([f"word[0]|word[{k}]" for k in range(65636)], "templates must be at most 65535, got 65636 for 1 columns"),
]
# Tokens that no encoder takes, and options that do not go with them.
NO_ENCODER = [
    ([], {}, "X must hold at least one token, got no sequence"),
    ([[], []], {}, r"X must hold at least one token, got empty sequences alone"),
    ([["a"]], {"templates": "wordz"}, "templates must be 'general', 'words', 'chunking', or .*; got 'wordz'"),
    ([["a"]], {"templates": "chunking"}, "there is no column 'pos'; the columns are word"),
    (["abc"], {}, r"X\[0\] is a str; expected a list of tokens"),
    ("abc", {}, r"X is a str; expected a list of sequences; larank.data.columns.ConllFile\(path\) reads a file"),
    (Path("abc"), {}, r"expected a list of sequences; larank.data.columns.ConllFile\(path\) reads a file"),
    ({"a": 1}, {}, "X is a dict; expected a list of sequences"),
    (7, {}, "X is an int; expected a list of sequences"),
    ([[7]], {}, r"X\[0\]\[0\] is an int; expected a str"),
    ([np.ones((3, 2))], {}, r"arrays are given as \(X, lengths\)"),
    ([[{}]], {"templates": WORDS}, "templates can be used with tokens that are text only"),
    ((np.ones((1, 1)), [1]), {"columns": ["a"]}, "columns can be used with tokens that are text only"),
]
# Parts of the state of an encoder that has learnt two words.
ONE_LETTER = np.array([97], np.uint8)
DAMAGED = [
    ("feature_templates", np.array([0, 9], np.uint16), "a template or tuple is missing"),
    ("feature_templates", np.array([0], np.uint16), "more tuples than features"),
    ("feature_tuples", np.array([101], np.uint32), "a template or tuple is missing"),
    ("feature_tuples", np.array([101, 103], np.uint32), "a value is out of range"),
    ("feature_tuples", np.array([0, 101], np.uint32), "a value is out of range"),
    ("feature_tuples", np.array([101, 101], np.uint32), "a feature is there twice"),
    ("words", [], "does not fit the templates"),
    *(("words", [(ONE_LETTER, np.array([n]))], "a string ends beyond the text") for n in (2, 2**63 - 1, -1)),
    ("words", [(np.array([97, 98], np.uint8), np.array([2, 1]))], "a string ends beyond the text"),
    ("words", [(np.array([0xC3], np.uint8), np.array([1]))], "a string is not UTF-8"),
    ("values", [(np.array([97, 97], np.uint8), np.array([1, 2]))], "a string is there twice"),
]
REFUSED = [
    *((lambda _, given=given: TemplateEncoder(given), why) for given, why in TEMPLATES_REFUSED),
    *((lambda _, X=X, options=options: encoder_for(X, **options), why) for X, options, why in NO_ENCODER),
    *((lambda known, n=n: known.names([n]), f"there is no feature {n}; there are 2") for n in (-1, 2)),
    *(
        (lambda known, change=change: TemplateEncoder.from_state(known.state() | dict([change])), why)
        for *change, why in DAMAGED
    ),
    (lambda known: known.learn(["c" * (1 // n)] for n in (1, 0)), "division"),
]


@pytest.mark.parametrize(("call", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_what_encoders_cannot_be_made_of_or_asked_is_refused(call, why):
    known = TemplateEncoder(WORD)
    known.learn([["a", "b"]])
    with pytest.raises(ZeroDivisionError if why == "division" else (TypeError, ValueError), match=why):
        call(known)
    assert known.names([1, 0, 0]) == ["word[0]=b", "word[0]=a", "word[0]=a"]


WORD = ["word[0]"]
TEXT_REFUSED = [
    ([[], ["a"], [{}]], r"X\[2\]\[0\] is a dict, but X\[1\]\[0\] is a str"),
    ([["a"], "bc"], r"X\[1\] is a str; expected a sequence of tokens"),
    ("abc", r"X is a str; expected a list of sequences"),
    (3, r"X is an int; expected a list"),
    ([["a"], {"b"}], r"X\[1\] is a set; expected a sequence of tokens"),
    ([["a", "b", {}]], r"X\[0\]\[2\] is a dict, but X\[0\]\[0\] is a str; all tokens must be of one kind"),
    ([["a"], [("b",)]], r"X\[1\]\[0\] is a tuple, but X\[0\]\[0\] is a str"),
    ([[{}]], r"X\[0\]\[0\] is a dict; expected a str or a tuple of str"),
    ([["a", "\ud800"]], r"X\[0\]\[1\] holds a lone surrogate"),
]
PAIRS_REFUSED = [
    ([["a"]], r"X\[0\]\[0\] is a str, which is one column; expected a tuple of 2 str"),
    ([[("a", "b"), ("c",)]], r"X\[0\]\[1\] is a tuple of length 1; expected a tuple of 2 str"),
    ([[("a", "b"), ("c", 3)]], r"X\[0\]\[1\]\[1\] is an int; expected a str"),
]
NAMES_REFUSED = [
    ([[["new"]], [{"a": 1}]], r"X\[1\]\[0\] is a dict, but X\[0\]\[0\] is a list; all tokens must be of one kind"),
    ([["a"]], r"X\[0\]\[0\] is a str; expected a dict, or a list or set of str"),
    ([[{"new": 1}, {1: 2}]], r"X\[0\]\[1\] has a key of type int; expected a str"),
    ([[{"new": [1]}]], r"X\[0\]\[0\]\['new'\] is a list; expected a str, a number, a bool or None"),
    ([[{"new": 1 + 2j}]], r"X\[0\]\[0\]\['new'\] is a complex"),
    ([[{"new": float("nan")}]], r"X\[0\]\[0\]\['new'\] is not finite"),
    ([[{"new": 10**400}]], r"X\[0\]\[0\]\['new'\] is not finite"),
    ([[["new", 3]]], r"X\[0\]\[0\] holds an int; expected names, of type str"),
    ([[{"old=b": 1, "old": "b"}]], r"X\[0\]\[0\] names a feature twice"),
    ([[["\ud800"]]], "lone surrogate"),
    ([[{"\ud800": 1}]], "lone surrogate"),
    ([[{"new": "\ud800"}]], "lone surrogate"),
]
ARRAYS_REFUSED = [
    ((np.ones((3, 2)), [1, 1]), "lengths sum to 2, but X has 3 rows"),
    ((np.ones((3, 2)), [4, -1]), r"lengths\[1\] is -1; a sequence has no token or more"),
    ((np.ones((3, 2)), [1.5, 1.5]), "lengths must be a sequence of whole numbers, got an array of float64"),
    ((np.ones((3, 2)), [[3]]), r"lengths must be .* of shape \(1, 1\)"),
    ((np.array([[0, 1], [1, 0], [0, np.inf]]), [1, 2]), r"row 2 \(token 1 of sequence 1\) holds inf"),
    ((np.ones(3), [3]), r"X is a tuple; expected \(X, lengths\)"),
    ((np.ones((1, 1), complex), [1]), r"expected \(X, lengths\)"),
    ([np.ones((3, 2))], r"X is a list; expected \(X, lengths\)"),
    ((np.ones((2, 5)), [2]), "X has 5 columns, but 2 features were learnt"),
]
# An encoder, what it has learnt, what it learns afterwards, and refused tokens.
ENCODERS = [
    (lambda: TemplateEncoder(WORD), [["old"]], [["new", "old"]], TEXT_REFUSED),
    (lambda: TemplateEncoder(WORD, ["word", "pos"]), [[("old", "A")]], [[("new", "A"), ("old", "A")]], PAIRS_REFUSED),
    (NameEncoder, [[["old=b"]]], [[["new"], ["old=b"]]], NAMES_REFUSED),
    (ArrayEncoder, (np.eye(2)[:1], [1]), (np.eye(2)[::-1], [2]), ARRAYS_REFUSED),
]


@pytest.mark.parametrize(
    ("make", "known", "more", "X", "why"),
    [(make, known, more, X, why) for make, known, more, refused in ENCODERS for X, why in refused],
)
def test_tokens_that_cannot_be_encoded_are_located_and_nothing_is_learnt(make, known, more, X, why):
    encoder = make()
    n_features = encoder.learn(known).n_features
    for method in (encoder.learn, encoder.encode):
        with pytest.raises((TypeError, ValueError), match=why):
            method(X)
    assert encoder.n_features == n_features
    assert encoder.learn(more).indices.tolist() == [1, 0]


# named features


def named_features(token):
    """The features of a dict, list or set, by name."""
    if not isinstance(token, dict):
        return dict.fromkeys(sorted(token) if isinstance(token, set | frozenset) else token, 1.0)
    values = {
        f"{k}={v}" if isinstance(v, str) else k: 1.0 if isinstance(v, str) else float(v) for k, v in token.items()
    }
    return {name: value for name, value in values.items() if value}


NAMES = st.text("abé", max_size=2)
VALUES = NAMES | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.5, np.float32(2.5), np.int64(3), np.True_])
DICTS = st.dictionaries(NAMES, VALUES, max_size=4)
COLLECTIONS = st.lists(NAMES, max_size=4) | st.frozensets(NAMES) | st.sets(NAMES)


def nested(tokens):
    return st.lists(st.lists(tokens, min_size=1, max_size=3), max_size=3)


@given(st.one_of(st.tuples(nested(DICTS), nested(DICTS)), st.tuples(nested(COLLECTIONS), nested(COLLECTIONS))))
def test_named_features_are_what_plain_python_makes_of_them(both):
    encoder, numbers = NameEncoder(), {}

    def rows(X, learn):
        tokens = [named_features(token) for sentence in X for token in sentence]
        for token in tokens if learn else ():
            for name in token:
                numbers.setdefault(name, len(numbers))
        return [[(numbers[name], value) for name, value in token.items() if name in numbers] for token in tokens]

    def found(sequences):
        values = np.ones(len(sequences.indices)) if sequences.values is None else sequences.values
        pairs = list(zip(sequences.indices.tolist(), values.tolist(), strict=True))
        return [pairs[a:b] for a, b in pairwise(sequences.indptr)]

    first, second = both
    assert found(encoder.learn(first)) == rows(first, learn=True)
    assert found(encoder.encode(second)) == rows(second, learn=False)
    assert found(encoder.learn(second)) == rows(second, learn=True)
    assert encoder.names(range(encoder.n_features)) == list(numbers)
    again = NameEncoder.from_state(encoder.state())
    assert again.names(range(again.n_features)) == list(numbers)


def test_none_is_no_feature_and_values_are_kept_only_if_some_are_not_one():
    encoder = NameEncoder()
    assert encoder.learn([[{"a": None, "b": "c"}, {"a": None}]]).indptr.tolist() == [0, 1, 1]
    assert encoder.names([0]) == ["b=c"]
    assert NameEncoder().learn([[{"a": "b", "c": True}], [{"d": 1}]]).values is None
    assert NameEncoder().learn([[{"a": "b"}], [{"c": 2, "d": True}]]).values.tolist() == [1, 2, 1]


@pytest.mark.parametrize("X", [[[], ["a", "b"], [], []], [[], [["a"], ["b"]], [], []], (np.ones((2, 1)), [0, 2, 0, 0])])
def test_sequences_may_be_empty(X):
    encoder = encoder_for(X)
    for sequences in (encoder.learn(X), encoder.encode(X)):
        assert sequences.starts.tolist() == [0, 0, 2, 2, 2]
        kept, numbers = sequences.without_empty()
        assert (kept.starts.tolist(), numbers.tolist()) == ([0, 2], [1])


def test_names_in_sets_are_numbered_alike_in_every_process():
    """Each process iterates over a set in an order of its own."""
    encoder = NameEncoder()
    encoder.learn([[set("qwertyuiop")]])
    assert encoder.names(range(10)) == sorted("qwertyuiop")


# arrays


@pytest.mark.parametrize("kind", [np.array, sp.csr_matrix, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.bool_])
def test_rows_of_a_matrix_are_tokens(kind, dtype):
    dense = np.array([[0, 1, 3], [0, 0, 0], [1, 0, 1]], dtype)
    encoder = ArrayEncoder()
    learnt = encoder.learn((kind(dense), [2, 1]))
    assert learnt.starts.tolist() == [0, 2, 3]
    assert learnt.n_features == encoder.n_features == 3
    values = np.ones(4) if learnt.values is None else learnt.values
    assert sp.csr_matrix((values, learnt.indices, learnt.indptr), (3, 3)).toarray().tolist() == dense.tolist()
    assert (learnt.values is None) == (dtype == np.bool_)
    assert encoder.names([0, 2]) == ["x0", "x2"]
    assert ArrayEncoder.from_state(encoder.state()).n_features == 3


def test_stored_zeros_and_repeated_columns_of_a_sparse_matrix_are_cleared_in_a_copy():
    X = sp.csr_matrix((np.array([0.0, 2.0, 3.0]), np.array([1, 0, 0]), np.array([0, 3])), shape=(1, 2))
    learnt = ArrayEncoder().learn((X, [1]))
    assert (learnt.indices.tolist(), learnt.values.tolist()) == ([0], [5])
    assert X.data.tolist() == [0, 2, 3]


# the choice among encoders, and what all have


def test_the_first_token_tells_the_encoder():
    text = [["a"]], [[("a",)]], ((("a", "b"),), (("c", "d"),))
    for kind, some in (
        (TemplateEncoder, text),
        (NameEncoder, ([[{}]], [[[]]], [[frozenset()]])),
        (ArrayEncoder, [(np.ones((1, 1)), [1])]),
    ):
        assert {type(encoder_for(X)) for X in some} == {kind}


def test_files_and_their_blocks_are_text(tmp_path):
    (tmp_path / "x").write_text("a b O\n")
    file = ConllFile(tmp_path / "x")
    for X in (file, next(file.blocks())):
        encoder = encoder_for(X)
        assert (encoder.columns, encoder.templates) == (("word", "pos"), general(("word", "pos")))
    assert encoder_for(file, ["form[0]"], ["form", "tag"]).columns == ("form", "tag")
    with pytest.raises(ValueError, match="X has 2 columns besides labels, but the templates are for 1: word"):
        TemplateEncoder(WORDS).learn(file)


def test_templates_have_names_and_general_ones_serve_all_columns():
    assert encoder_for([["a"]]).templates == encoder_for([["a"]], "words").templates == WORDS
    assert encoder_for([[("a", "b")]], "chunking").templates == CHUNKING
    assert len(CHUNKING) == 19
    assert encoder_for([[("a", "b")]]).templates == (*WORDS, *CHUNKING[7:])
    made = encoder_for([[("a", "b", "c")]], columns=["form", "tag", "head"]).templates
    assert len(made) == len(WORDS) + 2 * len(CHUNKING[7:])
    assert {"suffix3(form[0])", "tag[0]|tag[1]", "head[-2]"} <= set(made)


@persistable(state_=anything)
class Holder(Estimator):
    """An estimator that has nothing but the state of an encoder."""

    __module__ = "larank"  # subclasses elsewhere cannot be saved


@pytest.mark.parametrize(
    ("X", "more"),
    [
        ([["a", "É"], ["É"]], [["b", "a"]]),
        ([], [["b", "a"]]),
        ([[{"k": "v"}]], [[{"k": 2, "l": 1}]]),
        ((np.eye(2), [1, 1]), (np.ones((1, 2)), [1])),
    ],
)
def test_an_encoder_goes_on_from_a_model_file(tmp_path, X, more):
    encoder, holder = encoder_for(X or more), Holder()
    encoder.learn(X)
    holder.state_ = encoder.state()
    save(holder, tmp_path / "x.larank")
    loaded = type(encoder).from_state(load(tmp_path / "x.larank").state_)
    expected, *others = (
        (rows_of(each.encode(more)), rows_of(each.learn(more)), each.names(range(each.n_features)))
        for each in (encoder, loaded, pickle.loads(pickle.dumps(encoder)))
    )
    assert others == [expected] * 2


# sequences


def test_sequences_are_joined():
    X = [[{"a": 1.5}, {"b": 1}], [{}], [{"c": 1, "a": 1}]]
    encoder = NameEncoder()
    whole = encoder.learn(X)
    parts = [encoder.encode(X[:1]), encoder.encode(X[1:])]
    joined = Sequences.joined(parts)
    assert (joined.starts.tolist(), joined.values.tolist()) == (whole.starts.tolist(), whole.values.tolist())
    assert rows_of(joined) == rows_of(whole)
    assert Sequences.joined(parts[1:]).values is None
