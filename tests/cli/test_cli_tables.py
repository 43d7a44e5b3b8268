"""`larank train`, `predict` and `eval` on tables as people have them."""

from __future__ import annotations

import csv
import io
import os
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from commandline import larank

from larank.data import models
from larank.data.tables import TableFile
from messytables import TABLES, MessyTable, passengers, shuffled_columns


def failure(*arguments: object) -> str:
    """The one line that a command says that must fail."""
    lines = larank(*arguments, code=1).stderr.splitlines()
    assert lines[-1].startswith("larank: error: ")
    return lines[-1]


def error_of(output: str) -> float:
    return next(float(line.split()[-1].rstrip("%")) / 100 for line in output.splitlines() if "test error " in line)


every_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)


# ---- The ten files ----


@every_table
def test_a_table_trains_and_is_evaluated_by_two_commands(table: MessyTable, tmp_path: Path) -> None:
    path, model = table.write(tmp_path), tmp_path / "m.larank"
    trained = larank("train", path, model, "--label", table.label, *table.options)
    error = error_of(larank("eval", model, path, *table.options).stdout)
    assert error <= table.error
    said = {line[len("larank:   ") :] for line in trained.stderr.splitlines() if line.startswith("larank:   ")}
    for name, piece in table.columns.items():
        assert any(line.startswith(name) and piece in line for line in said), (name, piece, said)
    frame = table_of(path, table)
    assert len(larank("predict", model, path, *table.options).stdout.splitlines()) == len(frame)


def table_of(path: Path, table: MessyTable) -> polars.DataFrame:
    return TableFile(path, encoding="cp1252" if "cp1252" in table.options else "utf-8").read().frame


@every_table
def test_the_order_of_columns_does_not_matter_and_labels_need_not_be_there(table: MessyTable, tmp_path: Path) -> None:
    path, model = table.write(tmp_path), tmp_path / "m.larank"
    larank("train", path, model, "--label", table.label, *table.options, "--quiet")
    expected = larank("predict", model, path, *table.options).stdout
    frame = table_of(path, table)
    label = models.load(model)[0].label
    if table.name != "letters":  # columns without names have nothing but their order
        shuffled_columns(frame).write_csv(tmp_path / "shuffled.csv")
        assert larank("predict", model, tmp_path / "shuffled.csv").stdout == expected
        errors = [
            larank("eval", model, each, *options).stdout.splitlines()[2]
            for each, options in ((path, table.options), (tmp_path / "shuffled.csv", ()))
        ]
        assert errors[0] == errors[1]
    frame.drop(label).write_csv(tmp_path / "new.csv", include_header=table.name != "letters")
    assert larank("predict", model, tmp_path / "new.csv").stdout == expected


@every_table
def test_the_format_does_not_matter(table: MessyTable, tmp_path: Path) -> None:
    path, model = table.write(tmp_path), tmp_path / "m.larank"
    larank("train", path, model, "--label", table.label, *table.options, "--quiet")
    expected = larank("predict", model, path, *table.options).stdout
    frame = table_of(path, table)
    frame.write_csv(tmp_path / "other.tsv", separator="\t", include_header=table.name != "letters")
    frame.write_parquet(tmp_path / "other.parquet")
    for kind in ("feather", "arrow"):
        frame.write_ipc(tmp_path / f"other.{kind}")
    for kind in ("tsv", "parquet", "feather", "arrow"):
        assert larank("predict", model, tmp_path / f"other.{kind}").stdout == expected
    for kind in ("tsv", "parquet"):
        again = tmp_path / "n.larank"
        larank("train", tmp_path / f"other.{kind}", again, "--label", models.load(model)[0].label, "--quiet")
        np.testing.assert_array_equal(models.load(again)[1].coef_, models.load(model)[1].coef_)


@every_table
def test_a_model_of_a_table_round_trips(table: MessyTable, tmp_path: Path) -> None:
    path, model = table.write(tmp_path), tmp_path / "m.larank"
    larank("train", path, model, "--label", table.label, *table.options, "--quiet")
    loaded, frame = models.load(model), table_of(path, table)
    models.save(loaded, tmp_path / "again.larank")
    again = models.load(tmp_path / "again.larank")
    np.testing.assert_array_equal(again.predict(frame), loaded.predict(frame))
    assert again[0].summary() == loaded[0].summary()
    assert "TableEncoder" in larank("info", model).stdout


# ---- What is said of wrong input ----


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text(passengers())
    larank("train", tmp_path / "people.csv", tmp_path / "m.larank", "--label", "Survived", "--quiet")
    return tmp_path


def people(folder: Path, change: Any = lambda line: line, name: str = "new.csv") -> Path:
    lines = (folder / "people.csv").read_text().splitlines()
    (folder / name).write_text("\n".join(change(list(lines))) + "\n")
    return folder / name


def test_a_cell_that_is_no_number_is_named_with_file_line_and_column(trained: Path) -> None:
    new = people(trained, lambda lines: [*lines[:99], '990,1,3,"A, Mr",male,old,7.5,,S', *lines[99:]])
    for arguments in (["predict", trained / "m.larank", new], ["eval", trained / "m.larank", new]):
        assert "new.csv, line 100, column 'Age': 'old' is not a number" in failure(*arguments)
    line = failure("train", new, trained / "n.larank", "--label", "Survived")
    assert "new.csv, line 100, column 'Age': 'old' is not a number, but 200 of 201 values are" in line
    assert "--column 'Age=category'" in line
    assert not (trained / "n.larank").exists()
    larank("train", new, trained / "n.larank", "--label", "Survived", "--column", "Age=category", "--quiet")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: [*lines[:9], "1,2,3", *lines[9:]], "line 10, column 'Name': the line ends before it; 3 cells"),
        (lambda lines: [*lines[:9], "1,2,3,4,5,6,7,8,9,10", *lines[9:]], "line 10, column 10: '10' has no column"),
        (lambda lines: [*lines[:9], '1,0,3,"open', *lines[9:]], "line 10"),
        (lambda lines: [*lines[:9], "1,,3,a,male,3,4,,S", *lines[9:]], "line 10, column 'Survived': there is no label"),
        (lambda lines: [lines[0].replace("Sex", "Age"), *lines[1:]], "line 1, column 'Age': two columns have this"),
        (lambda lines: lines[:1], "no rows"),
        (lambda lines: lines[:2], "column 'Survived': all labels are '"),
        (lambda lines: ["Survived", "0", "1"], "line 1: only one column, 'Survived'; is the delimiter right?"),
        (lambda lines: [""], "no rows"),
        (lambda lines: [*lines[:5], "1,0,3,a,male,inf,4,,S", *lines[5:]], "line 6, column 'Age': inf is not finite"),
    ],
)  # fmt: skip
def test_a_damaged_table_is_refused_with_the_place(change: Any, said: str, trained: Path) -> None:
    new = people(trained, change)
    line = failure("train", new, trained / "n.larank", "--label", "Survived")
    assert "new.csv" in line
    assert said in line
    assert not (trained / "n.larank").exists()


def test_another_encoding_is_told_of(trained: Path) -> None:
    content = (trained / "people.csv").read_bytes().replace(b"Smith7,", b"Sm\xeeth7,")
    (trained / "old.csv").write_bytes(content)
    line = failure("train", trained / "old.csv", trained / "n.larank", "--label", "Survived")
    assert "old.csv, line 9, column 'Name': the text is not UTF-8" in line
    assert "--encoding cp1252" in line
    larank("predict", trained / "m.larank", trained / "old.csv", "--encoding", "cp1252")


def test_columns_that_are_missing_or_extra_are_named(trained: Path) -> None:
    frame = TableFile(trained / "people.csv").read().frame
    frame.drop("Age", "Sex").write_csv(trained / "less.csv")
    line = failure("predict", trained / "m.larank", trained / "less.csv")
    assert "less.csv, line 1: the columns of training must be there, but there is no 'Sex', 'Age'" in line
    expected = larank("predict", trained / "m.larank", trained / "people.csv").stdout
    frame.with_columns(extra=polars.lit("x"), more=polars.lit(1)).write_csv(trained / "more.csv")
    found = larank("predict", trained / "m.larank", trained / "more.csv")
    assert found.stdout == expected
    warning = "larank: warning: columns that training has not seen are left out: 'extra', 'more'\n"
    assert found.stderr == warning
    frame.drop("PassengerId").write_csv(trained / "without.csv")  # it was left out, so it need not be there
    assert larank("predict", trained / "m.larank", trained / "without.csv").stdout == expected


def test_a_label_that_is_no_column_is_refused_with_the_columns(trained: Path) -> None:
    line = failure("train", trained / "people.csv", trained / "n.larank", "--label", "survived")
    assert "people.csv, line 1: there is no column 'survived' for --label; the columns are 'PassengerId', 'Surv" in line
    line = failure("train", trained / "people.csv", trained / "n.larank", "--column", "age=text")
    assert "there is no column 'age' for --column" in line
    assert "NAME=KIND" in larank("train", trained / "people.csv", trained / "n", "--column", "Age=words", code=2).stderr


def test_a_number_to_be_estimated_is_no_label(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text("a,price\n" + "".join(f"{i % 7},{i}.5\n" for i in range(10_050)))
    line = failure("train", tmp_path / "prices.csv", tmp_path / "m", "--label", "price")
    assert "prices.csv, column 'price': more than 10000 different labels" in line


def test_training_reports_the_column_of_the_labels_and_its_classes(trained: Path) -> None:
    path, model = trained / "people.csv", trained / "n.larank"
    given = larank("train", path, model, "--label", "Survived").stderr
    assert "larank: the label is column 'Survived', with 2 classes: 0, 1\n" in given
    numbers(trained / "a.csv")
    by_default = larank("train", trained / "a.csv", model).stderr
    assert "larank: the label is the last column, 'kind', with 3 classes: 0, 1, 2\n" in by_default
    assert "the label" not in larank("train", trained / "a.csv", model, "--quiet").stderr


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([f"{i % 250}" for i in range(900)], "250 different values in 900 rows"),
        ([f"person {i}" for i in range(40)], "40 different values in 40 rows"),
        ([f"{i % 9}.5" for i in range(90)], "numbers with fractions"),
        ([f'"{i % 9},5"' for i in range(90)], "numbers with fractions"),
        ([f"2020-0{1 + i % 9}-03" for i in range(90)], "9 different dates"),
        ([f"{1 + i % 9}.12.2020 10:00" for i in range(90)], "9 different dates"),
        (["a", "", "b"] * 30, "line 3, column 'last column': there is no label"),
        ([str(i) for i in range(10_050)], "more than 10000 different labels"),
    ],
)
@pytest.mark.parametrize("options", [[], ["--algorithm", "sgdqn", "--memory-limit", 1000]])
def test_a_last_column_that_looks_like_no_label_needs_the_option(
    cells: list[str], said: str, options: list[object], tmp_path: Path
) -> None:
    path, model = tmp_path / "a.csv", tmp_path / "m.larank"
    path.write_text("kind,size,last column\n" + "".join(f"{i % 2},{i % 7},{cell}\n" for i, cell in enumerate(cells)))
    wrong = " ".join(larank("train", path, model, *options, code=2).stderr.split())
    assert f"a.csv, {'column' if 'line' not in said else ''}" in wrong
    assert said in wrong
    assert "Give --label COLUMN, one of 'kind', 'size', or --label 'last column' if that is right" in wrong
    assert not model.exists()
    larank("train", path, model, "--label", "kind", "--quiet")
    if len(cells) <= 90 and "line" not in said and "fractions" not in said:
        larank("train", path, model, "--label", "last column", "--quiet")


@pytest.mark.parametrize(
    "cells",
    [[[n % 2] for n in range(9)], [{"a": n % 2} for n in range(9)], [b"\xff", b"\xfe"] * 5],
    ids=["list", "struct", "bytes"],
)
def test_labels_that_are_not_words_or_numbers_are_refused(cells: list[Any], tmp_path: Path) -> None:
    polars.DataFrame({"size": range(len(cells)), "kind": cells}).write_parquet(tmp_path / "a.parquet")
    said = "a.parquet, row 1, column 'kind': labels must be words or numbers, got values of type "
    wrong = larank("train", tmp_path / "a.parquet", tmp_path / "m", code=2).stderr
    assert said in " ".join(wrong.split())
    assert said in failure("train", tmp_path / "a.parquet", tmp_path / "m", "--label", "kind")


@pytest.mark.parametrize("cells", ["ab", "0123456789", [str(n) for n in range(100)], ["1990", "2020"], ["1.0", "2.0"]])
def test_a_last_column_of_classes_needs_no_option(cells: list[str], tmp_path: Path) -> None:
    rows = [f"{i % 7},{i % 3},{cells[i % len(cells)]}" for i in range(200)]
    (tmp_path / "a.csv").write_text("\n".join(["a,b,kind", *rows]) + "\n")
    said = larank("train", tmp_path / "a.csv", tmp_path / "m.larank", "--tol", 0.5).stderr
    assert f"the label is the last column, 'kind', with {len(cells)} classes: " in said


@pytest.mark.parametrize("option", [["--raw"], ["--label", "a"], ["--column", "a=text"], ["--delimiter", ";"]])
def test_options_of_tables_are_refused_for_matrices(option: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 1:1\n2 1:2\n")
    assert "cannot act" in larank("train", tmp_path / "a.svm", tmp_path / "m", *option, code=2).stderr


def test_a_raw_model_does_not_know_the_label_of_another_table(tmp_path: Path) -> None:
    rows, model = [f"{i % 3},{i % 7 + i % 3},{i % 3}" for i in range(60)], tmp_path / "m.larank"
    (tmp_path / "named.csv").write_text("\n".join(["a,b,kind", *rows]) + "\n")
    larank("train", tmp_path / "named.csv", model, "--raw", "--quiet")
    (tmp_path / "more.csv").write_text("a,b,c,d\n1,2,3,4\n")
    assert "which column has the labels? --label names it" in failure("eval", model, tmp_path / "more.csv")
    larank("train", tmp_path / "bare.csv", tmp_path / "bare.larank", "--raw", "--quiet")
    assert "test error" in larank("eval", tmp_path / "bare.larank", tmp_path / "bare.csv").stdout
    assert "wide.csv has 4 features, the model 2;" in failure(
        "predict", tmp_path / "bare.larank", tmp_path / "wide.csv"
    )
    assert "for svmlight files" in larank("train", tmp_path / "bare.csv", model, "--zero-based", code=2).stderr


def test_a_model_of_a_table_takes_no_matrix(trained: Path) -> None:
    (trained / "a.svm").write_text("1 1:1\n2 1:2\n")
    line = failure("predict", trained / "m.larank", trained / "a.svm")
    assert "takes tables with the columns 'PassengerId', 'Pclass'" in line


@pytest.mark.parametrize("name", ["x.parquet", "x.feather"])
@pytest.mark.parametrize("content", [b"", b"hello", b"PAR1" + b"\0" * 100 + b"PAR1"])
def test_a_binary_file_that_is_damaged_is_named(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert name in failure("train", tmp_path / name, tmp_path / "m")
    assert "gone.parquet: No such file" in failure("train", tmp_path / "gone.parquet", tmp_path / "m")


# ---- Output ----


def test_predictions_are_csv_with_the_identifier_if_asked(trained: Path) -> None:
    out = trained / "out.csv"
    larank("predict", trained / "m.larank", trained / "people.csv", out, "--id", "PassengerId")
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    plain = larank("predict", trained / "m.larank", trained / "people.csv").stdout.split()
    assert list(rows[0]) == ["PassengerId", "Survived"]
    assert [row["PassengerId"] for row in rows] == [str(n) for n in range(1, 241)]
    assert [row["Survived"] for row in rows] == plain
    quoted = larank("predict", trained / "m.larank", trained / "people.csv", "--id", "Name", "--scores").stdout
    rows = list(csv.DictReader(io.StringIO(quoted)))
    assert rows[0]["Name"] == 'Smith0, Mr. Jo "J" 0' or rows[0]["Name"] == 'Smith0, Mrs. Jo "J" 0'
    assert all((float(row["1"]) > 0) == (row["Survived"] == "1") for row in rows)
    line = failure("predict", trained / "m.larank", trained / "people.csv", "--id", "Id")
    assert "people.csv, line 1: there is no column 'Id' for --id" in line


def test_probabilities_are_there_where_the_model_has_them(trained: Path) -> None:
    line = failure("predict", trained / "m.larank", trained / "people.csv", "--proba")
    assert "m.larank holds a LinearMulticlassSVC, which has no probabilities" in line
    model = trained / "p.larank"
    larank("train", trained / "people.csv", model, "--label", "Survived", "--algorithm", "primal", "--quiet")
    rows = list(
        csv.DictReader(io.StringIO(larank("predict", model, trained / "people.csv", "--proba", "--csv").stdout))
    )
    assert list(rows[0]) == ["Survived", "0", "1"]
    for row in rows:
        assert float(row["0"]) + float(row["1"]) == pytest.approx(1)
        assert (float(row["1"]) > 0.5) == (row["Survived"] == "1")
    assert (
        "cannot act together" in larank("predict", model, trained / "people.csv", "--proba", "--scores", code=2).stderr
    )


def test_a_pipe_is_read_once(trained: Path) -> None:
    pipe = trained / "pipe.csv"
    for arguments in (
        ["train", pipe, trained / "n.larank", "--label", "Survived", "-q"],
        ["predict", trained / "m.larank", pipe],
    ):
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=[(trained / "people.csv").read_bytes()])
        writer.start()
        larank(*arguments)
        writer.join(timeout=10)
        assert not writer.is_alive()
        pipe.unlink()


def test_without_polars_it_says_what_to_install(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    line = failure("train", trained / "people.csv", trained / "n.larank")
    assert "tables need the package polars; pip install 'larank[tables]' brings it" in line


# ---- Raw tables, streams and other models ----


def numbers(path: Path, n: int = 300, order: tuple[int, ...] = (0, 1, 2, 3)) -> Path:
    random = np.random.default_rng(0)
    y = np.arange(n) % 3
    columns = {f"f{j}": (random.normal(size=n) + 3 * (y == j)).round(4) for j in range(3)} | {"kind": y}
    polars.DataFrame(columns).select([list(columns)[k] for k in order]).write_csv(path)
    return path


@pytest.mark.parametrize("options", [[], ["--algorithm", "sgdqn", "--memory-limit", 5000, "--t0", 100]])
def test_raw_tables_are_taken_as_they_are_and_matched_by_name(options: list[object], tmp_path: Path) -> None:
    path, model = numbers(tmp_path / "a.csv"), tmp_path / "m.larank"
    larank("train", path, model, "--raw", *options, "--quiet")
    estimator = models.load(model)
    assert estimator.feature_names_in_.tolist() == ["f0", "f1", "f2"]
    frame = polars.read_csv(path)
    expected = estimator.predict(frame.drop("kind"))
    other = numbers(tmp_path / "b.csv", order=(3, 2, 0, 1))
    assert larank("predict", model, other).stdout.split() == [str(label) for label in expected]
    assert error_of(larank("eval", model, other).stdout) == pytest.approx(
        np.mean(expected != frame["kind"].to_numpy()), abs=1e-4
    )
    polars.read_csv(path).drop("f1").write_csv(tmp_path / "c.csv")
    assert "c.csv, line 1: there is no column 'f1', which the model needs" in failure(
        "predict", model, tmp_path / "c.csv"
    )
    (tmp_path / "d.csv").write_text("f0,f1,f2,kind\n1,2,3,0\n1,,3,1\n")
    assert "d.csv, line 3, column 'f1': there is no number" in failure("predict", model, tmp_path / "d.csv")
    assert "d.csv, line 3, column 'f1': there is no number" in failure("train", tmp_path / "d.csv", model, "--raw")


@every_table
def test_a_table_larger_than_memory_trains_as_one_in_memory(table: MessyTable, tmp_path: Path) -> None:
    path = table.write(tmp_path)
    options = [
        "--label",
        table.label,
        *table.options,
        "--algorithm",
        "sgdqn",
        "--t0",
        100,
        "--no-shuffle",
        "--epochs",
        2,
    ]
    larank("train", path, tmp_path / "memory", *options, "--quiet")
    result = larank(
        "train", path, tmp_path / "stream", *options, "--memory-limit", 15_000 if "gz" in path.name else 6000
    )
    if "is read as a stream" not in result.stderr:
        pytest.skip("too small a file")
    memory, stream = (models.load(tmp_path / name) for name in ("memory", "stream"))
    assert stream[0].summary() == memory[0].summary()
    frame = table_of(path, table)
    assert np.mean(stream.predict(frame) == memory.predict(frame)) > 0.9  # steps depend on the size of blocks


def test_columns_may_be_scaled_robustly_and_text_hashed(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(passengers())
    said = larank(
        "train", tmp_path / "people.csv", tmp_path / "m", "--label", 2, "--scale", "robust", "--text", "hash",
        "--column", "Pclass=category", "--column", "Cabin=drop",
    ).stderr  # fmt: skip
    assert "scaled (median" in said
    assert "hashed to 10000 features" in said
    assert "category: 1, 2, 3" in said
    assert "left out: as asked" in said


def test_a_test_file_and_a_report_go_with_tables(trained: Path) -> None:
    page, frame = trained / "r.html", TableFile(trained / "people.csv").read().frame
    shuffled_columns(frame).write_csv(trained / "test.csv")
    options = ["--label", "Survived", "--test", trained / "test.csv", "--report", page]
    result = larank("train", trained / "people.csv", trained / "n.larank", *options)
    assert error_of(result.stdout) <= 0.2
    assert "LinearMulticlassSVC on people.csv" in page.read_text()
