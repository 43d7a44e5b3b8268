"""Encoders: from the tokens a user gives to numbered features.

Three kinds of tokens are known, and an encoder for each:

- text, of one or more columns (`TemplateEncoder`): templates say which features to make of it;
- named features (`NameEncoder`): dicts, or lists and sets of names;
- rows of numbers (`ArrayEncoder`): a matrix and the lengths of the sequences.

`learn` gives numbers to features it meets for the first time, in the order in which they come; `encode` leaves them
out. Work on text is done in the core: in Python it takes longer than training does.

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
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from larank import _core
from larank.structured.sequences import Sequences

__all__ = [
    "CHUNKING",
    "WORDS",
    "Encoder",
    "TemplateEncoder",
    "default_columns",
]

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
"""Templates for words alone: tagging parts of speech or names."""

_MOST_ATOMS = 4
_FARTHEST = 50
_ATOM = re.compile(r"(?:(?P<form>[a-z]+)(?P<length>\d*)\()?(?P<column>[^\[\]()|]+)\[(?P<offset>[+-]?\d+)\](?P<end>\)?)")
_FORMS = ("lower", "prefix", "suffix", "shape", "shortshape")


class Encoder(Protocol):
    """What a sequence model asks of features."""

    @property
    def n_features(self) -> int:
        """Features learnt so far."""

    def learn(self, X: Any) -> Sequences:
        """Encode X; features that are new get the next numbers."""

    def encode(self, X: Any) -> Sequences:
        """Encode X; features never learnt are left out, for they have no weight."""

    def names(self, ids: Any) -> list[str]:
        """What these features stand for, for a person to read."""

    def state(self) -> dict[str, Any]:
        """All there is to save: arrays and plain values."""

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Build the encoder again from its `state`."""


def default_columns(count: int) -> tuple[str, ...]:
    """The names of so many columns: word, pos, col2, col3, ..."""
    return ("word", "pos", *(f"col{k}" for k in range(2, count)))[:count]


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
        self.columns = _checked_columns(columns)
        parsed = _parsed_templates(templates, self.columns)
        self.templates = tuple("|".join(map(str, atoms)) or "bias" for atoms in parsed)
        forms = list(dict.fromkeys((atom.form, atom.length, atom.column) for atoms in parsed for atom in atoms))
        views = [(form or "whole", length, self.columns.index(column)) for form, length, column in forms]
        made = [[(forms.index((a.form, a.length, a.column)), a.offset) for a in atoms] for atoms in parsed]
        self._table = _core.TemplateTable(views, made, len(self.columns))

    @property
    def n_features(self) -> int:
        """Features learnt so far."""
        return self._table.n_features

    def learn(self, X: Any) -> Sequences:
        """Encode X; features that are new get the next numbers.

        Parameters
        ----------
        X : sequence of sequences of tokens, or a block of a CoNLL file
            Tokens are str or tuples of str.
        """
        block = self._block(X)
        return self._sequences(block, *self._table.learn(block))

    def encode(self, X: Any) -> Sequences:
        """Encode X as `learn` does; features never learnt are left out."""
        block = self._block(X)
        return self._sequences(block, *self._table.encode(block))

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

    def _block(self, X: Any) -> _core.TokenBlock:
        if not isinstance(X, _core.TokenBlock):
            return _core.token_block(X, len(self.columns))
        if X.n_columns != len(self.columns):
            raise ValueError(
                f"X has {X.n_columns} columns besides labels, but the templates are for {len(self.columns)}: "
                f"{', '.join(self.columns)}"
            )
        return X

    def _sequences(
        self, block: _core.TokenBlock, indptr: NDArray[np.int64], indices: NDArray[np.int32], values: None
    ) -> Sequences:
        return Sequences(block.starts, indptr, indices, values, self.n_features)


class _Atom(NamedTuple):
    """A form (none: the text itself) of a column at an offset."""

    form: str
    length: int
    column: str
    offset: int

    def __str__(self) -> str:
        text = f"{self.column}[{self.offset}]"
        return f"{self.form}{self.length or ''}({text})" if self.form else text


def _checked_columns(columns: Sequence[str]) -> tuple[str, ...]:
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns) or not columns:
        raise ValueError(f"columns must be a sequence of names, one or more, such as ('word', 'pos'); got {columns!r}")
    for name in columns:
        if not re.fullmatch(r"[^\[\]()|\s]+", name):
            raise ValueError(f"columns must be names without blanks, brackets and '|', got {name!r}")
    if len(set(columns)) < len(columns):
        raise ValueError(f"columns must be distinct names, got {tuple(columns)!r}")
    return tuple(columns)


def _parsed_templates(templates: Sequence[str], columns: tuple[str, ...]) -> list[tuple[_Atom, ...]]:
    if isinstance(templates, str) or not templates:
        raise ValueError(f"templates must be a sequence of one or more templates, such as WORDS; got {templates!r}")
    parsed = [_parsed_template(template, columns) for template in templates]
    seen: dict[frozenset[_Atom], str] = {}
    for template, atoms in zip(templates, parsed, strict=True):
        if frozenset(atoms) in seen:
            raise ValueError(f"templates has {template!r} twice, first as {seen[frozenset(atoms)]!r}")
        seen[frozenset(atoms)] = template
    return parsed


def _parsed_template(template: str, columns: tuple[str, ...]) -> tuple[_Atom, ...]:
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


def _parsed_atom(text: str, template: str, columns: tuple[str, ...]) -> _Atom:
    def wrong(why: str) -> ValueError:
        return ValueError(f"the template {template!r} cannot be read: {why}")

    found = _ATOM.fullmatch(text)
    if not found or bool(found["form"]) != bool(found["end"]):
        example = f"{columns[0]}[0], suffix3({columns[0]}[-1])"
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
