import gzip
import lzma
import os
import re
import threading
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from larank.data import DataFormatError, ExampleFile, read, write_svmlight
from larank.data.ahead import arrived, read_ahead
from larank.data.stream import blocks_of, can_be_read_again

N_ROWS = 120
NAMES = ["examples.svm", "examples.svm.gz", "examples.csv", "examples.csv.gz", "examples.tsv.xz"]


def refuses(path, why):
    return pytest.raises(DataFormatError, match=rf"^{re.escape(str(path))}{why}")


def bytes_of(X):
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def joined(blocks):
    blocks = list(blocks)
    X = [np.pad(dense(block.X), [(0, 0), (0, blocks[-1].X.shape[1] - block.X.shape[1])]) for block in blocks]
    return np.concatenate(X), np.concatenate([block.y for block in blocks])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same kind of examples in files of all formats, later lines longer than earlier ones."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(N_ROWS, 30)), 3) * (np.arange(30) < 5 + np.arange(N_ROWS)[:, None] // 5)
    y = rng.integers(0, 3, N_ROWS)
    for name in NAMES:
        if ".svm" in name:
            write_svmlight(folder / name, X, y)
        else:
            separator = "\t" if ".tsv" in name else ","
            rows = [separator.join([*map(str, x), str(label)]) for x, label in zip(X.tolist(), y, strict=True)]
            text = "\n\n".join([separator.join([*(f"v{k}" for k in range(30)), "class"]), *rows])
            opener = {".gz": gzip.open, ".xz": lzma.open}.get(os.path.splitext(name)[1], open)
            with opener(folder / name, "wt") as file:
                file.write(text)
    return folder


@pytest.fixture
def svm(tmp_path):
    return tmp_path / "examples.svm"


@pytest.fixture
def table(tmp_path):
    return tmp_path / "examples.csv"


@pytest.mark.parametrize("name", NAMES)
@given(n_bytes=st.integers(1, 40_000), dtype=st.sampled_from([np.float32, np.float64]))
def test_the_blocks_of_a_file_are_the_whole_file_and_as_large_as_was_asked_for(files, name, n_bytes, dtype):
    X, y = read(files / name, dtype=dtype)
    blocks = list(ExampleFile(files / name, dtype=dtype).blocks(n_bytes))
    longest_row = 30 * 12 + 16
    assert all(bytes_of(block.X) <= n_bytes + longest_row for block in blocks)
    if dtype == np.float64:
        assert all(bytes_of(block.X) >= 0.9 * n_bytes - longest_row for block in blocks[:-1])
    Z, z = joined(blocks)
    assert Z.dtype == dtype
    assert np.array_equal(Z, dense(X))
    assert z.dtype == y.dtype
    assert np.array_equal(z, y)


@pytest.mark.parametrize("name", NAMES)
def test_every_pass_has_the_same_blocks_and_the_share_read_grows_to_one(files, name):
    path = files / name
    file = ExampleFile(path)
    first = list(file.blocks(2000))
    shares = [block.share_read for block in first]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    for other in (file.blocks(2000), *(blocks_of(source, 2000) for source in (path, str(path), file))):
        second = list(other)
        assert [block.where for block in first] == [block.where for block in second]
        assert np.array_equal(joined(first)[0], joined(second)[0])
    assert repr(file) == f"ExampleFile({str(files / name)!r})"


def test_a_block_says_where_it_comes_from(svm, table):
    svm.write_text("# names\n1 1:1\n\n2 1:1\n1 1:1\n# end\n")
    assert [block.where for block in ExampleFile(svm).blocks(40)] == [f"{svm}, lines 2 to 4", f"{svm}, lines 5 to 5"]
    table.write_text('a,b\n1,"x\ny"\n\n2,z\n3,z\n')
    assert [block.where for block in ExampleFile(table).blocks(16)] == [
        f"{table}, lines {k}" for k in ("3 to 5", "6 to 6")
    ]


@pytest.mark.parametrize(
    ("text", "options", "shapes", "last"),
    [
        ("1\n1 2:1\n2 7:1\n1 3:1\n", {}, [(1, 0), (1, 2), (1, 7), (1, 7)], [0, 0, 1, 0, 0, 0, 0]),
        ("1\n1 2:1\n2 7:1\n1 3:1\n", {"n_features": 9}, [(1, 9)] * 4, [0, 0, 1, 0, 0, 0, 0, 0, 0]),
        ("1 0:5\n2 2:6\n", {"zero_based": True}, [(1, 1), (1, 3)], [0, 0, 6]),
    ],
)
def test_sparse_blocks_have_the_columns_seen_so_far(svm, text, options, shapes, last):
    svm.write_text(text)
    blocks = list(ExampleFile(svm, **options).blocks(1))
    assert [block.X.shape for block in blocks] == shapes
    assert blocks[-1].X.toarray().tolist() == [last]


def test_options_of_tables_act(table):
    table.write_text("1;a;2\n3;b;4\n")
    X, y = joined(ExampleFile(table, label=1, header=False, delimiter=";", dtype=np.float32).blocks(1))
    assert (X.tolist(), X.dtype, y.tolist()) == ([[1, 2], [3, 4]], np.float32, ["a", "b"])


def blocks_before_the_error(path, why, n_bytes=400, **options):
    came = []

    def read_all():
        for block in ExampleFile(path, **options).blocks(n_bytes):
            came.append(block)

    with refuses(path, why):
        read_all()
    return came


@pytest.mark.parametrize(
    ("name", "good", "bad", "options", "why"),
    [
        ("a.svm", "1 1:1", "1 3:1 2:1", {}, "index 2 after 3"),
        ("a.svm", "1 1:1", "1 3:1", {"n_features": 2}, "index 3 is out of range for n_features=2"),
        ("a.svm", "1 1:1", "1 0:1", {}, "index 0, but the indices should count from one"),
        ("a.csv", "1,1", "1,2,3", {}, "3 columns, but the first line has 2"),
        ("a.csv", "1,1", "1,", {}, "the label '' is empty"),
        ("a.csv", "1,1", '1,"1"x', {}, ""),
    ],
)
def test_a_bad_line_in_the_middle_of_a_file_is_named_after_the_blocks_before(tmp_path, name, good, bad, options, why):
    (tmp_path / name).write_text(f"{good}\n" * 5000 + f"{bad}\n" + f"{good}\n" * 5000)
    blocks = blocks_before_the_error(tmp_path / name, f", line 5001: {why}", **options)
    assert 4900 < sum(len(block.y) for block in blocks) <= 5000


@pytest.mark.parametrize("name", ["examples.svm.gz", "examples.csv.gz"])
def test_damaged_compressed_data_is_refused_after_the_blocks_before(tmp_path, name):
    path = tmp_path / name
    rng = np.random.default_rng(0)
    form = "1 1:{}\n" if ".svm" in name else "{},1\n"
    text = "".join(map(form.format, rng.normal(size=50_000)))
    path.write_bytes(gzip.compress(text.encode())[:-20_000])
    assert len(blocks_before_the_error(path, r", after line \d+: damaged data", 10_000)) > 3


def open_files():
    folder = "/proc/self/fd"
    return [os.readlink(f"{folder}/{n}") for n in os.listdir(folder) if os.path.exists(f"{folder}/{n}")]


def reading_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("larank-reading")]


@pytest.mark.parametrize("is_ahead", [False, True])
def test_closing_a_pass_closes_the_file_and_ends_the_thread(files, is_ahead):
    path = files / "examples.svm"
    blocks = ExampleFile(path).blocks(1000)
    blocks = read_ahead(blocks) if is_ahead else blocks
    next(arrived(blocks) if is_ahead else blocks)
    assert (str(path) in open_files()) or is_ahead
    assert bool(reading_threads()) == is_ahead
    blocks.close()
    assert str(path) not in open_files()
    assert not reading_threads()


def test_a_pipe_is_read_once(tmp_path):
    pipe = tmp_path / "pipe.svm"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("1 1:1\n2 1:2\n",))
    writer.start()
    file = ExampleFile(pipe)
    assert not can_be_read_again(file)
    assert [block.share_read for block in file.blocks(1)] == [None, None]
    writer.join()
    with pytest.raises(ValueError, match=r"pipe\.svm is a pipe, which can be read once"):
        next(file.blocks(1))


def one_label_per_block(path, labels):
    if path.suffix == ".svm":
        path.write_text("# labels\n" + "".join(f"{label} 1:1\n" for label in labels))
    else:
        path.write_text("value,label\n" + "".join(f"1,{label}\n" for label in labels))
    return path


@pytest.fixture(params=["svm", "csv"])
def path(request, tmp_path):
    return tmp_path / f"labels.{request.param}"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["1", "-2", "+3"], [1, -2, 3]),
        (["1.5", "2", "3e0"], [1.5, 2.0, 3.0]),
        (["a", "2", "3.5"], ["a", "2", "3.5"]),
        (["a", "word", "é"], ["a", "word", "é"]),
    ],
)
def test_labels_have_the_type_of_the_first_block(path, labels, expected):
    blocks = list(ExampleFile(one_label_per_block(path, labels)).blocks(1))
    assert repr([label for block in blocks for label in block.y.tolist()]) == repr(expected)


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        (["1", "2", "3.5"], "the label '3.5' is no integer, but the labels before were integers"),
        (["1", "2", "3.0"], "the label '3.0' is no integer"),
        (["1", "2", "word"], "the label 'word' is no integer, but the labels before were integers"),
        (["1", "2", "99999999999999999999"], "the label '9+' is no integer"),
        (["1.5", "2", "word"], "the label 'word' is no number, but the labels before were numbers"),
    ],
)
def test_a_label_of_another_type_is_named_unless_it_is_in_the_first_block(path, labels, why):
    first, second, third = labels
    file = ExampleFile(one_label_per_block(path, [first, *[second] * 50, third, third, second]))
    with refuses(path, f", line 53: {why}"):
        list(file.blocks(300))
    (block,) = file.blocks(10_000)  # a pass does not remember the labels of another
    assert block.y.tolist() == read(path)[1].tolist()


@st.composite
def streams(draw):
    kinds = {
        "array": lambda X: X,
        "float32": lambda X: X.astype(np.float32),
        "csr": sp.csr_matrix,
        "csr_array": sp.csr_array,
        "csc": sp.csc_matrix,
        "lists": lambda X: X.tolist(),
    }
    blocks, label = [], 0
    for _ in range(draw(st.integers(1, 8))):
        rows, width = draw(st.integers(0, 20)), draw(st.sampled_from([3, 4]))
        kind = draw(st.sampled_from(list(kinds))) if rows else "array"
        X = (np.arange(rows * width).reshape(rows, width) + label) * 1.0
        y = label + np.arange(rows)
        label += rows
        block = (kinds[kind](X), y, y / 2) if draw(st.booleans()) else (kinds[kind](X), y)
        blocks.append((*block, None) if len(block) == 2 and draw(st.booleans()) else block)
    return blocks


@given(blocks=streams(), n_bytes=st.integers(1, 2000))
def test_blocks_of_any_size_are_the_same_examples(blocks, n_bytes):
    def rows_of(blocks):
        for X, y, weight in ((*block, None)[:3] for block in blocks):
            X = dense(X) if sp.issparse(X) else np.asarray(X)
            weights = [None] * len(y) if weight is None else weight.tolist()
            yield from zip(X.tolist(), y.tolist(), weights, strict=True)

    resized = list(blocks_of(blocks, n_bytes))
    assert list(rows_of(block[:3] for block in resized)) == list(rows_of(blocks))
    assert all(len(block.y) for block in resized)
    assert all(bytes_of(block.X) <= n_bytes + 64 or len(block.y) == 1 for block in resized)
    assert all(isinstance(block.X, np.ndarray | sp.csr_matrix) for block in resized)
    assert all(block.share_read is None for block in resized)


def test_small_blocks_are_joined():
    X = np.arange(20.0).reshape(10, 2)
    for kind in (np.asarray, sp.csr_matrix):
        parts = [(kind(X[k : k + 1]), np.arange(k, k + 1)) for k in range(10)]
        (block,) = blocks_of(parts, 10_000)
        assert dense(block.X).tolist() == X.tolist()
        assert block.y.tolist() == list(range(10))
        assert block.where == "block 1 to block 10"
    (block,) = blocks_of([(np.ones((1, 2)), ["a"]), (np.ones((1, 2)), ["longer"])], 10_000)
    assert block.y.tolist() == ["a", "longer"]


@pytest.mark.parametrize(
    "other",
    [
        *((X, [0]) for X in (np.ones((1, 3)), sp.csr_matrix(np.ones((1, 2))), np.ones((1, 2), dtype=np.float32))),
        *((np.ones((1, 2)), *more) for more in ([["a"]], [[0.5]], [[0], [1.0]])),
    ],
)
def test_blocks_of_different_kinds_are_not_joined(other):
    one = (np.ones((1, 2)), [0])
    wheres = [block.where for block in blocks_of([one, one, other, one], 10_000)]
    assert wheres == ["block 1 to block 2", "block 3", "block 4"]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_large_blocks_are_cut_without_copies(kind):
    X, y, weight = kind(np.random.default_rng(0).normal(size=(100, 8))), np.arange(100), np.ones(100)
    blocks = list(blocks_of([(X, y, weight)], 1500))
    assert len(blocks) > 4
    for block in blocks:
        assert np.shares_memory(block.X.data if sp.issparse(X) else block.X, X.data if sp.issparse(X) else X)
        assert np.shares_memory(block.y, y)
        assert np.shares_memory(block.sample_weight, weight)
        assert bytes_of(block.X) <= 1700
        assert block.where == "block 1"
    if sp.issparse(X):
        assert np.shares_memory(blocks[-1].X.indices, X.indices)
        blocks[-1].X.check_format(full_check=True)
    assert np.array_equal(joined(blocks)[0], dense(X))
    uneven = sp.vstack([sp.csr_matrix(np.ones((10, 500))), sp.csr_matrix((1000, 500))], format="csr")
    assert all(bytes_of(block.X) <= 10_000 + 500 * 12 + 8 for block in blocks_of([(uneven, np.zeros(1010))], 10_000))


GOOD = (np.ones((2, 3)), [0, 1])


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (np.ones((2, 3)), r"block 2 must be a tuple \(X, y\) or \(X, y, sample_weight\), got ndarray"),
        ((np.ones((2, 3)),), "block 2 must be a tuple .*, got tuple of 1"),
        ((*GOOD, None, None), "block 2 must be a tuple .*, got tuple of 4"),
        ("ab", "block 2 must be a tuple .*, got str"),
        ((np.ones(3), [0, 1]), r"X of block 2 must have two dimensions, got ndarray of shape \(3,\)"),
        ((np.ones((2, 3, 1)), [0, 1]), r"X of block 2 must have two dimensions, got ndarray of shape \(2, 3, 1\)"),
        (([[1, 2], [3]], [0, 1]), "X of block 2 must be an array, got list: .*inhomogeneous"),
        ((None, [0, 1]), "X of block 2 must have two dimensions, got NoneType"),
        ((np.ones((2, 3)), [[0], [1]]), r"y of block 2 must have one dimension, got list of shape \(2, 1\)"),
        ((np.ones((2, 3)), None), "y of block 2 must have one dimension, got NoneType"),
        ((np.ones((2, 3)), [0, 1, 2]), "y of block 2 must have a value for each row of X, 2, got 3"),
        ((*GOOD, [1.0]), "sample_weight of block 2 must have a value for each row of X, 2, got 1"),
        ((*GOOD, 1.0), "sample_weight of block 2 must have one dimension, got float"),
    ],
)
def test_a_block_of_another_form_is_named(bad, why):
    with pytest.raises(ValueError, match=f"^{why}"):
        list(blocks_of([GOOD, bad], 100))


def test_an_exception_of_the_iterator_passes_unchanged():
    error = RuntimeError("the database is gone")

    def blocks():
        yield GOOD
        raise error

    for source in (blocks_of(blocks(), 1), arrived(read_ahead(blocks_of(blocks(), 1)))):
        next(source), next(source)
        with pytest.raises(RuntimeError) as caught:
            next(source)
        assert caught.value is error


def test_what_can_be_read_again_is_known(files):
    class Blocks:
        def __iter__(self):
            return iter([GOOD])

    path = files / "examples.svm"
    assert all(map(can_be_read_again, [path, str(path), ExampleFile(path), [GOOD], (GOOD,), Blocks()]))
    assert not any(map(can_be_read_again, [iter([GOOD]), (block for block in [GOOD]), map(tuple, [GOOD])]))


@pytest.mark.parametrize("name", ["large.svm.gz", "large.csv"])
def test_memory_is_bounded_by_the_size_of_blocks(tmp_path, name):
    n_bytes, path = 200_000, tmp_path / name
    X = np.random.default_rng(0).normal(size=(20_000, 20))
    if ".svm" in name:
        write_svmlight(path, X, np.zeros(len(X), dtype=int))
    else:
        np.savetxt(path, np.c_[X, np.zeros(len(X))], delimiter=",")
    tracemalloc.start()
    try:
        sizes = [bytes_of(block.X) for block in ExampleFile(path).blocks(n_bytes)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(sizes) > 15 * n_bytes
    assert max(sizes) < 1.1 * n_bytes
    assert peak < 12 * n_bytes


def test_reading_ahead_hands_out_the_same_items_and_nothing_while_an_item_is_made():
    for n in (0, 20):
        assert list(arrived(read_ahead(iter(range(n))))) == list(range(n))
    assert not reading_threads()
    made = threading.Event()

    def items():
        made.wait(20)
        yield 1

    ahead = read_ahead(items())
    assert next(ahead) is None
    made.set()
    assert list(arrived(ahead)) == [1]


@pytest.mark.parametrize(("options", "ahead"), [({}, 1), ({"ahead": 0}, 0), ({"ahead": 2}, 2)])
def test_as_many_items_are_read_ahead_as_was_asked_for(options, ahead):
    made, idle = [], threading.Event()

    def items():
        for k in range(10):
            made.append(k)
            if k == ahead:
                idle.set()
            yield k

    reading = read_ahead(items(), **options)
    assert next(arrived(reading)) == 0
    assert idle.wait(20)
    reading.close()
    assert made == list(range(ahead + 1))


def test_closing_does_not_wait_for_an_item_that_does_not_come():
    asleep, awake, closed = threading.Event(), threading.Event(), threading.Event()

    def items():
        try:
            asleep.set()
            awake.wait(20)
            yield 1
        finally:
            closed.set()

    ahead = read_ahead(items())
    assert next(ahead) is None
    assert asleep.wait(20)
    ahead.close()
    assert not closed.is_set()
    awake.set()
    assert closed.wait(20)  # by the thread, when the item has come
