"""What commands write to a terminal has no control characters, and what they write for programs is exact."""

import csv
import os
import pty
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
from commandline import larank, status_of

from larank import LinearMulticlassSVC, SequenceTagger, save
from larank.data import models
from larank.data.tables import TableFile

EVIL = "\x1b[31mred\x07\r\x9b2J\u202e[bold]:smile:"
SHOWN = "\\x1b[31mred\\x07\\r\\x9b2J\\u202e[bold]:smile:"
LABELS = ["plain", 'quo"te', "com,ma", "ta\tb", "line\nbreak", "carriage\rreturn", "both\r\nends", "semi;colon", EVIL]


def run(*arguments, code=0):
    """Run a command and check that what it writes is one that a terminal shows as it is."""
    result = larank(*arguments, code=code)
    for text in (result.stdout, result.stderr):
        assert all(each.isprintable() or each in "\n\t" for each in text), text
    return result


def table(path, labels, column="kind"):
    """Examples of which each label has a feature of its own."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file, quoting=csv.QUOTE_ALL)
        rows.writerow(["n", *(f"f{k}" for k in range(len(labels))), column])
        for n in range(12 * len(labels)):
            k = n % len(labels)
            rows.writerow([n, *(5 * np.eye(len(labels))[k] + n % 5), labels[k]])
    return path


@pytest.fixture
def terminal(monkeypatch):
    import_module("larank.cli.info")  # it keeps the function that it imports first
    monkeypatch.setattr("larank.cli.console.is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "300")


@pytest.mark.usefixtures("terminal")
def test_commands_escape_labels_columns_and_file_names(tmp_path):
    folder = tmp_path / EVIL
    folder.mkdir()
    data = table(folder / f"{EVIL}.csv", [EVIL, "b", "c"], column=f"{EVIL}\n")
    model, wrong = folder / "m.larank", table(folder / "wrong.csv", ["b", EVIL, "c"], column=f"{EVIL}\n")
    trained = run("train", data, model, "--test", wrong, "--report", folder / "r.html")
    assert SHOWN[:8] in trained.stderr
    assert f"model written to {tmp_path}/{SHOWN}/m.larank\n" in trained.stdout
    assert [SHOWN, "b", "12"] in [line.split() for line in run("eval", model, wrong).stdout.splitlines()]
    assert SHOWN in run("info", model).stdout
    assert run("predict", model, data, "--csv").stdout.splitlines()[1] == f'"{SHOWN}"'
    assert SHOWN in run("predict", model, data, "--scores", "--csv").stdout
    for arguments in (["eval", data, data], ["info", folder / "gone"], ["predict", model, folder / "gone.csv"]):
        assert SHOWN.replace("\\r", " ") in run(*arguments, code=1).stderr
    for wanted in (["train", data, data], ["train", data, model, EVIL], ["train", f"--{EVIL}"], [EVIL]):
        assert SHOWN[:8] in run(*wanted, code=2).stderr
    for option in (["--label", f"{EVIL}?"], ["--column", f"{EVIL}?=number"]):
        assert SHOWN in run("train", data, model, *option, code=1).stderr
    assert SHOWN in run("predict", model, data, "--id", f"{EVIL}?", code=1).stderr


@pytest.mark.usefixtures("terminal")
def test_tagging_escapes_labels_and_file_names(tmp_path):
    evil = EVIL.replace("\r", "")
    folder = tmp_path / evil
    folder.mkdir()
    data, model = folder / "train.txt", folder / "m.larank"
    data.write_text(f"the DT {evil}\ndog NN I\n\n" * 4)
    shown = SHOWN.replace("\\r", "")
    assert shown in run("tag", "train", data, model).stdout
    (folder / "wrong.txt").write_text(f"the DT I\ndog NN {evil}\n\n" * 4)
    assert run("tag", "eval", model, folder / "wrong.txt").stdout.count(shown) >= 2
    assert shown in run("tag", "apply", model, data, "--confidence").stdout
    assert shown in run("tag", "apply", model, folder / "gone.txt", code=1).stderr
    assert shown in run("parse", "train", folder / "gone.txt", model, code=1).stderr
    assert shown in run("label-concepts", "train", folder / "a.csv", folder / "b.txt", model, code=1).stderr


def test_what_is_written_for_programs_is_exact(tmp_path):
    data, model, out = table(tmp_path / "a.csv", LABELS), tmp_path / "m.larank", tmp_path / "out.csv"
    run("train", data, model, "--quiet")
    frame = TableFile(data).read().frame
    expected = models.load(model).predict(frame)
    assert set(expected) == set(LABELS)
    larank("predict", model, data, out, "--id", "n", "--scores")
    assert larank("predict", model, data, "--id", "n", "--scores").stdout_bytes == out.read_bytes()
    read_back = TableFile(out).read().frame
    assert read_back["kind"].to_list() == expected.tolist()
    assert read_back["n"].to_list() == frame["n"].to_list()
    assert read_back.columns == ["n", "kind", *sorted(LABELS)]
    with out.open(newline="") as file:
        assert [row[1] for row in csv.reader(file)][1:] == expected.tolist()
    frame.with_columns(read_back["kind"]).write_parquet(tmp_path / "predicted.parquet")
    errors = run("eval", model, tmp_path / "predicted.parquet").stdout.splitlines()[1]
    assert errors.split() == ["test", "errors", "0"]


@pytest.mark.parametrize("label", ["a\nb", "a\r", "a\u2028b", "a\x85"])
@pytest.mark.parametrize("options", [[], ["--scores"]])
def test_labels_with_line_breaks_are_refused_where_each_example_is_a_line(label, options, tmp_path):
    X, y = np.eye(3).repeat(4, axis=0), np.array([label, "b", "c"]).repeat(4)
    save(LinearMulticlassSVC(random_state=0).fit(X, y), tmp_path / "m.larank")
    (tmp_path / "a.csv").write_text("".join(",".join(map(str, row)) + ",c\n" for row in X))
    line = run("predict", tmp_path / "m.larank", tmp_path / "a.csv", *options, code=1).stderr
    assert f"the label {label!r} has a line break, so it is not one line; --csv writes it in quotes" in line
    found = larank("predict", tmp_path / "m.larank", tmp_path / "a.csv", "--csv", *options)
    rows = list(csv.reader(found.stdout_bytes.decode().splitlines(keepends=True)))
    assert len(rows) == 13 or label not in ("a\nb", "a\r")  # splitlines knows more line breaks than csv


def test_a_tagger_whose_labels_have_line_breaks_writes_no_columns(tmp_path):
    save(SequenceTagger(random_state=0).fit([[("a",), ("b",)]] * 3, [["x\ny", "z"]] * 3), tmp_path / "m.larank")
    (tmp_path / "a.txt").write_text("a\nb\n")
    line = run("tag", "apply", tmp_path / "m.larank", tmp_path / "a.txt", code=1).stderr
    assert "the label 'x\\ny' has a line break" in line


def test_a_terminal_gets_escapes_and_a_pipe_does_not(tmp_path):
    evil = EVIL.replace("\r", "")
    data, model = table(tmp_path / "a.csv", [evil, "b"]), tmp_path / "m.larank"
    run("train", data, model, "--quiet")
    assert larank("predict", model, data).stdout_bytes.decode().splitlines()[0] == evil
    command = [sys.executable, "-c", "from larank.cli import main; main()", "predict", str(model), str(data)]
    shell, own = pty.openpty()
    with subprocess.Popen(command, stdout=own) as child:
        os.close(own)
        seen = os.read(shell, 10_000).decode()
    os.close(shell)
    assert child.returncode == 0
    assert seen.splitlines()[0] == SHOWN.replace("\\r", "")


def test_a_traceback_is_escaped_too(tmp_path, capsys):
    (tmp_path / EVIL).write_text("no model")
    assert status_of("info", tmp_path / EVIL, "--debug") == 1
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "\x1b" not in said


def test_tables_in_a_pipe_are_not_cut(tmp_path):
    long = "a label of many words " * 9
    data, wrong = table(tmp_path / "a.csv", [long, "b"]), table(tmp_path / "b.csv", ["b", long])
    run("train", data, tmp_path / "m.larank", "--quiet")
    assert run("eval", tmp_path / "m.larank", wrong).stdout.count(long.strip()) == 3  # once by class, twice by pair
