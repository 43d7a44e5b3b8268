"""Encoders: from the tokens a user gives to numbered features.

Three kinds of tokens are known, and an encoder for each:

- text, of one or more columns (`TemplateEncoder`): templates say which features to make of it;
- named features (`NameEncoder`): dicts, or lists and sets of names;
- rows of numbers (`ArrayEncoder`): a matrix and the lengths of the sequences.

`learn` gives numbers to features it meets for the first time, in the order in which they come; `encode` leaves them
out, for they have no weight. `names` says what features stand for, and `state` has all there is to save. Work on text
is done in the core: in Python it takes longer than training does.

A template is a conjunction of up to four atoms, written `word[-1]|word[0]`. An atom is a column at an offset from the
token, and perhaps a form of the text there:

=========================  ==========================================================================================
`word[0]`                  the text itself
`lower(word[0])`           in lower case, character by character
`prefix3(word[0])`         its first characters, 1 to 9; a word shorter than that gives no feature
`suffix3(word[0])`         its last characters, likewise
`shape(word[0])`           capital letters are X, other letters x, digits 0: `McDonald's-3` is `XxXxxxxx'x-0`
`shortshape(word[0])`      the same with runs cut to one character: `XxXx'x-0`
`bias`                     alone: a feature that every token has
=========================  ==========================================================================================

Beyond the ends of a sentence stand `<s-1>`, `<s-2>`, ... and `</s+1>`, `</s+2>`, ..., whatever the form, so the
distance from an end is a feature as in CRF++. They equal no text, not even one that is written alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from larank import _core
from larank.data.columns import ConllFile, checked_columns, default_columns
from larank.sequence.sequences import Sequences
from larank.sparse import sound_csr
from larank.validation import on_host

CHUNKING: tuple[str, ...] = (
    *(f"word[{k}]" for k in range(-2, 3)),
    "word[-1]|word[0]",
    "word[0]|word[1]",
    *(f"pos[{k}]" for k in range(-2, 3)),
    *(f"pos[{k}]|pos[{k + 1}]" for k in range(-2, 2)),
    *(f"pos[{k}]|pos[{k + 1}]|pos[{k + 2}]" for k in range(-2, 1)),
)
"""The 19 templates of CRFsuite's example for CoNLL-2000, on the columns word and pos."""

WORDS: tuple[str, ...] = (
    "bias",
    *(f"word[{k}]" for k in range(-2, 3)),
    "word[-1]|word[0]",
    "word[0]|word[1]",
    *(f"lower(word[{k}])" for k in range(-1, 2)),
    *(f"prefix{n}(word[0])" for n in range(1, 5)),
    *(f"suffix{n}(word[0])" for n in range(1, 5)),
    "suffix3(word[-1])",
    "suffix3(word[1])",
    *(f"shortshape(word[{k}])" for k in range(-1, 2)),
    "shape(word[0])",
    "shortshape(word[-1])|shortshape(word[0])",
    "shortshape(word[0])|shortshape(word[1])",
)
"""Templates for words alone: their neighbours, beginnings, ends and shapes."""


def general(columns: Sequence[str]) -> tuple[str, ...]:
    """Templates that serve parts of speech, chunks and names alike.

    They are those of `WORDS` on the first column, and those that `CHUNKING` has for parts of speech on each of the
    others.

    >>> general(["word", "pos"]) == WORDS + CHUNKING[7:]
    True
    """
    words, *others = columns
    of_words = (template.replace("word[", f"{words}[") for template in WORDS)
    of_tags = (template for template in CHUNKING if template.startswith("pos["))
    return (*of_words, *(template.replace("pos[", f"{name}[") for template in of_tags for name in others))


TEMPLATES: Mapping[str, Callable[[Sequence[str]], tuple[str, ...]]] = {
    "general": general,
    "words": lambda columns: WORDS,
    "chunking": lambda columns: CHUNKING,
}
"""Sets of templates that are known by name, for the columns that a token has."""

_Rows = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64] | None]

_MOST_ATOMS = 4
_MOST_TEMPLATES = 65_535  # a model file has their numbers in 16 bits
_FARTHEST = 50
_ATOM = re.compile(r"(?:(?P<form>[a-z]+)(?P<length>\d*)\()?(?P<column>[^\[\]()|]+)\[(?P<offset>[+-]?\d+)\](?P<end>\)?)")
_FORMS = ("lower", "prefix", "suffix", "shape", "shortshape")


class TemplateEncoder:
    """Features of text, made by templates.

    Parameters
    ----------
    templates : sequence of str
        Such as `CHUNKING` or `WORDS`; the module describes how they are written.
    columns : sequence of str
        The names of the columns of a token. With one column tokens are str (or tuples of one str), with several they
        are tuples of str.

    Examples
    --------
    >>> encoder = TemplateEncoder(["word[0]", "suffix2(word[0])|word[-1]"], ["word"])
    >>> sequences = encoder.learn([["the", "dog", "barks"]])
    >>> encoder.names(sequences.indices[2:4])
    ['word[0]=dog', 'suffix2(word[0])|word[-1]=og|the']
    """

    def __init__(self, templates: Sequence[str], columns: Sequence[str] = ("word",)) -> None:
        self.columns = checked_columns(columns)
        parsed = _parsed_templates(templates, self.columns)
        self.templates = tuple("|".join(map(str, atoms)) or "bias" for atoms in parsed)
        column_numbers = {name: number for number, name in enumerate(self.columns)}
        forms = dict.fromkeys((atom.form, atom.length, atom.column) for atoms in parsed for atom in atoms)
        views = [(form or "whole", length, column_numbers[column]) for form, length, column in forms]
        view_numbers = {form: number for number, form in enumerate(forms)}
        made = [[(view_numbers[a.form, a.length, a.column], a.offset) for a in atoms] for atoms in parsed]
        self._table = _core.TemplateTable(views, made, len(self.columns))

    @property
    def n_features(self) -> int:
        """Features learnt so far."""
        return self._table.n_features

    def learn(self, X: Any) -> Sequences:
        """Encode X, sequences of str or of tuples of str, or a file; features that are new get the next numbers."""
        return self._encoded(X, self._table.learn)

    def encode(self, X: Any) -> Sequences:
        """Encode X as `learn` does; features never learnt are left out."""
        return self._encoded(X, self._table.encode)

    def names(self, ids: Any) -> list[str]:
        """What these features stand for, for a person to read: `word[-1]|word[0]=the|dog`."""
        origins = self._table.origins(np.ascontiguousarray(ids, dtype=np.int64))
        return ["=".join([self.templates[k], "|".join(values)][: 1 + bool(values)]) for k, values in origins]

    def state(self) -> dict[str, Any]:
        """All there is to save: arrays and plain values."""
        words, values, templates, tuples = self._table.state()
        settings = {"templates": list(self.templates), "columns": list(self.columns)}
        return settings | {"words": words, "values": values, "feature_templates": templates, "feature_tuples": tuples}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Build the encoder again from its `state`."""
        encoder = cls(state["templates"], state["columns"])
        encoder._table.restore(state["words"], state["values"], state["feature_templates"], state["feature_tuples"])
        return encoder

    def __reduce__(self) -> Any:
        return type(self).from_state, (self.state(),)

    def _encoded(self, X: Any, expand: Callable[[_core.Sentences], _Rows]) -> Sequences:
        blocks = X.blocks() if isinstance(X, ConllFile) else [self._block(X)]
        parts = [(self._checked(block).starts, *expand(block)) for block in blocks]
        joined = [Sequences(*part, self.n_features) for part in parts]
        return joined[0] if len(joined) == 1 else Sequences.joined(joined)

    def _block(self, X: Any) -> _core.Sentences:
        return X if isinstance(X, _core.Sentences) else _core.sentences_of(X, len(self.columns))

    def _checked(self, block: _core.Sentences) -> _core.Sentences:
        if block.n_columns != len(self.columns):
            raise ValueError(
                f"X has {block.n_columns} columns besides labels, but the templates are for {len(self.columns)}: "
                f"{', '.join(self.columns)}"
            )
        return block


class NameEncoder:
    """Features that have names already.

    A token is a dict, or a list or set of str. In a dict, text v under the key k is the feature "k=v", a number is the
    feature "k" with this value, True is "k" with 1, and False, 0 or None is nothing. Names in lists and sets are
    features with the value 1; a name that comes twice counts once.

    Examples
    --------
    >>> encoder = NameEncoder()
    >>> sequences = encoder.learn([[{"word": "dog", "length": 3, "capital": False}]])
    >>> encoder.names(sequences.indices), sequences.values.tolist()
    (['word=dog', 'length'], [1.0, 3.0])
    """

    def __init__(self) -> None:
        self._names = _core.Dictionary()

    @property
    def n_features(self) -> int:
        """Features learnt so far."""
        return len(self._names)

    def learn(self, X: Any) -> Sequences:
        """Encode X, sequences of tokens; features that are new get the next numbers."""
        starts, (indptr, indices, values) = self._names.learn_names(X)
        return Sequences(starts, indptr, indices, values, self.n_features)

    def encode(self, X: Any) -> Sequences:
        """Encode X as `learn` does; features never learnt are left out."""
        starts, (indptr, indices, values) = self._names.encode_names(X)
        return Sequences(starts, indptr, indices, values, self.n_features)

    def names(self, ids: Any) -> list[str]:
        """The names of these features."""
        return [self._names[number] for number in np.asarray(ids, dtype=np.int64).tolist()]

    def state(self) -> dict[str, Any]:
        """All there is to save: arrays and plain values."""
        text, ends = self._names.arrays()
        return {"text": text, "ends": ends}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Build the encoder again from its `state`."""
        encoder = cls()
        encoder._names = _core.Dictionary(state["text"], state["ends"])
        return encoder


class ArrayEncoder:
    """Features that are numbers already: `(X, lengths)`, a matrix with a row per token and the lengths of sequences.

    X is a two-dimensional array or a sparse matrix of finite real numbers; its zeros are not stored. Lengths are whole
    numbers, 0 for a sequence without tokens, and sum to the rows of X. The first X that is learnt decides the number of
    features.
    """

    def __init__(self) -> None:
        self.n_features = 0

    def learn(self, X: Any) -> Sequences:
        """Encode X, which is `(X, lengths)`."""
        matrix, starts = _ragged(X)
        if not self.n_features:
            self.n_features = matrix.shape[1]
        return self._encoded(matrix, starts)

    def encode(self, X: Any) -> Sequences:
        """Encode X, which is `(X, lengths)`."""
        return self._encoded(*_ragged(X))

    def names(self, ids: Any) -> list[str]:
        """`x0`, `x1`, ..., as scikit-learn calls columns without names."""
        return [f"x{number}" for number in np.asarray(ids, dtype=np.int64).tolist()]

    def state(self) -> dict[str, Any]:
        """All there is to save."""
        return {"n_features": self.n_features}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Build the encoder again from its `state`."""
        encoder = cls()
        encoder.n_features = int(state["n_features"])
        return encoder

    def _encoded(self, matrix: Any, starts: NDArray[np.int64]) -> Sequences:
        if matrix.shape[1] != self.n_features:
            raise ValueError(f"X has {matrix.shape[1]} columns, but {self.n_features} features were learnt")
        values = None if (matrix.data == 1).all() else matrix.data
        return Sequences(
            starts, matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False), values, self.n_features
        )


Encoder = TemplateEncoder | NameEncoder | ArrayEncoder
ENCODERS: Mapping[str, type[Encoder]] = {kind.__name__: kind for kind in (TemplateEncoder, NameEncoder, ArrayEncoder)}


def encoder_for(X: Any, templates: str | Sequence[str] | None = None, columns: Sequence[str] | None = None) -> Encoder:
    """The encoder for what X holds, told by its first token.

    Text has columns, by default those of the file, or word, pos, col2, col3, ...; and templates, by default the
    `general` ones for these columns.
    """
    count = _text_columns(X)
    if count is not None:
        known = X.columns if isinstance(X, ConllFile) else default_columns(count)
        names = known if columns is None else checked_columns(columns)
        return TemplateEncoder(_templates(templates, names), names)
    for argument, value in (("templates", templates), ("columns", columns)):
        if value is not None:
            raise ValueError(f"{argument} can be used with tokens that are text only, got {value!r}")
    return ArrayEncoder() if is_ragged(X) else NameEncoder()


def _text_columns(X: Any) -> int | None:
    """How many columns of text X has; None if it holds something else that can be encoded."""
    if isinstance(X, ConllFile):
        return len(X.columns)
    if isinstance(X, _core.Sentences):
        return X.n_columns
    if is_ragged(X):
        return None
    token, where = _first_token(X)
    if isinstance(token, str):
        return 1
    if isinstance(token, tuple):
        if not token:
            raise ValueError(f"{where} is an empty tuple; expected a tuple of one or more str, one per column")
        return len(token)
    if isinstance(token, dict | list | set | frozenset):
        return None
    hint = "; arrays are given as (X, lengths), X with a row of numbers per token" if hasattr(token, "dtype") else ""
    raise TypeError(f"{where} is {_kind(token)}; expected a str, a tuple of str, a dict, or a list or set of str{hint}")


def _first_token(X: Any) -> tuple[Any, str]:
    """The first token, and what an error calls it."""
    _check_collection(X, "X", "sequences")
    for number, sequence in enumerate(X):
        _check_collection(sequence, f"X[{number}]", "tokens")
        for token in sequence:
            return token, f"X[{number}][0]"
    raise ValueError(f"X must hold at least one token, got {'empty sequences alone' if len(X) else 'no sequence'}")


def _check_collection(X: Any, name: str, what: str) -> None:
    is_table = hasattr(X, "columns")  # a DataFrame is a sequence of the names of its columns
    if isinstance(X, str | bytes | dict | set | frozenset) or not hasattr(X, "__getitem__") or is_table:
        is_path = name == "X" and isinstance(X, str | PathLike)
        hint = "; larank.data.columns.ConllFile(path) reads a file in columns" if is_path else ""
        raise TypeError(f"{name} is {_kind(X)}; expected a list of {what}{hint}")


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"


def _templates(given: str | Sequence[str] | None, columns: tuple[str, ...]) -> Sequence[str]:
    """Templates, by their name or as they were given."""
    if given is None or (isinstance(given, str) and given in TEMPLATES):
        return TEMPLATES[given or "general"](columns)
    return given


def _is_matrix(X: Any) -> bool:
    X = on_host("X", X)
    return (issparse(X) or isinstance(X, np.ndarray)) and X.ndim == 2 and X.dtype.kind in "biuf"


def is_ragged(X: Any) -> bool:
    """Whether X is `(X, lengths)`."""
    return isinstance(X, tuple) and len(X) == 2 and _is_matrix(X[0])


def _ragged(X: Any) -> tuple[Any, NDArray[np.int64]]:
    """The rows of `(X, lengths)` as a CSR matrix of float64 without zeros, and where the sequences begin."""
    if not is_ragged(X):
        raise TypeError(
            f"X is {_kind(X)}; expected (X, lengths), X being a two-dimensional array or a sparse matrix of "
            "real numbers"
        )
    matrix, lengths = on_host("X", X[0]), np.asarray(on_host("lengths", X[1]))
    starts = _starts(lengths, matrix.shape[0])
    if issparse(matrix):
        matrix = sound_csr(matrix).astype(np.float64, copy=False)
        if (matrix.data == 0).any():
            matrix = matrix.copy()
            matrix.eliminate_zeros()
    else:
        matrix = csr_matrix(matrix, dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(matrix.data))
    if len(wrong):
        row = int(np.searchsorted(matrix.indptr, wrong[0], side="right")) - 1
        sequence = int(np.searchsorted(starts, row, side="right")) - 1
        where = f"row {row} (token {row - starts[sequence]} of sequence {sequence})"
        raise ValueError(f"X must be finite, but {where} holds {matrix.data[wrong[0]]}")
    return matrix, starts


def _starts(lengths: NDArray[Any], rows: int) -> NDArray[np.int64]:
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu":
        raise ValueError(
            f"lengths must be a sequence of whole numbers, got an array of {lengths.dtype} of shape {lengths.shape}"
        )
    short = np.flatnonzero(lengths < 0)
    if len(short):
        raise ValueError(f"lengths[{short[0]}] is {lengths[short[0]]}; a sequence has no token or more")
    long = np.flatnonzero(lengths > rows)  # their sum might overflow
    if len(long):
        raise ValueError(f"lengths[{long[0]}] is {lengths[long[0]]}, but X has {rows} rows")
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    if starts[-1] != rows:
        raise ValueError(f"lengths sum to {starts[-1]}, but X has {rows} rows")
    return starts


class _Atom(NamedTuple):
    """A form (none: the text itself) of a column at an offset."""

    form: str
    length: int
    column: str
    offset: int

    def __str__(self) -> str:
        text = f"{self.column}[{self.offset}]"
        return f"{self.form}{self.length or ''}({text})" if self.form else text


def _parsed_templates(templates: Sequence[str], columns: tuple[str, ...]) -> list[tuple[_Atom, ...]]:
    if isinstance(templates, str) or not isinstance(templates, Iterable) or not templates:
        names = ", ".join(map(repr, TEMPLATES))
        raise ValueError(f"templates must be {names}, or a sequence of one or more templates; got {templates!r}")
    if len(templates) > _MOST_TEMPLATES:
        raise ValueError(
            f"templates must be at most {_MOST_TEMPLATES}, got {len(templates)} for {len(columns)} columns; name fewer "
            "templates, or keep fewer columns"
        )
    known = dict.fromkeys(columns)
    parsed = [_parsed_template(template, known) for template in templates]
    seen: dict[frozenset[_Atom], str] = {}
    for template, atoms in zip(templates, parsed, strict=True):
        if frozenset(atoms) in seen:
            raise ValueError(f"templates has {template!r} twice, first as {seen[frozenset(atoms)]!r}")
        seen[frozenset(atoms)] = template
    return parsed


def _parsed_template(template: str, columns: Mapping[str, None]) -> tuple[_Atom, ...]:
    if not isinstance(template, str):
        raise TypeError(f"templates must be str, such as 'word[0]'; got {template!r}")
    if template.strip() == "bias":
        return ()
    atoms = tuple(_parsed_atom(part.strip(), template, columns) for part in template.split("|"))
    if len(atoms) > _MOST_ATOMS:
        raise ValueError(f"the template {template!r} has {len(atoms)} atoms; at most {_MOST_ATOMS} are possible")
    if len(set(atoms)) < len(atoms):
        raise ValueError(f"the template {template!r} has the same atom twice")
    return atoms


def _parsed_atom(text: str, template: str, columns: Mapping[str, None]) -> _Atom:
    def wrong(why: str) -> ValueError:
        return ValueError(f"the template {template!r} cannot be read: {why}")

    found = _ATOM.fullmatch(text)
    if not found or bool(found["form"]) != bool(found["end"]):
        first = next(iter(columns))
        example = f"{first}[0], suffix3({first}[-1])"
        raise wrong(f"{text!r} is not an atom such as {example}; 'bias' stands alone")
    form, length, offset = found["form"] or "", int(found["length"] or 0), int(found["offset"])
    if form and form not in _FORMS:
        raise wrong(f"{form!r} is not one of {', '.join(_FORMS)}")
    if form in ("prefix", "suffix") and not 1 <= length <= 9:
        raise wrong(f"{form} needs a length from 1 to 9, such as {form}3")
    if form not in ("prefix", "suffix") and found["length"]:
        raise wrong(f"{form} takes no length")
    if found["column"] not in columns:
        raise wrong(f"there is no column {found['column']!r}; the columns are {', '.join(columns)}")
    if abs(offset) > _FARTHEST:
        raise wrong(f"offsets go from -{_FARTHEST} to {_FARTHEST}")
    return _Atom(form, length, found["column"], offset)
