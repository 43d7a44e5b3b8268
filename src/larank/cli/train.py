"""`larank train`: a classifier from a file of examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer

from larank.cli.checkpoints import CheckpointTo, Every, Resume, checkpoint_arguments, remove_checkpoint
from larank.cli.console import (
    DataFile,
    Debug,
    NewModelFile,
    Quiet,
    Seed,
    ZeroBased,
    check_outputs,
    check_replaceable,
    exit_if_interrupted,
    print_line,
    print_values,
    say,
    say_if_stopped_early,
    work,
)
from larank.cli.examples import (
    check_labels,
    compare,
    error_figures,
    read_examples,
    stream_of,
    with_width,
    worst,
)
from larank.cli.options import Given, classifiers, with_options_of
from larank.data import models
from larank.report import Row, write_report
from larank.training import Result


def app(arguments: Sequence[str]) -> typer.Typer:
    """The command with the options of all classifiers; help on an algorithm has those of its own."""
    words = [word for argument in arguments for word in argument.split("=", 1)]  # also --algorithm=NAME
    asked = next((after for before, after in pairwise(words) if before == "--algorithm"), None)
    wants_help = not {"-h", "--help"}.isdisjoint(arguments)
    made = typer.Typer(add_completion=False, rich_markup_mode=None)
    made.command()(with_options_of(classifiers(), train, asked if wants_help else None))
    return made


def train(
    data_file: DataFile,
    model_file: NewModelFile,
    given: Given,
    seed: Seed = 0,
    features: Annotated[
        int | None, typer.Option(min=1, help="Width of sparse data, if other files use features DATA does not.")
    ] = None,
    zero_based: ZeroBased = False,
    test_file: Annotated[
        Path | None, typer.Option("--test", metavar="DATA", help="Measure the error on this file.")
    ] = None,
    report_file: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Write a one-page HTML report.")
    ] = None,
    checkpoint_file: CheckpointTo = None,
    every: Every = 30.0,
    resume: Resume = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train a classifier, linear or with a kernel, and write it to a file.

    Training ends when --stop says so, or at --max-iter, --time-limit or Ctrl-C; in every case the model is valid, it
    is saved, and its duality gap is shown if it has one. An option that cannot act with the others is an error. With
    --algorithm sgdqn a file that might not fit --memory-limit is not read as a whole, but as a stream. With
    --checkpoint a training that was killed goes on by the same command with --resume.

    \b
    Examples:
      larank train letter.svm letter.larank
      larank train letter.csv letter.larank --algorithm larank --gamma 0.025 -C 10 --test test.csv
      larank train letter.csv letter.larank --algorithm mcsvm --gamma 0.025 -C 10 --tol 0.01
      larank train adult.svm adult.larank --algorithm lasvm --gamma 0.005 -C 100 --test adult.t.svm
      larank train news.svm.gz news.larank -C 0.5 --formulation weston-watkins
      larank train letter.csv letter.larank --test test.csv --report letter.html
      larank train big.npz big.larank --tol 0.01 --time-limit 60
      larank train huge.svm.gz huge.larank --algorithm sgdqn --loss log_loss
      larank train big.npz big.larank --checkpoint big.checkpoint --resume
    """
    with work(debug):
        estimator = given.estimator(random_state=seed, verbose=0 if quiet else 1)
        checkpoints = checkpoint_arguments(estimator, checkpoint_file, every, resume)
        check_outputs([model_file, report_file, checkpoint_file], [data_file, test_file])
        check_replaceable(model_file)
        stream = stream_of(data_file, estimator, features, zero_based)
        if stream is None:
            X, y = read_examples(data_file, features, zero_based)
            test = None if test_file is None else read_examples(test_file, X.shape[1], zero_based)
            if test_file is not None and test is not None:
                check_labels(test_file, test[1], y)
            estimator.fit(X, y, **checkpoints)
            n_examples = len(y)
        else:
            if not quiet:
                say(f"{data_file} is read as a stream: in memory it might take more than --memory-limit allows")
            test = None if test_file is None else read_examples(test_file, features, zero_based)
            estimator.fit(stream)
            n_examples = _examples_of_a_pass(estimator.result_)
        models.save(estimator, model_file)
        remove_checkpoint(estimator, checkpoint_file)
        say_if_stopped_early(estimator, model_file)
        figures: dict[str, object] = {}
        tables: dict[str, Sequence[Row]] = {}
        if test_file is not None and test is not None:
            if stream is not None:  # the classes are known by now
                check_labels(test_file, test[1], estimator.classes_)
            compared = compare(estimator, with_width(test_file, test[0], estimator.n_features_in_), test[1])
            figures, tables = error_figures(*compared), worst(*compared)
        if report_file is not None:
            _report(report_file, estimator, data_file, n_examples, figures, tables)
        if not quiet:
            print_values({**figures, **estimator.result_.figures()})
            print_line(f"model written to {model_file}")
            if report_file is not None:
                print_line(f"report written to {report_file}")
        exit_if_interrupted(estimator)


def _examples_of_a_pass(result: Result) -> int:
    """How many a stream has, by the visits to them and the passes over it that were made."""
    return round(result.operations["visits"] / result.iterations) if result.iterations > 0 else 0


def _report(
    path: Path,
    estimator: Any,
    data_file: Path,
    n_examples: int,
    figures: Mapping[str, object],
    tables: Mapping[str, Sequence[Row]],
) -> None:
    result = estimator.result_
    parameters = estimator.get_params()
    row: dict[str, object] = {name: parameters[name] for name in ("formulation", "kernel", "C") if name in parameters}
    if figures:
        row["test error"] = figures["test error"]
    row |= {"objective": result.primal, "duality gap": result.gap, "seconds": f"{result.seconds:.2f}"}
    described = {
        "file": data_file.name,
        "training examples": n_examples,
        "features": estimator.n_features_in_,
        "classes": len(estimator.classes_),
    }
    described |= {name: value for name, value in figures.items() if name == "test examples"}
    title = f"{type(estimator).__name__} on {data_file.name}"
    write_report(path, title, [row], result, parameters=parameters, data=described, tables=tables)
