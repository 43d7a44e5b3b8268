import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from larank.structured.features import CHUNKING, WORDS, TemplateEncoder

# templates in plain Python


def simple_lower(character):
    lowered = character.lower()
    return lowered if len(lowered) == 1 else lowered[0]


def shape(word, short):
    out = ""
    for c in word:
        kind = "X" if c.isupper() else "x" if c.isalpha() else "0" if c.isdecimal() else c
        out += "" if short and out.endswith(kind) else kind
    return out


def form_of(name, word):
    """What a form makes of a word; None where the word has no such form."""
    if name == "":
        return word
    if name == "lower":
        return "".join(map(simple_lower, word))
    if name in ("shape", "shortshape"):
        return shape(word, name == "shortshape")
    length = int(name[-1])
    if len(word) < length:
        return None
    return word[:length] if name.startswith("prefix") else word[-length:]


def atom_value(atom, sentence, i, columns):
    form, _, rest = atom.rpartition("(")
    column, offset = rest.rstrip(")").rstrip("]").split("[")
    place = i + int(offset)
    if place < 0:
        return ("before", -place)
    if place >= len(sentence):
        return ("after", place - len(sentence) + 1)
    value = form_of(form, sentence[place][columns.index(column)])
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
    rows = []
    for sentence in sentences:
        for i in range(len(sentence)):
            found = features_of(sentence, i, templates, columns)
            rows.append([numbers.setdefault(f, len(numbers)) if learn else numbers.get(f) for f in found])
    return [[f for f in row if f is not None] for row in rows]


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


def test_learning_sentence_by_sentence_numbers_features_alike():
    rng = np.random.default_rng(0)
    sentences = [[f"w{k}" for k in rng.integers(0, 50, rng.integers(1, 9))] for _ in range(200)]
    at_once, one_by_one = TemplateEncoder(WORDS), TemplateEncoder(WORDS)
    rows = [row for sentence in sentences for row in rows_of(one_by_one.learn([sentence]))]
    assert rows_of(at_once.learn(sentences)) == rows


def test_the_chunking_templates_are_the_nineteen():
    assert len(CHUNKING) == 19
    TemplateEncoder(CHUNKING, ["word", "pos"])


@pytest.mark.parametrize(
    ("templates", "why"),
    [
        ([], "templates must be a sequence of one or more"),
        ("word[0]", "templates must be a sequence of one or more"),
        (["word"], "'word' is not an atom such as word\\[0\\]"),
        (["word[0]|bias"], "'bias' stands alone"),
        (["word[0]", "word[+0]"], "has 'word\\[\\+0\\]' twice"),
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
    ],
)
def test_a_template_that_cannot_be_used_is_named(templates, why):
    with pytest.raises(ValueError, match=why):
        TemplateEncoder(templates)
