"""Entities of tag sequences, and how well they were found: precision, recall and F1 by the rules of conlleval.

A tag is a prefix and, after its first '-', a type: B-NP is prefix B and type NP, O prefix O without a type. With p, c
the prefixes of two neighbours, and O before the first and after the last token of a sequence:

    a chunk ends between them    if p is not O and (p in E, S  or  c in O, B, S  or  the types differ)
    a chunk starts between them  if c is not O and (c in B, S  or  c in I, E and p in O, E, S  or  the types differ)

L is read as E and U as S. A prefix that is none of these (a part of speech, say) starts and ends chunks by its type
alone. So tags need not be well formed, and IOB1, IOB2, IOE1, IOE2, IOBES and BILOU are read alike. conlleval itself
knows neither S, U and L nor E before B of the same type, which here ends a chunk; otherwise the figures are its.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_OTHER, _O, _B, _I, _E, _S = range(6)
_PREFIXES = {"O": _O, "B": _B, "I": _I, "E": _E, "L": _E, "S": _S, "U": _S}


class Entity(NamedTuple):
    """The tokens `start` to `end - 1` of a sequence, and their type, which may be empty."""

    type: str
    start: int
    end: int


@dataclass(frozen=True)
class EntityScore:
    """How many entities there are, were predicted, and were predicted with the right extent and type."""

    true: int
    predicted: int
    correct: int

    @property
    def precision(self) -> float:
        """The share of the predicted that is correct; 0 if nothing was predicted."""
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """The share of the true that was found; 0 if there is none."""
        return self.correct / self.true if self.true else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.correct / (self.true + self.predicted) if self.correct else 0.0


@dataclass(frozen=True)
class EntityReport:
    """What a tagger found.

    Attributes
    ----------
    tokens, correct_tokens : int
        All tokens, and those whose tag is right.
    overall : EntityScore
        The score of all entities; `precision`, `recall` and `f1` are its.
    types : mapping from str to EntityScore
        The score of the entities of each type, by name.
    """

    tokens: int
    correct_tokens: int
    overall: EntityScore
    types: Mapping[str, EntityScore]

    @property
    def accuracy(self) -> float:
        """The share of tokens whose tag is right."""
        return self.correct_tokens / self.tokens

    @property
    def precision(self) -> float:
        """The share of all predicted entities that is correct."""
        return self.overall.precision

    @property
    def recall(self) -> float:
        """The share of all true entities that was found."""
        return self.overall.recall

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall of all entities."""
        return self.overall.f1

    def rows(self) -> list[dict[str, object]]:
        """A row for each type, and one for all, each a mapping from heading to value."""
        return [_row(name or "(no type)", score) for name, score in self.types.items()] + [_row("all", self.overall)]

    def __str__(self) -> str:
        """The rows as a table, below the figures of the tokens."""
        rows = [{name: str(value) for name, value in row.items()} for row in self.rows()]
        widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in rows[0]}
        lines = ["  ".join(name.rjust(width) for name, width in widths.items())]
        lines += ["  ".join(row[name].rjust(width) for name, width in widths.items()) for row in rows]
        return "\n".join([f"{self.correct_tokens} of {self.tokens} tokens correct, {self.accuracy:.2%}", *lines])


def _row(name: str, score: EntityScore) -> dict[str, object]:
    shares = {"precision": score.precision, "recall": score.recall, "F1": score.f1}
    counts = {"entities": score.true, "predicted": score.predicted, "correct": score.correct}
    return {"type": name, **{heading: f"{share:.2%}" for heading, share in shares.items()}, **counts}


def entities(tags: Sequence[str]) -> list[Entity]:
    """Find the entities of one sequence of tags.

    >>> entities(["B-NP", "I-NP", "O", "B-VP"])
    [Entity(type='NP', start=0, end=2), Entity(type='VP', start=3, end=4)]
    """
    flat = list(tags)
    alphabet = _Alphabet(flat)
    found = _chunks(alphabet, alphabet.codes(flat), np.array([len(flat)]))
    names = alphabet.types
    return [
        Entity(names[kind], start, end)
        for kind, start, end in zip(found.type.tolist(), found.start.tolist(), found.end.tolist(), strict=True)
    ]


def entity_report(y_true: Sequence[Sequence[str]], y_pred: Sequence[Sequence[str]]) -> EntityReport:
    """Compare predicted with true tag sequences.

    Parameters
    ----------
    y_true, y_pred : sequence of sequences of str
        The tags, sequence by sequence.

    Raises
    ------
    ValueError
        If there is no token, or the sequences are not of the same number and lengths.
    TypeError
        If the tags are not str, or not in sequences.
    """
    lengths = _checked_lengths(y_true, y_pred)
    flat_true, flat_pred = (list(chain.from_iterable(tags)) for tags in (y_true, y_pred))
    alphabet = _Alphabet(chain(flat_true, flat_pred))
    true_codes, pred_codes = alphabet.codes(flat_true), alphabet.codes(flat_pred)
    true, pred = (_chunks(alphabet, codes, lengths) for codes in (true_codes, pred_codes))
    right = true.type[true.among(pred)]
    counted = [np.bincount(types, minlength=len(alphabet.types)) for types in (true.type, pred.type, right)]
    scores = {
        name: EntityScore(*(int(count[kind]) for count in counted))
        for kind, name in enumerate(alphabet.types)
        if counted[0][kind] or counted[1][kind]
    }
    return EntityReport(
        tokens=len(flat_true),
        correct_tokens=int(np.count_nonzero(true_codes == pred_codes)),
        overall=EntityScore(len(true.type), len(pred.type), len(right)),
        types=dict(sorted(scores.items())),
    )


def repaired(tags: Sequence[Sequence[str]], scheme: str = "BIO") -> list[list[str]]:
    """Read tags as conlleval does, whatever their scheme and however wrong they are, and write them anew.

    Parameters
    ----------
    tags : sequence of sequences of str
        Such as B-NP, I-NP, O, sequence by sequence.
    scheme : {"BIO", "BILOU"}, default="BIO"
        The scheme to write.

    Raises
    ------
    ValueError
        If a tag is neither O nor a known prefix with a type.

    Examples
    --------
    >>> repaired([["I-NP", "I-NP", "O", "I-VP", "I-NP"]])
    [['B-NP', 'I-NP', 'O', 'B-VP', 'B-NP']]
    """
    if scheme not in _WRITTEN:
        raise ValueError(f"scheme must be one of {', '.join(map(repr, _WRITTEN))}, got {scheme!r}")
    for number, row in enumerate(tags):
        if isinstance(row, str):
            raise TypeError(f"tags[{number}] is {row!r}; a sequence of tags is expected")
    flat, lengths = list(chain.from_iterable(tags)), [len(sequence) for sequence in tags]
    for tag in dict.fromkeys(flat):
        prefix, kind = _parts(tag)
        if prefix == _OTHER or bool(kind) != (prefix != _O):
            sequence, place = next((i, list(row).index(tag)) for i, row in enumerate(tags) if tag in row)
            raise ValueError(f"tags[{sequence}][{place}] must be O, or B, I, E, L, S or U with a type, got {tag!r}")
    alphabet = _Alphabet(flat)
    found = _chunks(alphabet, alphabet.codes(flat), np.array(lengths, dtype=np.int64))
    written = ["O"] * len(flat)
    for number, start, end in zip(found.type.tolist(), found.start.tolist(), found.end.tolist(), strict=True):
        written[start:end] = [f"{prefix}-{alphabet.types[number]}" for prefix in _WRITTEN[scheme](end - start)]
    rest = iter(written)
    return [list(islice(rest, length)) for length in lengths]


_WRITTEN: Mapping[str, Callable[[int], str]] = {
    "BIO": lambda length: "B" + "I" * (length - 1),
    "BILOU": lambda length: "U" if length == 1 else "B" + "I" * (length - 2) + "L",
}


def has_chunks(tags: Iterable[object]) -> bool:
    """Whether the tags look like those of chunks: all are O or have a known prefix and a type, and not all are O."""
    prefixes = {tag.partition("-")[0] if isinstance(tag, str) and "-" in tag else tag for tag in tags}
    return prefixes <= set(_PREFIXES) and prefixes != {"O"} and bool(prefixes)


# ---- Chunks of many sequences at once ----


@dataclass(frozen=True)
class _Chunks:
    """Start and end of each chunk as token numbers, and the number of its type; by start, of which each has one."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    type: NDArray[np.int64]

    def among(self, others: _Chunks) -> NDArray[np.bool_]:
        """Which of the chunks are also among the others."""
        _, own, other = np.intersect1d(self.start, others.start, assume_unique=True, return_indices=True)
        found = np.zeros(len(self.start), dtype=bool)
        found[own] = (self.end[own] == others.end[other]) & (self.type[own] == others.type[other])
        return found


class _Alphabet:
    """Numbers for tags, with prefix and type of each."""

    def __init__(self, tags: Iterable[str]) -> None:
        self._numbers = {tag: number for number, tag in enumerate(dict.fromkeys(tags))}
        parts = [_parts(tag) for tag in self._numbers]
        self.types = list(dict.fromkeys(["", *(kind for _, kind in parts)]))
        numbers = {kind: number for number, kind in enumerate(self.types)}
        self.prefix_of = np.array([prefix for prefix, _ in parts], dtype=np.int64)
        self.type_of = np.array([numbers[kind] for _, kind in parts], dtype=np.int64)

    def codes(self, tags: Sequence[str]) -> NDArray[np.int64]:
        return np.fromiter(map(self._numbers.__getitem__, tags), dtype=np.int64, count=len(tags))


def _parts(tag: object) -> tuple[int, str]:
    if not isinstance(tag, str):
        raise TypeError(f"the tag {tag!r} is of type {type(tag).__name__}; entities are read from tags that are str")
    prefix, _, kind = tag.partition("-")
    return _PREFIXES.get(prefix, _OTHER), kind


def _chunks(alphabet: _Alphabet, codes: NDArray[np.int64], lengths: NDArray[np.int64]) -> _Chunks:
    """The rules above, all tokens at once: an O without type is put before each sequence and after the last."""
    # Sequence i is moved i + 1 places to the right.
    places = np.arange(len(codes)) + np.repeat(np.arange(1, len(lengths) + 1), lengths)
    size = len(codes) + len(lengths) + 1
    prefix, kind = np.full(size, _O), np.zeros(size, dtype=np.int64)
    prefix[places], kind[places] = alphabet.prefix_of[codes], alphabet.type_of[codes]
    p, c = prefix[:-1], prefix[1:]
    differ = kind[:-1] != kind[1:]
    ends = (p != _O) & (_any_of(p, _E, _S) | _any_of(c, _O, _B, _S) | differ)
    starts = (c != _O) & (_any_of(c, _B, _S) | (_any_of(c, _I, _E) & _any_of(p, _O, _E, _S)) | differ)
    before, last = np.flatnonzero(starts), np.flatnonzero(ends)
    last = last[np.searchsorted(last, before, side="right")]  # an O follows: each chunk has an end
    token = np.zeros(size, dtype=np.int64)
    token[places] = np.arange(len(codes))
    return _Chunks(token[before + 1], token[last] + 1, kind[before + 1])


def _any_of(prefixes: NDArray[np.int64], *wanted: int) -> NDArray[np.bool_]:
    found = np.zeros(6, dtype=bool)
    found[list(wanted)] = True
    return found[prefixes]


def _checked_lengths(y_true: Sequence[Sequence[str]], y_pred: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    for name, sequences in (("y_true", y_true), ("y_pred", y_pred)):
        for number, tags in enumerate(sequences):
            if isinstance(tags, str) or not hasattr(tags, "__len__"):
                raise TypeError(f"{name}[{number}] is {tags!r}; a sequence of tags is expected")
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} sequences and y_pred {len(y_pred)}; they must be as many")
    lengths, others = ([len(tags) for tags in sequences] for sequences in (y_true, y_pred))
    for number, (length, other) in enumerate(zip(lengths, others, strict=True)):
        if length != other:
            raise ValueError(f"y_true[{number}] has {length} tags and y_pred[{number}] {other}; they must be as many")
    if not sum(lengths):
        raise ValueError("y_true has no tags; at least one is needed")
    return np.array(lengths, dtype=np.int64)
