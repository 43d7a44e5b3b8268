"""`larank demo`: LaRank in one pass on UCI LETTER, beside its paper and scikit-learn's SVC."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.svm import SVC

from larank import LaRankClassifier, LinearMulticlassSVC, on_interrupt, save
from larank.cli.console import Debug, console, print_line, print_rows, say, work
from larank.cli.examples import worst
from larank.data import load_letter
from larank.report import Row, write_report

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_NOTES = (
    "LaRank and SVC: raw values 0 to 15, rbf kernel with gamma = 0.025, C = 10. The paper's row is from its table 2, "
    "with an interpreter and a computer of 2007.",
    "SVC solves a problem for every pair of classes, so it has no dual to compare. The linear model: values divided "
    "by 15, C = 1.",
    "Kernels: kernel values computed for training. Patterns: support patterns kept. Seconds are those of fit, for "
    "LaRank with its certificate, and of predict on the test examples.",
)
# [larank] table 2
_PAPER = {"model": "LaRank x1, paper", "error": "2.80%", "dual": "5226", "kernels": "55M", "train s": "940"}


@app.command()
def demo(
    output: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the model and the report.")] = Path("demo"),
    debug: Debug = False,
) -> None:
    """Train LaRank in one pass on UCI LETTER, beside its paper and scikit-learn's SVC.

    The data come with the package. Takes well under a minute, prints a small table and writes a model file and a
    one-page report with the convergence plot.

    \b
    Example:
      larank demo --output letter-demo
    """
    with work(debug), on_interrupt("raise"):
        output.mkdir(parents=True, exist_ok=True)
        _run_demo(output)


def _run_demo(folder: Path) -> None:
    letter = load_letter()
    train, test = letter.X_train.astype(np.float32), letter.X_test.astype(np.float32)
    shape = f"{len(train)} training and {len(test)} test examples, {train.shape[1]} features"
    print_line(f"UCI LETTER: {shape}, {len(np.unique(letter.y_train))} classes")
    ours = LaRankClassifier("rbf", gamma=0.025, C=10.0, random_state=0, verbose=1)
    row, predicted = _demonstrated("LaRank, one pass", ours, (train, letter.y_train, test, letter.y_test))
    result = ours.result_
    row |= {"dual": f"{result.dual:.0f}", "kernels": f"{result.kernel_values / 1e6:.0f}M"}
    row["patterns"] = result.support_patterns
    say("training scikit-learn's SVC")
    svc = SVC(kernel="rbf", gamma=0.025, C=10.0)
    svc_row, _ = _demonstrated("scikit-learn SVC", svc, (train, letter.y_train, test, letter.y_test))
    linear = LinearMulticlassSVC(random_state=0, verbose=1)
    linear_row, _ = _demonstrated("larank, linear", linear, (train / 15, letter.y_train, test / 15, letter.y_test))
    rows: list[Row] = [row, _PAPER, svc_row | {"patterns": len(svc.support_)}, linear_row]

    save(ours, folder / "model.larank")
    write_report(
        folder / "report.html",
        "LaRank in one pass on UCI LETTER",
        rows,
        result,
        parameters=ours.get_params(),
        data={"data": "UCI LETTER (CC BY 4.0)", "training examples": len(train), "test examples": len(test)}
        | {"features": train.shape[1], "classes": len(ours.classes_)},
        tables=worst(letter.y_test, predicted),
        notes=_NOTES,
    )
    print_rows(rows)
    for note in _NOTES:
        console().print(note, style="dim")
    print_line()
    print_line(f"model   {folder / 'model.larank'}")
    print_line(f"report  {folder / 'report.html'}")


def _demonstrated(name: str, estimator: Any, split: tuple[Any, ...]) -> tuple[dict[str, object], NDArray[Any]]:
    """Train and test; return a row of the table, with columns still empty, and the predictions."""
    X, y, X_test, y_test = split
    began = time.perf_counter()
    estimator.fit(X, y)
    trained = time.perf_counter()
    predicted = estimator.predict(X_test)
    seconds = time.perf_counter() - trained
    row: dict[str, object] = {"model": name, "error": f"{np.mean(predicted != y_test):.2%}"}
    row |= dict.fromkeys(("dual", "kernels", "patterns"))
    return row | {"train s": f"{trained - began:.2f}", "predict s": f"{seconds:.2f}"}, predicted
