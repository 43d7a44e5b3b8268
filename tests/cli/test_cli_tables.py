"""`larank train`, `predict` and `eval` on tables as people have them."""

import csv
import io
import os
import shutil
import sys
import threading
from contextlib import chdir
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars
import pytest
from commandline import larank

from larank.data import models
from larank.data.tables import TableFile
from messytables import TABLES, MessyTable, passengers, shuffled_columns


def failure(command):
    """The last of the lines that a command says that must fail."""
    *_, line = larank(command, code=1).stderr.splitlines()
    assert line.startswith("larank: error: ")
    return line


def error_of(output):
    return next(float(line.split()[-1].rstrip("%")) / 100 for line in output.splitlines() if "test error " in line)


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def table_of(path, table=None):
    return TableFile(path, encoding="cp1252" if table and "cp1252" in table.options else "utf-8").read().frame


class Trained(NamedTuple):
    """A table, its file, options and cells, and what its model m predicts of it."""

    table: MessyTable
    file: str
    options: str
    frame: polars.DataFrame
    predicted: str
    has_names: bool


every_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module", params=TABLES, ids=lambda table: table.name)
def trained(request, tmp_path_factory):
    """A folder with a table and a model of it, and what there is to know of them."""
    table, options, folder = request.param, " ".join(["", *request.param.options]), tmp_path_factory.mktemp("table")
    file = table.write(folder).name
    with chdir(folder):
        larank(f"train {file} m --label {table.label}{options} --quiet")
        predicted = larank(f"predict m {file}{options}").stdout
        return folder, Trained(table, file, options, table_of(file, table), predicted, table.name != "letters")


@pytest.fixture
def case(trained, tmp_path):
    folder, case = trained
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return case


def test_a_table_trains_and_is_evaluated_by_two_commands(case):
    table = case.table
    trained = larank(f"train {case.file} n --label {table.label}{case.options}")
    assert error_of(larank(f"eval n {case.file}{case.options}").stdout) <= table.error
    said = {line[len("larank:   ") :] for line in trained.stderr.splitlines() if line.startswith("larank:   ")}
    for name, piece in table.columns.items():
        assert any(line.startswith(name) and piece in line for line in said), (name, piece, said)
    assert len(case.predicted.splitlines()) == len(case.frame)


def test_the_order_of_columns_does_not_matter_and_labels_need_not_be_there(case):
    if case.has_names:  # columns without names have nothing but their order
        shuffled_columns(case.frame).write_csv("shuffled.csv")
        assert larank("predict m shuffled.csv").stdout == case.predicted
        evaluated = larank(f"eval m {case.file}{case.options}"), larank("eval m shuffled.csv")
        assert len({result.stdout.splitlines()[2] for result in evaluated}) == 1
    case.frame.drop(models.load("m")[0].label).write_csv("new.csv", include_header=case.has_names)
    assert larank("predict m new.csv").stdout == case.predicted


def test_the_format_does_not_matter(case):
    case.frame.write_csv("other.tsv", separator="\t", include_header=case.has_names)
    case.frame.write_parquet("other.parquet")
    for kind in ("feather", "arrow"):
        case.frame.write_ipc(f"other.{kind}")
    for kind in ("tsv", "parquet", "feather", "arrow"):
        assert larank(f"predict m other.{kind}").stdout == case.predicted
    encoder, classifier = models.load("m")
    for kind in ("tsv", "parquet"):
        larank("train", f"other.{kind}", "n", "--label", encoder.label, "--quiet")
        np.testing.assert_array_equal(models.load("n")[1].coef_, classifier.coef_)


@every_table
def test_a_table_larger_than_memory_trains_as_one_in_memory(table, tmp_path):
    file = table.write(tmp_path).name
    steps = "--algorithm sgd --t0 100 --no-shuffle --max-iter 2"
    train, options = f"train {file}", f"{' '.join(['--label', table.label, *table.options])} {steps}"
    larank(f"{train} memory {options} --quiet")
    result = larank(f"{train} stream {options} --memory-limit {15_000 if 'gz' in file else 6000}")
    if "is read as a stream" not in result.stderr:
        pytest.skip("too small a file")
    memory, stream = models.load("memory"), models.load("stream")
    assert stream[0].summary() == memory[0].summary()
    frame = table_of(file, table)
    assert np.mean(stream.predict(frame) == memory.predict(frame)) > 0.9  # steps depend on the size of blocks


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A folder with a table, a model of it, and files that are wrong."""
    folder = tmp_path_factory.mktemp("people")
    with chdir(folder):
        Path("people.csv").write_text(passengers())
        larank("train people.csv m.larank --label Survived --quiet")
        Path("a.svm").write_text("1 1:1\n2 1:2\n")
        Path("one.csv").write_text("a\n1\n2\n")
        Path("same.csv").write_text("a,b\n1,1\n1,2\n")
        Path("prices.csv").write_text("a,price\n" + "".join(f"{i % 7},{i}.5\n" for i in range(10_050)))
        for name, content in (("empty", b""), ("text", b"hello"), ("zeros", b"PAR1" + b"\0" * 100 + b"PAR1")):
            for kind in ("parquet", "feather"):
                Path(f"{name}.{kind}").write_bytes(content)
    return folder


@pytest.fixture
def people(original, tmp_path):
    """Copy these files to where commands run; return the lines of the table."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    return (tmp_path / "people.csv").read_text().splitlines()


TRAIN = "train people.csv n.larank"
PREDICT = "predict m.larank people.csv"
DAMAGED = [f"{name}.{kind}" for name in ("empty", "text", "zeros") for kind in ("parquet", "feather")]
REFUSED = [
    (f"{TRAIN} --label survived", "people.csv, line 1: there is no column 'survived' for --label; "),
    (f"{TRAIN} --label survived", "; the columns are 'PassengerId', 'Surv"),
    (f"{TRAIN} --column age=text", "there is no column 'age' for --column"),
    (f"{PREDICT} --id Id", "people.csv, line 1: there is no column 'Id' for --id"),
    (f"{PREDICT} --proba", "m.larank holds a LinearMulticlassSVC, which has no probabilities"),
    ("predict m.larank a.svm", "takes tables with the columns 'PassengerId', 'Pclass'"),
    ("train prices.csv n.larank --label price", "prices.csv, column 'price': more than 10000 different labels"),
    *((f"train {file} n.larank", f"{file}: ") for file in DAMAGED),
    ("train gone.parquet n.larank", "gone.parquet: No such file"),
    ("train one.csv n.larank --label a", "one.csv, line 1: only one column, 'a'; is the delimiter right?"),
    ("train same.csv n.larank --label a", "same.csv, column 'a': all labels are '1', but there must be two classes"),
]


@pytest.mark.parametrize(("command", "said"), REFUSED)
@pytest.mark.usefixtures("people")
def test_what_does_not_fit_is_named(command, said):
    assert said in failure(command)
    assert not os.path.exists("n.larank")


# The line before which a line is put in, the line, what is said.
WRONG_LINES = [
    (9, "1,2,3", "line 10, column 'Name': the line ends before it; 3 cells"),
    (9, "1,,3,a,male,3,4,,S", "line 10, column 'Survived': there is no label"),
    (5, "1,0,3,a,male,inf,4,,S", "line 6, column 'Age': inf is not finite"),
    (99, '990,1,3,"A, Mr",male,old,7.5,,S', "line 100, column 'Age': 'old' is not a number, but 200 of 201 values are"),
]


@pytest.mark.parametrize(("place", "wrong", "said"), WRONG_LINES)
def test_a_damaged_table_is_refused_with_the_place(place, wrong, said, people):
    Path("new.csv").write_text("\n".join([*people[:place], wrong, *people[place:], ""]))
    line = failure("train new.csv n.larank --label Survived")
    assert f"new.csv, {said}" in line
    assert not os.path.exists("n.larank")
    if "old" in wrong:
        for command in ("predict", "eval"):
            assert f"new.csv, {said.split(', but')[0]}" in failure(f"{command} m.larank new.csv")
        assert "--column 'Age=category'" in line
        larank("train new.csv n.larank --label Survived --column Age=category --quiet")


def test_another_encoding_is_told_of(people):
    Path("old.csv").write_bytes("\n".join(people).encode().replace(b"Smith7,", b"Sm\xeeth7,"))
    line = failure("train old.csv n.larank --label Survived")
    assert "old.csv, line 9, column 'Name': the text is not UTF-8" in line
    assert "--encoding cp1252" in line
    larank("predict m.larank old.csv --encoding cp1252")


@pytest.mark.usefixtures("people")
def test_columns_that_are_missing_or_extra_are_named():
    frame, expected = table_of("people.csv"), larank(PREDICT).stdout
    frame.drop("Age", "Sex").write_csv("less.csv")
    said = "less.csv, line 1: the columns of training must be there, but there is no 'Sex', 'Age'"
    assert said in failure("predict m.larank less.csv")
    frame.with_columns(extra=polars.lit("x"), more=polars.lit(1)).write_csv("more.csv")
    found = larank("predict m.larank more.csv")
    assert found.stdout == expected
    warning = "larank: warning: columns that training has not seen are left out: 'extra', 'more'\n"
    assert found.stderr == warning
    frame.drop("PassengerId").write_csv("without.csv")  # it was left out, so it need not be there
    assert larank("predict m.larank without.csv").stdout == expected


@pytest.mark.usefixtures("people")
def test_training_reports_the_column_of_the_labels_and_its_classes():
    given = larank(f"{TRAIN} --label Survived").stderr
    assert "larank: the label is column 'Survived', with 2 classes: 0, 1\n" in given
    numbers("a.csv")
    by_default = larank("train a.csv n.larank").stderr
    assert "larank: the label is the last column, 'kind', with 3 classes: 0, 1, 2\n" in by_default
    assert "the label" not in larank("train a.csv n.larank --quiet").stderr


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
@pytest.mark.parametrize("options", ["", " --algorithm sgd --memory-limit 1000"])
def test_a_last_column_that_looks_like_no_label_needs_the_option(cells, said, options):
    lines = [f"{i % 2},{i % 7},{cell}\n" for i, cell in enumerate(cells)]
    Path("a.csv").write_text("kind,size,last column\n" + "".join(lines))
    wrong = " ".join(larank(f"train a.csv m{options}", code=2).stderr.split())
    assert f"a.csv, {'column' if 'line' not in said else ''}" in wrong
    assert said in wrong
    assert "Give --label COLUMN, one of 'kind', 'size', or --label 'last column' if that is right" in wrong
    assert not os.path.exists("m")
    larank("train a.csv m --label kind --quiet")
    if len(cells) <= 90 and "line" not in said and "fractions" not in said:
        larank("train a.csv m --quiet --label", "last column")


@pytest.mark.parametrize(
    "cells",
    [[[n % 2] for n in range(9)], [{"a": n % 2} for n in range(9)], [b"\xff", b"\xfe"] * 5],
    ids=["list", "struct", "bytes"],
)
def test_labels_that_are_not_words_or_numbers_are_refused(cells):
    polars.DataFrame({"size": range(len(cells)), "kind": cells}).write_parquet("a.parquet")
    said = "a.parquet, row 1, column 'kind': labels must be words or numbers, got values of type "
    assert said in " ".join(larank("train a.parquet m", code=2).stderr.split())
    assert said in failure("train a.parquet m --label kind")


@pytest.mark.parametrize("cells", ["ab", "0123456789", [str(n) for n in range(100)], ["1990", "2020"], ["1.0", "2.0"]])
def test_a_last_column_of_classes_needs_no_option(cells):
    rows = [f"{i % 7},{i % 3},{cells[i % len(cells)]}" for i in range(200)]
    Path("a.csv").write_text("\n".join(["a,b,kind", *rows]) + "\n")
    said = larank("train a.csv m --tol 0.5").stderr
    assert f"the label is the last column, 'kind', with {len(cells)} classes: " in said


@pytest.mark.usefixtures("people")
def test_predictions_are_csv_with_the_identifier_if_asked():
    larank("predict m.larank people.csv out.csv --id PassengerId")
    rows = rows_of(Path("out.csv").read_text())
    assert list(rows[0]) == ["PassengerId", "Survived"]
    assert [row["PassengerId"] for row in rows] == [str(n) for n in range(1, 241)]
    assert [row["Survived"] for row in rows] == larank(PREDICT).stdout.split()
    rows = rows_of(larank(f"{PREDICT} --id Name --scores").stdout)
    assert rows[0]["Name"] in ('Smith0, Mr. Jo "J" 0', 'Smith0, Mrs. Jo "J" 0')
    assert all((float(row["1"]) > 0) == (row["Survived"] == "1") for row in rows)


@pytest.mark.usefixtures("people")
def test_probabilities_are_there_where_the_model_has_them():
    larank("train people.csv p --label Survived --algorithm primal --quiet")
    rows = rows_of(larank("predict p people.csv --proba --csv").stdout)
    assert list(rows[0]) == ["Survived", "0", "1"]
    for row in rows:
        assert float(row["0"]) + float(row["1"]) == pytest.approx(1)
        assert (float(row["1"]) > 0.5) == (row["Survived"] == "1")
    assert "cannot act together" in larank("predict p people.csv --proba --scores", code=2).stderr
    assert "NAME=KIND" in larank(f"{TRAIN} --column Age=words", code=2).stderr


def test_a_pipe_is_read_once(people):
    for command in ("train pipe.csv n --label Survived -q", "predict m.larank pipe.csv"):
        os.mkfifo("pipe.csv")
        writer = threading.Thread(target=Path("pipe.csv").write_text, args=["\n".join(people)])
        writer.start()
        larank(command)
        writer.join(timeout=10)
        assert not writer.is_alive()
        os.remove("pipe.csv")


@pytest.mark.usefixtures("people")
def test_without_polars_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    assert "tables need the package polars; pip install 'larank[tables]' brings it" in failure(TRAIN)


def numbers(path, order=(0, 1, 2, 3)):
    random = np.random.default_rng(0)
    y = np.arange(300) % 3
    columns = {f"f{j}": (random.normal(size=300) + 3 * (y == j)).round(4) for j in range(3)} | {"kind": y}
    polars.DataFrame(columns).select([list(columns)[k] for k in order]).write_csv(path)


@pytest.mark.parametrize("options", ["", " --algorithm sgd --memory-limit 5000 --t0 100"])
def test_raw_tables_are_taken_as_they_are_and_matched_by_name(options):
    numbers("a.csv")
    numbers("b.csv", order=(3, 2, 0, 1))
    larank(f"train a.csv m --raw{options} --quiet")
    estimator, frame = models.load("m"), polars.read_csv("a.csv")
    assert estimator.feature_names_in_.tolist() == ["f0", "f1", "f2"]
    expected = estimator.predict(frame.drop("kind"))
    assert larank("predict m b.csv").stdout.split() == [str(label) for label in expected]
    error = np.mean(expected != frame["kind"].to_numpy())
    assert error_of(larank("eval m b.csv").stdout) == pytest.approx(error, abs=1e-4)
    frame.drop("f1").write_csv("less.csv")
    assert "less.csv, line 1: there is no column 'f1', which the model needs" in failure("predict m less.csv")
    Path("gap.csv").write_text("f0,f1,f2,kind\n1,2,3,0\n1,,3,1\n")
    for command in ("predict m gap.csv", "train gap.csv m --raw"):
        assert "gap.csv, line 3, column 'f1': there is no number" in failure(command)


@pytest.mark.usefixtures("people")
def test_columns_may_be_scaled_robustly_and_text_hashed():
    options = "--label 2 --scale robust --text hash --column Pclass=category --column Cabin=drop"
    said = larank(f"{TRAIN} {options}").stderr
    for piece in ("scaled (median", "hashed to 10000 features", "category: 1, 2, 3", "left out: as asked"):
        assert piece in said


@pytest.mark.usefixtures("people")
def test_a_test_file_and_a_report_go_with_tables():
    shuffled_columns(table_of("people.csv")).write_csv("test.csv")
    assert error_of(larank(f"{TRAIN} --label Survived --test test.csv --report r.html").stdout) <= 0.2
    assert "LinearMulticlassSVC on people.csv" in Path("r.html").read_text()
