"""The command line: `larank train`, `predict`, `eval`, `info`, `tag` and `demo`.

Results go to standard output; progress, warnings and errors to standard error. Exit status: 0 done, 1 the
work failed (one line says why), 2 wrong usage.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer
from scipy import sparse
from sklearn.svm import SVC

from larank.cli import tag
from larank.cli.console import (
    Debug,
    Quiet,
    Seconds,
    Seed,
    check_outputs,
    check_replaceable,
    console,
    counted,
    positive,
    print_line,
    print_rows,
    print_values,
    say,
    say_if_stopped_early,
    work,
)
from larank.data import load_letter, models, read
from larank.data.files import atomic_write
from larank.linear.sdm import LinearMulticlassSVC
from larank.report import (
    Row,
    certificate,
    class_errors,
    confusions,
    format_label,
    write_report,
)
from larank.training.result import Result

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(tag.app, name="tag")

_ROWS_AT_ONCE = 16384


class Algorithm(StrEnum):
    """Which estimator is trained."""

    sdm = "sdm"
    larank = "larank"
    mcsvm = "mcsvm"
    lasvm = "lasvm"


class Formulation(StrEnum):
    """How the classes share the margin."""

    crammer_singer = "crammer-singer"
    weston_watkins = "weston-watkins"
    one_vs_rest = "one-vs-rest"


class Kernel(StrEnum):
    """The kernels computed from the features."""

    linear = "linear"
    rbf = "rbf"
    poly = "poly"
    sigmoid = "sigmoid"
    laplacian = "laplacian"
    chi2 = "chi2"
    intersection = "intersection"


class Schedule(StrEnum):
    """How LaRank shares its time between new and old examples."""

    adaptive = "adaptive"
    fixed = "fixed"


class Stop(StrEnum):
    """What ends training."""

    gap = "gap"
    violation = "violation"
    epochs = "epochs"


class ClassWeight(StrEnum):
    """How the errors of different classes weigh."""

    balanced = "balanced"


def _gamma(text: str) -> float | str:
    if text in ("scale", "auto"):
        return text
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise typer.BadParameter(f"must be scale, auto or a number greater than 0, got {text}")
    return value


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"larank {metadata.version('larank')}")
        raise typer.Exit


_DATA_HELP = (
    "Labelled examples: svmlight (.svm), .csv with the label in the last column, or .npz with X and y; "
    "may be compressed (.gz .bz2 .xz)."
)

DataFile = Annotated[Path, typer.Argument(metavar="DATA", help=_DATA_HELP, show_default=False)]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file written by `larank train`.")]
NewModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Where to write the model.")]
TestFile = Annotated[Path | None, typer.Option("--test", metavar="DATA", help="Measure the error on this file.")]
ReportFile = Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Write a one-page HTML report.")]
AlgorithmName = Annotated[
    Algorithm,
    typer.Option(
        help="sdm: linear, LinearMulticlassSVC. larank: with a kernel, in passes, LaRankClassifier. mcsvm: with a "
        "kernel, to the optimum, MulticlassSVC. lasvm: with a kernel and a bias, one against the rest, in passes, "
        "LaSVMClassifier."
    ),
]
FormulationName = Annotated[
    Formulation | None,
    typer.Option(help="sdm, mcsvm: how the classes share the margin.", show_default="crammer-singer"),
]
KernelName = Annotated[Kernel | None, typer.Option(help="larank, lasvm, mcsvm: the kernel.", show_default="rbf")]
Gamma = Annotated[
    Any,
    typer.Option(
        parser=_gamma,
        metavar="NUMBER|scale|auto",
        help="larank, lasvm, mcsvm: the factor in the kernel; auto is 1 / features, scale that over the variance.",
        show_default="scale",
    ),
]
Degree = Annotated[int | None, typer.Option(min=1, help="larank, lasvm, mcsvm: the degree of poly.", show_default="3")]
Coef0 = Annotated[
    float | None, typer.Option(help="larank, lasvm, mcsvm: the constant in poly and sigmoid.", show_default="0")
]
ScheduleName = Annotated[
    Schedule | None, typer.Option(help="larank: when it works on old examples.", show_default="adaptive")
]
Reprocess = Annotated[
    int | None, typer.Option(min=0, help="larank: steps on old examples per new one, if fixed.", show_default="1")
]
Memory = Annotated[
    float | None,
    typer.Option(
        metavar="BYTES",
        callback=positive,
        help="larank, lasvm, mcsvm: memory for the kernel.",
        show_default="larank, lasvm: 2e9; mcsvm: 4e9",
    ),
]
Threads = Annotated[int | None, typer.Option(help="larank, lasvm, mcsvm: threads; -1 for all cores.")]
Cost = Annotated[
    float | None,
    typer.Option("-C", callback=positive, help="Cost of an error; smaller is smoother.", show_default="1"),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        callback=positive,
        help="Stop once --stop, of mcsvm the relative duality gap, is below this.",
        show_default="sdm, mcsvm: 0.001; larank, lasvm: gap below C",
    ),
]
StopName = Annotated[
    Stop | None,
    typer.Option(
        help="What --tol bounds, relative duality gap or (sdm) violation; or (larank, lasvm) end after --epochs.",
        show_default="sdm: gap; larank, lasvm: epochs",
    ),
]
Epochs = Annotated[int | None, typer.Option(min=1, help="larank, lasvm: passes over the data.", show_default="1")]
Passes = Annotated[
    int | None, typer.Option(min=1, help="Stop after so many passes if --tol is not reached.", show_default="1000")
]
Intercept = Annotated[
    bool | None,
    typer.Option(
        "--intercept/--no-intercept",
        help="sdm, mcsvm: learn a constant for every class.",
        show_default="sdm: yes; mcsvm: no",
    ),
]
Weights = Annotated[ClassWeight | None, typer.Option(help="Let rare classes weigh as much as frequent ones.")]
Width = Annotated[
    int | None, typer.Option(min=1, help="Width of sparse data, if other files use features DATA does not.")
]
ZeroBased = Annotated[bool, typer.Option("--zero-based", help="The indices of svmlight files count from zero.")]


def main() -> None:
    """Run the `larank` command."""
    app(prog_name="larank")


@app.callback()
def larank(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Large-margin learning: train multiclass SVMs and know how far from optimal they are.

    \b
    A first look, on a data set that comes with the package:
      larank demo

    \b
    With your own data:
      larank train letter.svm letter.larank -C 1 --test letter.test.svm
      larank eval letter.larank letter.test.svm
      larank predict letter.larank new.svm labels.txt

    \b
    Sequences, from text in columns:
      larank tag train train.txt chunks.larank --test test.txt

    Exit status: 0 done, 1 the work failed (one line says why), 2 wrong usage.
    """


@app.command()
def train(
    data_file: DataFile,
    model_file: NewModelFile,
    algorithm: AlgorithmName = Algorithm.sdm,
    formulation: FormulationName = None,
    kernel: KernelName = None,
    gamma: Gamma = None,
    degree: Degree = None,
    coef0: Coef0 = None,
    C: Cost = None,
    stop: StopName = None,
    tol: Tolerance = None,
    epochs: Epochs = None,
    max_iter: Passes = None,
    time_limit: Seconds = None,
    schedule: ScheduleName = None,
    n_reprocess: Reprocess = None,
    memory_limit: Memory = None,
    n_jobs: Threads = None,
    intercept: Intercept = None,
    class_weight: Weights = None,
    seed: Seed = 0,
    features: Width = None,
    zero_based: ZeroBased = False,
    test_file: TestFile = None,
    report_file: ReportFile = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train a multiclass SVM, linear or with a kernel, and write it to a file.

    Training ends when --stop says so, or at --max-iter, --time-limit or Ctrl-C; in every case the model is valid, it
    is saved, and its duality gap is shown. An option that cannot act with the others is an error.

    \b
    Examples:
      larank train letter.svm letter.larank
      larank train letter.csv letter.larank --algorithm larank --gamma 0.025 -C 10 --test test.csv
      larank train letter.csv letter.larank --algorithm mcsvm --gamma 0.025 -C 10 --tol 0.01
      larank train adult.svm adult.larank --algorithm lasvm --gamma 0.005 -C 100 --test adult.t.svm
      larank train news.svm.gz news.larank -C 0.5 --formulation weston-watkins
      larank train letter.csv letter.larank --test test.csv --report letter.html
      larank train big.npz big.larank --tol 0.01 --time-limit 60
    """
    with work(debug):
        options = {
            "formulation": formulation,
            "kernel": kernel,
            "gamma": gamma,
            "degree": degree,
            "coef0": coef0,
            "C": C,
            "stop": stop,
            "tol": tol,
            "epochs": epochs,
            "max_iter": max_iter,
            "time_limit": time_limit,
            "schedule": schedule,
            "n_reprocess": n_reprocess,
            "memory_limit": memory_limit,
            "n_jobs": n_jobs,
            "fit_intercept": intercept,
            "class_weight": class_weight,
        }
        estimator = _estimator(algorithm, {name: value for name, value in options.items() if value is not None})
        estimator.set_params(random_state=seed, verbose=0 if quiet else 1)
        check_outputs([model_file, report_file], [data_file, test_file])
        check_replaceable(model_file)
        X, y = _read(data_file, features, zero_based)
        test = None
        if test_file is not None:
            test = _read(test_file, X.shape[1], zero_based)
            _check_labels(test_file, test[1], np.unique(y))
        estimator.fit(X, y)
        models.save(estimator, model_file)
        say_if_stopped_early(estimator, model_file)
        figures, tables = _tested(estimator, test)
        if report_file is not None:
            _report_training(report_file, estimator, data_file, X.shape[0], figures, tables)
        if not quiet:
            print_values({**figures, **certificate(estimator.result_)})
            print_line(f"model written to {model_file}")
            if report_file is not None:
                print_line(f"report written to {report_file}")


@app.command()
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
        estimator = _load(model_file)
        X, _ = _read(data_file, estimator.n_features_in_, zero_based)
        chunks = _score_lines(estimator, X) if scores else _label_lines(estimator, X)
        if output is None:
            for chunk in chunks:
                typer.echo(chunk, nl=False)
        else:
            with atomic_write(output) as file:
                for chunk in chunks:
                    file.write(chunk.encode())


@app.command("eval")
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
        estimator = _load(model_file)
        X, y = _read(data_file, estimator.n_features_in_, zero_based)
        _check_labels(data_file, y, estimator.classes_)
        y, predicted = _compare(estimator, X, y)
        print_values(_error_figures(y, predicted))
        by_class, pairs = class_errors(y, predicted), confusions(y, predicted)
        print_rows(by_class[:top], counted("Classes by error", len(by_class), top))
        if pairs:
            print_rows(pairs[:top], counted("Most confused", len(pairs), top))


@app.command()
def info(model_file: ModelFile, debug: Debug = False) -> None:
    """Show what is in a model file.

    Its kind, parameters, classes and certificate, and the version that wrote it.

    \b
    Example:
      larank info letter.larank
    """
    with work(debug):
        print_values(_flat(models.describe(model_file)))


@app.command()
def demo(
    output: Annotated[Path, typer.Option(metavar="DIR", help="Folder for model.larank and report.html.")] = Path(
        "demo"
    ),
    debug: Debug = False,
) -> None:
    """Train LaRank in one pass on UCI LETTER, beside its paper and scikit-learn's SVC.

    The data come with the package. Takes well under a minute, prints a small table and writes a model file and a
    one-page report with the convergence plot.

    \b
    Example:
      larank demo --output /tmp/larank-demo
    """
    with work(debug):
        output.mkdir(parents=True, exist_ok=True)
        _run_demo(output)


# ---- Data ----


def _load(model_file: Path) -> Any:
    estimator = models.load(model_file)
    if not hasattr(estimator, "n_features_in_"):
        raise ValueError(f"{model_file} holds a {type(estimator).__name__}; see `larank tag` for what tags sequences")
    return estimator


def _read(path: Path, n_features: int | None, zero_based: bool) -> tuple[Any, npt.NDArray[Any]]:
    """Read a file; sparse data that use fewer than `n_features` features are widened, more are an error."""
    X, y = read(path, zero_based=True) if zero_based else read(path)
    if n_features is None or X.shape[1] == n_features:
        return X, y
    if sparse.issparse(X) and X.shape[1] < n_features:
        X = sparse.csr_matrix(X)
        return sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features)), y
    advice = ""
    if sparse.issparse(X):
        advice = f"; train with --features {X.shape[1]}"
    elif {".csv", ".tsv"} & {suffix.lower() for suffix in path.suffixes}:
        advice = "; its last column was taken as the label"
    raise ValueError(f"{path} has {X.shape[1]} features, the model {n_features}{advice}")


def _slices(X: Any) -> Iterator[Any]:
    """Cut into pieces whose scores fit into memory; an empty X is one piece, for the estimator to refuse."""
    for start in range(0, max(X.shape[0], 1), _ROWS_AT_ONCE):
        yield X[start : start + _ROWS_AT_ONCE]


def _predict(estimator: Any, X: Any) -> npt.NDArray[Any]:
    return np.concatenate([estimator.predict(piece) for piece in _slices(X)])


def _compare(estimator: Any, X: Any, y: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the true and the predicted labels in one type."""
    true, _ = _alike(y, estimator.classes_)
    predicted, _ = _alike(_predict(estimator, X), y)
    return true, predicted


def _check_labels(path: Path, y: npt.NDArray[Any], classes: npt.NDArray[Any]) -> None:
    """Warn of labels the model does not know; if it knows none, the file belongs to another problem."""
    y, classes = _alike(y, classes)
    unknown = y[~np.isin(y, classes)]
    if len(unknown) == 0:
        return
    found, wanted = (_short(np.unique(labels).tolist()) for labels in (unknown, classes))
    if len(unknown) == len(y):
        raise ValueError(f"{path}: none of its labels ({found}) is a class of the model ({wanted})")
    count = len(unknown)
    some = "1 example has a label" if count == 1 else f"{count} examples have labels"
    say(f"warning: {path}: {some} unknown to the model ({found}), counted as {'an error' if count == 1 else 'errors'}")


def _alike(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Make labels comparable: a file has numbers only if all its labels are, so 1 may be "1" elsewhere."""
    texts = "OUS"
    if (a.dtype.kind in texts) == (b.dtype.kind in texts):
        return a, b
    return _texts(a), _texts(b)


def _texts(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.array([format_label(label) for label in labels.tolist()])


def _label_lines(estimator: Any, X: Any) -> Iterator[str]:
    for piece in _slices(X):
        yield "".join(f"{format_label(label)}\n" for label in estimator.predict(piece))


def _score_lines(estimator: Any, X: Any) -> Iterator[str]:
    """With two classes there is one score, positive for the second."""
    scored = estimator.classes_[1:] if len(estimator.classes_) == 2 else estimator.classes_
    yield "\t".join(["label", *map(format_label, scored)]) + "\n"
    for piece in _slices(X):
        scores = estimator.decision_function(piece).reshape(piece.shape[0], -1)
        for label, row in zip(estimator.predict(piece), scores, strict=True):
            yield "\t".join([format_label(label), *(f"{score:.9g}" for score in row)]) + "\n"


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """Lay nested metadata out as one table; long lists are cut."""
    flat: dict[str, object] = {}
    for name, value in values.items():
        if isinstance(value, Result):
            value = certificate(value)
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if isinstance(value, models.ArrayInfo):
            value = f"{value.dtype}, {' x '.join(map(str, value.shape))}"
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{name}."))
        elif isinstance(value, list | tuple):
            flat[f"{prefix}{name}"] = _short(value)
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _short(values: Sequence[Any], shown: int = 10) -> str:
    if any(isinstance(value, Mapping | list | tuple) for value in values):
        return f"{len(values)} entries"
    text = ", ".join(map(format_label, values[:shown]))
    return text if len(values) <= shown else f"{text}, ... ({len(values)} in all)"


# ---- Training and testing ----

# What an option may be, where some of its values are for other algorithms.
_ACCEPTED = {
    ("stop", Algorithm.sdm): ("gap", "violation"),
    ("stop", Algorithm.larank): ("epochs", "gap"),
    ("stop", Algorithm.lasvm): ("epochs", "gap"),
    ("formulation", Algorithm.mcsvm): ("crammer-singer", "weston-watkins"),
}

# What an option acts with: another one, and the values of that one.
_ACTS_WITH = {
    "gamma": ("kernel", ("rbf", "poly", "sigmoid", "laplacian", "chi2")),
    "degree": ("kernel", ("poly",)),
    "coef0": ("kernel", ("poly", "sigmoid")),
    "n_reprocess": ("schedule", ("fixed",)),
    "epochs": ("stop", ("epochs",)),
    "tol": ("stop", ("gap", "violation")),
    "max_iter": ("stop", ("gap", "violation")),
}


def _estimator(algorithm: Algorithm, options: Mapping[str, Any]) -> Any:
    """Make the estimator from the options given; all others keep its own defaults."""
    given = {name: value.value if isinstance(value, StrEnum) else value for name, value in options.items()}
    estimator = _default_estimator(algorithm)
    parameters = {**estimator.get_params(), **given}
    for name, value in given.items():
        if name not in estimator.get_params():
            raise typer.BadParameter(f"{_option(name)} cannot act with --algorithm {algorithm}")
        accepted = _ACCEPTED.get((name, algorithm), (value,))
        if value not in accepted:
            raise typer.BadParameter(
                f"{_option(name)} {value} is not for --algorithm {algorithm}; it has {' or '.join(accepted)}"
            )
    for name, (other, values) in _ACTS_WITH.items():
        if name in given and other in parameters and parameters[other] not in values:
            able = " or ".join(value for value in values if value in _ACCEPTED.get((other, algorithm), values))
            raise typer.BadParameter(
                f"{_option(name)} cannot act with {_option(other)} {parameters[other]}; it acts with {able}"
            )
    return estimator.set_params(**given)


def _default_estimator(algorithm: Algorithm) -> Any:
    if algorithm is Algorithm.sdm:
        return LinearMulticlassSVC()
    if algorithm is Algorithm.mcsvm:
        from larank.kernel.exact import MulticlassSVC

        return MulticlassSVC()
    if algorithm is Algorithm.lasvm:
        from larank.kernel.lasvm import LaSVMClassifier

        return LaSVMClassifier()
    from larank.kernel.larank import LaRankClassifier

    return LaRankClassifier()


def _option(parameter: str) -> str:
    names = {"C": "-C", "fit_intercept": "--[no-]intercept"}
    return names.get(parameter, f"--{parameter.replace('_', '-')}")


def _error_figures(y: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> dict[str, object]:
    wrong = int(np.count_nonzero(y != predicted))
    return {"test examples": len(y), "test errors": wrong, "test error": f"{wrong / len(y):.2%}"}


def _worst(y: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> dict[str, Sequence[Row]]:
    return {"Worst classes": class_errors(y, predicted)[:8], "Most confused": confusions(y, predicted)[:8]}


def _tested(
    estimator: Any, test: tuple[Any, npt.NDArray[Any]] | None
) -> tuple[dict[str, object], dict[str, Sequence[Row]]]:
    if test is None:
        return {}, {}
    y, predicted = _compare(estimator, *test)
    return _error_figures(y, predicted), _worst(y, predicted)


def _report_training(
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


# ---- The demonstration ----

_DEMO_NOTES = (
    "LaRank and SVC: raw values 0 to 15, rbf kernel with gamma = 0.025, C = 10. The paper's row is from its table 2, "
    "with an interpreter and a computer of 2007.",
    "SVC solves a problem for every pair of classes, so it has no dual to compare. The linear model: values divided "
    "by 15, C = 1.",
    "Kernels: kernel values computed for training. Patterns: support patterns kept. Seconds are those of fit, for "
    "LaRank with its certificate, and of predict on the test examples.",
)


def _run_demo(folder: Path) -> None:
    from larank.kernel.larank import LaRankClassifier

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
    rows = [row, _published_row(), svc_row | {"patterns": len(svc.support_)}, linear_row]

    models.save(ours, folder / "model.larank")
    write_report(
        folder / "report.html",
        "LaRank in one pass on UCI LETTER",
        rows,
        result,
        parameters=ours.get_params(),
        data={"data": "UCI LETTER (CC BY 4.0)", "training examples": len(train), "test examples": len(test)}
        | {"features": train.shape[1], "classes": len(ours.classes_)},
        tables=_worst(letter.y_test, predicted),
        notes=_DEMO_NOTES,
    )
    print_rows(rows)
    for note in _DEMO_NOTES:
        console().print(note, style="dim")
    print_line(f"\nmodel   {folder / 'model.larank'}\nreport  {folder / 'report.html'}")


def _demonstrated(name: str, estimator: Any, split: tuple[Any, ...]) -> tuple[dict[str, object], npt.NDArray[Any]]:
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


def _published_row() -> dict[str, object]:
    """[larank] table 2"""
    return {"model": "LaRank x1, paper", "error": "2.80%", "dual": "5226", "kernels": "55M", "train s": "940"}
