"""`larank predict`: the class of every example of a file."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple

import typer

from larank.cli.console import DataFile, Debug, ModelFile, ZeroBased, check_outputs, work, write_text
from larank.cli.examples import check_fit_in_lines, load, read_examples, slices
from larank.cli.tables import Delimiter, Encoding, Header, Reading, TableModel
from larank.data.tables import TableFile, is_table
from larank.report import format_label

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def predict(
    model_file: ModelFile,
    data_file: DataFile,
    output: Annotated[
        Path | None,
        typer.Argument(metavar="OUT", help="Where to write; standard output if left away.", show_default=False),
    ] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Also the score of every class, in columns.")] = False,
    proba: Annotated[
        bool, typer.Option("--proba", help="Also the probability of every class, in columns, if the model has them.")
    ] = False,
    identifier: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="COLUMN", help="Tables: begin every row with this column of DATA.", show_default=False
        ),
    ] = None,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Write CSV with a line of names; so it is with --id, or if OUT ends in .csv.")
    ] = False,
    delimiter: Delimiter = None,
    header: Header = None,
    encoding: Encoding = "utf-8",
    zero_based: ZeroBased = False,
    debug: Debug = False,
) -> None:
    """Predict the class of every example, one label per line.

    DATA needs no labels if it is a table, and labels in DATA are not used. Tables have the columns of training by name,
    in any order. Sparse DATA may lack the last features of the model, but not have more.

    With --scores or --proba, columns are separated by tabs; with --csv by commas. Labels with line breaks are refused
    without --csv, which writes them in quotes. Characters that control a terminal are escaped on one, and only there.

    \b
    Examples:
      larank predict people.larank new.csv
      larank predict people.larank new.csv out.csv --id PassengerId --proba
      larank predict letter.larank new.svm labels.txt
      larank predict letter.larank new.svm --scores > scores.tsv
    """
    with work(debug):
        if scores and proba:
            raise typer.BadParameter("--scores and --proba cannot act together; ask for one of them")
        if output is not None:
            check_outputs([output], [model_file, data_file])
        reading = Reading(delimiter, header, encoding)
        if not is_table(data_file):
            reading.check_acts(data_file, id=identifier)
        model = TableModel.of(load(model_file))
        if proba and not hasattr(model.classifier, "predict_proba"):
            raise ValueError(
                f"{model_file} holds a {type(model.classifier).__name__}, which has no probabilities; those of "
                "`--algorithm primal` and of `--algorithm sgd --loss log_loss` have"
            )
        if is_table(data_file):
            pieces = _table_pieces(model, reading.file(data_file), identifier)
        else:
            X, _ = read_examples(data_file, model.width_of_matrices(model_file), zero_based)
            pieces = (_Piece(piece, None) for piece in slices(X))
        as_csv = as_csv or identifier is not None or (output is not None and output.suffix.lower() == ".csv")
        if not as_csv:
            check_fit_in_lines(model_file, model.classifier.classes_, "--csv writes it in quotes")
        if not (scores or proba or as_csv):
            write_text(output, _label_lines(model.classifier, pieces))
            return
        asked = "predict_proba" if proba else "decision_function" if scores else None
        names = _names(model, asked, identifier)
        write_text(output, _table_lines(model.classifier, pieces, names, asked, "," if as_csv else "\t"))


class _Piece(NamedTuple):
    """Some examples, and the column that is to stand before what is predicted of them."""

    X: Any
    identifiers: Sequence[str] | None


def _table_pieces(model: TableModel, file: TableFile, identifier: str | None) -> Iterator[_Piece]:
    for block in model.blocks(file):
        identifiers = None
        if identifier is not None:
            if identifier not in block.frame.columns:
                known = ", ".join(map(repr, block.frame.columns[:20]))
                raise ValueError(f"{file.path}, line 1: there is no column {identifier!r} for --id; it has {known}")
            identifiers = ["" if each is None else str(each) for each in block.frame[identifier].to_list()]
        X = model.features(block)
        first = 0
        for piece in slices(X):
            last = first + piece.shape[0]
            yield _Piece(piece, None if identifiers is None else identifiers[first:last])
            first = last


def _names(model: TableModel, asked: str | None, identifier: str | None) -> list[str]:
    """Of the columns; with two classes there is one score, positive for the second."""
    classes = model.classifier.classes_
    told = [] if asked is None else classes[1:] if asked == "decision_function" and len(classes) == 2 else classes
    label = "label" if model.encoder is None or not model.encoder.label else model.encoder.label
    return [*([] if identifier is None else [identifier]), label, *map(format_label, told)]


def _label_lines(estimator: Any, pieces: Iterator[_Piece]) -> Iterator[str]:
    for piece in pieces:
        yield "".join(f"{format_label(label)}\n" for label in estimator.predict(piece.X))


def _table_lines(
    estimator: Any, pieces: Iterator[_Piece], names: Sequence[str], asked: str | None, delimiter: str
) -> Iterator[str]:
    text = _lines([names], delimiter)  # is written with the first rows, so that what fails at once writes nothing
    for piece in pieces:
        columns: list[Sequence[str]] = [[format_label(label) for label in estimator.predict(piece.X)]]
        if piece.identifiers is not None:
            columns.insert(0, piece.identifiers)
        if asked is not None:
            numbers = getattr(estimator, asked)(piece.X).reshape(piece.X.shape[0], -1)
            columns += [[f"{number:.9g}" for number in column] for column in numbers.T]
        yield text + _lines(zip(*columns, strict=True), delimiter)
        text = ""
    yield text


def _lines(rows: Any, delimiter: str) -> str:
    lines: list[str] = []
    # Cells are quoted if they have characters of the line terminator: with "\n" alone, a "\r" in a label would not be.
    target = SimpleNamespace(write=lambda line: lines.append(line.removesuffix("\r\n") + "\n"))
    csv.writer(target, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    return "".join(lines)
