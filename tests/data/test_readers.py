"""What every reader of files does: compression, marks, pipes, damage and bytes of any kind."""

import bz2
import fcntl
import gzip
import lzma
import os
import re
import struct
import termios
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from larank.ambiguous.meanings import read_examples
from larank.ambiguous.stories import read_story
from larank.ambiguous.universe import Relation, Universe
from larank.ambiguous.universetable import read_table
from larank.data import DataFormatError, ExampleFile, read_csv, read_npz, read_svmlight
from larank.data.columns import read_conll
from larank.data.files import read_text
from larank.data.tables import ColumnLabels, TableFile

HOUSE = Universe({"john": "actor", "go": "verb", "hall": "room"}, [Relation("at", of={"actor"}, to={"room"})])


def plain(X, y):
    return (X.toarray() if sp.issparse(X) else X).tolist(), y.tolist()


def blocks(path):
    return [plain(block.X, block.y) for block in ExampleFile(path).blocks(1)]


@dataclass(frozen=True)
class Reader:
    """A function that reads a file, good lines for it, and a line that is wrong after them."""

    read: Callable[[Any], Any]
    name: str
    good: str
    wrong: str
    characters: str
    reads_pipes: bool = True


SVMLIGHT = {"name": "a.svm", "good": "1 1:2\n2 3:0.5\n", "wrong": "1 2:1 2:1\n", "characters": "019:.+-e# \n\tqx\0"}
CSV = {"name": "a.csv", "good": "a,b\n1,é\n2,f\n", "wrong": "3,x,4\n", "characters": '12.ab,;" \n\r\0'}
READERS = {
    "svmlight": Reader(lambda path: plain(*read_svmlight(path)), **SVMLIGHT),
    "blocks of svmlight": Reader(blocks, **SVMLIGHT),
    "csv": Reader(lambda path: plain(*read_csv(path)), **CSV),
    "blocks of csv": Reader(blocks, **CSV),
    "table": Reader(
        lambda path: TableFile(path, delimiter=",").read().frame.to_dict(as_series=False), **CSV, reads_pipes=False
    ),
    "columns": Reader(read_conll, "a.conll", "il DT B\nété NN I\n\n", "oui B\n", "ab# \t\n\r\0é-1", reads_pipes=False),
    "meanings": Reader(read_examples, "a.txt", "a dog é\nsee(dog)\n\n", "a cat\nsee(cat\n", "ab(), #-'\n"),
    "story": Reader(
        partial(read_story, universe=HOUSE), "a.txt", "at(john) =\né goes\n\n", "at(x) = y\n", "john()= #-\n"
    ),
    "universe": Reader(read_table, "a.csv", "concept,kind\né,b\nc,b\n", "c,b\n", 'concept,kid:=|()"\n'),
}
PACKERS = {"gz": partial(gzip.compress, compresslevel=9), "bz2": bz2.compress, "xz": lzma.compress}
every_reader = pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
every_packer = pytest.mark.parametrize("packer", PACKERS)


def refuses(path, why):
    return pytest.raises(DataFormatError, match=rf"^{re.escape(str(path))}{why}")


@every_reader
def test_compression_marks_and_line_ends_do_not_matter(reader, tmp_path):
    path, good = tmp_path / reader.name, reader.good.encode()
    path.write_bytes(good)
    expected = reader.read(path)
    for other in (*(pack(good) for pack in PACKERS.values()), b"\xef\xbb\xbf" + good, good.replace(b"\n", b"\r\n")):
        path.write_bytes(other)
        assert reader.read(path) == expected


@contextmanager
def slow_pipe(path, content):
    """Create a pipe whose first bytes arrive one by one."""

    def write():
        with open(path, "wb", buffering=0) as pipe:
            for byte in content[:12]:
                pipe.write(bytes([byte]))
                while struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]:
                    time.sleep(0.001)  # until it is read
            pipe.write(content[12:])

    os.mkfifo(path)
    writer = threading.Thread(target=write)
    writer.start()
    yield
    writer.join()


@pytest.mark.parametrize("reader", [each for each in READERS.values() if each.reads_pipes], ids=lambda each: each.name)
@pytest.mark.parametrize("packer", [None, *PACKERS])
def test_the_first_bytes_of_a_pipe_may_come_in_pieces(reader, packer, tmp_path):
    content = b"\xef\xbb\xbf" + reader.good.encode()
    (tmp_path / reader.name).write_bytes(content)
    expected = reader.read(tmp_path / reader.name)
    for suffix in {"", f".{packer}"} if packer else {""}:
        pipe = tmp_path / f"pipe_{reader.name}{suffix}"
        with slow_pipe(pipe, PACKERS[packer](content) if packer else content):
            assert reader.read(pipe) == expected


@pytest.mark.parametrize("content", ["", "B", "BZ 1:1\n", "BZh 1:1\nBZh 1:2\nB 1:3\n"])
def test_text_in_a_pipe_may_begin_like_compressed_data(content, tmp_path):
    with slow_pipe(tmp_path / "pipe.txt", content.encode()):
        assert read_text(tmp_path / "pipe.txt") == content


@every_packer
def test_a_pipe_of_compressed_data_that_ends_within_the_first_bytes_is_refused(packer, tmp_path):
    path = tmp_path / f"data.svm.{packer}"
    with slow_pipe(path, PACKERS[packer](b"1 1:1\n")[:2]), refuses(path, ".*damaged data .the file ends after 2 bytes"):
        read_svmlight(path)


@every_reader
def test_a_missing_file_is_not_a_format_error(reader, tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        reader.read(tmp_path / reader.name)
    assert error.value.filename == str(tmp_path / reader.name)


@every_reader
def test_a_line_that_is_wrong_is_named(reader, tmp_path):
    path = tmp_path / reader.name
    path.write_text(reader.good + "\n" + reader.wrong)
    line = (reader.good + "\n" + reader.wrong).count("\n")
    with refuses(path, f", line {line}[:,]"):
        reader.read(path)


def labels_of_table(path):
    block, labels = TableFile(path).read(), ColumnLabels("y")
    labels.meet(block)
    return labels.array(block).tolist()


LABELLED = {
    "svmlight": ("a.svm", "", "{} 1:1\n", lambda path: read_svmlight(path)[1].tolist()),
    "csv": ("a.csv", "x,y\n", "0,{}\n", lambda path: read_csv(path)[1].tolist()),
    "table": ("a.csv", "x,y\n", "0,{}\n", labels_of_table),
}


@pytest.mark.parametrize(("name", "head", "line", "read"), LABELLED.values(), ids=LABELLED)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("1 -2 +3", [1, -2, 3]),
        ("1 2.0", [1.0, 2.0]),
        ("1 2.5 1", [1.0, 2.5, 1.0]),
        ("1e2 -.5", [100.0, -0.5]),
        ("1 two", ["1", "two"]),
        ("9223372036854775807", [2**63 - 1]),
        ("9223372036854775808", ["9223372036854775808"]),
        ("+ -", ["+", "-"]),
        ("été", ["été"]),
        ("true false NA", ["true", "false", "NA"]),
    ],
)
def test_labels_are_integers_then_numbers_then_words(name, head, line, read, words, expected, tmp_path):
    (tmp_path / name).write_text(head + "".join(map(line.format, words.split())), encoding="utf-8")
    assert repr(read(tmp_path / name)) == repr(expected)


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
@pytest.mark.parametrize("name", ["svmlight", "blocks of svmlight", "csv", "blocks of csv", "table", "columns"])
def test_a_file_without_examples_is_refused(name, content, tmp_path):
    path = tmp_path / READERS[name].name
    path.write_text(content)
    with refuses(path, r", line \d: no (examples|rows|tokens)$"):
        READERS[name].read(path)


@every_reader
def test_text_that_is_not_utf8_is_named(reader, tmp_path):
    path = tmp_path / reader.name
    good = reader.good.encode()
    path.write_bytes(good[:1] + b"\xff" + good[1:])
    with refuses(path, ".*(UTF-8|utf-8)"):
        reader.read(path)


@every_reader
@every_packer
def test_compressed_data_that_is_cut_short_is_damaged(reader, packer, tmp_path):
    path = tmp_path / f"{reader.name}.{packer}"
    content = PACKERS[packer](reader.good.encode())
    for length in range(1, len(content)):
        path.write_bytes(content[:length])
        with refuses(path, ".*damaged data"):
            reader.read(path)


@every_reader
@given(content=st.data())
def test_any_bytes_are_read_or_refused(reader, content, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / reader.name
    path.write_bytes(content.draw(st.binary() | st.text(reader.characters).map(str.encode)))
    try:
        reader.read(path)
    except DataFormatError as error:
        assert str(error).startswith(str(path))  # noqa: PT017


def test_what_compresses_well_is_read(tmp_path):
    path = tmp_path / "data.svm.gz"
    path.write_bytes(gzip.compress(b"1 1:1\n2 2:1\n" * 100_000))
    assert read_svmlight(path)[0].shape == (200_000, 2)


BOMBED = {name: reader.read for name, reader in READERS.items()} | {"npz": read_npz, "text": read_text}


@pytest.mark.parametrize("read", BOMBED.values(), ids=BOMBED)
@every_packer
def test_a_small_file_that_unpacks_to_far_more_is_refused(read, packer, tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(PACKERS[packer](bytes(1 << 20)) * 16)
    with refuses(path, ".*damaged data .[0-9]+ bytes unpack to [0-9]+ or more; if that is meant, unpack them before"):
        read(path)
