"""`larank predict` and `larank eval`: what a model says about examples, and how often it is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from larank.cli.console import (
    DataFile,
    Debug,
    ModelFile,
    ZeroBased,
    check_outputs,
    counted,
    print_rows,
    print_values,
    work,
    write_text,
)

__all__ = ["evaluate", "predict"]


def predict(
    model_file: ModelFile,
    data_file: DataFile,
    output: Annotated[
        Path | None,
        typer.Argument(metavar="OUT", help="Where to write; standard output if left away.", show_default=False),
    ] = None,
    scores: Annotated[
        bool,
        typer.Option(
            "--scores",
            help="Tab-separated columns: the label, then the score of every class; with a heading.",
        ),
    ] = False,
    zero_based: ZeroBased = False,
    debug: Debug = False,
) -> None:
    """Predict the class of every example, one label per line.

    The labels in DATA are not used. Sparse DATA may lack the last features of the model, but not have more.

    \b
    Examples:
      larank predict letter.larank new.svm
      larank predict letter.larank new.svm labels.txt
      larank predict letter.larank new.svm --scores > scores.tsv
    """
    with work(debug):
        if output is not None:
            check_outputs([output], [model_file, data_file])
        from larank.cli.examples import load, read_examples

        estimator = load(model_file)
        X, _ = read_examples(data_file, estimator.n_features_in_, zero_based)
        write_text(output, _score_lines(estimator, X) if scores else _label_lines(estimator, X))


def evaluate(
    model_file: ModelFile,
    data_file: DataFile,
    top: Annotated[int, typer.Option(min=1, help="Show so many classes and pairs, the worst first.")] = 10,
    zero_based: ZeroBased = False,
    debug: Debug = False,
) -> None:
    """Measure the error of a model on labelled examples.

    Shows the error in all, for every class, and the pairs of classes most often confused.

    \b
    Examples:
      larank eval letter.larank test.svm
      larank eval letter.larank test.svm --top 26
    """
    with work(debug):
        from larank.cli.examples import check_labels, compare, error_figures, load, read_examples
        from larank.report import class_errors, confusions

        estimator = load(model_file)
        X, y = read_examples(data_file, estimator.n_features_in_, zero_based)
        check_labels(data_file, y, estimator.classes_)
        y, predicted = compare(estimator, X, y)
        print_values(error_figures(y, predicted))
        by_class, pairs = class_errors(y, predicted), confusions(y, predicted)
        print_rows(by_class[:top], counted("Classes by error", len(by_class), top))
        if pairs:
            print_rows(pairs[:top], counted("Most confused", len(pairs), top))


def _label_lines(estimator: Any, X: Any) -> Iterator[str]:
    from larank.cli.examples import slices
    from larank.report import format_label

    for piece in slices(X):
        yield "".join(f"{format_label(label)}\n" for label in estimator.predict(piece))


def _score_lines(estimator: Any, X: Any) -> Iterator[str]:
    """With two classes there is one score, positive for the second."""
    from larank.cli.examples import slices
    from larank.report import format_label

    scored = estimator.classes_[1:] if len(estimator.classes_) == 2 else estimator.classes_
    yield "\t".join(["label", *map(format_label, scored)]) + "\n"
    for piece in slices(X):
        scores = estimator.decision_function(piece).reshape(piece.shape[0], -1)
        for label, row in zip(estimator.predict(piece), scores, strict=True):
            yield "\t".join([format_label(label), *(f"{score:.9g}" for score in row)]) + "\n"
