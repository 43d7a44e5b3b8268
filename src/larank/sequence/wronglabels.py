"""Labels that constraints do not allow: all of them are found before training begins, and refused or mended."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank import _core
from larank.data.columns import ConllFile
from larank.sequence.constraints import Constraints, Follows, UnknownLabelError, follows
from larank.sequence.entities import repaired

_SHOWN = 10  # places that a message names
_BLOCK_TOKENS = 50_000
NameOf = Callable[[int, int], str]
"""What an error calls a token: the one of a sequence at a position in it."""


class LabelsNotAllowedError(ValueError):
    """Labels of training that constraints do not allow; `places` says of each what it is and where."""

    def __init__(self, message: str, places: Sequence[str]) -> None:
        super().__init__(message)
        self.places = tuple(places)


@dataclass
class WrongLabels:
    """The labels that constraints do not allow, found block by block: what each is, and where."""

    constraints: Constraints
    places: list[str] = field(default_factory=list)

    def look_at(
        self, starts: NDArray[np.int64], labels: NDArray[np.int32], names: Sequence[Any], name_of: NameOf
    ) -> Follows | None:
        """Look for some among the numbers of labels of sequences that have tokens; say what is allowed."""
        try:
            allowed = follows(self.constraints, names)
        except UnknownLabelError as unknown:
            token = int(np.argmax(labels == list(names).index(unknown.label)))
            raise ValueError(f"{unknown} at {name_of(*_place(starts, token))}") from None
        if allowed is not None and len(labels):
            wrong, unfinished = allowed.violations(starts, labels)
            found = [(token, False) for token in wrong.tolist()] + [(token, True) for token in unfinished.tolist()]
            for token, is_end in sorted(found):
                sequence, position = _place(starts, token)
                label, before = names[labels[token]], names[labels[token - 1]] if position else None
                self.places.append(f"{_told(before, label, is_end)} at {name_of(sequence, position)}")
        return allowed

    def mend(self, starts: NDArray[np.int64], tags: Sequence[str], name_of: NameOf) -> list[str]:
        """The tags of sequences as the constraints demand, and a note of each that was another one."""
        right = mended(tags, np.diff(starts), str(self.constraints))
        for token, (tag, better) in enumerate(zip(tags, right, strict=True)):
            if tag != better:
                self.places.append(f"{better!r} for {tag!r} at {name_of(*_place(starts, token))}")
        return right

    def refuse(self) -> None:
        """Raise if there are any."""
        if self.places:
            hint = "; repair=True reads labels as conlleval does" if isinstance(self.constraints, str) else ""
            raise LabelsNotAllowedError(
                f"constraints={self.constraints!r} must allow the labels of training, but {len(self.places)} "
                f"{'is' if len(self.places) == 1 else 'are'} not allowed: {self._listed(_SHOWN)}{hint}",
                self.places,
            )

    def warn_of_repair(self) -> None:
        """Say that some were mended, and what was done with the first ones."""
        if self.places:
            told = f"{len(self.places)} labels were mended, as conlleval reads them: {self._listed(3)}"
            warnings.warn(told, stacklevel=6)

    def _listed(self, count: int) -> str:
        more = len(self.places) - count
        return "; ".join(self.places[:count]) + (f"; and {more} more" if more > 0 else "")


def _place(starts: NDArray[np.int64], token: int) -> tuple[int, int]:
    sequence = int(np.searchsorted(starts, token, side="right")) - 1
    return sequence, token - int(starts[sequence])


def _told(before: Any, label: Any, is_end: bool) -> str:
    if is_end:
        return f"the end after {label!r}"
    return f"{label!r} at the beginning" if before is None else f"{label!r} after {before!r}"


def refuse_wrong_labels(file: ConllFile, constraints: Constraints) -> None:
    """Raise if a file has some, from one look at all of its lines."""
    wrong, words = WrongLabels(constraints), _core.Dictionary()
    for block in file.blocks(_BLOCK_TOKENS, words):
        wrong.look_at(block.starts, block.labels, words.words(), named_by_line(file, block))
    wrong.refuse()


def labels_to_mend(file: ConllFile, scheme: str) -> WrongLabels:
    """Those of a file, from one look at all of its lines."""
    wrong, words = WrongLabels(scheme), _core.Dictionary()
    for block in file.blocks(_BLOCK_TOKENS, words):
        tags = np.array(words.words(), dtype=object)[block.labels].tolist()
        wrong.mend(block.starts, tags, named_by_line(file, block))
    return wrong


def named_by_line(file: ConllFile, block: Any) -> NameOf:
    """What an error calls the tokens of a block of a file."""
    return lambda sequence, position: f"{file.path}, line {block.lines[block.starts[sequence] + position]}"


def mended(tags: Iterable[Any], lengths: NDArray[np.int64], scheme: str) -> list[str]:
    """Tags of sequences, end to end: read as conlleval does, and written anew in a scheme."""
    flat = iter(tags)
    return [tag for sequence in repaired([list(islice(flat, n)) for n in lengths.tolist()], scheme) for tag in sequence]
