"""Tables in files: every cell as it stands, whatever the layout, and the place of what is wrong."""

import csv
import io

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from larank.data import DataFormatError
from larank.data.tables import CellError, ColumnLabels, TableFile, is_table
from properties import draws


def written(tmp_path, content, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def cells(path, n_bytes=1 << 22, **options):
    """Names and rows, empty where there is nothing."""
    frame = polars.concat([block.frame for block in TableFile(path, **options).blocks(n_bytes)])
    return frame.columns, [tuple("" if cell is None else cell for cell in row) for row in frame.rows()]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter, tmp_path):
    lines = [['"a, b; c"', "d", "e"], ["1", '"x;y"', "2"], ["3", "z", "4"]]
    names, rows = cells(written(tmp_path, "".join(delimiter.join(line) + "\n" for line in lines)))
    assert names == ["a, b; c", "d", "e"]
    assert rows == [("1", "x;y", "2"), ("3", "z", "4")]


@pytest.mark.parametrize(
    ("text", "options", "names", "rows"),
    [
        ("a;b;c\n1,5;2,5;3,5\n", {}, ["a", "b", "c"], [("1,5", "2,5", "3,5")]),
        ("2019,2020\n1,2\n", {"header": True}, ["2019", "2020"], [("1", "2")]),
        ("a,b\nc,d\n", {"header": False}, ["column 1", "column 2"], [("a", "b"), ("c", "d")]),
        ('"a\rb",c\n1,2\n3,4\n5,6\n', {}, ["a\rb", "c"], [("1", "2"), ("3", "4"), ("5", "6")]),
        ('a,b\n5" pipe,2\n6,x"y"z\n', {}, ["a", "b"], [('5" pipe', "2"), ("6", 'x"y"z')]),
    ],
    ids=["decimal commas", "a header", "no header", "a carriage return in a name", "quotes within cells"],
)
def test_cells_are_as_they_stand(text, options, names, rows, tmp_path):
    assert cells(written(tmp_path, text), **options) == (names, rows)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b\n1,2\n", ["a", "b"]),
        ("1,2\n3,4\n", ["column 1", "column 2"]),
        (",b\n1,2\n", ["column 1", "b"]),
        (" a , b\n1,2\n", ["a", "b"]),
        ('"a","b"\n1,2\n', ["a", "b"]),
        ("1,x\n2,y\n", ["column 1", "column 2"]),
        ('"two\nlines",b\n1,2\n', ["two\nlines", "b"]),
        ("only\n1\n\n2\n", ["only"]),
    ],
)
def test_names_are_those_of_the_first_line_unless_it_has_numbers(text, names, tmp_path):
    assert cells(written(tmp_path, text))[0] == names


@pytest.mark.parametrize(("header", "names"), [("a;b\n", ["a", "b"]), ("", ["column 1", "column 2"])])
def test_a_line_that_names_the_delimiter_is_no_row(header, names, tmp_path):
    path = written(tmp_path, f"sep=;\n{header}1;2,5\n3;4\n")
    assert cells(path) == (names, [("1", "2,5"), ("3", "4")])
    assert TableFile(path).place(1).endswith(f"line {4 if header else 3}")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_line_ends_and_encodings_do_not_matter(end, encoding, tmp_path):
    text = end.join(["größe,ort", "1,Köln", "2,Zürich", ""])
    path = written(tmp_path, text.encode(encoding))
    options = {"encoding": "cp1252"} if encoding == "cp1252" else {}
    assert cells(path, **options) == (["größe", "ort"], [("1", "Köln"), ("2", "Zürich")])


@pytest.mark.parametrize("name", ["data.parquet", "data.arrow", "data.feather", "data.ipc"])
def test_binary_tables_keep_their_types(name, tmp_path):
    frame = polars.DataFrame({"a": [1, None, 3], "b": ["x", "y", None], "c": [True, False, None]})
    (frame.write_parquet if name.endswith("parquet") else frame.write_ipc)(tmp_path / name)
    blocks = list(TableFile(tmp_path / name).blocks(24))
    assert [len(block.frame) for block in blocks] == [1, 1, 1]
    assert polars.concat([block.frame for block in blocks]).equals(frame)
    assert TableFile(tmp_path / name).place(1) == f"{tmp_path / name}, row 2"


def test_a_table_is_known_by_its_name():
    assert all(map(is_table, ["a.csv", "a.TSV.gz", "b.parquet", "c.feather"]))
    assert not any(map(is_table, ["a.svm", "a.npz", "a.txt", "a"]))


CELL = st.text(st.sampled_from('ab 1,;"\n\té.'), max_size=5)


@draws(150)
@given(st.data())
def test_cells_are_what_the_csv_module_reads(tmp_path_factory, data):
    width = data.draw(st.integers(2, 4))
    rows = data.draw(st.lists(st.lists(CELL, min_size=width, max_size=width), min_size=1, max_size=12))
    quoting = data.draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=quoting, lineterminator=end)
    writer.writerow([f"name {n}" for n in range(width)])
    writer.writerows(rows)
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    path.write_bytes(text.getvalue().encode())
    for n_bytes in (1, 1 << 22):
        assert cells(path, n_bytes, delimiter=",")[1] == [tuple(row) for row in rows]


def test_blocks_are_cut_between_records(tmp_path, monkeypatch):
    monkeypatch.setattr("larank.data.tables._HEAD_BYTES", 16)
    rows = [(str(i), f"a\n{i}" if i % 3 else f'say "{i}"') for i in range(200)]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("number", "text"), *rows])
    blocks = list(TableFile(written(tmp_path, text.getvalue())).blocks(40))
    assert len(blocks) > 50
    assert [tuple(row) for block in blocks for row in block.frame.rows()] == rows
    assert [block.first_row for block in blocks[:2]] == [0, len(blocks[0].frame)]


def test_known_numbers_are_made_at_once_and_others_stay_text(tmp_path):
    path = written(tmp_path, "a,b\n1,x\n,y\n2.5,z\n")
    (block,) = TableFile(path).blocks(numbers=["a", "elsewhere"])
    assert block.frame["a"].to_list() == [1.0, None, 2.5]
    (block,) = TableFile(written(tmp_path, "a,b\n1,x\nlow,y\n")).blocks(numbers=["a"])
    assert block.frame["a"].to_list() == ["1", "low"]


def test_a_sample_has_rows_from_all_of_the_table(tmp_path, monkeypatch):
    whole = TableFile.blocks
    monkeypatch.setattr("larank.data.tables._HEAD_BYTES", 16)
    monkeypatch.setattr(TableFile, "blocks", lambda file: whole(file, 500))
    path = written(tmp_path, "a,b\n" + "".join(f"{i},x\n" for i in range(5000)))
    met = []
    sample = TableFile(path).sample(1000, lambda block: met.append(len(block.frame)))
    assert sum(met) == 5000
    assert len(met) > 50
    numbers = sample.frame["a"].cast(int).to_list()
    assert numbers == list(range(0, 5000, sample.step))
    assert 250 <= len(numbers) <= 500
    with pytest.raises(DataFormatError, match=f"line {2 + 3 * sample.step}, column 'a': odd"), sample.located():
        raise CellError(3, "a", "odd")


def test_the_place_of_a_row_is_the_line_in_which_it_begins(tmp_path):
    file = TableFile(written(tmp_path, 'a,b\n\n1,"two\nlines"\n\n2,x\n"3","a\n\nb"\n4,y\n'))
    assert [file.place(row).rpartition(" ")[2] for row in range(4)] == ["3", "6", "7", "10"]
    assert TableFile(written(tmp_path, f"a,b\n{'x' * 200_000},1\n2,3\n")).place(1).endswith("row 2")  # csv cannot tell


@pytest.mark.parametrize(("label", "said"), [("", "there is no label"), ("nan", "'nan' is not finite")])
def test_a_label_that_is_missing_is_named_with_its_place(label, said, tmp_path):
    block = TableFile(written(tmp_path, f"a,y\n0,1\n0,{label}\n")).read()
    with pytest.raises(DataFormatError, match=f"line 3, column 'y': .*{said}"):
        ColumnLabels("y").meet(block)


def test_text_of_another_encoding_records_without_end_and_tables_without_rows_are_refused(tmp_path, monkeypatch):
    path = written(tmp_path, "")
    path.write_bytes("a,b\n1,2\n".encode("utf-16")[:-1])
    with pytest.raises(DataFormatError, match="the text is not utf-16"):
        TableFile(path).read()
    monkeypatch.setattr("larank.data.tables._HEAD_BYTES", 16)
    monkeypatch.setattr("larank.data.tables._LONGEST_RECORD", 100)
    with pytest.raises(DataFormatError, match=r"line 2: a quote or a line does not end within \d+ bytes"):
        list(TableFile(written(tmp_path, 'a,b\n1,"' + "x" * 400)).blocks(50))
    for columns, said in (
        ({"y": []}, "a.parquet: no rows"),
        ({"y": [1.5, float("nan")]}, "row 2, .*: there is no label"),
    ):
        polars.DataFrame(columns).write_parquet(tmp_path / "a.parquet")
        with pytest.raises(DataFormatError, match=said):
            ColumnLabels("y").meet(TableFile(tmp_path / "a.parquet").read())
