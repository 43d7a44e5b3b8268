"""Text files as a user has them: `word tag label` per line, an empty line between sentences."""

from __future__ import annotations

import lzma
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

TRAIN, TEST, LONG = "train.txt", "test.txt", "long.txt"
REPETITIONS = 10
"""Of the training file in the long one."""


@contextmanager
def stored(source: Path, sentences: int | None = None) -> Iterator[Path]:
    """A temporary folder with the unpacked files, or so many sentences of each, and the long file."""
    with tempfile.TemporaryDirectory(prefix=f"larank-{source.name}-") as path:
        folder = Path(path)
        for part in (TRAIN, TEST):
            content = lzma.decompress((source / f"{part}.xz").read_bytes())
            (folder / part).write_bytes(b"\n\n".join(content.split(b"\n\n")[:sentences]) if sentences else content)
        lengthen(folder)
        yield folder


def lengthen(folder: Path) -> None:
    content = (folder / TRAIN).read_bytes().rstrip() + b"\n\n"
    with (folder / LONG).open("wb") as file:
        for _ in range(REPETITIONS):
            file.write(content)


def read(path: Path) -> tuple[list[list[tuple[str, str]]], list[list[str]]]:
    """Sentences of words with their part of speech, and the labels; as a user would write it."""
    sentences, labels = [], []
    with path.open(encoding="utf-8") as file:
        for is_blank, lines in groupby(file, str.isspace):
            if not is_blank:
                tokens = [line.split() for line in lines]
                sentences.append([(word, part_of_speech) for word, part_of_speech, _ in tokens])
                labels.append([tag for _, _, tag in tokens])
    return sentences, labels
