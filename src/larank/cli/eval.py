"""`larank eval`: how often a model is wrong, and where."""

from __future__ import annotations

from typing import Annotated

import typer

from larank.cli.console import DataFile, Debug, ModelFile, ZeroBased, counted, print_rows, print_values, work
from larank.cli.examples import check_labels, compare, error_figures, load, read_examples
from larank.cli.tables import Delimiter, Encoding, Header, Reading, TableModel
from larank.data.tables import is_table
from larank.report import class_errors, confusions

EvalLabel = Annotated[
    str | None,
    typer.Option(
        "--label",
        metavar="COLUMN",
        help="Tables: the column of the labels; that of training by default.",
        show_default=False,
    ),
]

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def evaluate(
    model_file: ModelFile,
    data_file: DataFile,
    top: Annotated[int, typer.Option(min=1, help="Show so many classes and pairs, the worst first.")] = 10,
    label: EvalLabel = None,
    delimiter: Delimiter = None,
    header: Header = None,
    encoding: Encoding = "utf-8",
    zero_based: ZeroBased = False,
    debug: Debug = False,
) -> None:
    """Measure the error of a model on labelled examples.

    Shows the error in all, for every class, and the pairs of classes most often confused.

    \b
    Examples:
      larank eval people.larank test.csv
      larank eval letter.larank test.svm
      larank eval letter.larank test.svm --top 26
    """
    with work(debug):
        reading = Reading(delimiter, header, encoding)
        model = TableModel.of(load(model_file))
        if is_table(data_file):
            X, y = model.read_labelled(reading.file(data_file), label)
        else:
            reading.check_acts(data_file, label=label)
            X, y = read_examples(data_file, model.width_of_matrices(model_file), zero_based)
        estimator = model.classifier
        check_labels(data_file, y, estimator.classes_)
        y, predicted = compare(estimator, X, y)
        print_values(error_figures(y, predicted))
        by_class, pairs = class_errors(y, predicted), confusions(y, predicted)
        print_rows(by_class[:top], counted("Classes by error", len(by_class), top))
        if pairs:
            print_rows(pairs[:top], counted("Most confused", len(pairs), top))
