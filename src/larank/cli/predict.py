"""`larank predict`: the class of every example of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from larank.cli.console import DataFile, Debug, ModelFile, ZeroBased, check_outputs, work, write_text
from larank.cli.examples import load, read_examples, slices
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
    scores: Annotated[
        bool, typer.Option("--scores", help="Tab-separated columns: the label, then the score of every class.")
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
        estimator = load(model_file)
        X, _ = read_examples(data_file, estimator.n_features_in_, zero_based)
        write_text(output, _score_lines(estimator, X) if scores else _label_lines(estimator, X))


def _label_lines(estimator: Any, X: Any) -> Iterator[str]:
    for piece in slices(X):
        yield "".join(f"{format_label(label)}\n" for label in estimator.predict(piece))


def _score_lines(estimator: Any, X: Any) -> Iterator[str]:
    """With two classes there is one score, positive for the second."""
    scored = estimator.classes_[1:] if len(estimator.classes_) == 2 else estimator.classes_
    yield "\t".join(["label", *map(format_label, scored)]) + "\n"
    for piece in slices(X):
        scores = estimator.decision_function(piece).reshape(piece.shape[0], -1)
        for label, row in zip(estimator.predict(piece), scores, strict=True):
            yield "\t".join([format_label(label), *(f"{score:.9g}" for score in row)]) + "\n"
