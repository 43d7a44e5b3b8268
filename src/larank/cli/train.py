"""`larank train`: a classifier from a file of examples."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from larank.cli.checkpoints import CheckpointTo, Every, Resume, checkpoint_arguments, remove_checkpoint
from larank.cli.console import (
    Certify,
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
    MatrixData,
    check_labels,
    compare,
    error_figures,
    is_read_as_stream,
    with_width,
    worst,
)
from larank.cli.options import (
    ALGORITHMS,
    CommandOfOneAlgorithm,
    Given,
    about_algorithms,
    algorithm_in,
    classifier,
    with_options_of,
)
from larank.cli.tables import Delimiter, Encoding, Header, Label, Reading, TableData, kinds_of
from larank.data import models
from larank.data.tables import is_table
from larank.report import Row, write_report
from larank.tables.columns import KINDS
from larank.tables.encoder import TableEncoder
from larank.training import Result

Scale = StrEnum("Scale", ["standard", "robust", "none"])
Text = StrEnum("Text", ["tfidf", "hash"])


def app(arguments: Sequence[str]) -> typer.Typer:
    """Return the command with the options of the algorithm that the arguments name."""
    made = typer.Typer(add_completion=False, rich_markup_mode=None)
    kind = classifier(algorithm_in(arguments))
    made.command(cls=CommandOfOneAlgorithm)(with_options_of(kind, train))
    return made


def train(
    data_file: DataFile,
    model_file: NewModelFile,
    given: Given,
    named: Annotated[str, typer.Option("--algorithm", metavar="NAME", help=about_algorithms())] = next(
        iter(ALGORITHMS)
    ),
    seed: Seed = 0,
    features: Annotated[
        int | None, typer.Option(min=1, help="Width of sparse data, if other files use features DATA does not.")
    ] = None,
    label: Label = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Tables: take columns as they are; all of them must be numbers.")
    ] = False,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=KIND",
            help=f"Tables: a column is {', '.join(KINDS[:-2])} or {KINDS[-2]}, or is left out (drop); may be repeated.",
            show_default=False,
        ),
    ] = None,
    scale: Annotated[Scale, typer.Option(help="Tables: what numbers are divided by.")] = Scale.standard,
    text: Annotated[Text, typer.Option(help="Tables: how the words of text are weighed.")] = Text.tfidf,
    delimiter: Delimiter = None,
    header: Header = None,
    encoding: Encoding = "utf-8",
    zero_based: ZeroBased = False,
    test_file: Annotated[
        Path | None, typer.Option("--test", metavar="DATA", help="Measure the error on this file.")
    ] = None,
    report_file: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Write a one-page HTML report.")
    ] = None,
    certify: Certify = None,
    checkpoint_file: CheckpointTo = None,
    every: Every = 30.0,
    resume: Resume = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train a classifier, linear or with a kernel, and write it to a file.

    DATA is a table (.csv, .tsv, .parquet, .arrow, .feather) with the label in one column and anything in the others, or
    a matrix (.svm, .npz). What becomes of each column of a table is said before training, and the model takes tables
    with the same columns in any order.

    Training ends at the gap --tol, after --max-iter passes, at --time-limit or at Ctrl-C; in every case the model is
    valid, it is saved, and its duality gap is shown if it has one. Options that cannot be combined are an error. With
    --algorithm sdm or sgd a file that might not fit --memory-limit is not read as a whole, but in blocks. With
    --checkpoint a training that was killed goes on by the same command with --resume.

    \b
    Examples:
      larank train people.csv people.larank --label species
      larank train letter.svm letter.larank
      larank train letter.csv letter.larank --algorithm larank --gamma 0.025 -C 10 --test test.csv
      larank train letter.csv letter.larank --algorithm mcsvm --gamma 0.025 -C 10 --tol 0.01
      larank train adult.svm adult.larank --algorithm lasvm --gamma 0.005 -C 100 --test adult.t.svm
      larank train news.svm.gz news.larank -C 0.5 --formulation weston-watkins
      larank train letter.csv letter.larank --test test.csv --report letter.html
      larank train big.npz big.larank --tol 0.01 --time-limit 60
      larank train large.svm large.larank --tol 0.01 --memory-limit 1e9
      larank train huge.svm.gz huge.larank --algorithm sgd --loss log_loss
      larank train big.npz big.larank --checkpoint big.checkpoint --resume
    """
    with work(debug):
        data = _data(
            data_file,
            Reading(delimiter, header, encoding),
            {"label": label, "raw": raw, "column": column or []},
            TableEncoder().set_params(scale=scale.value, text=text.value),
            MatrixData(data_file, features, zero_based),
        )
        estimator = given.estimator(random_state=seed, verbose=0 if quiet else 1)
        arguments = checkpoint_arguments(estimator, checkpoint_file, every, resume)
        if certify is not None:
            if "certify" not in inspect.signature(estimator.fit).parameters:
                raise typer.BadParameter(f"--certify is not used with --algorithm {named}")
            arguments["certify"] = certify
        check_outputs([model_file, report_file, checkpoint_file], [data_file, test_file])
        check_replaceable(model_file)
        is_stream = is_read_as_stream(data_file, estimator)
        if is_stream and checkpoint_file is not None:
            raise typer.BadParameter(f"--checkpoint needs {data_file} in memory: raise --memory-limit")
        if is_stream and not quiet:
            say(f"{data_file} is read as a stream: in memory it might take more than --memory-limit allows")
        X, y = (data.stream(), None) if is_stream else data.read()
        test = None if test_file is None else data.read_test(test_file)
        if test_file is not None and test is not None and y is not None:
            check_labels(test_file, test[1], y)
        if not quiet:
            data.say_columns()
        estimator.fit(X, y, **arguments)
        models.save(data.model(estimator), model_file)
        remove_checkpoint(estimator, checkpoint_file)
        say_if_stopped_early(estimator, model_file)
        figures: dict[str, object] = {}
        tables: dict[str, Sequence[Row]] = {}
        if test_file is not None and test is not None:
            if is_stream:  # the classes are known by now
                check_labels(test_file, test[1], estimator.classes_)
            compared = compare(estimator, with_width(test_file, test[0], estimator.n_features_in_), test[1])
            figures, tables = error_figures(*compared), worst(*compared)
        if report_file is not None:
            n_examples = _examples_of_a_pass(estimator.result_) if y is None else len(y)
            _report(report_file, estimator, data_file, n_examples, figures, tables)
        if not quiet:
            print_values({**figures, **estimator.result_.figures()})
            print_line(f"model written to {model_file}")
            if report_file is not None:
                print_line(f"report written to {report_file}")
        exit_if_interrupted(estimator)


def _data(
    path: Path, reading: Reading, options: Mapping[str, Any], encoder: TableEncoder, matrix: MatrixData
) -> MatrixData | TableData:
    """A table or a matrix, by the name of the file; options of the other one are refused."""
    if not is_table(path):
        reading.check_acts(path, **options, scale=encoder.scale != "standard", text=encoder.text != "tfidf")
        return matrix
    if matrix.zero_based or matrix.n_features is not None:
        raise typer.BadParameter(f"--zero-based and --features are for svmlight files; {path} is a table")
    encoder.set_params(kinds=kinds_of(options["column"]))
    return TableData(reading, path, options["label"], None if options["raw"] else encoder)


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
    if result.has_objective:
        row |= {"objective": result.primal, "relative gap": f"{result.relative_gap:.2e}"}
    row["seconds"] = f"{result.seconds:.2f}"
    described = {
        "file": data_file.name,
        "training examples": n_examples,
        "features": estimator.n_features_in_,
        "classes": len(estimator.classes_),
    }
    described |= {name: value for name, value in figures.items() if name == "test examples"}
    title = f"{type(estimator).__name__} on {data_file.name}"
    write_report(path, title, [row], result, parameters=parameters, data=described, tables=tables)
